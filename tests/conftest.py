"""Fixtures and helpers of the tests of real programs: build directories, the MPIs, clusters of
directories, commands.

Environment variables: STRIPEWISE_BIN_DIR (directory of the stripewise binary and its library;
default: the newest build in the cargo target directory), STRIPEWISE_BUILD_DIR (the workloads;
default build/), STRIPEWISE_LONG=1 (long variants), STRIPEWISE_KEEP=1 (keep the directories of the
tests).
"""

import atexit
import contextlib
import functools
import importlib.util
import itertools
import json
import os
import random
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONG = os.environ.get("STRIPEWISE_LONG") == "1"
BUILD = Path(os.environ.get("STRIPEWISE_BUILD_DIR", ROOT / "build")).resolve()
LIBRARY_NAME = "libstripewise_posix.so"
MPIS = ["mpich", "openmpi"]
# The logs that PyDarshan brings along. It is not imported, since that takes a second.
PYDARSHAN = importlib.util.find_spec("darshan")
DARSHAN_LOGS = sorted(Path(PYDARSHAN.origin).parent.rglob("*.darshan")) if PYDARSHAN else []
# Seconds after which a command counts as hung. No passing test waits for it: next to twenty busy
# loops, a minute of work takes more than ten.
HANGS_S = 3600

# A shell's background jobs ignore SIGINT, and so would all programs under test.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Temporary files of the programs under test. Open MPI keeps a directory of all jobs of a user
# there, and a job that ends may remove it just when another one begins. So each test process has a
# place of its own; some run programs of other users.
TEMPORARY = tempfile.mkdtemp(prefix="stripewise-tmp.")
os.chmod(TEMPORARY, 0o1777)
atexit.register(shutil.rmtree, TEMPORARY, ignore_errors=True)

# Both MPIs need these settings for 2 cores, up to 16 ranks, and root in a container.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "TMPDIR": TEMPORARY,
}


def find_bin_dir():
    """The directory with the binary and the library under test."""
    named = os.environ.get("STRIPEWISE_BIN_DIR")
    if named:
        return Path(named).resolve()
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [d for d in (target / "debug", target / "release") if (d / "stripewise").exists()]
    return max(built, key=lambda d: (d / "stripewise").stat().st_mtime, default=target / "debug").resolve()


BIN = find_bin_dir()


@dataclass
class Result:
    """A finished command."""

    args: list
    code: int
    out: str
    err: str

    def json(self):
        """Its standard output as JSON."""
        return json.loads(self.out)

    def __str__(self):
        return f"{' '.join(map(str, self.args))}\nexit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run_command(*args, env=None, cwd=None, timeout=HANGS_S, ok=True, stdin=None):
    """Runs a command to its end. With ok=True a failure fails the test and shows the command's
    output."""
    environment = {**os.environ, **MPI_ENVIRONMENT, **(env or {})}
    process = subprocess.run(
        [str(a) for a in args],
        env=environment,
        cwd=cwd,
        timeout=timeout,
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
    )
    result = Result(list(args), process.returncode, process.stdout, process.stderr)
    if ok:
        assert result.code == 0, str(result)
    return result


@contextlib.contextmanager
def small_disk(directory, size):
    """Mounts an empty file system of `size` ("400k") over the directory."""
    mounted = run_command("mount", "-t", "tmpfs", "-o", f"size={size}", "none", directory, ok=False)
    if mounted.code != 0:
        pytest.skip(f"cannot mount here: {mounted.err.strip()}")
    try:
        yield
    finally:
        run_command("umount", directory)


@functools.cache
def has_fuse():
    """Whether this user may mount by FUSE here; not every container permits it."""
    is_there = os.access("/dev/fuse", os.R_OK | os.W_OK) and shutil.which("fusermount3")
    return bool(is_there) and (os.geteuid() != 0 or run_command("unshare", "--mount", "true", ok=False).code == 0)


