"""A file with several copies that several nodes have open at once, on targets whose marker says
`sessions = true`: what one commits, the others see once they acquire."""

import errno
import os
import random
import time
from fcntl import F_UNLCK, F_WRLCK

import pytest
from conftest import BIN, LONG

from .conftest import Actor, Refused
from .test_sessions import BLOCK, BLOCKS, CREATE, DEAD_WITHIN_S, DEATHS, RW, Content, opened
from .test_sessions import shared  # noqa: F401 (a fixture)
from .test_striped import pattern

ROUNDS = 40 if LONG else 2
CUTS = 7 if LONG else 1
# Nodes that are lost are evicted by command instead of after the file system's time-out.
AT_ONCE = "STRIPEWISE_EVICT" in os.environ


@pytest.fixture
def both(shared):  # noqa: F811
    """(two actors, their descriptors of one file, its path, its cluster)."""
    (first, second), path, cluster = shared
    one = first.open(path, RW | CREATE, 0o666)
    other = second.open(path, RW)
    yield (first, second), (one, other), path, cluster


def compared(bed, cluster, path):
    bed.on("node2", BIN / "stripewise", "fsck", "-p", cluster.plan, path, "--compare")


def test_what_one_node_commits_another_sees_once_it_acquires(both, bed):
    (first, second), (one, other), path, cluster = both
    first.pwrite(one, pattern(1, 100_000), 0)
    first.fsync(one)
    second.fsync(other)
    assert second.pread(other, 100_001, 0) == pattern(1, 100_000)
    second.pwrite(other, pattern(2, 50_000), 25_000)
    second.fsync(other)
    first.fsync(one)
    expected = pattern(1, 100_000)
    expected = expected[:25_000] + pattern(2, 50_000) + expected[75_000:]
    assert first.pread(one, 100_001, 0) == expected
    second.close(other)
    first.pwrite(one, b"alone", 0)
    first.close(one)
    again = second.open(path, RW)
    assert second.pread(again, 100_001, 0) == b"alone" + expected[5:]
    second.close(again)
    compared(bed, cluster, path)


def test_closing_commits_and_opening_acquires(both):
    (first, second), (one, other), path, _ = both
    second.close(other)
    for number in range(3):
        its = second.open(path, RW)
        second.pwrite(its, pattern(number, 70_000), number * 1000)
        second.close(its)
        again = first.open(path, RW)
        assert first.pread(again, 70_000, number * 1000) == pattern(number, 70_000)
        first.close(again)
    assert first.pread(one, 1000, 0) == pattern(0, 1000)


def test_what_is_written_under_a_lock_is_seen_under_the_next(both):
    (first, second), (one, other), _, _ = both
    last = b""
    for kind in ("lock", "posix_lock", "flock"):
        for number in range(3):
            for actor, fd, end in ((first, one, b"1"), (second, other, b"2")):
                getattr(actor, kind)(fd, F_WRLCK, 0, 10)
                assert actor.pread(fd, 12, 0) == last, (kind, number)
                last = kind.encode().ljust(10) + str(number).encode() + end
                actor.pwrite(fd, last, 0)
                getattr(actor, kind)(fd, F_UNLCK, 0, 10)


def test_a_file_that_others_have_open_is_not_mapped(both):
    (first, second), (one, other), _, _ = both
    first.pwrite(one, pattern(1, 10_000), 0)
    with pytest.raises(Refused) as refused:
        first.map_file(one, 10_000)
    assert refused.value.errno == errno.EBUSY
    second.close(other)


def test_one_node_cuts_what_another_wrote(both, bed):
    (first, second), (one, other), path, cluster = both
    first.pwrite(one, pattern(1, 100_000), 0)
    second.pwrite(other, pattern(2, 1000), 99_000)
    second.ftruncate(other, 40_000)
    assert first.size(one) == 40_000
    first.ftruncate(one, 60_000)
    second.fsync(other)
    assert second.pread(other, 100_000, 0) == pattern(1, 40_000) + bytes(20_000)
    first.close(one)
    second.close(other)
    compared(bed, cluster, path)


def test_nodes_take_turns_at_random(both, bed):
    """One node writes at a time, and hands over by fsync: the other sees everything."""
    (first, second), (one, other), path, cluster = both
    rng = random.Random(os.urandom(8))
    content = bytearray(BLOCKS * BLOCK)
    first.pwrite(one, bytes(content), 0)
    first.fsync(one)
    for _ in range(ROUNDS * 10):
        actor, fd = rng.choice(((first, one), (second, other)))
        actor.fsync(fd)
        assert actor.pread(fd, len(content), 0) == content
        for _ in range(rng.randrange(1, 8)):
            at, length = rng.randrange(len(content) - 1), rng.randrange(1, 3 * BLOCK)
            data = rng.randbytes(min(length, len(content) - at))
            content[at : at + len(data)] = data
            actor.pwrite(fd, data, at)
            assert actor.pread(fd, len(data), at) == data
        actor.fsync(fd)
    first.close(one)
    second.close(other)
    compared(bed, cluster, path)


def test_one_node_dies_and_the_other_goes_on(both, bed):
    (first, second), (one, other), path, cluster = both
    first.pwrite(one, pattern(1, 100_000), 0)
    first.fsync(one)
    second.fsync(other)
    second.pwrite(other, pattern(2, 10_000), 0)
    first.pwrite(one, b"not synced", 70_000)
    bed("kill", "node1")
    try:
        second.fsync(other)
        read = second.pread(other, 100_001, 0)
        expected = pattern(2, 10_000) + pattern(1, 100_000)[10_000:]
        assert read[:70_000] == expected[:70_000] and read[70_010:] == expected[70_010:]
        second.ftruncate(other, 80_000)
        second.close(other)
        compared(bed, cluster, path)
    finally:
        bed("start", "node1")
    again = Actor(bed, "node1", second.env)
    assert again.pread(again.open(path, RW), 10_000, 0) == pattern(2, 10_000)
    again.end()


