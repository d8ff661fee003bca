"""MPI jobs over several nodes: the same program on plain and on managed files writes the same bytes,
which all nodes read."""

import pytest
from cephfs.test_programs import MPI_PROGRAMS
from conftest import BIN, BUILD, MPIS
from worlds import CYCLES

from .conftest import NODES, environment

RANKS = 4  # on three nodes: one of them has two
# How Debian's builds of the MPIs ask Slurm for their ranks.
OF_SLURM = {"mpich": "pmi2", "openmpi": "pmix"}
LAUNCHERS = ["mpirun", "srun"]
LAYOUTS = ["striped", "odd"]


def launched(launcher, mpi):
    """The command line that begins one of a job on all nodes."""
    if launcher == "mpirun":
        return [f"mpirun.{mpi}", "-n", RANKS]
    return ["srun", f"--mpi={OF_SLURM[mpi]}", "--nodes", len(NODES), "--ntasks", RANKS]


def digest(bed, node, path, env=None):
    """A digest of the file's bytes as a program on the node reads them."""
    return bed.on(node, "sha256sum", path, env=env).out.split()[0]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("name", MPI_PROGRAMS)
def test_a_job_writes_the_same_bytes_to_managed_files(bed, worlds_of, name, mpi, launcher):
    if launcher == "srun" and not bed.has_slurm:
        pytest.skip("no Slurm: tools/setup.sh nodes")
    program = MPI_PROGRAMS[name]
    job, words = launched(launcher, mpi), [*program.words, "--verify"]
    worlds = worlds_of(CYCLES[LAYOUTS[len(name) % len(LAYOUTS)]])
    binary = BUILD / mpi / program.kind
    bed.on("node1", *job, binary, "--file", worlds.plain / "f", *words)
    bed.on("node1", *job, BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--", binary, "--file", worlds.managed / "f", *words)
    assert worlds.is_managed("f")
    expected = digest(bed, "node1", worlds.plain / "f")
    assert [digest(bed, node, worlds.managed / "f", environment(worlds)) for node in NODES] == [expected] * len(NODES)


@pytest.mark.parametrize("mpi", MPIS)
def test_the_ranks_of_a_job_are_on_all_nodes(bed, mpi):
    """So that the tests above test what they say."""
    launchers = LAUNCHERS if bed.has_slurm else LAUNCHERS[:1]
    for launcher in launchers:
        assert set(bed.on("node1", *launched(launcher, mpi), "hostname").out.split()) == set(NODES), launcher
