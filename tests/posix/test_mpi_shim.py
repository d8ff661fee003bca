"""The library in front of MPI: what it learns and marks, in every language, and that it does
nothing where it has no task."""

import hashlib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BUILD, MPIS, run_command

from .conftest import HERE, WARNINGS, Worlds
from .test_copies import COPIES

parquet = pytest.importorskip("pyarrow.parquet")

SHIM = "libstripewise_mpi.so"
CALLS = (
    "open close set_view sync set_size preallocate read_all write_all read_at_all write_at_all read_ordered write_ordered"
    " read_all_begin write_all_begin read_at_all_begin write_at_all_begin read_ordered_begin write_ordered_begin"
    " read_all_end write_all_end read_at_all_end write_at_all_end read_ordered_end write_ordered_end"
    " iread_all iwrite_all iread_at_all iwrite_at_all"
).split()
COLLECTIVE = 8


@pytest.fixture(scope="session")
def shim_programs(tmp_path_factory):
    """The directory of the built programs."""
    directory = tmp_path_factory.mktemp("shim")

    def build(*command, to):
        run_command(*command, "-o", directory / to)

    for mpi in MPIS:
        build(f"mpicc.{mpi}", *WARNINGS, HERE / "mpi_shim.c", to=f"c.{mpi}")
        build(f"mpifort.{mpi}", "-O1", HERE / "mpi_shim.F90", to=f"fortran.{mpi}")
        build(f"mpifort.{mpi}", "-O1", "-DF08", HERE / "mpi_shim.F90", to=f"f08.{mpi}")
        build(f"mpicc.{mpi}", "-shared", "-fPIC", HERE / "mpi_plugin.c", to=f"plugin.{mpi}.so")
    build("gcc", "-DPROGRAM", HERE / "mpi_plugin.c", to="plugin")
    build("gcc", *WARNINGS, "-shared", "-fPIC", HERE / "mpi_fake.c", to="fake.so")
    return directory


def shim(mpi):
    """The shim library for an MPI."""
    path = BUILD / mpi / SHIM
    assert path.exists(), f"no {path}: run `make workloads`"
    return path


def other(mpi):
    """The other MPI."""
    return MPIS[1 - MPIS.index(mpi)]


def preload(*libraries):
    """The environment that loads these libraries."""
    return {"LD_PRELOAD": ":".join(map(str, libraries))}


def launch(mpi, ranks, *args, env=None, **options):
    """Runs a program under an MPI."""
    return run_command(f"mpirun.{mpi}", "-n", ranks, *args, env=env, **options)


def said_marks(result):
    """The marks that a program reports it should leave: Counter of (name, bytes)."""
    return Counter((name, int(size)) for name, size in (line.split() for line in result.out.splitlines()))


@dataclass
class Traced:
    """A recorded job and its merged trace."""

    spool: Path
    stripewise: object

    def environment(self, library, *shims):
        """The environment of a job to record."""
        self.spool.mkdir()
        return {**preload(library, *shims), "STRIPEWISE_TRACE_DIR": str(self.spool)}

    def rows(self):
        """The trace's rows."""
        self.stripewise("trace", "--merge", self.spool, "-o", self.path, "-q")
        return parquet.read_table(self.path).to_pylist()

    def incomplete(self):
        """Why calls are missing."""
        return json.loads(parquet.read_metadata(self.path).metadata[b"stripewise.incomplete"])

    @property
    def path(self):
        """The path of the trace."""
        return self.spool.with_suffix(".trace")


@pytest.fixture
def traced(tmp_path, stripewise):
    """A job to record."""
    return Traced(tmp_path / "spool", stripewise)


def marks(rows, path):
    """The marks of a file, by rank: {rank: Counter of (name, bytes)}."""
    by_rank = {}
    for row in rows:
        if row["op"] == "mark":
            assert row["file"] == str(path) and row["flags"] == COLLECTIVE
            by_rank.setdefault(row["rank"], Counter())[CALLS[row["offset"] - 1], row["result"]] += 1
    return by_rank


@pytest.mark.parametrize("language", ["c", "fortran", "f08"])
@pytest.mark.parametrize("mpi", MPIS)
def test_every_collective_call_is_marked(shim_programs, library, traced, mpi, language, tmp_path):
    """Also, the shim knows the ranks although the environment hides them from the
    recorder (in C)."""
    file = tmp_path / "f"
    result = launch(mpi, 2, shim_programs / f"{language}.{mpi}", file, env=traced.environment(library, shim(mpi)))
    rows = traced.rows()
    assert traced.incomplete() == []
    assert marks(rows, file) == {rank: said_marks(result) for rank in range(2)}
    assert {row["size"] for row in rows if row["op"] == "mark"} == {2}
    inside = [row for row in rows if row["flags"] & COLLECTIVE and row["op"] != "mark"]
    spans = [(row["pid"], row["start_ns"], row["end_ns"]) for row in rows if row["op"] == "mark"]
    for row in inside:
        # Asynchronous requests may end later.
        assert any(p == row["pid"] and s <= row["start_ns"] <= e for p, s, e in spans), row
    assert {"read", "write", "open", "close", "sync"} <= {row["op"] for row in inside}


