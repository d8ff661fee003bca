"""Nodes on this machine (testbed/nodes), and programs on them that share files.

With STRIPEWISE_NODES, the directory of a running testbed, its nodes are used (`make test-nodes`
sets it: nodes with a CephFS). Otherwise each test process brings up nodes of its own over a plain
directory; where that is not possible (no root, no namespaces), these tests are skipped.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import testbeds
from conftest import BIN, HDD, LIBRARY_NAME, ROOT, SSD, ClusterDir, run_command
from copies import write_plan
from worlds import CYCLES, Worlds

RUNNING = os.environ.get("STRIPEWISE_NODES")
ACTOR = Path(__file__).resolve().parent / "actor.py"
# Those that most tests use, and those of the testbed: jobs run on up to four.
NODES = ["node1", "node2", "node3"]
ALL_NODES = [*NODES, "node4"]
PROGRAMS = ("unshare", "nsenter", "ip", "dropbear", "dbclient")


class Bed(testbeds.Bed):
    """The running testbed; `mount` is the shared directory."""

    name = "nodes"

    def command(self, node, *words, env=None):
        """The command line that runs WORDS on a node."""
        settings = [f"{name}={value}" for name, value in (env or {}).items()]
        program = [sys.executable, ROOT / "testbed" / self.name, "exec", node, "--base", self.base, "--", "env", *settings]
        return [str(word) for word in (*program, *words)]

    def on(self, node, *words, env=None, **options):
        """Runs a command on a node."""
        return run_command(*self.command(node, *words, env=env), **options)

    @property
    def is_ceph(self):
        return json.loads((self.base / "nodes.json").read_text())["on"] == "cephfs"

    @property
    def has_slurm(self):
        return json.loads((self.base / "nodes.json").read_text())["slurm"]


def reason_against():
    """Why no node can be made here; None if one can."""
    if os.geteuid() != 0:
        return "nodes need root"
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        return f"nodes need {', '.join(missing)}: tools/setup.sh nodes"
    what_nodes_do = "mount -t proc proc /proc && mount -t sysfs sysfs /sys && ip link add bridge0 type bridge"
    tried = run_command("unshare", "-m", "-u", "-i", "-n", "-p", "-f", "sh", "-c", what_nodes_do, ok=False)
    return None if tried.code == 0 else f"nodes need namespaces: {tried.err.strip()}"


@pytest.fixture(scope="session")
def bed(tmp_path_factory, workloads):
    """The nodes."""
    if RUNNING:
        yield Bed(Path(RUNNING), Path(RUNNING) / "shared")
        return
    if reason := reason_against():
        pytest.skip(reason)
    base = tmp_path_factory.mktemp("bed") / "nodes"
    bed = Bed(base, base / "shared")
    bed("up", "--nodes", len(ALL_NODES))
    yield bed
    bed("down")


@pytest.fixture
def place(bed):
    """A directory on the shared file system."""
    with testbeds.directory_of(bed.mount / testbeds.new_name()) as directory:
        yield directory


class Refused(Exception):
    """A call of an actor failed; `errno` says how."""

    def __init__(self, number):
        super().__init__(os.strerror(number))
        self.errno = number


@dataclass
class Actor:
    """A program on a node that does what it is asked: actor.pwrite(fd, b"x", 0)."""

    bed: Bed
    node: str
    env: dict = field(default_factory=dict)
    process: subprocess.Popen = None

    def __post_init__(self):
        command = self.bed.command(self.node, sys.executable, ACTOR, env=self.env)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, call, *args):
        """Asks for a call; `answer` waits for what it gives."""
        encoded = [{"bytes": base64.b64encode(arg).decode()} if isinstance(arg, bytes) else str(arg) if isinstance(arg, Path) else arg for arg in args]
        self.process.stdin.write(json.dumps({"call": call, "args": encoded}) + "\n")
        self.process.stdin.flush()

    def answer(self):
        """What the call that was asked for last returned; Refused if it failed."""
        line = self.process.stdout.readline()
        assert line, f"the program on {self.node} has ended: {self.process.wait()}"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        value = answer["value"]
        return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value

    def __getattr__(self, call):
        if call.startswith("__"):
            raise AttributeError(call)

        def made(*args):
            self.ask(call, *args)
            return self.answer()

        return made

    def end(self):
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Files:
    """A directory of plain or managed files on the shared file system, and actors on all nodes."""

    kind: str
    directory: Path
    actors: list

    @property
    def is_managed(self):
        return self.kind != "plain"


def environment(worlds):
    """The environment of programs over the worlds' plan; the testbed's own library stays first."""
    of_cluster = worlds.cluster.environment()
    return {**of_cluster, "LD_PRELOAD": f"{ROOT / 'build' / 'finalize.so'} {BIN / LIBRARY_NAME}"}


def let_nodes_share(bed, worlds):
    """Says in the markers of the targets that several nodes may have a file with copies open. (The
    targets get their markers with the first file.)"""
    maker = Actor(bed, "node1", environment(worlds))
    maker.close(maker.open(worlds.managed / "first", os.O_RDWR | os.O_CREAT, 0o666))
    maker.end()
    for marker in worlds.cluster.root.glob("**/stripewise-target.toml"):
        marker.write_text(marker.read_text() + "sessions = true\n")


@pytest.fixture
def worlds_of(place, bin_dir, library):
    """worlds_of(layout) -> plain and managed files on the shared file system."""

    def make(layout, copies=""):
        return Worlds(ClusterDir(place / "cluster", [HDD, SSD], bin_dir), layout, copies)

    return make


@pytest.fixture
def shared_of(bed, worlds_of):
    """shared_of(kind of copies) -> plain files, and managed files with copies that several nodes may
    have open at once."""

    def make(kind):
        worlds = worlds_of("[]")
        write_plan(worlds.cluster, kind)
        let_nodes_share(bed, worlds)
        return worlds

    return make


def compare_copies(bed, worlds, name):
    """Fails if the valid copies of a managed file differ."""
    bed.on("node2", BIN / "stripewise", "fsck", "-p", worlds.cluster.plan, worlds.managed / name, "--compare")


@pytest.fixture(params=["plain", *CYCLES])
def files(request, bed, worlds_of):
    """Files that are plain, or managed in each of several layouts, with an actor on every node."""
    worlds = worlds_of(CYCLES.get(request.param, CYCLES["striped"]))
    is_plain = request.param == "plain"
    env = {} if is_plain else environment(worlds)
    actors = [Actor(bed, node, env) for node in NODES]
    yield Files(request.param, worlds.plain if is_plain else worlds.managed, actors)
    for actor in actors:
        actor.end()
