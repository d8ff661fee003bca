"""Takes out what keeps the invariants, one mechanism at a time, and looks whether the test named fails: `make test-mutations`.

Works in a copy of the checkout (what is committed), with a cargo target directory of its own. Arguments: words; only mechanisms that
contain one of them are taken out.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("STRIPEWISE_BUILD_DIR", str(ROOT / "build"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "mutations")).resolve()


def run(words, directory, seconds_max=None, **environment):
    """Exit status and output of a command in the copy; 1 if it takes longer than `seconds_max`."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), **environment}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(words, cwd=directory, env=env, start_new_session=True, **pipes) as process:
        try:
            output, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return 1, output
    return process.returncode, output


def run_test(mutation, test, copy):
    """Whether a test passes. A mutant that does not compile ends the campaign: it shows nothing."""
    environment = mutation.get("environment", {})
    if "crate" in mutation:
        cargo = ["cargo", "test", "-q", "-p", mutation["crate"], "--lib"]
        status, output = run([*cargo, "--no-run"], copy)
        if status:
            sys.exit(f"{mutation['mechanism']}: does not build\n{output}")
        status, output = run([*cargo, test], copy, mutation.get("seconds_max"), **environment)
        return status == 0 if "running 0 tests" not in output else sys.exit(f"{test}: no such test")
    build = ["cargo", "build", "-q", "-p", "stripewise", "-p", "stripewise-preload", "--profile", "test"]
    status, output = run(build, copy)
    if status:
        sys.exit(f"{mutation['mechanism']}: does not build\n{output}")
    environment = {**environment, "STRIPEWISE_BIN_DIR": str(TARGET / "debug"), "STRIPEWISE_BUILD_DIR": build_workloads(mutation, copy)}
    status, output = run([sys.executable, "-m", "pytest", "-q", *test.split()], copy, mutation.get("seconds_max"), **environment)
    return status == 0 if status in (0, 1) else sys.exit(f"{test}: pytest ends with {status}\n{output}")


def build_workloads(mutation, copy):
    """The directory of the workloads; one with the MPI libraries of the copy if they are mutated."""
    if not any(edit["file"].startswith("mpi/") for edit in mutation["edits"]):
        return BUILD
    own = TARGET / "build"  # where `stripewise` looks for them
    shutil.copytree(BUILD, own, dirs_exist_ok=True)
    status, output = run(["make", "-s", "-C", "mpi", f"BUILD={own}"], copy)
    if status:
        sys.exit(f"{mutation['mechanism']}: does not build\n{output}")
    return str(own)


def unnoticed_by(mutation, copy):
    """Applies a mutation, and takes it back; the tests that pass all the same."""
    edits = [(Path(copy) / edit["file"], edit["old"], edit["new"]) for edit in mutation["edits"]]
    texts = {file: file.read_text() for file, _, _ in edits}
    for file, old, new in edits:
        file.write_text(file.read_text().replace(old, new))
    passing = [test for test in mutation["tests"] if run_test(mutation, test, copy)]
    for file, text in texts.items():
        file.write_text(text)
    return passing


def main():
    """Runs the campaign; the exit status is 1 if something was not noticed."""
    mutations = tomllib.loads((Path(__file__).parent / "mutations.toml").read_text())["mutation"]
    chosen = [m for m in mutations if not sys.argv[1:] or any(word in m["mechanism"] for word in sys.argv[1:])]
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="stripewise-mutations-") as directory:
        subprocess.run(["git", "clone", "-q", ROOT, directory], check=True)
        for mutation in chosen:
            passing = unnoticed_by(mutation, directory)
            unnoticed += len(passing)
            words = f"NOT NOTICED by {', '.join(passing)}" if passing else "noticed"
            print(words, *mutation["invariants"], mutation["mechanism"], sep="\t", flush=True)
    sys.exit(1 if unnoticed else 0)


main()
