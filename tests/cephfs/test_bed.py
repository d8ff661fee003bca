"""The testbed itself: its disks take their configured time, OSDs are in their pools, and a testbed
that was killed is cleaned up."""

import json
import mmap
import os
import signal
import subprocess
import sys
import time

import pytest
import testbeds
from conftest import ROOT, run_command

PROGRAM = [sys.executable, ROOT / "testbed" / "cephfs"]
SIZE, COUNT = 1 << 20, 4
ATTEMPTS = 8
# The defaults of the flags of `up`, or the requested values.
SECONDS = {"hdd": 8e-3 + 1 / 8, "ssd": 3e-3 + 1 / 24}


@pytest.mark.parametrize("pool", ["hdd0", "hdd3", "ssd0", "ssd3"])
def test_a_request_takes_what_its_disk_takes(bed, on_ceph, pool):
    (on_ceph / "target").mkdir()
    os.setxattr(on_ceph / "target", "ceph.dir.layout.pool", pool.encode())
    fd = os.open(on_ceph / "target" / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    # An OSD, above all a new one, occasionally writes a little of its own, also to other disks.
    for attempt in range(ATTEMPTS):
        requests, ours, elsewhere = written(bed, pool, fd, attempt * COUNT * SIZE)
        quiet = ours <= 1.02 and elsewhere <= 0.03
        if quiet and requests <= COUNT + 3:
            break
    os.close(fd)
    assert quiet, "nothing goes elsewhere"
    assert COUNT <= requests <= COUNT + 3, "a write of a program is one of the disk"


def written(bed, pool, fd, offset):
    """Number of requests that a disk gets for COUNT requests of a program, and how much is written to
    it and to the other disks, relative to the program's bytes; also checks that all of these are
    written, and in which time."""
    memory, before = mmap.mmap(-1, SIZE), statistics(bed)
    bed("limits", "on")
    begin_s = time.monotonic()
    for slot in range(COUNT):
        assert os.pwrite(fd, memory, offset + slot * SIZE) == SIZE
    took_s = time.monotonic() - begin_s
    bed("limits", "off")
    after = statistics(bed)
    # The rest is overhead of Ceph and of other programs, so there is no upper limit.
    assert took_s >= COUNT * SECONDS[pool[:3]]
    grown = {disk: after[disk]["written_bytes"] - before[disk]["written_bytes"] for disk in after}
    ours = grown.pop(pool) / (COUNT * SIZE)
    assert ours >= 1, "each byte reaches the disk"
    requests = after[pool]["writes"] - before[pool]["writes"]
    return requests, ours, sum(grown.values()) / (COUNT * SIZE)


def statistics(bed):
    """The statistics of each disk."""
    lines = [json.loads(line) for line in bed("status").out.splitlines() if line.startswith("{")]
    return {line["disk"]: line for line in lines}


def test_a_bed_that_is_up_stays(bed):
    before = bed("status").out.count(": process ")
    said = bed("up")
    assert "is up already" in said.err and str(bed.mount) in said.out
    assert bed("status").out.count(": process ") == before


def test_what_it_cannot_do_is_said(bed, tmp_path):
    for words, expected in (
        (["stop-osd", 99], "has no osd.99"),
        (["umount", tmp_path], "not mounted"),
        (["mount", bed.mount], "something is mounted there"),
    ):
        result = bed(*words, ok=False)
        assert result.code == 1 and expected in result.err and "Traceback" not in result.err, result
    testbeds.assert_takes_no_foreign_directory("cephfs", tmp_path)


def leftovers(base):
    """Processes of Ceph that name the directory, and mounts in it."""
    return [line for line in testbeds.processes(base).values() if "ceph-" in line] + testbeds.mounts(base)


def test_what_a_killed_run_left_is_removed(bed, tmp_path):
    base = tmp_path / "bed"
    words = ["--base", base, "--port", testbeds.free_port(), "--hdds", 1, "--ssds", 1, "--size-mib", 2048]
    up = [str(word) for word in [*PROGRAM, "up", *words]]
    process = subprocess.Popen(up, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end_s = time.monotonic() + 30
    while not (base / "osd.0").exists() and time.monotonic() < end_s:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert leftovers(base), "killed too early: the test tests nothing"
    said = run_command(*up)
    assert "removing what is left" in said.err and f"STRIPEWISE_CEPHFS={base}/mnt" in said.out
    (base / "mnt" / "file").write_text("works")
    run_command(*PROGRAM, "down", "--base", base)
    assert leftovers(base) == [] and not base.exists()
    assert (bed.mount / "..").exists() and leftovers(bed.base), "the other bed is as it was"
