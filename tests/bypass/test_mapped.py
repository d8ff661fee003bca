"""Mappings of managed files in processes whose `mmap` UCX has patched, as Debian's MPICH does."""

import ctypes.util
import os

import pytest

from .conftest import compiled

UCX = ctypes.util.find_library("ucm")
LIBMPICH = ctypes.util.find_library("mpich")
needs_ucx = pytest.mark.skipif(not (UCX and LIBMPICH), reason="no MPICH with UCX is installed")


@pytest.fixture(scope="session")
def mapped(tmp_path_factory):
    """The program without MPI and with MPICH."""
    directory = tmp_path_factory.mktemp("mapped")
    compiled(directory, ["gcc"], "mapped.c", "-ldl")
    compiled(directory, ["mpicc.mpich", "-DWITH_MPI"], "mapped.c", "-ldl", to="mapped.mpich")
    return directory


def both(prey, execute, program, *more, env=None):
    """The program's output on a plain file and on the managed one, which have the same bytes."""
    plain = prey.cluster.root / "plain"
    plain.write_bytes(prey.data)
    outputs = [run(program, path, *more, env=env).out for path, run in ((plain, execute), (prey.path, prey.with_library))]
    assert prey.content() == plain.read_bytes()
    assert prey.anchor_now() == prey.anchor
    prey.assert_clean()
    return outputs


@needs_ucx
@pytest.mark.parametrize("program", ["mapped", "mapped.mpich"])
def test_what_is_mapped_is_the_file(prey, mapped, execute, program):
    plain, managed = both(prey, execute, mapped / program)
    assert plain == managed


@needs_ucx
def test_a_library_that_patches_after_the_file_was_opened(prey, mapped, execute):
    plain, managed = both(prey, execute, mapped / "mapped", LIBMPICH)
    assert plain == managed


@needs_ucx
def test_ucx_goes_on_seeing_what_is_mapped(prey, mapped):
    """UCX tests its own hooks; they work as without the library."""
    environment = {"UCX_MEM_LOG_LEVEL": "debug"}
    result = prey.with_library(mapped / "mapped.mpich", prey.path, env=environment)
    tests = [line for line in (result.out + result.err).splitlines() if "events test: got" in line]
    assert tests
    for line in tests:
        got, expected = (word for word in line.split() if word.startswith("0x"))
        assert got == expected, line


def test_other_ways_to_patch(prey, mapped, execute, tmp_path):
    """A near jump, and two through registers, to a function that makes the system call itself."""
    if os.uname().machine != "x86_64":
        pytest.skip("only on x86-64 the entry of mmap is watched")
    for form in range(3):
        library = compiled(tmp_path, ["gcc", "-shared", "-fPIC", f"-DFORM={form}"], "patcher.c", "-ldl", to=f"form{form}.so")
        prey.restore()
        plain, managed = both(prey, execute, mapped / "mapped", library)
        assert plain == managed, form
        assert "anonymous 1" in managed