class Owner:
    """A program on one node, which writes every n-th block of the file for n owners, and what these
    blocks may contain."""

    def __init__(self, bed, number, env, path, node=None, owners=3):
        self.bed, self.node, self.env, self.path = bed, node or f"node{number + 1}", env, path
        self.blocks = range(number, BLOCKS, owners)
        self.content = Content()
        self.begin()

    def begin(self):
        self.actor = Actor(self.bed, self.node, self.env)
        self.fd = opened(self.actor, self.path)

    def sync(self):
        self.actor.fsync(self.fd)
        self.content.synced()

    def write(self, rng):
        block, value = rng.choice(self.blocks), rng.randrange(1, 256)
        self.content.written(block, value)
        return bytes([value]) * BLOCK, block * BLOCK

    def work(self, rng):
        for _ in range(rng.randrange(1, 10)):
            if rng.random() < 0.3:
                self.sync()
            data, at = self.write(rng)
            assert self.actor.pwrite(self.fd, data, at) == len(data)

    def begin_write(self, rng):
        data, at = self.write(rng)
        self.actor.ask("pwrite", self.fd, data, at)
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.02)

    def die(self, rng):
        """In the middle of a write, or of a sync that nobody has seen succeed."""
        self.begin_write(rng)
        self.reboot()

    def reboot(self):
        self.bed("kill", self.node)
        self.be_given_up()
        self.bed("start", self.node)
        self.actor.process.wait()

    def be_cut_off(self, rng):
        self.begin_write(rng)
        self.bed("cut", self.node)
        self.be_given_up()

    def be_given_up(self):
        """The file system gives up a node by itself, but after half a minute at least."""
        if self.bed.is_ceph and AT_ONCE:
            self.bed("evict", self.node)

    def come_back(self):
        """The program gets errors from then on: what it writes must not look as if it were synced."""
        self.bed("heal", self.node)
        try:
            self.actor.answer()
        except Refused:
            pass
        for _ in range(2):
            with pytest.raises(Refused):
                self.actor.fsync(self.fd)
        self.reboot()

    def checks(self, others, dead=None):
        """What a node reads once it has acquired: what others have synced, or newer bytes. Once the
        node `dead` is recovered, all read the same of what it had not synced."""
        self.sync()
        read = self.actor.pread(self.fd, BLOCKS * BLOCK, 0)
        for other in others:
            other.content.may_be(read, other.blocks, settles=other is dead)


def wait_until_recovered(bed, path):
    """Until the journal has no session of a node that is dead."""
    until = time.monotonic() + DEAD_WITHIN_S
    while True:
        (file,) = bed.on("node4", BIN / "stripewise", "status", "--json", path).json()["files"]
        if all(node["alive"] for node in file["nodes"]):
            return
        assert time.monotonic() < until, file
        time.sleep(0.2)


def end_and_check(bed, cluster, owners):
    """The programs sync and end; then another one reads what they know, and all copies are equal."""
    for owner in owners:
        owner.sync()
        owner.actor.close(owner.fd)
        owner.actor.end()
    path, last = owners[0].path, Actor(bed, "node3", owners[0].env)
    read = last.pread(opened(last, path), BLOCKS * BLOCK + 1, 0)
    for owner in owners:
        owner.content.may_be(read, owner.blocks, settles=True)
    last.end()
    bed.on("node3", BIN / "stripewise", "fsck", "-p", cluster.plan, path, "--compare")


@pytest.fixture
def owners(shared, bed):  # noqa: F811
    """The programs on three nodes that write one file; afterwards all is as they know it."""
    (first, second), path, cluster = shared
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, bytes(BLOCKS * BLOCK), 0)
    first.fsync(fd)
    owners = [Owner(bed, number, second.env, path) for number in range(3)]
    # It has no part in this, and dies with the first node otherwise.
    first.close(fd)
    first.end()
    yield owners
    end_and_check(bed, cluster, owners)


def lose_one(bed, owners, rng, lost):
    """One of the nodes is lost, by `lost`, and the others go on; returns it once they have recovered
    it."""
    for owner in rng.choices(owners, k=6):
        owner.work(rng)
    dead = rng.choice(owners)
    lost(dead, rng)
    survivors = [owner for owner in owners if owner is not dead]
    for owner in survivors:
        owner.checks(owners)
    wait_until_recovered(bed, dead.path)
    for owner in survivors:
        owner.checks(owners, dead)
    return dead


def begin_again(dead, owners):
    dead.begin()
    dead.checks(owners)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_what_was_synced_survives_nodes_that_die_beside_others(owners, bed, count, round_):
    rng = random.Random(round_)
    for _ in range(DEATHS):
        begin_again(lose_one(bed, owners, rng, Owner.die), owners)
    count("deaths of nodes beside others that have a file with copies open", DEATHS)


@pytest.mark.parametrize("round_", range(CUTS))
def test_what_was_synced_survives_nodes_that_are_cut_off(owners, bed, count, round_):
    if not bed.is_ceph:
        pytest.skip("a plain directory is no network file system")
    rng = random.Random(round_)
    for _ in range(DEATHS):
        dead = lose_one(bed, owners, rng, Owner.be_cut_off)
        dead.come_back()
        begin_again(dead, owners)
    count("nodes cut off that have a file with copies open", DEATHS)
