"""Programs on plain files, and on managed files with several copies: results and bytes must be
equal while the copies are synchronized, written back and evicted as fast as possible. Afterwards
they must be equal for another program, for the original alone, and for the exported file."""

import json
import re
import subprocess
import tarfile
import threading

import pytest
from conftest import LONG, run_command

from .conftest import PROGRAM_OF, Worlds, cases, seeds
from .test_fio import fio
from .test_mpi import launch
from .test_python import H5PY, IO, NUMPY, SQLITE

HDDS = '[{ cycle = "hdd/0-3:8K" }]'


def copy(kind, name, cycle, groups=""):
    """A copy of the rule."""
    return f'[[rule.copy]]\nkind = "{kind}"\nname = "{name}"\n{groups}\nlayouts = [[{{ cycle = "{cycle}" }}]]\n'


CACHES = copy("cache", "1-DH", "ssd/0-3:4K", "groups = 1") + copy("cache", "1-DV", "ssd/0-3:64K", "groups = 4")
# The caches are far smaller than the files, so that write-back and eviction are constantly active.
COPIES = {
    "replicas": copy("replica", "1-DV", "ssd/0-3:256K") + copy("replica", "odd", "hdd/0-1:333 ssd/2:1000"),
    "cache": CACHES + '[rule.overlay]\nmode = "sla"\ncapacity_per_server = "256K"\nprocs = 4\n',
    "cache of everything": CACHES + '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "64K"\ndurability = "each-write"\n',
}


RUNS_MAX = 8


def some(pairs):
    """Pairs: in the long variant with all kinds of copies, else only with the named ones."""
    names = list(dict.fromkeys(name for name, _ in pairs))
    return [(name, kind) for name in names for kind in COPIES] if LONG else pairs


def test_bytes_that_only_a_cache_has_are_no_hole(cluster):
    """GNU tar archives a file without blocks as one hole, and does not read it."""
    everything = '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "1G"\n'
    worlds = Worlds(cluster, HDDS, copy("cache", "cache", "ssd/0-3:64K") + everything)
    content = bytes(range(256)) * 4096
    (worlds.plain / "file").write_bytes(content)
    worlds.with_library("cp", worlds.plain / "file", worlds.managed / "file")
    archive = cluster.root / "file.tar"
    worlds.with_library("tar", "-C", worlds.managed, "--sparse", "-cf", archive, "file")
    with tarfile.open(archive) as archived:
        assert archived.extractfile("file").read() == content
    assert int(worlds.with_library("stat", "-c", "%b", worlds.managed / "file").out) * 512 >= len(content)


@pytest.fixture
def kind():
    """The kind of copies; tests override it by their parameters."""
    return "replicas"


@pytest.fixture
def copies(cluster, kind):
    """Plain files, and managed files with several copies, in processes that write statistics."""
    worlds = Worlds(cluster, HDDS, COPIES[kind])
    worlds.counts = True
    return worlds


def assert_all_same(worlds, *names):
    """The bytes are the same for another program; then for the original alone, and without the
    library."""
    for name in names:
        worlds.assert_same(name)
    stripewise = worlds.cluster.bin_dir / "stripewise"
    files = [worlds.managed / name for name in names]
    run_command(stripewise, "drain", *files)
    away = [target.rename(target.with_suffix(".away")) for target in worlds.cluster.targets if target.name.startswith("ssd")]
    for name in names:
        worlds.assert_same(name)
    for target in away:
        target.rename(target.with_suffix(""))
    run_command(stripewise, "export", *files)
    for name in names:
        assert not worlds.is_managed(name)
        assert (worlds.plain / name).read_bytes() == (worlds.managed / name).read_bytes(), name
    assert worlds.objects() == []


def assert_busy(worlds, others, evicted=False):
    """The copies were used, and there was background copying meanwhile, in the program's processes
    or in others."""
    counted = worlds.counted()
    further = [copy for line in counted for copy in line["copies"][1:]]
    assert sum(copy["written_bytes"] for copy in further) > 0, "nothing went to a further copy"
    copied = sum(copy["copied_bytes"] for line in counted for copy in line["copies"])
    assert copied + others.copied_bytes > 0, "nothing was copied"
    if evicted:
        assert has_evicted(worlds), "nothing was evicted"


def has_evicted(worlds):
    """Whether a cache has evicted anything; replicas never evict."""
    counted = worlds.counted()
    return counted[0]["kind"] != "cache" or any(line["evictions"] for line in counted)


class Others:
    """Other processes that repeatedly drain the files meanwhile."""

    def __init__(self, worlds):
        self.worlds, self.ended, self.copied_bytes = worlds, threading.Event(), 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        """Drains until the program has ended."""
        while not self.ended.wait(0.02):
            for command in ("drain", "warm"):
                program = [self.worlds.cluster.bin_dir / "stripewise", command, "-q", "--json", self.worlds.managed]
                said = subprocess.run(program, capture_output=True).stdout
                self.copied_bytes += sum(file.get("bytes", 0) for file in json.loads(said)["files"]) if said else 0

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("seed", seeds(1, 100))
def test_random_calls(copies, programs, seed):
    """conform.c prints the call at which the results differ, and how to reproduce it."""
    copies.with_library(programs / "conform", copies.plain, copies.managed, seed, 1500)


