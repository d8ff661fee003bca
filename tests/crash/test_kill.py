"""kill -9 of plain programs that write over a plan's layouts: all acknowledged data is there, and
fsck finds nothing after one repair.

Fault model: processes die between any two instructions, and the kernel keeps running. Of the one
call in flight, any part may have been written. crates/datapath/tests/kill has the rounds on the
data path itself, without the preload library.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import writer as plain
from conftest import LONG, wait_until

WRITER = Path(plain.__file__)
WRITERS = 3


def plan_text(cluster):
    """A rule that stripes everything below cluster.data over all servers, 20 KiB on an HDD and 12
    KiB on an SSD."""
    rule = (
        'version = 1\nscheme = "psa"\n[[rule]]\n'
        f'pattern = "{cluster.data}/**"\nscheme = "PSA"\nreason = ""\npredicted_s = 1.0\nelapsed_s = 1.0\n'
        'layouts = [[{ end = "2M", cycle = "hdd/0-3:20K ssd/0-3:12K" }, { cycle = "hdd/0-3:40K" }]]\n'
    )
    text = cluster.text().replace("[network]", "[cluster.network]").replace("[class.", "[cluster.class.")
    return rule + text.replace("[[tier]]", "[[cluster.tier]]")


def read_notes(path):
    """(acknowledged operations, the one in flight or None), each a tuple (kind, mark, slot)."""
    done, flying = [], None
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        if line == "end":
            done.append(flying)
            flying = None
        else:
            kind, mark, slot = line.split()[1:]
            flying = (kind, int(mark), int(slot))
    return done, flying


@pytest.mark.parametrize("round_", range(200 if LONG else 8))
def test_what_was_acknowledged_survives_kill_9(stripewise, cluster, round_):
    cluster.plan.write_text(plan_text(cluster))
    stripewise("place", cluster.plan)
    writers = start_writers(cluster, cluster.root, round_)
    # Some are killed while they create their files, others after they have certainly done
    # something.
    if round_ % 2:
        wait_until(lambda: all(read_notes(cluster.root / f"notes{number}")[0] for number in range(WRITERS)))
    time.sleep(0.05 + random.Random(round_).random() * 0.4)
    kill(writers)
    assert_recovered(stripewise, cluster)
    verify(stripewise, cluster, cluster.root)


def start_writers(cluster, notes, seed, **options):
    """Starts several processes that write concurrently until they are killed, and note their
    operations in a directory."""
    writers = []
    for number in range(WRITERS):
        command = [sys.executable, WRITER, cluster.data, notes / f"notes{number}", number, WRITERS, seed]
        environment = {**os.environ, **cluster.environment()}
        writers.append(subprocess.Popen([str(word) for word in command], env=environment, **options))
    return writers


def kill(writers):
    """Kills the processes with SIGKILL."""
    for process in writers:
        process.send_signal(signal.SIGKILL)
    for process in writers:
        assert process.wait() == -signal.SIGKILL, "a writer ended by itself"


def whole_cephfs(directory):
    """The mount that a directory on CephFS is in. There the kernel cannot tell whether a file is
    gone, so fsck finds orphans by scanning the whole file system."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [point for point, kind in mounts if "ceph" in kind and directory.is_relative_to(point)][-1:]


def assert_recovered(stripewise, cluster):
    """After one repair, fsck finds nothing."""
    age = ["--orphan-age", 0]
    looked_at = [cluster.data, *whole_cephfs(cluster.data)]
    stripewise("fsck", "-p", cluster.plan, *looked_at, "--repair", "--remove-orphans", *age)
    clean = stripewise("fsck", "-p", cluster.plan, cluster.data, "--json", *age).json()
    assert clean["findings"] == []


def verify(stripewise, cluster, notes):
    """Compares all files with the notes in a directory. Returns the number of acknowledged
    operations."""
    notes = [read_notes(notes / f"notes{number}") for number in range(WRITERS)]
    done = [operation for acknowledged, _ in notes for operation in acknowledged]
    flying = [operation for _, operation in notes if operation]
    content = {name: read(stripewise, cluster, name) for name in ["shared", "log"]}
    verify_slots(content["shared"], done, flying)
    verify_log(content["log"], done, flying)
    for number, (acknowledged, operation) in enumerate(notes):
        saves = [mark for kind, mark, _ in acknowledged if kind == "save"]
        allowed = [plain.saved_bytes(saves[-1]) if saves else b""]
        if operation and operation[0] == "save":
            allowed.append(plain.saved_bytes(operation[1]))
        assert read(stripewise, cluster, f"own{number}") in allowed, f"own{number} is neither old nor new"
    return len(done)


def read(stripewise, cluster, name):
    """The file's bytes as the command line tool reads them; empty if there is no such file."""
    path = cluster.data / name
    if not path.exists():
        return b""
    assert path.read_bytes().startswith(b"stripewise file, format ")
    copy = cluster.root / "copy"
    stripewise("cp", path, copy)
    return copy.read_bytes()


def verify_slots(shared, done, flying):
    """Every slot holds the bytes last acknowledged, or partly those of the operation in flight."""
    last = {slot: mark for kind, mark, slot in done if kind == "slot"}
    coming = {slot: mark for kind, mark, slot in flying if kind == "slot"}
    for slot, mark in last.items():
        found = shared[slot * plain.SLOT : (slot + 1) * plain.SLOT]
        was = plain.slot_bytes(mark)
        if slot not in coming:
            assert found == was, f"slot {slot}"
        else:
            new = plain.slot_bytes(coming[slot])
            assert len(found) == plain.SLOT
            assert all(byte in pair for byte, *pair in zip(found, was, new)), f"slot {slot}"


def verify_log(log, done, flying):
    """Every acknowledged record is there exactly once, and whole."""
    found = {}
    at = gap = 0
    while at < len(log):
        head = log[at : at + 18]
        try:
            mark = int(head[1:17], 16)
        except ValueError:
            mark = None
        if mark is not None and log[at : at + plain.RECORD] == plain.record(mark):
            found[mark] = found.get(mark, 0) + 1
            at += plain.RECORD
        else:
            gap += 1
            at += 1
    assert gap <= plain.RECORD * sum(kind == "log" for kind, _, _ in flying)
    for kind, mark, _ in done:
        assert kind != "log" or found.get(mark) == 1, f"record {mark} is in the log {found.get(mark, 0)} times"
