"""Programs that the library is not in. What they open by name is the anchor, which they may damage: no byte of data is lost by
that, and `fsck --repair` brings the file back. What they inherit from a program of the library they cannot write to."""

import shutil
import subprocess
import sys

import pytest

from .conftest import compiled, run_raw

HARMFUL = ["write", "append", "truncate", "grow", "empty", "map", "punch"]
HOLD = """
import sys
with open(sys.argv[1], "r+b", buffering=0) as file:
    print("open", flush=True)
    sys.stdin.readline()
    file.seek(0)
    content = b"".join(iter(lambda: file.read(1 << 20), b""))
    assert content == open(sys.argv[2], "rb").read(), len(content)
    file.seek(0)
    file.write(content)
"""
COUNT = {"cases": 0}


@pytest.fixture(scope="session", params=["static", "go"])
def outsider(request, tmp_path_factory):
    """A program that makes its system calls itself."""
    directory = tmp_path_factory.mktemp("outsider")
    if request.param == "static":
        return compiled(directory, ["gcc", "-static"], "outsider.c")
    if not shutil.which("go"):
        pytest.skip("no Go toolchain is installed")
    environment = {"CGO_ENABLED": "0", "GOCACHE": str(directory / "cache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    return compiled(directory, ["go", "build"], "outsider.go", env=environment)


def test_reading_gives_the_manifest(prey, outsider):
    for run in (run_raw, prey.with_library):
        done = run(outsider, "read", prey.path)
        assert (done.stdout if run is run_raw else done.out).startswith("stripewise file, format ")
    COUNT["cases"] += 2
    prey.assert_unharmed()


def test_what_is_inherited_cannot_be_written(prey, outsider):
    """A program with the library opens the file, and gives the descriptor to the other one."""
    shell = f'exec 1<>"{prey.path}"; exec "{outsider}" stdout -'
    result = prey.with_library("bash", "-c", shell, ok=False)
    assert result.code == 1 and "EBADF" in result.err, result
    COUNT["cases"] += 1
    prey.assert_unharmed()


@pytest.mark.parametrize("what", HARMFUL)
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_a_damaged_anchor_costs_no_data(prey, outsider, what, is_open):
    holder = None
    if is_open:
        command = [sys.executable, "-c", HOLD, str(prey.path), str(prey.scratch)]
        environment = {"PATH": "/usr/bin:/bin", **prey.cluster.environment()}
        holder = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdout.readline() == b"open\n"
    before = prey.anchor_now()
    done = run_raw(outsider, what, prey.path)
    assert done.returncode == 0 and prey.anchor_now() != before, f"it does no harm: {done}"
    if holder:
        # Goes on with what it knows, reads and writes all of it, and closes.
        holder.communicate(b"\n", timeout=60)
        assert holder.returncode == 0
    COUNT["cases"] += 1
    # A file that is just being created looks the same: without the option fsck waits for an hour.
    prey.stripewise("fsck", "--repair", "--orphan-age", 0, "-c", prey.cluster.toml, prey.cluster.data, ok=False)
    assert prey.content() == prey.data
    prey.assert_clean()


def test_the_cases_are_counted(capsys):
    with capsys.disabled():
        print(f"\nbypass: {COUNT['cases']} programs without the library")