def test_independent_calls_are_not_marked(mpi, workloads, stripewise, tmp_path):
    """The summary shows how much of a file moved collectively. The shims are found, and the right
    one works."""
    for call, share in (("at", 0), ("all", 1)):
        args = ["-o", tmp_path / call, "-t", "4K", "-b", "64K", "--call", call]
        command = ["trace", "--mpi-lib", workloads, "-o", tmp_path / "t", "--json", "--", *mpi.command(2, "ior", *args)]
        summary = stripewise(*command).out
        summary = json.loads(summary[summary.index('{\n  "trace"') :])
        [file] = [file for file in summary["files"] if file["name"] == str(tmp_path / call)]
        assert file["collective_bytes"] == share * (file["read_bytes"] + file["written_bytes"]) and file["written_bytes"] == 128 << 10
        counts = {c["call"]: c["calls"] for c in summary["groups"][file["group"]]["marks"]["calls"]}
        assert counts == {"open": 4, "close": 4, **({"write_at_all": 32, "read_at_all": 32} if share else {})}
    text = stripewise("trace", "--summary", tmp_path / "t").out
    assert re.search(r"write +\S+ +128 KiB .* 100 %", text) and "collective: the part" in text


def test_which_libraries_are_loaded(workloads, stripewise, tmp_path):
    """--mpi, STRIPEWISE_MPI, and the shims that exist."""
    seen = tmp_path / "seen"
    see = ["--mpi-lib", workloads, "-q", "-o", tmp_path / "t", "--", "sh", "-c", f"echo $LD_PRELOAD > {seen}"]

    def loaded(*flags, env=None):
        stripewise("trace", *flags, *see, env=env)
        return [Path(path).parent.name for path in seen.read_text().strip().split(":")[1:]]

    assert loaded() == ["mpich", "openmpi"]
    assert loaded("--mpi", "openmpi") == ["openmpi"]
    assert loaded("--mpi", "off") == []
    assert loaded(env={"STRIPEWISE_MPI": "mpich"}) == ["mpich"]
    result = stripewise("trace", "--mpi", "cray", *see, ok=False)
    assert result.code == 1 and "cray/libstripewise_mpi.so" in result.err and len(result.err.splitlines()) == 1


def notes(directory):
    """The calls that the shim made to the fake preload library, per process."""
    return sorted((path.read_text().splitlines() for path in directory.glob("log.*")), key=str)


def fake_environment(shim_programs, tmp_path, *shims):
    """The environment with the fake preload library."""
    return {**preload(shim_programs / "fake.so", *shims), "SHIM_LOG": str(tmp_path / "log")}


def test_ranks_and_nodes(shim_programs, mpi, tmp_path):
    env = fake_environment(shim_programs, tmp_path, shim(mpi.name))
    launch(mpi.name, 3, shim_programs / f"c.{mpi.name}", tmp_path / "f", env=env)
    assert [lines[0] for lines in notes(tmp_path)] == [f"job 3 {rank} 3 0" for rank in range(3)]


def test_several_nodes(shim_programs, library, traced, tmp_path):
    """MPICH can make two nodes out of one. They have the same name and are still distinguished."""
    env = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
    launch("mpich", 3, shim_programs / "c.mpich", tmp_path / "f", env={**fake_environment(shim_programs, tmp_path, shim("mpich")), **env})
    assert [lines[0] for lines in notes(tmp_path)] == ["job 3 0 2 0", "job 3 1 1 1", "job 3 2 2 0"]
    launch("mpich", 2, shim_programs / "c.mpich", tmp_path / "f", env={**traced.environment(library, shim("mpich")), **env})
    nodes = {row["rank"]: row["node"] for row in traced.rows()}
    host = os.uname().nodename
    assert nodes == {rank: f"{host}#{rank % 2}" for rank in range(2)}


def test_a_rank_without_a_spool_is_missed(shim_programs, library, traced, tmp_path):
    launch("mpich", 2, shim_programs / "c.mpich", tmp_path / "f", env=traced.environment(library, shim("mpich")))
    [pid] = {row["pid"] for row in traced.rows() if row["rank"] == 1}
    for path in traced.spool.glob(f"*-{pid}-*"):
        path.unlink()
    traced.rows()
    [reason] = traced.incomplete()
    assert reason.startswith("rank 1 of 2 left no spool")


