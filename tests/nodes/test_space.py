"""Nodes that cache on the same servers share their space: together they keep to the capacity."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import BIN
from copies import write_plan

from .conftest import NODES, Actor, environment, let_nodes_share
from .test_striped import pattern

RW, CREATE = os.O_RDWR, os.O_CREAT
SERVERS = 4
CAPACITY = 256 << 10  # per server
HALF = SERVERS * CAPACITY // 2
BLOCK = 16 << 10
BLOCKS = 128  # of a file: twice what the caches hold
WITHIN_S = 300


@pytest.fixture
def cached(bed, worlds_of):
    """(an actor on each node, the directory of files with caches, its cluster)."""
    worlds = worlds_of("[]")
    write_plan(worlds.cluster, "cache", capacity=f"{CAPACITY >> 10}K")
    let_nodes_share(bed, worlds)
    actors = [Actor(bed, node, environment(worlds)) for node in NODES]
    yield actors, worlds.managed, worlds.cluster
    for actor in actors:
        actor.end()


def cached_bytes(bed, cluster, paths):
    """Bytes in the caches of files."""
    total = 0
    for path in paths:
        page = bed.on(NODES[0], BIN / "stripewise", "status", path, "--json").json()
        copies = page["files"][0]["copies"]
        total += sum(copy["valid_bytes"] for copy in copies[1:])
    return total


def write(actor, number, path, is_shared):
    """Writes blocks in random order: of a shared file those that belong to the node."""
    fd = actor.open(path, RW | CREATE, 0o666)
    mine = range(number, BLOCKS, len(NODES)) if is_shared else range(BLOCKS)
    order = [block for _ in range(3) for block in mine]
    random.Random(number).shuffle(order)
    for block in order:
        actor.pwrite(fd, pattern(block, BLOCK), block * BLOCK)
    actor.fsync(fd)
    return fd


@pytest.mark.parametrize("is_shared", [True, False], ids=["one file", "a file each"])
def test_together_nodes_cache_no_more_than_the_servers_may_hold(cached, bed, is_shared):
    actors, directory, cluster = cached
    paths = [directory / ("f" if is_shared else f"f{number}") for number in range(len(actors))]
    with ThreadPoolExecutor(len(actors)) as pool:
        fds = list(pool.map(write, actors, range(len(actors)), paths, [is_shared] * len(actors)))
    files = sorted(set(paths))
    cached_now = cached_bytes(bed, cluster, files)
    assert cached_now <= SERVERS * CAPACITY
    expected = b"".join(pattern(block, BLOCK) for block in range(BLOCKS))
    for actor, fd in zip(actors, fds, strict=True):
        actor.fsync(fd)
        assert actor.pread(fd, len(expected) + 1, 0) == expected
        actor.close(fd)
    if is_shared:
        # The nodes' holds may have sent all of them to the original once the cache was full.
        return
    assert HALF < cached_now
    # What was freed is there for the next file, on whichever node.
    for path in files:
        bed.on(NODES[0], BIN / "stripewise", "rm", path)
    path = directory / "next"
    actors[-1].close(actors[-1].open(path, RW | CREATE, 0o666))
    until = time.monotonic() + WITHIN_S
    while not HALF < (cached := cached_bytes(bed, cluster, [path])):
        assert time.monotonic() < until, cached
        actors[-1].close(write(actors[-1], 0, path, False))
    assert cached <= SERVERS * CAPACITY
