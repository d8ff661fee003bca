"""The processes of a testbed, found by the configuration file in their command line.

This also finds the processes of a killed run.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from farm import Problem, run, wait_for

PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse")
SECONDS_TO_END = 10


@dataclass(frozen=True)
class Daemon:
    """A running process of a testbed."""

    pid: int
    words: tuple  # its command line

    @property
    def program(self):
        return Path(self.words[0]).name

    @property
    def name(self):
        """osd.0, mon.a; for a ceph-fuse `mount` and its mount point."""
        if self.program == "ceph-fuse":
            return f"mount {self.mount_point}"
        return f"{self.program.removeprefix('ceph-')}.{self.words[self.words.index('-i') + 1]}"

    @property
    def mount_point(self):
        """The mount point of a ceph-fuse: the word after its flags -c CONF --id admin."""
        return Path(self.words[5])

    def resident_mib(self):
        """Resident memory in MiB; 0 if the process has just ended."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except FileNotFoundError:
            return 0
        return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS")), 0)


def command_line(pid):
    """The words of a process's command line; empty if it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(word.decode(errors="replace") for word in words[:-1])


def running(conf):
    """The running daemons that were started with this configuration."""
    found = [Daemon(int(path.name), command_line(path.name)) for path in Path("/proc").glob("[0-9]*")]
    flags = ("-c", str(conf))
    return [daemon for daemon in found if daemon.words[1:3] == flags and daemon.program in PROGRAMS]


def start(conf, program, *words, environment=None):
    """Starts a daemon, which moves to the background once it accepts requests."""
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    run("env", *settings, program, "-c", conf, *words)


def end(daemons, with_signal=signal.SIGTERM):
    """Ends daemons, with SIGKILL if they do not react in time."""
    for daemon in daemons:
        send(daemon, with_signal)
    for daemon in daemons:
        end_s = time.monotonic() + SECONDS_TO_END
        while is_alive(daemon) and time.monotonic() < end_s:
            time.sleep(0.02)
        send(daemon, signal.SIGKILL)
        if not wait_for(lambda daemon=daemon: not is_alive(daemon)):
            raise Problem(f"{daemon.name} (process {daemon.pid}) does not end")


def is_alive(daemon):
    """Whether the process still runs; a zombie or a reused number does not count."""
    return command_line(daemon.pid) == daemon.words


def send(daemon, with_signal):
    if is_alive(daemon):
        try:
            os.kill(daemon.pid, with_signal)
        except ProcessLookupError:
            pass
