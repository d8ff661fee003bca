"""Waiting for a lock that another process does not release: signals end the wait; commands give up
and name the process."""

import fcntl
import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import HANGS_S, wait_until
from copies import KINDS, write_plan

F_OFD_SETLK = 37
CUT = """
import os, signal, sys
if sys.argv[2] == "again":
    os.set_blocking(1, False)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.siginterrupt(signal.SIGUSR1, False)
    signal.set_wakeup_fd(1)
f = os.open(sys.argv[1], os.O_RDWR)
os.write(1, b"cuts")
os.ftruncate(f, 1000)
os.write(1, b"cut to %d" % os.fstat(f).st_size)
"""


def lock(paths):
    """Locks all of the files until they are closed."""
    held = [open(path, "r+b") for path in paths]
    for file in held:
        fcntl.fcntl(file, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return held


def internal(cluster, end):
    """The internal files of that kind on the targets."""
    found = [path for target in cluster.targets for path in target.glob(f"stripewise/*/*{end}")]
    assert found
    return found


@pytest.fixture
def used(stripewise, cluster, kind):
    """A file with copies."""
    write_plan(cluster, kind)
    cluster.path = cluster.data / "f"
    cluster.run("cp", "/bin/true", cluster.path)
    return cluster


def state(process):
    """The letter of /proc/PID/stat: R, S, T, ..."""
    return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@pytest.fixture
def cut(used, python):
    """cut(how): starts a program that truncates the file, and waits until it has begun."""

    def start(how):
        command = [python, "-c", CUT, used.path, how]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **used.environment()})
        assert process.stdout.read(4) == b"cuts"
        wait_until(lambda: state(process) == "S", process)
        return process

    return start


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_ends_a_wait(used, cut):
    held = lock(internal(used, ".manifest"))
    for by, end in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)):
        process = cut("never")
        process.send_signal(by)
        assert process.wait(timeout=HANGS_S) == end
    assert held and used.run("stat", "-c%s", used.path).out.strip() != "1000"


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_runs_and_the_wait_goes_on(used, cut):
    held = lock(internal(used, ".manifest"))
    process = cut("again")
    for _ in range(3):
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.read(1)[0] == signal.SIGUSR1
    [file.close() for file in held]
    assert process.communicate(timeout=HANGS_S)[0] == b"cut to 1000" and process.returncode == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [".manifest", ".extents"])
@pytest.mark.parametrize("command", [["cat"], ["drain"], ["fsck", "--repair"]])
def test_commands_give_up_and_say_who_has_it(stripewise, used, kind, end, command):
    held = lock(internal(used, end))
    given_up = stripewise(*command, used.path, ok=False, env={"STRIPEWISE_LOCK_WAIT": "1"})
    assert "panicked" not in given_up.err
    # fsck checks what it can get; only operations that change the size take the size lock.
    if end == ".extents" and command[0] != "fsck":
        assert f"by process {os.getpid()} (" in given_up.err and end in given_up.err and given_up.code != 0, str(given_up)
    [file.close() for file in held]
    assert stripewise(*command, used.path).code == 0
