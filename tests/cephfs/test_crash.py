"""Programs on CephFS are killed, an OSD is away for a while, the mount's process dies: all
acknowledged data is there, fsck finds nothing, and failures are errors of calls instead of hangs.

Fault model: processes die as in tests/crash, whose writers these are. The file system has written
every acknowledged write to an OSD's disk (the testbed's clients cache no writes: client_oc =
false).
"""

import errno
import random
import re
import subprocess
import time

import pytest
import testbeds
from conftest import HDD, LONG, SSD
from crash.test_kill import WRITERS, assert_recovered, kill, read_notes, start_writers, verify

from .conftest import CephCluster
from .test_programs import plan_of

KINDS = ["striped", "replicas", "cache"]
ROUNDS = 17 if LONG else 1
OUTAGES = [(kind, how) for kind in KINDS for how in ("stopped", "killed")] if LONG else [("striped", "stopped"), ("cache", "killed")]
# Seconds after which a call on a lost file system counts as hung.
SECONDS_MAX = 30


# The result no longer depends on what placed the files.
only_dirs = pytest.mark.parametrize("cluster", ["dirs"], indirect=True)


def acknowledged(notes):
    """Number of operations that the writers have finished so far."""
    return sum(len(read_notes(notes / f"notes{number}")[0]) for number in range(WRITERS))


def wait_until(condition, seconds=SECONDS_MAX):
    """Whether the condition becomes true within that time."""
    end_s = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.05)
    return True


def place(cluster, stripewise, kind):
    plan_of(cluster, kind)
    stripewise("place", cluster.plan)


@only_dirs
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_survives_kill_9(stripewise, cluster, tmp_path, kind, round_):
    place(cluster, stripewise, kind)
    writers = start_writers(cluster, tmp_path, round_)
    assert wait_until(lambda: acknowledged(tmp_path) >= WRITERS), "nothing is written"
    time.sleep(random.Random(round_).random())
    kill(writers)
    assert_recovered(stripewise, cluster)
    assert verify(stripewise, cluster, tmp_path) >= WRITERS


@only_dirs
@pytest.mark.parametrize(("kind", "how"), OUTAGES)
def test_an_osd_is_away_for_a_while(bed, stripewise, cluster, tmp_path, kind, how):
    """Processes that need the OSD wait until it is back; meanwhile they can be killed."""
    place(cluster, stripewise, kind)
    writers = start_writers(cluster, tmp_path, 1)
    assert wait_until(lambda: acknowledged(tmp_path) >= WRITERS), "nothing is written"
    bed("stop-osd", 1, *(["--kill"] if how == "killed" else []))
    try:
        time.sleep(2)
        stuck = acknowledged(tmp_path)
        time.sleep(2)
        assert acknowledged(tmp_path) == stuck, "nobody needed the OSD: the test tests nothing"
        assert all(writer.poll() is None for writer in writers), "waiting is no error"
    finally:
        bed("start-osd", 1)
    assert wait_until(lambda: acknowledged(tmp_path) > stuck + WRITERS), "nobody goes on"
    kill(writers)
    assert_recovered(stripewise, cluster)
    assert verify(stripewise, cluster, tmp_path) > stuck


@pytest.fixture
def second_mount(bed, bin_dir):
    """second_mount(*options) -> a cluster on a separate mount, which the test can break."""
    directory, name = bed.base / "second", testbeds.new_name()

    def mount(*options):
        bed("mount", directory, "--", *options)
        return CephCluster(directory / name, [HDD, SSD], bin_dir)

    yield mount
    bed("umount", directory, ok=False)
    subprocess.run(["rm", "-rf", bed.mount / name], check=True, timeout=120)


def ended_with_error(writers):
    """Waits for the writers and returns the errors with which they ended."""
    said = [writer.communicate(timeout=SECONDS_MAX)[1] for writer in writers]
    assert all(writer.returncode == 1 for writer in writers), said
    found = [re.search(r"Error: \[Errno (\d+)\]", text) for text in said]
    assert all(found), said
    return {int(match[1]) for match in found}


def test_an_osd_is_away_for_longer_than_the_client_waits(bed, stripewise, second_mount, tmp_path):
    cluster = second_mount("--rados_osd_op_timeout=2")
    place(cluster, stripewise, "striped")
    writers = start_writers(cluster, tmp_path, 1, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: acknowledged(tmp_path) >= WRITERS), "nothing is written"
    bed("stop-osd", 1)
    try:
        assert ended_with_error(writers) == {errno.ETIMEDOUT}
    finally:
        bed("start-osd", 1)
    assert_recovered(stripewise, cluster)
    verify(stripewise, cluster, tmp_path)


def test_the_mounts_process_dies(bed, stripewise, second_mount, tmp_path):
    """Calls fail at once. After a new mount everything is there."""
    cluster = second_mount()
    place(cluster, stripewise, "striped")
    writers = start_writers(cluster, tmp_path, 1, stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: acknowledged(tmp_path) >= WRITERS), "nothing is written"
    bed("umount", bed.base / "second", "--kill")
    assert ended_with_error(writers) <= {errno.ENOTCONN, errno.ECONNABORTED}
    bed("mount", bed.base / "second")
    assert_recovered(stripewise, cluster)
    verify(stripewise, cluster, tmp_path)
