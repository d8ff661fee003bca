"""Creates and removes a testbed. Its files are in its base directory, which its processes name."""

import json
import os
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import beds
import conf
from farm import Problem, attempt, mounted_from, run, wait_for

CLIENT = "pvfs2fuse"
SERVER = "pvfs2-server"


class Daemon(beds.Process):
    """A server, started with -p FILE -a NAME CONF, or a client, started with its mount point."""

    @property
    def name(self):
        return f"mount {self.words[1]}" if self.program == CLIENT else self.words[4]


class Bed(beds.Directory):
    """The testbed in a base directory."""

    own = "fs.conf"

    def __init__(self, base):
        super().__init__(base)
        self.conf = self.base / self.own
        self.mount_point = self.base / "mnt"
        self.table = self.base / "pvfs2tab"
        self.ready = self.base / "ready.json"  # what `up` was given, once the testbed is complete

    def running(self):
        def is_one(process):
            server = process.program == SERVER and process.words[-1] == str(self.conf)
            return server or (process.program == CLIENT and process.words[1] == str(self.mount_point))

        return beds.processes(Daemon, is_one)

    # --- up

    def up(self, installed, port, servers, spec):
        """Creates the testbed, or keeps one that is complete; `installed` tells where OrangeFS is."""
        is_complete = self.is_complete()
        if not is_complete:
            prefix = installed()
            check_possible(prefix)
        if self.up_by(is_complete, lambda: self._make(prefix, port, servers, spec)):
            self.ready.write_text(json.dumps({"prefix": str(prefix), "port": port, "servers": servers}))
            self.say("ready")

    def is_complete(self):
        return self.ready.exists() and len(self.running()) == json.loads(self.ready.read_text())["servers"] + 1

    def _make(self, prefix, port, servers, spec):
        self.base.mkdir(parents=True)
        self.conf.write_text(conf.text(self.base, port, servers))  # first: `down` looks for it
        source = f"{conf.address(port)}/{conf.NAME}"
        self.table.write_text(f"{source} {self.mount_point} pvfs2 defaults 0 0\n")
        server = prefix / "sbin" / SERVER

        def storage(name):
            for part in ("data", "metadata"):
                (self.base / name / part).mkdir(parents=True)
            run(server, "-f", "-a", name, self.conf)

        with ThreadPoolExecutor(servers) as threads:
            list(threads.map(storage, conf.names(servers)))
        for name in conf.names(servers):
            # It moves to the background.
            run(server, "-p", self.base / name / "pid", "-a", name, self.conf)
        self.say(f"{servers} servers started")
        tools = self.tools(prefix)
        if not wait_for(lambda: attempt("env", *tools, prefix / "bin" / "pvfs2-statfs", "-m", self.mount_point) == 0):
            raise Problem(self._why_silent(port, servers))
        self.mount_point.mkdir()
        run("env", *tools, prefix / "bin" / CLIENT, self.mount_point, *(["-o", f"fs_spec={source}"] if spec else []))
        if not wait_for(lambda: mounted_from(self.mount_point)):
            raise Problem(f"{CLIENT} did not mount {self.mount_point}")

    def _why_silent(self, port, servers):
        """Why the servers do not answer, before `down` removes their logs."""
        gone = sorted(set(conf.names(servers)) - {daemon.name for daemon in self.running()})
        if not gone:
            return "the servers run, but do not answer"
        said = (self.base / gone[0] / "log").read_text().splitlines()[-1:]
        return f"{', '.join(gone)} of the ports {port} to {port + servers - 1} ended: {''.join(said)}; remedy: another --port, if one is in use"

    # --- in use

    def tools(self, prefix):
        """Settings for OrangeFS's programs, as NAME=VALUE."""
        return [f"PVFS2TAB_FILE={self.table}", f"LD_LIBRARY_PATH={prefix / 'lib'}"]

    def _made_by(self):
        if not self.ready.exists():
            raise self.no_bed()
        return json.loads(self.ready.read_text())

    def environment(self):
        """Shell commands that set the environment."""
        prefix = Path(self._made_by()["prefix"])
        settings = [f"STRIPEWISE_ORANGEFS={self.mount_point}", f'PATH="{prefix / "bin"}:$PATH"', *self.tools(prefix)]
        return "\n".join(f"export {setting}" for setting in settings)

    def bytes_of_servers(self, file=None):
        """The bytes of file contents on each server, by address: the sizes of all its datafiles, or
        of those of a file."""
        made = self._made_by()
        found = None
        if file:
            viewdist = Path(made["prefix"]) / "bin" / "pvfs2-viewdist"
            found = set(re.findall(r"\((\w+\.bstream)\)", run("env", *self.tools(Path(made["prefix"])), viewdist, "-f", file)))

        def count(name):
            datafiles = (self.base / name / "data").rglob("*.bstream")
            return sum(datafile.stat().st_size for datafile in datafiles if found is None or datafile.name in found)

        return {conf.address(made["port"] + i): count(name) for i, name in enumerate(conf.names(made["servers"]))}

    # --- down

    def down(self):
        """Removes every part of the testbed that exists. Discards its data, so flushes nothing."""
        if mounted_from(self.mount_point):
            beds.unmount(self.mount_point)
        beds.end(self.running(), signal.SIGKILL)
        self.remove()


def check_possible(prefix):
    """Raises a Problem that names a missing right, device or library."""
    if os.geteuid() != 0:
        raise Problem("the servers and pvfs2fuse need root; remedy: sudo")
    if not os.path.exists("/dev/fuse"):
        raise Problem("/dev/fuse is not there: this kernel or container has no FUSE")
    if not shutil.which("umount"):
        raise Problem("umount is not there; remedy: install util-linux")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    client = prefix / "bin" / CLIENT
    said = subprocess.run([client, "--help"], env=environment, capture_output=True, text=True, check=False).stderr
    if "usage" not in said:
        raise Problem(f"{client} cannot be run: {said.strip()}; remedy: tools/setup.sh orangefs")