def wait_until(condition, process=None):
    """Waits until the condition is true. Fails if `process` (if given) ends before that."""
    deadline = time.monotonic() + HANGS_S
    while not condition():
        assert process is None or process.poll() is None, f"ended before: {process.args}, {process.returncode}"
        assert time.monotonic() < deadline, "what is waited for does not come"
        time.sleep(0.01)


@pytest.fixture
def count(record_property):
    """count(what, number=1): the sums for each `what` are printed after all tests have run."""
    return lambda what, number=1: record_property("counted", (what, number))


def pytest_terminal_summary(terminalreporter):
    """Prints the counts. The tests themselves cannot: with several test processes they have no
    terminal."""
    totals = Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if getattr(report, "when", None) == "teardown":
            continue
        for name, value in getattr(report, "user_properties", []):
            if name == "counted":
                totals[value[0]] += value[1]
    for what, number in totals.items():
        terminalreporter.write_line(f"{what}: {number:,}")


@pytest.fixture
def tmp_path():
    """A directory whose own name has no digits. Plans generalize digits, so they would also match
    the files of other test runs.

    STRIPEWISE_KEEP=1 keeps it.
    """
    letters = "".join(random.choices(string.ascii_lowercase, k=12))
    directory = Path(tempfile.gettempdir()).resolve() / f"stripewise-{letters}"
    directory.mkdir(mode=0o700)
    yield directory
    if os.environ.get("STRIPEWISE_KEEP") != "1":
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def execute():
    """Runs any command: execute("cp", a, b) -> Result; see run_command."""
    return run_command


@pytest.fixture(scope="session")
def bin_dir():
    """The directory with the binary and the library."""
    if not (BIN / "stripewise").exists():
        pytest.exit(f"no stripewise in {BIN}: run `make test`, or set STRIPEWISE_BIN_DIR", returncode=1)
    return BIN


@pytest.fixture(scope="session")
def library(bin_dir):
    """The preload library."""
    path = bin_dir / LIBRARY_NAME
    if not path.exists():
        pytest.exit(f"no {LIBRARY_NAME} in {bin_dir}: run `cargo build --workspace`", returncode=1)
    return path


@pytest.fixture(scope="session")
def stripewise(bin_dir):
    """Runs `stripewise ARGS...`: stripewise("fsck", path) -> Result."""

    def run(*args, **options):
        return run_command(bin_dir / "stripewise", *args, **options)

    return run


@pytest.fixture(scope="session")
def stripewise_bench(bin_dir):
    """Runs `stripewise-bench ARGS...`, which finds `stripewise` and its library beside itself."""

    def run(*args, **options):
        return run_command(bin_dir / "stripewise-bench", *args, **options)

    return run


@pytest.fixture(scope="session")
def workloads():
    """The directory of the built workloads: workloads / "mpich" / "ior", workloads / "h5.py"."""
    if not (BUILD / "mpich" / "ior").exists():
        pytest.exit(f"no workloads in {BUILD}: run `make workloads`", returncode=1)
    return BUILD


@dataclass
class Mpi:
    """One MPI implementation."""

    name: str
    build: Path

    def command(self, ranks, program, *args):
        """The command line; `program` is the name of a workload or a path."""
        found = self.build / self.name / str(program)
        return [f"mpirun.{self.name}", "-n", str(ranks), str(found if found.exists() else program), *map(str, args)]

    def run(self, ranks, program, *args, **options):
        """Runs the program with that many ranks."""
        return run_command(*self.command(ranks, program, *args), **options)


@pytest.fixture(params=MPIS)
def mpi(request, workloads):
    """Each MPI in turn."""
    return Mpi(request.param, workloads)


@pytest.fixture(scope="session")
def python():
    """The interpreter with h5py, NumPy and pyarrow."""
    return Path(sys.executable)


@dataclass
class Tier:
    """A tier of cluster.toml. The default parameters are the published HDD, a thousand times faster
    to keep tests quick."""

    name: str
    servers: int
    startup_s: float = 3e-7
    per_byte_s: float = 7.95e-12
    capacity: str = "1T"
    emulate: bool = False


