"""Removes the mechanisms behind the invariants, one at a time, and checks that the named test
fails: `make test-mutations`.

Works in a copy of the checkout (of the committed state), with a cargo target directory of its own.
Arguments: words; only mechanisms that contain one of them are removed.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("STRIPEWISE_BUILD_DIR", str(ROOT / "build"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "mutations")).resolve()


def run(words, directory, **environment):
    """Exit status and output of a command in the copy."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), **environment}
    done = subprocess.run(words, cwd=directory, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def run_test(mutation, copy):
    """Whether the mutation's test passes. A mutant that does not compile shows nothing, so it ends
    the campaign."""
    if "crate" in mutation:
        status, output = run(["cargo", "test", "-q", "-p", mutation["crate"], "--lib", "--no-run"], copy)
        if status == 0:
            status, output = run(["cargo", "test", "-q", "-p", mutation["crate"], "--lib", mutation["test"]], copy)
            ran = "running 0 tests" not in output
            return status == 0 if ran else sys.exit(f"{mutation['test']}: no such test")
        sys.exit(f"{mutation['mechanism']}: does not build\n{output}")
    status, output = run(["cargo", "build", "-q", "-p", "stripewise", "-p", "stripewise-preload", "--profile", "test"], copy)
    if status:
        sys.exit(f"{mutation['mechanism']}: does not build\n{output}")
    tests = [sys.executable, "-m", "pytest", "-q", *mutation["test"].split()]
    status, output = run(tests, copy, STRIPEWISE_BIN_DIR=str(TARGET / "debug"), STRIPEWISE_BUILD_DIR=BUILD)
    return status == 0 if status in (0, 1) else sys.exit(f"{mutation['test']}: pytest ends with {status}\n{output}")


def main():
    """Runs the campaign. The exit status is 1 if a mutation was not detected."""
    mutations = tomllib.loads((Path(__file__).parent / "mutations.toml").read_text())["mutation"]
    chosen = [m for m in mutations if not sys.argv[1:] or any(word in m["mechanism"] for word in sys.argv[1:])]
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="stripewise-mutations-") as directory:
        subprocess.run(["git", "clone", "-q", ROOT, directory], check=True)
        for mutation in chosen:
            file = Path(directory) / mutation["file"]
            text = file.read_text()
            file.write_text(text.replace(mutation["old"], mutation["new"]))
            passes = run_test(mutation, directory)
            file.write_text(text)
            unnoticed += passes
            print("NOT NOTICED" if passes else "noticed", mutation["invariant"], mutation["mechanism"], sep="\t", flush=True)
    sys.exit(1 if unnoticed else 0)


main()
