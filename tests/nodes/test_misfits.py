"""Nodes of one job that are not set up alike."""

import os

import pytest
from conftest import wait_until
from worlds import CYCLES

from .conftest import NODES, Actor, Refused, environment
from .test_striped import pattern

RW, CREATE = os.O_RDWR, os.O_CREAT
FILES = 12
BYTES = 50_000


@pytest.fixture
def actors_of(bed):
    """actors_of(*environments) -> a program on each of the first nodes."""
    actors = []

    def make(*environments):
        actors.extend(Actor(bed, node, env) for node, env in zip(NODES, environments, strict=False))
        return actors

    yield make
    for actor in actors:
        actor.end()


def test_nodes_with_different_plans_share_a_file_in_the_layout_of_one_of_them(worlds_of, actors_of, place):
    """Both create the same files at once, and write halves of them."""
    worlds = worlds_of(CYCLES["striped"])
    other = place / "other-plan.toml"
    other.write_text(worlds.plan_text().replace(CYCLES["striped"], CYCLES["regions"]))
    env = environment(worlds)
    actors = actors_of(env, env | {"STRIPEWISE_PLAN": str(other)})
    halves = [pattern(number, BYTES) for number in range(len(actors))]
    for number in range(FILES):
        path = worlds.managed / f"file{number}"
        for actor in actors:
            actor.ask("open", path, RW | CREATE, 0o666)
        fds = [actor.answer() for actor in actors]
        for half, (actor, fd) in enumerate(zip(actors, fds, strict=True)):
            actor.pwrite(fd, halves[half], half * BYTES)
        for actor, fd in zip(actors, fds, strict=True):
            assert actor.pread(fd, 2 * BYTES + 1, 0) == b"".join(halves)
            actor.close(fd)


@pytest.mark.parametrize("instead", ["nothing", "an empty directory", "another target"])
def test_a_node_that_lacks_a_target_is_told_which(bed, worlds_of, actors_of, place, instead):
    """The node's programs get errors, and neither zeros nor the bytes of something else."""
    worlds = worlds_of(CYCLES["striped"])
    env = environment(worlds)
    (first,) = actors_of(env)
    path, data = worlds.managed / "file", pattern(1, BYTES)
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, data, 0)
    target = worlds.cluster.targets[1]
    over = {"nothing": target.parent, "an empty directory": target, "another target": target}[instead]
    what = ["-t", "tmpfs", "tmpfs"] if instead != "another target" else ["--bind", worlds.cluster.targets[2]]
    bed.on("node2", "mount", *what, over)
    try:
        second = Actor(bed, "node2", env)
        for do in (lambda: second.pread(second.open(path, RW), BYTES, 0), lambda: second.pwrite(second.open(path, RW), b"x" * BYTES, 0)):
            with pytest.raises(Refused):
                do()
        second.end()
        told = bed.on("node2", "cat", path, env=env, ok=False)
        assert told.code != 0 and str(over) in told.err and "target" in told.err, str(told)
    finally:
        wait_until(lambda: bed.on("node2", "umount", over, ok=False).code == 0)
    assert first.pread(fd, BYTES + 1, 0) == data
    again = Actor(bed, "node2", env)
    assert again.pread(again.open(path, RW), BYTES + 1, 0) == data
    again.end()
