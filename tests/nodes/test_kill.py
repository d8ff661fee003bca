"""A node dies, or is cut off, while programs on all nodes write to the same striped files: what was
acknowledged is there, the others go on, and fsck finds nothing after one repair.

Fault model: all processes of a node and its mount end at once, and the file system keeps running.
Of the one call in flight of each process, any part may have been written. The programs and their
check are those of tests/crash.
"""

import random
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN, LONG, wait_until
from crash.test_kill import WRITER, WRITERS, assert_recovered, plan_text, read_notes, verify

from .conftest import NODES, environment

ROUNDS = 25 if LONG else 2
CUTS = 5 if LONG else 1


@pytest.fixture
def shared_cluster(worlds_of):
    """A cluster on the shared file system, with the plan of tests/crash."""
    worlds = worlds_of("[]")
    worlds.cluster.plan.write_text(plan_text(worlds.cluster))
    return worlds.cluster, environment(worlds)


@pytest.fixture
def stripewise_on_a_node(bed):
    """Runs `stripewise ARGS...` on node1."""
    return lambda *args, **options: bed.on("node1", BIN / "stripewise", *args, **options)


def start_writers(bed, cluster, env, notes, seed):
    """One writer on each node."""
    assert len(NODES) == WRITERS
    writers = []
    for number, node in enumerate(NODES):
        words = [sys.executable, WRITER, cluster.data, notes / f"notes{number}", number, WRITERS, seed]
        writers.append(subprocess.Popen(bed.command(node, *words, env=env)))
    return writers


def operations(notes, number):
    """The number of operations that a writer has finished."""
    return len(read_notes(notes / f"notes{number}")[0])


def wait_for_more(notes, numbers, writers):
    """Waits until these writers have each finished operations after now."""
    before = {number: operations(notes, number) for number in numbers}
    for number in numbers:
        wait_until(lambda number=number: operations(notes, number) > before[number] + 2, writers[number])


def end(bed, writers, nodes):
    """Kills the writers on these nodes."""
    for node in nodes:
        bed.on(node, "pkill", "-KILL", "-f", WRITER, ok=False)
    for process in writers:
        process.wait()


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_what_was_acknowledged_survives_the_death_of_a_node(bed, shared_cluster, stripewise_on_a_node, tmp_path, count, round_):
    cluster, env = shared_cluster
    victim = round_ % len(NODES)
    others = [number for number in range(len(NODES)) if number != victim]
    stripewise_on_a_node("place", cluster.plan)
    writers = start_writers(bed, cluster, env, tmp_path, round_)
    wait_for_more(tmp_path, range(len(NODES)), writers)
    time.sleep(random.Random(round_).random() * 0.4)
    bed("kill", NODES[victim])
    try:
        assert writers[victim].wait() != 0
        wait_for_more(tmp_path, others, writers)
        end(bed, writers, [NODES[number] for number in others])
    finally:
        bed("start", NODES[victim])
    assert_recovered(stripewise_on_a_node, cluster)
    count("operations acknowledged around the death of a node", verify(stripewise_on_a_node, cluster, tmp_path))


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_all_nodes_die_at_once(bed, shared_cluster, stripewise_on_a_node, tmp_path, round_):
    cluster, env = shared_cluster
    stripewise_on_a_node("place", cluster.plan)
    writers = start_writers(bed, cluster, env, tmp_path, 1000 + round_)
    if round_ % 2:
        wait_for_more(tmp_path, range(len(NODES)), writers)
    time.sleep(0.05 + random.Random(round_).random() * 0.4)
    for node in NODES:
        bed("kill", node)
    for node in NODES:
        bed("start", node)
    for process in writers:
        process.wait()
    assert_recovered(stripewise_on_a_node, cluster)
    verify(stripewise_on_a_node, cluster, tmp_path)


@pytest.mark.parametrize("round_", range(CUTS))
def test_a_node_that_was_cut_off_damages_nothing(bed, shared_cluster, stripewise_on_a_node, tmp_path, round_):
    """The file system evicts it; the others go on; its own programs get errors when it is back."""
    if not bed.is_ceph:
        pytest.skip("a plain directory is no network file system")
    cluster, env = shared_cluster
    victim = round_ % len(NODES)
    others = [number for number in range(len(NODES)) if number != victim]
    stripewise_on_a_node("place", cluster.plan)
    writers = start_writers(bed, cluster, env, tmp_path, 2000 + round_)
    wait_for_more(tmp_path, range(len(NODES)), writers)
    bed("cut", NODES[victim])
    try:
        wait_for_more(tmp_path, others, writers)
        end(bed, [writers[number] for number in others], [NODES[number] for number in others])
        bed("heal", NODES[victim])
        assert writers[victim].wait() not in (0, -signal.SIGKILL), "its writer goes on as if nothing had been"
    finally:
        bed("kill", NODES[victim])
        bed("start", NODES[victim])
    assert_recovered(stripewise_on_a_node, cluster)
    verify(stripewise_on_a_node, cluster, tmp_path)
