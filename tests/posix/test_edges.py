"""Programs at the edges of the calls: edges.c."""

import pytest

from conftest import run_command
from copies import KINDS, write_plan

from .conftest import cases


@pytest.mark.parametrize("case", cases("edges"))
def test_edges(worlds, programs, case):
    worlds.both(lambda directory: [programs / "edges", case, directory / "file"])
    worlds.assert_same("file")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["cancel_in_calls", "processes_alone"])
def test_with_copies(cluster, programs, kind, case):
    """Files with copies involve a thread of their own, and locks of LMDB."""
    write_plan(cluster, kind)
    cluster.run(programs / "edges", case, cluster.data / "file")


def test_a_removed_file_in_another_program(worlds):
    """A program that inherits the descriptor of a removed file cannot reach its bytes, and gets an
    error."""
    result = worlds.with_library("sh", "-c", 'exec 3<>"$0"; echo x >&3; rm "$0"; cat <&3', worlds.managed / "file", ok=False)
    assert result.code != 0 and "Input/output error" in result.err
    assert "was removed; only programs that had opened it themselves by then can use it" in result.err, result


# What fchmodat of glibc 2.39 does on Linux 6.6 and later: fchmodat2(2).
FCHMODAT = """#define _GNU_SOURCE
    #include <unistd.h>
    int fchmodat(int dir, const char *path, unsigned mode, int flags) {
        return syscall(452, dir, path, mode, flags);
    }"""


@pytest.mark.parametrize("libc", ["this one", "2.39"])
def test_a_mode_by_descriptor_and_empty_path(worlds, stripewise, python, tmp_path, libc):
    """glibc before 2.39 refuses the flag, and so does the library there. Later versions pass it to the
    kernel; the mode of the objects then changes, too."""
    script = """import ctypes, os, sys
with open(sys.argv[1], "wb") as f:
    f.write(b"x" * 4096)
    done = ctypes.CDLL(None, use_errno=True).fchmodat(f.fileno(), b"", 0o640, 0x1000)
print(done, oct(os.stat(sys.argv[1]).st_mode))"""
    environment = worlds.cluster.environment()
    libraries = [environment["LD_PRELOAD"]]
    if libc != "this one":
        source, shim = tmp_path / "fchmodat.c", tmp_path / "fchmodat.so"
        source.write_text(FCHMODAT)
        run_command("gcc", "-shared", "-fPIC", "-o", shim, source)
        libraries.append(str(shim))
    bare = run_command(python, "-c", script, worlds.plain / "file", env={"LD_PRELOAD": ":".join(libraries[1:])})
    managed = run_command(python, "-c", script, worlds.managed / "file", env={**environment, "LD_PRELOAD": ":".join(libraries)})
    assert managed.out == bare.out
    if libc != "this one":
        if bare.out.startswith("-1"):
            pytest.skip("this kernel has no fchmodat2")
        assert bare.out == "0 0o100640\n"
        assert {oct(path.stat().st_mode) for path in worlds.objects()} == {"0o100640"}
    stripewise("fsck", worlds.managed / "file")