def test_close_makes_durable_what_was_written(shim_programs, mpi, tmp_path):
    file = tmp_path / "f"
    file.touch()
    env = fake_environment(shim_programs, tmp_path, shim(mpi.name))
    result = launch(mpi.name, 2, shim_programs / f"c.{mpi.name}", file, "close", env=env)
    assert result.out.splitlines() == ["read: ok", "written: ok", "deleted: ok"]
    for lines in notes(tmp_path):
        assert [line for line in lines if line.startswith("sync")] == [f"sync {file}"]
    file.touch()
    result = launch(mpi.name, 2, shim_programs / f"c.{mpi.name}", file, "close", env={**env, "SHIM_SYNC_FAILS": "1"})
    assert result.out.splitlines() == ["read: ok", "written: MPI_ERR_IO", "deleted: ok"]


@pytest.mark.parametrize("kind", ["striped", "replicas"])
def test_every_rank_waits_until_copies_are_durable(cluster, workloads, mpi, kind, tmp_path):
    """With one copy no rank waits, as in MPI's own close."""
    worlds = Worlds(cluster, copies=COPIES.get(kind, ""))
    env = {**worlds.cluster.environment(), "LD_PRELOAD": f"{worlds.cluster.environment()['LD_PRELOAD']}:{shim(mpi.name)}"}
    worlds.with_library("touch", worlds.managed / "first")  # prepares the targets
    trace = ["strace", "-ff", "-y", "-o", tmp_path / "calls", "-e", "trace=fsync,fdatasync", *(f"-E{key}={value}" for key, value in env.items())]
    program = [workloads / mpi.name / "ior", "-o", worlds.managed / "f", "-t", "4K", "-b", "64K", "--op", "write"]
    launch(mpi.name, 2, *trace, *program)
    # OMPIO probes locks on a file next to the data file, and syncs the directory when it removes
    # that.
    ours = re.compile(rf"sync\(\d+<{cluster.root}/servers/")
    syncs = sorted((len(ours.findall(path.read_text())) for path in tmp_path.glob("calls.*")), reverse=True)[:2]
    objects = 8
    assert worlds.is_managed("f") and all(count == 0 if kind == "striped" else count > objects for count in syncs), syncs


def test_views_are_understood(shim_programs, tmp_path):
    """Open MPI's default MPI-IO has no data sieving, so the shim does not query it."""
    (tmp_path / "f").touch()
    for mpi in MPIS:
        env = fake_environment(shim_programs, tmp_path, shim(mpi))
        printed = launch(mpi, 1, shim_programs / f"c.{mpi}", tmp_path / "f", "views", env=env).out.splitlines()
        expected, hints = zip(*(line.rsplit(maxsplit=1) for line in printed))
        [lines] = notes(tmp_path)
        asked = [line.split()[2:] for line in lines if line.startswith("sieving")]
        for path in tmp_path.glob("log.*"):
            path.unlink()
        if mpi == "openmpi":
            assert asked == []
            continue
        assert set(hints) == {"automatic"}, "nothing is known"
        reads, writes = asked[::2], asked[1::2]
        assert [" ".join(ask[2:4]) for ask in reads] == [" ".join(ask[2:4]) for ask in writes] == list(expected)
        assert {(ask[0], ask[1], ask[4]) for ask in asked} == {("0", "1", str(4 << 20)), ("1", "1", str(512 << 10))}


def test_each_view_has_its_own_hint(shim_programs, tmp_path):
    (tmp_path / "f").touch()
    env = {**fake_environment(shim_programs, tmp_path, shim("mpich")), "SHIM_SIEVE_BELOW": "10"}
    lines = launch("mpich", 1, shim_programs / "c.mpich", tmp_path / "f", "views", env=env).out.splitlines()
    hints = [(int(piece) < 10, hint) for piece, _, hint in map(str.split, lines)]
    assert set(hints) == {(True, "automatic"), (False, "disable")}


def test_data_sieving_where_it_pays(worlds, workloads, traced, tmp_path):
    """Large pieces are written one by one, small ones are sieved. The application's own hints take
    precedence."""

    def writes(piece, *args, **env):
        """Number of requests of an independent write of 4 ranks, 256 KiB each, in pieces."""
        file = worlds.managed / f"f{len(list(worlds.managed.iterdir()))}"
        job = Traced(tmp_path / file.name, traced.stripewise)
        environment = {**worlds.cluster.environment(), **job.environment(worlds.cluster.environment()["LD_PRELOAD"], shim("mpich")), **env}
        args = ["-o", file, "-t", piece, "-b", "256K", "--access", "strided", "--call", "view", "--op", "write", *args]
        launch("mpich", 4, workloads / "mpich" / "ior", *args, env=environment)
        assert worlds.is_managed(file.name)
        return sum(row["op"] == "write" and row["file"] == str(file) for row in job.rows())

    sieved = writes("32K", STRIPEWISE_MPI_HINTS="off")
    assert sieved < 4 * 8
    assert writes("32K") == 4 * 8
    assert writes("32K", "--hint", "romio_ds_write=enable") == sieved
    assert writes("512", "--hint", "nothing=known") == writes("512", STRIPEWISE_MPI_HINTS="off") < 4 * 512


