"""Parallel h5py over several nodes (HDF5's driver "mpio"): plain files, striped files and files with
copies get the same bytes, and the HDF5 tools on another node find the same contents."""

from pathlib import Path

import pytest
from conftest import BIN, LONG, run_command
from copies import KINDS
from worlds import CYCLES

from .conftest import ALL_NODES, compare_copies, environment
from .test_jobs import COUNTS, LAUNCHERS, LAYOUTS, RANKS, digest, launched, run_job, skip_without_slurm

PROGRAM = Path(__file__).resolve().parent / "parallel_h5.py"
# Debian's h5py, which it builds for Open MPI only, is that of Debian's Python.
PYTHON = "/usr/bin/python3"
IOS = ["ompio", "romio321"]  # Open MPI's own MPI-IO, and ROMIO in it
# Otherwise Debian's h5py uses MPI only below mpirun.
ALWAYS = {"H5PY_ALWAYS_USE_MPI": "1"}


def jobs():
    """(launcher, MPI-IO, number of nodes, layout). Without LONG only two of them."""
    every = [(launcher, io, count, layout) for launcher in LAUNCHERS for io in IOS for count in COUNTS for layout in LAYOUTS]
    return every if LONG else [("mpirun", "ompio", 4, "odd"), ("srun", "romio321", 2, "striped")]


@pytest.fixture(scope="module")
def parallel_h5py():
    """Skips where Debian's parallel h5py is missing."""
    found = run_command(PYTHON, "-c", "import h5py, mpi4py; assert h5py.get_config().mpi", env=ALWAYS, ok=False)
    if found.code != 0:
        pytest.skip(f"no python3-h5py-mpi for {PYTHON} (tools/setup.sh nodes): {found.err.strip().splitlines()[-1]}")


def shared_jobs():
    """(launcher, MPI-IO, number of nodes, kind of copies). Without LONG only two of them."""
    every = [(launcher, io, count, kind) for launcher in LAUNCHERS for io in IOS for count in COUNTS[1:] for kind in KINDS]
    return every if LONG else [("mpirun", "romio321", 2, "replicas"), ("srun", "ompio", 4, "cache")]


def run_both(bed, worlds, launcher, io, count):
    """Runs the program on a plain and on a managed file, and compares what they contain."""
    job = launched(launcher, "openmpi", ALL_NODES[:count])
    plain, managed = worlds.plain / "f.h5", worlds.managed / "f.h5"
    over_plan = [BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--"]
    settings = {**ALWAYS, "OMPI_MCA_io": io}
    # mpirun passes only its own settings on to other nodes.
    passed_on = ["env", *(f"{name}={value}" for name, value in settings.items())]
    for file, words in ((plain, [PYTHON, PROGRAM, plain]), (managed, [*over_plan, PYTHON, PROGRAM, managed])):
        done = run_job(bed, job, file, *passed_on, *words, env=settings)
        assert f"{RANKS} ranks, wrong: 0" in done.out
    assert worlds.is_managed("f.h5")
    assert digest(bed, "node2", managed, environment(worlds)) == digest(bed, "node2", plain)
    other, env = ALL_NODES[-1], environment(worlds)
    bed.on(other, "h5diff", "--verbose", plain, managed, env=env)
    dumps = [bed.on(other, "h5dump", path, env=env).out for path in (plain, managed)]
    assert dumps[0].replace(str(plain), "") == dumps[1].replace(str(managed), "") and "chunked" in dumps[0]


@pytest.mark.parametrize(("launcher", "io", "count", "layout"), jobs())
def test_a_parallel_program_writes_the_same_file(bed, worlds_of, parallel_h5py, launcher, io, count, layout):
    skip_without_slurm(bed, launcher)
    run_both(bed, worlds_of(CYCLES[layout]), launcher, io, count)


@pytest.mark.parametrize(("launcher", "io", "count", "kind"), shared_jobs())
def test_a_parallel_program_shares_a_file_with_copies(bed, shared_of, parallel_h5py, launcher, io, count, kind):
    skip_without_slurm(bed, launcher)
    worlds = shared_of(kind)
    run_both(bed, worlds, launcher, io, count)
    compare_copies(bed, worlds, "f.h5")
