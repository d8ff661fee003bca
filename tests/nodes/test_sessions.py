"""A file with several copies on targets whose marker says `sessions = true`, which nodes use one after
the other: each goes on by itself if the one before has died."""

import errno
import os
import random
import time

import pytest
from conftest import BIN, LONG
from copies import KINDS, write_plan

from .conftest import ACTOR, Actor, Refused, environment, let_nodes_share
from .test_striped import pattern, refused

RW, CREATE = os.O_RDWR, os.O_CREAT
# The file system frees the locks of a dead node within a minute (CephFS); an open waits for 30 s.
DEAD_WITHIN_S = 300
# Less than an open waits.
WITHOUT_WAITING_S = 20
ROUNDS = 40 if LONG else 1
DEATHS = 4
BLOCKS, BLOCK = 30, 20_000


@pytest.fixture(params=KINDS)
def shared(request, bed, worlds_of):
    """(actors on two nodes, the path of a file that does not exist yet, its cluster)."""
    worlds = worlds_of("[]")
    write_plan(worlds.cluster, request.param)
    let_nodes_share(bed, worlds)
    env = environment(worlds)
    actors = [Actor(bed, node, env) for node in ("node1", "node2")]
    yield actors, worlds.managed / "f", worlds.cluster
    for actor in actors:
        if actor.process.poll() is None:
            actor.end()


def opened(actor, path):
    """Opens the file; waits as long as the file system may take for the locks of a dead node."""
    until = time.monotonic() + DEAD_WITHIN_S
    while True:
        try:
            fd = actor.open(path, RW)
            actor.pread(fd, 1, 0)
            return fd
        except Refused as refused:
            assert refused.errno == errno.EBUSY and time.monotonic() < until, refused


def version_of(cluster):
    """The version of the journal that was written last."""
    journals = [p for target in cluster.targets for p in target.glob("stripewise/*/*.extents")]
    newest = max(journals, key=lambda journal: journal.stat().st_ctime_ns)
    return newest.read_bytes()[8]


def test_a_second_node_waits_until_the_first_has_closed_the_file(shared):
    (first, second), path, cluster = shared
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    assert version_of(cluster) == 2
    second.ask("open", path, RW)
    first.pwrite(fd, b"last", 99_996)
    first.close(fd)
    its = second.answer()
    assert second.pread(its, 100_001, 0) == pattern(1, 99_996) + b"last"
    second.pwrite(its, b"second", 50_000)
    second.close(its)
    again = first.open(path, RW)
    assert first.pread(again, 6, 50_000) == b"second"


def told_by(bed, node, path):
    """What `status` says of a file on a node: the JSON of the file, and the lines for its nodes. It
    waits for no other node."""
    since = time.monotonic()
    (file,) = bed.on(node, BIN / "stripewise", "status", "--json", path).json()["files"]
    lines = bed.on(node, BIN / "stripewise", "status", path).out.splitlines()
    assert time.monotonic() - since < WITHOUT_WAITING_S
    head = [number for number, line in enumerate(lines, 1) if line.split() == ["node", "state"]]
    lines = lines[head[0] :] if file["nodes"] else []
    nodes = {node["name"].split("/")[1]: (node["alive"], node["alone"]) for node in file["nodes"]}
    return file["lease"]["state"], file["processes"], nodes, [line.split(maxsplit=1) for line in lines[: len(nodes)]]


def test_status_says_which_nodes_have_a_file_open(shared, bed):
    (first, second), path, _ = shared
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    alive = ({"node1": (True, True)}, [["node1", "has the file open, alone"]])
    assert told_by(bed, "node2", path) == ("elsewhere", 0, *alive)
    assert told_by(bed, "node1", path) == ("here", 1, *alive)
    first.pwrite(fd, b"last", 99_996)
    first.fsync(fd)
    bed.on("node1", "pkill", "-KILL", "-f", ACTOR)
    first.process.wait()
    dead = ({"node1": (False, True)}, [["node1", "died; the next open recovers it"]])
    assert told_by(bed, "node2", path) == ("earlier-boot", 0, *dead)
    its = opened(second, path)
    assert second.pread(its, 100_001, 0) == pattern(1, 99_996) + b"last"
    # The shared state on node1 is still there.
    others = ({"node2": (True, True)}, [["node2", "has the file open, alone"]])
    assert told_by(bed, "node1", path) == ("elsewhere", 0, *others)
    second.close(its)
    assert told_by(bed, "node2", path) == ("closed", 0, {}, [])


def objects_of(cluster):
    """The objects, manifests and journals of all files."""
    return {path for target in cluster.targets for path in target.glob("stripewise/*/*.*")}


def test_no_other_node_removes_a_file_that_one_has_open(shared, bed):
    (first, second), path, cluster = shared
    kept, plain = objects_of(cluster), path.with_name("plain.tmp")
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    first.fsync(fd)
    before = objects_of(cluster)
    second.close(second.open(plain, RW | CREATE, 0o666))
    refused(errno.EBUSY, second.unlink, path)
    refused(errno.EBUSY, second.rename, plain, path)
    told = bed.on("node2", BIN / "stripewise", "rm", path, ok=False)
    assert told.code == 1 and f"{path}: in use by node" in told.err and "node1" in told.err, told
    assert before <= objects_of(cluster)
    first.pwrite(fd, b"last", 99_996)
    assert first.pread(fd, 100_001, 0) == pattern(1, 99_996) + b"last"
    first.close(fd)
    assert second.size_at(path) == 100_000
    second.rename(plain, path)
    assert second.size_at(path) == 0
    first.unlink(path)
    assert objects_of(cluster) == kept


