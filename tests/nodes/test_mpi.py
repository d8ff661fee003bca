"""What MPI promises of a file that ranks on several nodes share: MPI_File_sync, MPI_File_close,
MPI_File_set_size and atomic mode, on plain and on striped files."""

from pathlib import Path

import pytest
from conftest import BIN, MPIS, run_command
from worlds import CYCLES

from .conftest import ALL_NODES
from .test_jobs import launched

CASES = ["sync", "close", "size", "atomicity"]
NODES = ALL_NODES[:3]
RANKS = 4  # one node has two
# Open MPI's OMPIO (4.1.4) stores the atomic mode and takes no lock for it, so it is not tested.
ROMIO = {"openmpi": ["--mca", "io", "romio321"], "mpich": []}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The program, built with each MPI; a node sees this machine's files."""
    directory = tmp_path_factory.mktemp("semantics")
    for mpi in MPIS:
        run_command(f"mpicc.{mpi}", "-O1", "-Wall", "-Wextra", "-Werror", "-o", directory / mpi, Path(__file__).with_name("semantics.c"))
    return directory


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mpi", MPIS)
def test_what_mpi_promises_of_shared_files(bed, worlds_of, programs, mpi, case):
    worlds = worlds_of(CYCLES["odd"])
    job = [*launched("mpirun", mpi, NODES, RANKS), *(ROMIO[mpi] if case == "atomicity" else [])]
    plain = bed.on("node1", *job, programs / mpi, worlds.plain / "f", case, ok=False)
    over_plan = [BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--"]
    managed = bed.on("node1", *job, *over_plan, programs / mpi, worlds.managed / "f", case, ok=False)
    assert worlds.is_managed("f")
    # On CephFS, the size that a node sees of a plain file may be an old one.
    assert (plain.out, plain.code) == ("ok\n", 0) or (bed.is_ceph and case == "size"), plain.err
    assert (managed.out, managed.code) == ("ok\n", 0), managed.err
