"""Processes that are killed while several nodes have a file with copies open: two on each of two nodes,
each of which writes blocks of its own.

Fault model: SIGKILL ends one process, in the middle of a write or a sync or between two. The node and
its other process go on. What the process had written is still there on its node, synced or not, and
whatever the other process commits contains it. The block of a write in flight may have bytes of both.
"""

import random
import time

import pytest
from conftest import LONG

from .test_sessions import BLOCK, BLOCKS, CREATE, DEATHS, RW
from .test_sessions import shared  # noqa: F401 (a fixture)
from .test_sharing import Owner, end_and_check

ROUNDS = 30 if LONG else 1
PROCESSES = 4
# The longest time between the begin of a call and the kill.
LATEST_S = 0.02


class Process(Owner):
    """One of two programs on a node, which writes every fourth block of the file."""

    def __init__(self, bed, number, env, path):
        super().__init__(bed, number, env, path, f"node{number // 2 + 1}", PROCESSES)

    def begin(self):
        super().begin()
        self.pid = self.actor.getpid()

    def is_killed(self, rng):
        """In the middle of a write, or of a sync that has not been seen to succeed."""
        if rng.random() < 0.4:
            self.actor.ask("fsync", self.fd)
        else:
            block = rng.choice(self.blocks)
            before, value = self.content.newest[block], rng.randrange(1, 256)
            self.content.written(block, value)
            self.content.newest[block] = before | {value}
            self.actor.ask("pwrite", self.fd, bytes([value]) * BLOCK, block * BLOCK)
        time.sleep(rng.random() * LATEST_S)
        self.bed.on(self.node, "kill", "-KILL", self.pid)
        self.actor.process.wait()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_what_was_written_survives_processes_that_are_killed_beside_other_nodes(shared, bed, count, round_):  # noqa: F811
    (first, second), path, cluster = shared
    fd = first.open(path, RW | CREATE, 0o666)
    first.pwrite(fd, bytes(BLOCKS * BLOCK), 0)
    first.close(fd)
    rng = random.Random(round_)
    processes = [Process(bed, number, second.env, path) for number in range(PROCESSES)]
    for _ in range(DEATHS):
        for process in rng.choices(processes, k=6):
            process.work(rng)
        dead = rng.choice(processes)
        dead.is_killed(rng)
        survivors = [process for process in processes if process is not dead]
        for process in survivors:
            process.sync()
        # The other process of its node has committed this.
        dead.content.synced()
        for process in survivors:
            process.checks(processes, dead)
        dead.begin()
        dead.checks(processes)
    end_and_check(bed, cluster, processes)
    count("processes killed beside other nodes that have a file with copies open", DEATHS)