def test_the_node_that_has_a_file_open_removes_it(shared, bed):
    (first, _), path, cluster = shared
    kept = objects_of(cluster)
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    other = Actor(bed, "node1", first.env)
    other.unlink(path)
    other.end()
    assert objects_of(cluster) == kept
    first.pwrite(fd, b"last", 99_996)
    first.fsync(fd)
    assert first.pread(fd, 100_001, 0) == pattern(1, 99_996) + b"last"
    first.close(fd)
    assert objects_of(cluster) == kept
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, b"again", 0)
    first.unlink(path)
    first.close(fd)
    assert objects_of(cluster) == kept


def test_another_node_goes_on_after_one_has_died(shared, bed):
    (first, second), path, cluster = shared
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    first.fsync(fd)
    first.pwrite(fd, b"not synced", 70_000)
    bed("kill", "node1")
    try:
        its = opened(second, path)
        read = second.pread(its, 100_001, 0)
        expected = pattern(1, 100_000)
        assert read[:70_000] == expected[:70_000] and read[70_010:] == expected[70_010:]
        second.pwrite(its, b"second", 0)
        second.close(its)
        bed.on("node2", BIN / "stripewise", "fsck", "-p", cluster.plan, path, "--compare")
    finally:
        bed("start", "node1")
    again = Actor(bed, "node1", second.env)
    assert again.pread(again.open(path, RW), 6, 0) == b"second"
    again.end()


def test_a_node_whose_programs_were_killed_sees_what_another_wrote_since(shared, bed):
    (first, second), path, cluster = shared
    maker = first.open(path, RW | CREATE, 0o666)
    first.pwrite(maker, pattern(1, 100_000), 0)
    first.close(maker)
    fd = second.open(path, RW)
    second.pwrite(fd, pattern(2, 100_000), 0)
    bed.on("node2", "pkill", "-KILL", "-f", ACTOR)
    second.process.wait()
    its = opened(first, path)
    first.pwrite(its, pattern(3, 100_000), 0)
    first.close(its)
    again = Actor(bed, "node2", second.env)
    assert again.pread(opened(again, path), 100_001, 0) == pattern(3, 100_000)
    again.end()


def test_a_node_goes_on_with_what_it_had_not_synced(shared, bed):
    (first, second), path, _ = shared
    fd = second.open(path, RW | CREATE, 0o666)
    second.pwrite(fd, pattern(2, 100_000), 0)
    bed.on("node2", "pkill", "-KILL", "-f", ACTOR)
    second.process.wait()
    again = Actor(bed, "node2", second.env)
    fd = again.open(path, RW)
    assert again.pread(fd, 100_001, 0) == pattern(2, 100_000)
    again.close(fd)
    again.end()
    assert first.pread(opened(first, path), 100_001, 0) == pattern(2, 100_000)


class Content:
    """What the blocks of a file may contain: each written block has one value in all bytes."""

    def __init__(self):
        self.newest = [{0} for _ in range(BLOCKS)]
        self.allowed = [{0} for _ in range(BLOCKS)]

    def written(self, block, value):
        self.newest[block] = {value}
        self.allowed[block].add(value)

    def synced(self):
        self.allowed = [set(values) for values in self.newest]

    def found(self, content):
        """Checks what a node reads after another has died. It stays so until the next write."""
        self.may_be(content, range(BLOCKS), settles=True)

    def may_be(self, content, blocks, settles):
        """Checks some blocks. With `settles`, they stay so until the next write."""
        for block in blocks:
            allowed, values = self.allowed[block], set(content[block * BLOCK : (block + 1) * BLOCK])
            assert values <= allowed, f"block {block}: {values}, not {allowed}"
            if settles:
                self.allowed[block], self.newest[block] = set(values), values


def work(actor, fd, content, rng):
    """Writes and syncs at random; the last write is not waited for."""
    for _ in range(rng.randrange(5, 40)):
        if rng.random() < 0.2:
            actor.fsync(fd)
            content.synced()
        block, value = rng.randrange(BLOCKS), rng.randrange(1, 256)
        content.written(block, value)
        actor.pwrite(fd, bytes([value]) * BLOCK, block * BLOCK)
    block, value = rng.randrange(BLOCKS), rng.randrange(1, 256)
    content.written(block, value)
    actor.ask("pwrite", fd, bytes([value]) * BLOCK, block * BLOCK)
    time.sleep(rng.random() * 0.05)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_what_was_synced_survives_nodes_that_die_in_turn(shared, bed, count, round_):
    (first, second), path, _ = shared
    content, rng = Content(), random.Random(round_)
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, bytes(BLOCKS * BLOCK), 0)
    first.close(fd)
    for death in range(DEATHS):
        node = ["node1", "node2"][(round_ + death) % 2]
        actor = Actor(bed, node, second.env)
        fd = opened(actor, path)
        content.found(actor.pread(fd, BLOCKS * BLOCK + 1, 0))
        work(actor, fd, content, rng)
        bed("kill", node)
        bed("start", node)
        actor.process.wait()
    last = Actor(bed, "node3", second.env)
    content.found(last.pread(opened(last, path), BLOCKS * BLOCK + 1, 0))
    last.end()
    count("deaths of nodes that had a file with copies open", DEATHS)