@pytest.mark.parametrize("mpi", MPIS)
def test_the_wrong_mpi_is_refused_with_one_line(shim_programs, library, traced, mpi, tmp_path):
    program, file = shim_programs / f"c.{mpi}", tmp_path / "f"
    bare = launch(mpi, 2, program, file)
    digest = hashlib.sha256(file.read_bytes()).digest()
    file.unlink()
    result = launch(mpi, 2, program, file, env=traced.environment(library, shim(other(mpi))))
    assert result.out == bare.out and hashlib.sha256(file.read_bytes()).digest() == digest
    [line] = result.err.splitlines()
    assert line.startswith("stripewise: this program's MPI is ") and "it does nothing" in line
    assert marks(traced.rows(), file) == {}
    # If several shims are wrong, only one of them prints the error.
    copy = tmp_path / SHIM
    copy.write_bytes(shim(other(mpi)).read_bytes())
    result = launch(mpi, 2, program, file, env=preload(library, shim(other(mpi)), copy))
    assert result.err.splitlines() == [line]


@pytest.mark.parametrize("mpi", MPIS)
def test_the_right_one_of_several_works_and_nothing_is_said(shim_programs, library, traced, mpi, tmp_path):
    for order in (MPIS, MPIS[::-1]):
        job = Traced(traced.spool.with_name(order[0]), traced.stripewise)
        result = launch(mpi, 2, shim_programs / f"c.{mpi}", tmp_path / "f", env=job.environment(library, *map(shim, order)))
        assert result.err == ""
        assert marks(job.rows(), tmp_path / "f") == {rank: said_marks(result) for rank in range(2)}


@pytest.mark.parametrize("mpi", MPIS)
def test_it_does_nothing_alone_or_when_off(shim_programs, library, traced, mpi, tmp_path):
    program, file = shim_programs / f"c.{mpi}", tmp_path / "f"
    alone = launch(mpi, 2, program, file, env=preload(shim(mpi)))
    off = launch(mpi, 2, program, file, env={**traced.environment(library, shim(mpi)), "STRIPEWISE_MPI": "off"})
    assert alone.err == off.err == "" and alone.out == off.out
    assert marks(traced.rows(), file) == {}


@pytest.mark.parametrize("mpi", MPIS)
def test_an_mpi_that_was_loaded_for_one_library_only(shim_programs, library, traced, mpi, tmp_path):
    """An MPI that is loaded for one library only, as Python's modules do."""
    args = [shim_programs / "plugin", shim_programs / f"plugin.{mpi}.so", tmp_path / "f"]
    launch(mpi, 2, *args, env=traced.environment(library, *map(shim, MPIS)))
    expected = Counter({("open", 0): 1, ("write_at_all", 400): 1, ("close", 0): 1})
    assert marks(traced.rows(), tmp_path / "f") == {0: expected, 1: expected}


def test_programs_without_mpi_are_as_they_were(library, tmp_path):
    script = "seq 1 1000 | sort -r | md5sum; python3 -c 'import ctypes, zlib; print(zlib.crc32(b\"x\"))'; tar c /etc/hostname 2>&1 | wc -c"
    bare = run_command("sh", "-c", script)
    loaded = run_command("sh", "-c", script, env=preload(library, *map(shim, MPIS)))
    assert (bare.out, bare.err) == (loaded.out, loaded.err)
    # A program that finds the names and calls them gets an error instead of a crash.
    call = "import ctypes; print(ctypes.CDLL(None).MPI_Init(None, None) != 0)"
    assert run_command("python3", "-c", call, env=preload(*map(shim, MPIS))).out == "True\n"


STACKS = {"mpich": ["mpirun.mpich"], "ompio": ["mpirun.openmpi", "--mca", "io", "ompio"], "romio321": ["mpirun.openmpi", "--mca", "io", "romio321"]}


@pytest.mark.parametrize("stack", STACKS)
def test_the_same_bytes_on_managed_files(worlds, programs, stack):
    """The same bytes, including hints."""
    mpi = "mpich" if stack == "mpich" else "openmpi"
    env = worlds.cluster.environment()
    worlds.cluster.environment = lambda plan=None: {**env, "LD_PRELOAD": f"{env['LD_PRELOAD']}:{shim(mpi)}"}
    ranks = 2 if stack == "mpich" else 4
    worlds.both(lambda directory: [*STACKS[stack], "-n", ranks, f"{programs}/mpi.{mpi}", directory / "file", 8])
    worlds.assert_same("file")
