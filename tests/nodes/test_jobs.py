"""MPI jobs on one, two and four nodes: the same program on plain and on managed files writes the same
bytes, which all nodes read. Files with several copies are for one node at a time, unless the markers
of the targets say otherwise."""

import pytest
from cephfs.test_programs import MPI_PROGRAMS
from conftest import BIN, BUILD, LONG, MPIS
from copies import KINDS, write_plan
from worlds import CYCLES

from .conftest import ALL_NODES, RUNNING, compare_copies, environment

RANKS = 4
COUNTS = [1, 2, 4]  # of nodes
# How Debian's builds of the MPIs ask Slurm for their ranks.
OF_SLURM = {"mpich": "pmi2", "openmpi": "pmix"}
LAUNCHERS = ["mpirun", "srun"]
LAYOUTS = ["striped", "odd"]
IS_FULL = LONG or RUNNING is not None


def launched(launcher, mpi, nodes, ranks=RANKS):
    """The command line that begins one of a job on these nodes, of which node1 is one."""
    if launcher == "srun":
        on_nodes = ["--nodelist", ",".join(nodes), "--nodes", len(nodes), "--ntasks-per-node", -(-ranks // len(nodes))]
        # Otherwise the other ranks would wait for ever for one that has crashed.
        return ["srun", f"--mpi={OF_SLURM[mpi]}", *on_nodes, "--ntasks", ranks, "--kill-on-bad-exit=1"]
    hosts = ["-hosts", ",".join(nodes)] if mpi == "mpich" else ["--host", ",".join(f"{node}:{ranks}" for node in nodes)]
    return [f"mpirun.{mpi}", *hosts, "-n", ranks]


def jobs():
    """(program, MPI, launcher, number of nodes, layout) of the jobs. Without IS_FULL every program
    runs with every MPI and launcher, each on one number of nodes, so that every program, and every
    MPI under every launcher, runs on every number of nodes and in every layout."""
    for p, program in enumerate(MPI_PROGRAMS):
        for m, mpi in enumerate(MPIS):
            for s, launcher in enumerate(LAUNCHERS):
                for c, count in enumerate(COUNTS):
                    if IS_FULL or (p + m + s) % len(COUNTS) == c:
                        yield program, mpi, launcher, count, LAYOUTS[(p // len(COUNTS) + m) % len(LAYOUTS)]


def jobs_with_copies():
    """(kind of copies, program, MPI, launcher); without IS_FULL one for every kind and MPI."""
    for p, program in enumerate(MPI_PROGRAMS):
        for m, mpi in enumerate(MPIS):
            for k, kind in enumerate(KINDS):
                if IS_FULL or len(MPIS) * k + m == p:
                    yield kind, program, mpi, LAUNCHERS[(p + k) % len(LAUNCHERS)]


def skip_without_slurm(bed, launcher):
    if launcher == "srun" and not bed.has_slurm:
        pytest.skip("no Slurm: tools/setup.sh nodes")


def run_job(bed, job, file, *words, env=None):
    """Runs a job that creates a file, and returns what it said. Open MPI 4.1.4 under srun sometimes crashes in MPI_Init on a
    busy machine, also without stripewise (mca_btl_tcp calls a null pointer when a peer connects
    early: 3 of 24 runs): a job that ended so, before it had a file, is started again."""
    while True:
        done = bed.on("node1", *job, *words, env=env, ok=False)
        if done.code == 0:
            return done
        assert job[0] == "srun" and "Segmentation fault" in done.err and not file.exists(), str(done)


def digest(bed, node, path, env=None):
    """A digest of the file's bytes as a program on the node reads them."""
    return bed.on(node, "sha256sum", path, env=env).out.split()[0]


@pytest.fixture
def run_both(bed):
    """run_both(worlds, program, MPI, launcher, nodes): runs a job of MPI_PROGRAMS on a plain and on
    a managed file. The job checks what it reads; then all nodes read what it wrote."""

    def run(worlds, name, mpi, launcher, nodes):
        job, kind, words = launched(launcher, mpi, nodes), MPI_PROGRAMS[name].kind, [*MPI_PROGRAMS[name].words, "--verify"]
        over_plan = [BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--"]
        run_job(bed, job, worlds.plain / "f", BUILD / mpi / kind, "--file", worlds.plain / "f", *words)
        run_job(bed, job, worlds.managed / "f", *over_plan, BUILD / mpi / kind, "--file", worlds.managed / "f", *words)
        assert worlds.is_managed("f")
        expected = digest(bed, "node1", worlds.plain / "f")
        assert [digest(bed, node, worlds.managed / "f", environment(worlds)) for node in ALL_NODES] == [expected] * len(ALL_NODES)

    return run


@pytest.mark.parametrize(("name", "mpi", "launcher", "count", "layout"), list(jobs()))
def test_a_job_writes_the_same_bytes_to_managed_files(bed, worlds_of, run_both, name, mpi, launcher, count, layout):
    skip_without_slurm(bed, launcher)
    run_both(worlds_of(CYCLES[layout]), name, mpi, launcher, ALL_NODES[:count])


@pytest.mark.parametrize(("kind", "name", "mpi", "launcher"), list(jobs_with_copies()))
def test_a_job_on_one_node_uses_files_with_copies(bed, worlds_of, run_both, kind, name, mpi, launcher):
    skip_without_slurm(bed, launcher)
    worlds = worlds_of("[]")
    write_plan(worlds.cluster, kind)
    run_both(worlds, name, mpi, launcher, ALL_NODES[:1])


def shared_jobs():
    """(kind of copies, program, MPI, launcher, number of nodes) of jobs whose nodes share files with
    copies; without IS_FULL every program once."""
    for p, program in enumerate(MPI_PROGRAMS):
        for m, mpi in enumerate(MPIS):
            for k, kind in enumerate(KINDS):
                for c, count in enumerate(COUNTS[1:]):
                    if IS_FULL or (p + m + c) % 2 == 0 and p % len(KINDS) == k and p // 2 % 2 == m:
                        yield kind, program, mpi, LAUNCHERS[(p + k + c) % len(LAUNCHERS)], count


@pytest.mark.parametrize(("kind", "name", "mpi", "launcher", "count"), list(shared_jobs()))
def test_a_job_on_several_nodes_shares_files_with_copies(bed, shared_of, run_both, kind, name, mpi, launcher, count):
    skip_without_slurm(bed, launcher)
    worlds = shared_of(kind)
    run_both(worlds, name, mpi, launcher, ALL_NODES[:count])
    compare_copies(bed, worlds, "f")


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_on_two_nodes_is_refused_a_file_with_copies(bed, worlds_of, kind, mpi="mpich"):
    """Its nodes open the file at once, so that each may find it unused, and learns of the other when
    it writes. (Open MPI's OMPIO hangs if MPI_File_open fails on some ranks only.)"""
    worlds = worlds_of("[]")
    write_plan(worlds.cluster, kind)
    job = [*launched("mpirun", mpi, ALL_NODES[:2]), BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--"]
    refused = bed.on("node1", *job, BUILD / mpi / "ior", "--file", worlds.managed / "f", *MPI_PROGRAMS["ior"].words, ok=False)
    assert refused.code != 0, str(refused)
    assert "changed by another node" in refused.err or "in use by node" in refused.err, refused.err


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("count", COUNTS)
def test_the_ranks_of_a_job_are_on_all_its_nodes(bed, mpi, count):
    """So that the tests above test what they say."""
    launchers = LAUNCHERS if bed.has_slurm else LAUNCHERS[:1]
    for launcher in launchers:
        found = bed.on("node1", *launched(launcher, mpi, ALL_NODES[:count]), "hostname").out.split()
        assert sorted(found) == sorted(ALL_NODES[:count] * (RANKS // count)), launcher
