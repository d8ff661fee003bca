"""What MPI promises of a file that ranks on several nodes share: MPI_File_sync, MPI_File_close,
MPI_File_set_size, atomic mode and more, on plain files, striped files and shared files with copies."""

from collections import Counter
from pathlib import Path

import pytest
from conftest import BIN, LONG, MPIS, run_command
from copies import KINDS, committers, write_plan
from worlds import CYCLES

from .conftest import ALL_NODES, compare_copies
from .test_jobs import launched

CASES = ["sync", "close", "size", "atomicity"]
# Those that files with copies do not pass because their file system does.
CASES_OF_COPIES = [*CASES, "own bytes", "pieces", "pieces of all", "preallocation", "shared pointer", "append", "deletion"]
NODES = ALL_NODES[:3]
RANKS = 4  # one node has two
RANKS_OF_NODE = 2  # where two nodes share them
# Open MPI has two MPI-IOs. Its own, OMPIO (4.1.4), stores the atomic mode and takes no lock for it,
# and what it preallocates is shifted.
ROMIO = "romio321"
NOT_OF_OMPIO = ["atomicity", "preallocation"]
IOS = {"mpich": [""], "openmpi": ["ompio", ROMIO]}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The program, built with each MPI; a node sees this machine's files."""
    directory = tmp_path_factory.mktemp("semantics")
    for mpi in MPIS:
        run_command(f"mpicc.{mpi}", "-O1", "-Wall", "-Wextra", "-Werror", "-o", directory / mpi, Path(__file__).with_name("semantics.c"))
    return directory


def job_of(mpi, io):
    """The command line that begins the one of a job with this MPI-IO."""
    return [*launched("mpirun", mpi, NODES, RANKS), *(["--mca", "io", io] if io else [])]


def run_managed(bed, job, worlds, program, case):
    over_plan = [BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--"]
    return bed.on("node1", *job, *over_plan, program, worlds.managed / "f", case, ok=False)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mpi", MPIS)
def test_what_mpi_promises_of_shared_files(bed, worlds_of, programs, mpi, case):
    worlds = worlds_of(CYCLES["odd"])
    job = job_of(mpi, IOS[mpi][case in NOT_OF_OMPIO and mpi == "openmpi"])
    plain = bed.on("node1", *job, programs / mpi, worlds.plain / "f", case, ok=False)
    managed = run_managed(bed, job, worlds, programs / mpi, case)
    assert worlds.is_managed("f")
    # On CephFS, the size that a node sees of a plain file may be an old one.
    assert (plain.out, plain.code) == ("ok\n", 0) or (bed.is_ceph and case == "size"), plain.err
    assert (managed.out, managed.code) == ("ok\n", 0), managed.err


def jobs_with_copies():
    """(kind of copies, MPI, MPI-IO, case); without LONG each case with each MPI-IO once."""
    for c, case in enumerate(CASES_OF_COPIES):
        ios = [(mpi, io) for mpi in MPIS for io in IOS[mpi] if io != "ompio" or case not in NOT_OF_OMPIO]
        for i, (mpi, io) in enumerate(ios):
            for k, kind in enumerate(KINDS):
                if LONG or (c + i + k) % len(KINDS) == 0:
                    yield kind, mpi, io, case


@pytest.mark.parametrize(("kind", "mpi", "io", "case"), list(jobs_with_copies()))
def test_what_mpi_promises_of_shared_files_with_copies(bed, shared_of, programs, kind, mpi, io, case):
    worlds, job = shared_of(kind), job_of(mpi, io)
    plain = bed.on("node1", *job, programs / mpi, worlds.plain / "f", case, ok=False)
    assert (plain.out, plain.code) == ("ok\n", 0) or bed.is_ceph, plain.err
    managed = run_managed(bed, job, worlds, programs / mpi, case)
    assert (managed.out, managed.code) == ("ok\n", 0), managed.err
    assert worlds.is_managed("f")
    compare_copies(bed, worlds, "f")


@pytest.mark.parametrize("kind", KINDS)
def test_atomic_mode_is_refused_where_the_mpi_library_takes_no_locks(bed, shared_of, programs, kind):
    worlds = shared_of(kind)
    refused = run_managed(bed, job_of("openmpi", "ompio"), worlds, programs / "openmpi", "refusal")
    assert (refused.out, refused.code) == ("ok\n", 0), refused.err
    assert "choose ROMIO" in refused.err
    compare_copies(bed, worlds, "f")


@pytest.mark.parametrize("mpi", MPIS)
def test_a_collective_sync_costs_each_node_one_append(bed, shared_of, programs, mpi, rounds=10):
    """The ranks of a node have written when one of them commits, and the others then have nothing to
    append. (On a busy machine a node appended up to three times more in all; why was not traced.)"""
    worlds = shared_of("replicas")
    write_plan(worlds.cluster, "replicas", lazy=True)
    job = launched("mpirun", mpi, ALL_NODES[:2], RANKS)
    done = run_managed(bed, job, worlds, programs / mpi, "commits")
    assert (done.out, done.code) == ("ok\n", 0), done.err
    journals = [path for target in worlds.cluster.targets for path in target.glob("stripewise/*/*.extents")]
    commits = Counter(committers(max(journals, key=lambda path: path.stat().st_size)))
    assert len(commits) == 2, commits
    assert all(rounds <= times < rounds * RANKS_OF_NODE for times in commits.values()), commits
