"""MPI-IO of MPICH and of both I/O stacks of Open MPI: independent, collective, strided,
nonblocking, shared pointers."""

import pytest
from conftest import LONG

STACKS = {
    "mpich": ["mpirun.mpich"],
    "ompio": ["mpirun.openmpi", "--mca", "io", "ompio"],
    "romio321": ["mpirun.openmpi", "--mca", "io", "romio321"],
}
RANKS = [1, 2, 4, 7, 16] if LONG else [1, 4, 16]


def launch(stack, ranks, program, *args):
    build = "mpich" if stack == "mpich" else "openmpi"
    return [*STACKS[stack], "-n", ranks, f"{program}.{build}", *args]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("stack", STACKS)
def test_all_ways(worlds, programs, stack, ranks):
    """Each rank checks the data it reads; afterwards the files are compared."""
    # Waiting ranks of MPICH poll and use up their share of the processor.
    blocks = 24 if ranks <= 4 or LONG else 4
    worlds.both(lambda directory: launch(stack, ranks, programs / "mpi", directory / "file", blocks))
    worlds.assert_same("file")


@pytest.mark.parametrize("stack", ["mpich", "ompio"])
def test_fortran(worlds, programs, stack):
    """Fortran also without MPI: formatted, direct access and stream I/O of its runtime."""
    worlds.both(lambda directory: launch(stack, 4, programs / "fortran", directory / "file"))
    for name in ("file", "file.direct", "file.text", "file.stream"):
        worlds.assert_same(name)


@pytest.mark.parametrize("stack", STACKS)
def test_odd_stripes(layouts, programs, stack):
    """Requests and stripes that are not aligned to each other."""
    layouts.both(lambda directory: launch(stack, 4, programs / "mpi", directory / "file", 10))
    layouts.assert_same("file")