@pytest.mark.parametrize("kind", COPIES)
def test_fio(copies):
    """Concurrent jobs on one file, each in a segment of its own, four times. Each run verifies the
    data while others write; another run verifies it again."""
    part = "4m" if LONG else "512k"
    options = ["--rw=randwrite", "--bsrange=1k-32k", "--numjobs=4", f"--size={part}", f"--offset_increment={part}", "--verify=md5"]
    command = [*fio("psync", copies.managed / "file", *options)]
    with Others(copies) as others:
        # On a busy machine a run may end before the others have written anything back.
        for _ in range(RUNS_MAX):
            result = copies.with_library(*command, "--loops=4", "--verify_backlog=64")
            assert len(re.findall(r"err= ?0", result.out)) == 4, result
            if has_evicted(copies):
                break
    assert_busy(copies, others, evicted=True)
    copies.with_library(*command, "--verify_only")
    (copies.plain / "file").write_bytes(copies.content("file"))
    assert_all_same(copies, "file")


SCRIPTS = {"io": IO, "numpy": NUMPY, "h5py": H5PY, "sqlite": SQLITE}


@pytest.mark.parametrize(
    ("script", "kind"),
    some([("h5py", "replicas"), ("io", "cache"), ("sqlite", "cache"), ("numpy", "cache of everything")]),
)
def test_python(copies, python, script):
    # Every commit of SQLite syncs and closes.
    text = SCRIPTS[script] if LONG else SCRIPTS[script].replace("range(20)", "range(4)").replace("range(8)", "range(4)")
    copies.both(lambda directory: [python, "-c", text, directory])


IN_TURNS = r"""
import multiprocessing, os, sys, numpy as np, h5py
os.chdir(sys.argv[1])
rounds, processes = int(sys.argv[2]), 4
def work(number, turn, lock):
    for i in range(rounds):
        with lock, h5py.File("f.h5", "r+") as f:
            d = f["x"]
            if i: assert (d[number::processes] == i * 100 + number).all()
            d[number::processes] = (i + 1) * 100 + number
            g = f.create_dataset(f"p{number}-{i}", (300, 100), chunks=(30, 20), compression="gzip" if i % 2 else None, dtype="i4")
            g[...] = np.arange(30000).reshape(300, 100) * (number + 1) + i
            if i > 1: del f[f"p{number}-{i - 2}"]
if __name__ == "__main__":
    with h5py.File("f.h5", "w") as f: f.create_dataset("x", (4000, 50), dtype="i4", chunks=(125, 50))
    multiprocessing.set_start_method(sys.argv[3])
    lock = multiprocessing.Lock()
    running = [multiprocessing.Process(target=work, args=(n, 0, lock)) for n in range(processes)]
    [p.start() for p in running]; [p.join() for p in running]
    assert all(p.exitcode == 0 for p in running)
    with h5py.File("f.h5", "r") as f:
        print(sorted(f), int(f["x"][...].sum()), [int(f[name][...].sum()) for name in sorted(f)])
"""


@pytest.mark.parametrize("kind", COPIES)
def test_h5py_in_turns(copies, python, kind, tmp_path):
    """Processes open, change and close one file after the other; then the tools of HDF5 see the
    same content."""
    script = tmp_path / "turns.py"
    script.write_text(IN_TURNS)
    start = "spawn" if LONG else "fork"
    with Others(copies):
        copies.both(lambda directory: [python, script, directory, 8 if LONG else 2, start])
    for options in (["-f", "GZIP=1", "-l", "CHUNK=64x25"], ["-f", "NONE", "-l", "CONTI"]):
        copies.both(lambda directory, options=options: ["h5repack", *options, directory / "f.h5", directory / "packed.h5"])
        copies.both(lambda directory: ["h5diff", directory / "f.h5", directory / "packed.h5"])
        copies.with_library("h5diff", copies.plain / "f.h5", copies.managed / "packed.h5")
        for directory in (copies.plain, copies.managed):
            copies.with_library("rm", directory / "packed.h5")


@pytest.mark.parametrize(("stack", "kind"), some([("mpich", "cache"), ("ompio", "replicas"), ("romio321", "cache of everything")]))
def test_mpi(copies, programs, stack):
    """Independent, collective, strided and nonblocking access by four processes."""
    with Others(copies) as others:
        copies.both(lambda directory: launch(stack, 4, programs / "mpi", directory / "file", 8))
    assert_busy(copies, others)
    assert_all_same(copies, "file")


@pytest.mark.parametrize(("stack", "kind"), some([("mpich", "replicas"), ("ompio", "cache")]))
def test_fortran(copies, programs, stack):
    """Fortran also without MPI: formatted, direct access and stream I/O of its runtime."""
    copies.both(lambda directory: launch(stack, 4, programs / "fortran", directory / "file"))
    assert_all_same(copies, "file", "file.direct", "file.text", "file.stream")


QUICK = [("fork_storm", "cache"), ("signals", "replicas"), ("dlopen", "replicas"), ("exit_flush", "cache"), ("spawn", "replicas")]
QUICK += [("cancellation", "cache"), ("vfork", "replicas"), ("few_descriptors", "replicas"), ("fork_among_threads", "replicas")]


# Opening and closing 6000 times takes minutes, because each time the process joins and leaves the
# extent map.
ALL = [(case, "replicas") for case in PROGRAM_OF if LONG and case != "open_and_close"]


@pytest.mark.parametrize(("case", "kind"), some(QUICK + ALL))
def test_processes(copies, programs, case):
    """Operations on descriptors, processes, threads and signals, with a thread of the library
    next to theirs: robust.c, sharing.c and processes.c."""
    copies.both(lambda directory: [programs / PROGRAM_OF[case], case, directory / "file"])
    assert_all_same(copies, "file")


@pytest.mark.parametrize(("case", "kind"), some([(case, "cache") for case in cases("asynchronous") if case != "after_fork"]))
def test_asynchronous(copies, programs, case):
    copies.both(lambda directory: [programs / "asynchronous", case, directory / "file"])
    copies.assert_same("file")