HDD = Tier("hdd", 4)
SSD = Tier("ssd", 4, startup_s=5e-8, per_byte_s=2.38e-12)


@dataclass
class ClusterDir:
    """A cluster of directories below `root`, with its cluster.toml and a directory for the user's
    files."""

    root: Path
    tiers: list
    bin_dir: Path
    targets: list = field(default_factory=list)  # directories, in the order of the target numbers
    data: Path = None  # directory of the user's files

    def __post_init__(self):
        self.data = self.root / "data"
        self.data.mkdir(parents=True)
        for tier in self.tiers:
            for number in range(tier.servers):
                target = self.root / "servers" / f"{tier.name}{number}"
                target.mkdir(parents=True)
                self.targets.append(target)
        self.toml.write_text(self.text())

    @property
    def toml(self):
        """The path of cluster.toml."""
        return self.root / "cluster.toml"

    @property
    def plan(self):
        """The path of plan.toml, where plan_with writes it."""
        return self.root / "plan.toml"

    def text(self):
        """The content of cluster.toml."""
        parts = ["[network]\nestablish_s = 0.0\nper_byte_s = 0.0\n"]
        for tier in self.tiers:
            service = f"{{ startup_s = {tier.startup_s!r}, per_byte_s = {tier.per_byte_s!r} }}"
            keys = [f"{op}.{access} = {service}" for op in ("read", "write") for access in ("random", "sequential")]
            parts.append(f"[class.{tier.name}]\n" + "\n".join(keys) + "\n")
        for tier in self.tiers:
            servers = [str(t) for t in self.targets if t.name.rstrip("0123456789") == tier.name]
            parts.append(
                f'[[tier]]\nname = "{tier.name}"\nclass = "{tier.name}"\ndriver = "dirs"\n'
                f"servers = {json.dumps(servers)}\n"
                f'capacity_per_server = "{tier.capacity}"\nemulate = {str(tier.emulate).lower()}\n'
            )
        return "\n".join(parts)

    def environment(self, plan=None):
        """The environment in which a program runs over the layouts without `stripewise run`."""
        return {"LD_PRELOAD": str(self.bin_dir / LIBRARY_NAME), "STRIPEWISE_PLAN": str(plan or self.plan)}

    def run(self, *args, plan=None, env=None, **options):
        """Runs a command over the layouts of a plan (default: self.plan)."""
        return run_command(*args, env={**self.environment(plan), **(env or {})}, **options)


@pytest.fixture
def make_cluster(tmp_path, bin_dir):
    """make_cluster([tiers], name) -> ClusterDir; default 4 HDD + 4 SSD servers, not emulated."""

    def make(tiers=(HDD, SSD), name="cluster"):
        return ClusterDir(tmp_path / name, list(tiers), bin_dir)

    return make


@pytest.fixture
def cluster(make_cluster):
    """A cluster of 4 HDD + 4 SSD directories, not emulated."""
    return make_cluster()


@pytest.fixture
def small_ssds():
    """Tiers whose SSDs are full after 1 MiB, so that schemes that use them have two regions."""
    return (HDD, Tier("ssd", 4, startup_s=5e-8, per_byte_s=2.38e-12, capacity="256K"))


@pytest.fixture
def trace(stripewise, cluster):
    """A trace of 4 processes that read the shared file cluster.data / "f" of 4 MiB, 64 KiB at a
    time."""
    path = cluster.root / "ior.trace"
    synth = ["synth", "ior", "--procs", 4, "--transfer", "64K", "--total", "4M", "--access", "random", "--op", "read"]
    stripewise(*synth, "--shared", "--file", cluster.data / "f", "-o", path)
    return path


@pytest.fixture
def planned(stripewise, cluster, trace):
    """The cluster with a plan for cluster.data / "f": 64 KiB stripes over all servers."""
    stripewise("plan", trace, "-c", cluster.toml, "--scheme", "def", "--min-gain", "none", "-o", cluster.plan)
    return cluster
