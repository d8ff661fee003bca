"""A file with several copies is written by one node at a time, and every other node is told so."""

import errno
import json
import os

import pytest
from conftest import BIN
from copies import KINDS, write_plan

from .conftest import ACTOR, NODES, Actor, Refused, environment
from .test_striped import pattern, refused

RW, CREATE = os.O_RDWR, os.O_CREAT


@pytest.fixture(params=KINDS)
def copied(request, bed, worlds_of):
    """(actors on two nodes, the path of a file that does not exist yet, its cluster)."""
    worlds = worlds_of("[]")
    write_plan(worlds.cluster, request.param)
    actors = [Actor(bed, node, environment(worlds)) for node in ("node1", "node2")]
    yield actors, worlds.managed / "f", worlds.cluster
    for actor in actors:
        actor.end()


def test_a_second_node_is_refused_until_the_first_has_closed_the_file(copied):
    (first, second), path, _ = copied
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    refused(errno.EBUSY, lambda: second.pread(second.open(path, RW), 10, 0))
    first.close(fd)
    its = second.open(path, RW)
    assert second.pread(its, 100_001, 0) == pattern(1, 100_000)
    second.pwrite(its, b"second", 50_000)
    second.close(its)
    again = first.open(path, RW)
    assert first.pread(again, 6, 50_000) == b"second"


def test_another_node_takes_over_from_one_that_died(copied, bed):
    (first, second), path, cluster = copied
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, pattern(1, 100_000), 0)
    first.fsync(fd)
    bed("kill", "node1")
    try:
        with pytest.raises(Refused):
            second.pread(second.open(path, RW), 10, 0)
        told = bed.on("node2", BIN / "stripewise", "fsck", "-p", cluster.plan, path, ok=False)
        assert told.code != 0 and "node1" in told.out + told.err
        bed.on("node2", BIN / "stripewise", "fsck", "-p", cluster.plan, path, "--repair", "--take-over")
        assert second.pread(second.open(path, RW), 100_001, 0) == pattern(1, 100_000)
    finally:
        bed("start", "node1")


@pytest.mark.parametrize("does", ["reads", "writes"])
def test_a_node_whose_programs_were_killed_reads_what_another_wrote_since(copied, bed, does):
    (first, second), path, cluster = copied
    maker = first.open(path, RW | CREATE, 0o666)
    first.pwrite(maker, pattern(1, 100_000), 0)
    first.close(maker)
    fd = second.open(path, RW)
    if does == "reads":
        assert second.pread(fd, 100_001, 0) == pattern(1, 100_000)
    else:
        second.pwrite(fd, pattern(2, 100_000), 0)
    bed.on("node2", "pkill", "-KILL", "-f", ACTOR)
    second.process.wait()
    repair = (BIN / "stripewise", "fsck", "-p", cluster.plan, path, "--repair", "--take-over")
    bed.on("node1", *repair)
    its = first.open(path, RW)
    first.pwrite(its, pattern(3, 100_000), 0)
    first.close(its)
    if does == "writes":
        told = bed.on("node2", *repair[:-2], ok=False)
        assert told.code != 0, str(told)
    bed.on("node2", *repair)  # reading fills a cache, which is a write, too
    again = Actor(bed, "node2", second.env)
    assert again.pread(again.open(path, RW), 100_001, 0) == pattern(3, 100_000)
    again.end()


def test_the_statistics_of_all_nodes_are_in_one_file(bed, worlds_of, place):
    worlds, statistics, count = worlds_of("[]"), place / "statistics", 20
    write_plan(worlds.cluster, "replicas")
    env = environment(worlds) | {"STRIPEWISE_STATISTICS": str(statistics)}
    actors = [Actor(bed, node, env) for node in NODES]
    for actor in actors:
        actor.ask("write_all", [str(worlds.managed / f"{actor.node}.{n}") for n in range(count)], b"bytes")
    for actor in actors:
        actor.answer()
        actor.end()
    lines = [json.loads(line) for line in statistics.read_text().splitlines()]
    assert len({line["path"] for line in lines}) == count * len(actors)
    assert sum(line["requests"] for line in lines) == count * len(actors)
