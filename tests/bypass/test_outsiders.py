"""Programs without the library. They cannot write to an anchor, neither by its name nor through a
descriptor inherited from a program with the library, because no user has write permission. Root
needs none, but nothing that root does loses data, and `fsck --repair` restores the file."""

import contextlib
import shutil
import subprocess
import sys

import pytest

from conftest import HANGS_S

from .conftest import compiled, run_raw

HARMFUL = ["write", "append", "truncate", "grow", "empty", "map", "punch"]
# Root without capabilities behaves like any user with files of its own.
OWNER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
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
COUNTED = "programs without the library on managed files"


@pytest.fixture(scope="session", params=["static", "go"])
def outsider(request, tmp_path_factory):
    """A program that makes its system calls directly."""
    directory = tmp_path_factory.mktemp("outsider")
    if request.param == "static":
        return compiled(directory, ["gcc", "-static"], "outsider.c")
    if not shutil.which("go"):
        pytest.skip("no Go toolchain is installed")
    # Shared by all processes that run tests.
    cache = tmp_path_factory.getbasetemp().parent / "go-cache"
    environment = {"CGO_ENABLED": "0", "GOCACHE": str(cache), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    return compiled(directory, ["go", "build"], "outsider.go", env=environment)


def test_reading_gives_the_manifest(prey, outsider, count):
    for run in (run_raw, prey.with_library):
        done = run(outsider, "read", prey.path)
        assert (done.stdout if run is run_raw else done.out).startswith("stripewise file, format ")
    count(COUNTED, 2)
    prey.assert_unharmed()


def test_what_is_inherited_cannot_be_written(prey, outsider, count):
    """A program with the library opens the file and passes the descriptor to a program without it.
    """
    shell = f'exec 1<>"{prey.path}"; exec "{outsider}" stdout -'
    result = prey.with_library("bash", "-c", shell, ok=False)
    assert result.code == 1 and "EBADF" in result.err, result
    count(COUNTED)
    prey.assert_unharmed()


@contextlib.contextmanager
def held_open(prey):
    """A program with the library holds the file open. In the end it reads and writes all of the
    file through its existing state."""
    command = [*OWNER, sys.executable, "-c", HOLD, str(prey.path), str(prey.scratch)]
    environment = {"PATH": "/usr/bin:/bin", **prey.cluster.environment()}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"open\n"
        yield
        holder.communicate(b"\n", timeout=HANGS_S)
        assert holder.returncode == 0


@pytest.fixture(params=["closed", "open"])
def used(request, prey):
    """Whether another program has the file open."""
    return held_open(prey) if request.param == "open" else contextlib.nullcontext()


@pytest.mark.parametrize("what", HARMFUL)
def test_its_owner_cannot_damage_an_anchor(prey, outsider, used, what, count):
    with used:
        done = run_raw(*OWNER, outsider, what, prey.path)
        assert done.returncode == 1 and ("EACCES" in done.stderr or "permission denied" in done.stderr), done
        assert prey.anchor_now() == prey.anchor
    count(COUNTED)
    prey.assert_unharmed()


@pytest.mark.parametrize("what", HARMFUL)
def test_what_root_does_to_an_anchor_costs_no_data(prey, outsider, used, what, count):
    with used:
        done = run_raw(outsider, what, prey.path)
        assert done.returncode == 0 and prey.anchor_now() != prey.anchor, f"it does no harm: {done}"
    count(COUNTED)
    # A file that is being created looks the same. Without the option fsck waits for an hour.
    prey.stripewise("fsck", "--repair", "--orphan-age", 0, "-c", prey.cluster.toml, prey.cluster.data, ok=False)
    assert prey.content() == prey.data
    prey.assert_clean()
