"""The processes of a testbed, found by the configuration file in their command line."""

from pathlib import Path

import beds
from farm import run

PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse")


class Daemon(beds.Process):
    """A running process of a testbed."""

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


def running(conf):
    """The running daemons that were started with this configuration."""
    flags = ("-c", str(conf))
    return beds.processes(Daemon, lambda daemon: daemon.words[1:3] == flags and daemon.program in PROGRAMS)


def start(conf, program, *words, environment=None):
    """Starts a daemon, which moves to the background once it accepts requests."""
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    run("env", *settings, program, "-c", conf, *words)
