"""Creates and removes a testbed. Its files are in its base directory, which its processes name."""

import json
import os
import shutil
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import beds
import conf
import daemons
from farm import RAW, ROOT, Farm, Problem, Speed, mounted_from, run, wait_for
from monitors import Monitors

ADMIN = ("--id", "admin")
WIDE_FUSE = Path("build") / "widefuse.so"


@dataclass(frozen=True)
class Shape:
    """Size and speed of a testbed."""

    address: str
    port: int
    hdds: int
    ssds: int
    hdd: Speed
    ssd: Speed
    size_mib: int
    pgs: int

    def disks(self):
        """(name, speed) of each OSD's disk, in the order of the OSDs."""
        classes = (("hdd", self.hdds, self.hdd), ("ssd", self.ssds, self.ssd))
        return [(f"{name}{i}", speed) for name, count, speed in classes for i in range(count)]

    def classes(self):
        """The numbers of each class's OSDs."""
        of = {"hdd": range(self.hdds), "ssd": range(self.hdds, self.hdds + self.ssds)}
        return {name: list(osds) for name, osds in of.items() if osds}


class Bed(beds.Directory):
    """The testbed in a base directory."""

    own = "ceph.conf"

    def __init__(self, base):
        super().__init__(base)
        self.conf = self.base / self.own
        self.mount_point = self.base / "mnt"
        self.ready = self.base / "ready"  # number of OSDs, once the testbed is complete
        self.farm = Farm(self.base / "disks")
        # For Ceph's tools without a flag for it; the caller's value may be that of another testbed.
        os.environ["CEPH_CONF"] = str(self.conf)

    # --- up

    def up(self, shape, throttled_disk, images, limits):
        """Creates the testbed, or keeps one that is complete."""
        if not (is_complete := self.is_complete()):
            check_possible(throttled_disk)
        if self.up_by(is_complete, lambda: self._make(shape, throttled_disk, images)):
            self.limits(limits)
            self.ready.write_text(f"{len(shape.disks())}\n")
            self.say("ready")

    def running(self):
        return daemons.running(self.conf)

    def is_complete(self):
        names = [daemon.name for daemon in self.running()]
        mounted = mounted_from(self.mount_point) is not None and self.farm.is_up()
        return mounted and self.ready.exists() and sum(name.startswith("osd.") for name in names) == int(self.ready.read_text())

    def _make(self, shape, throttled_disk, images):
        fsid = str(uuid.uuid4())
        self.base.mkdir(parents=True)
        self.conf.write_text(conf.text(self.base, fsid, shape.address, shape.port))  # first: `down` looks for it
        for name in ("log", "run", "crash", "mon.a", "mgr.a", "mds.a", "db"):
            (self.base / name).mkdir()
        self.farm.up(throttled_disk, shape.disks(), images, shape.size_mib, RAW)
        self.limits(False)
        self._make_monitor(fsid, conf.monitor_addresses(shape.address, shape.port))
        monitors = Monitors(self.conf)
        try:
            self._make_osds(monitors, shape)
            daemons.start(self.conf, "ceph-mds", "-i", "a")
            monitors.make_pools(shape.classes(), shape.pgs)
            self.say("pools and file system made")
            monitors.wait_for_mds()
        finally:
            monitors.close()
        self.mount(self.mount_point)

    def _make_monitor(self, fsid, addresses):
        map_file = self.base / "monmap"
        run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", addresses, "--set-min-mon-release", "16", map_file)
        run("ceph-mon", "-c", self.conf, "-i", "a", "--mkfs", "--monmap", map_file)
        daemons.start(self.conf, "ceph-mon", "-i", "a")
        daemons.start(self.conf, "ceph-mgr", "-i", "a")

    def _make_osds(self, monitors, shape):
        ids = [str(uuid.uuid4()) for _ in shape.disks()]
        for name in ids:
            monitors.ask("osd new", uuid=name)

        def make(number):
            self._make_osd(number, ids[number], shape.disks()[number][0])

        with ThreadPoolExecutor(len(ids)) as threads:
            list(threads.map(make, range(len(ids))))
        self.say(f"{len(ids)} OSDs made and started")
        monitors.wait_for_osds(len(ids))

    def _make_osd(self, number, uuid_, disk):
        """Creates and starts an OSD. Only its data is throttled; bluestore's metadata is not."""
        directory = self.base / f"osd.{number}"
        directory.mkdir()
        (directory / "block").symlink_to(self.farm.image(disk))
        notes = f"--bluestore_block_db_path={self.base}/db/{number}"
        run("ceph-osd", "-c", self.conf, "-i", number, "--mkfs", "--osd-uuid", uuid_, notes)
        daemons.start(self.conf, "ceph-osd", "-i", number)

    # --- in use

    def environment(self):
        """Shell commands that set the environment."""
        if not self.ready.exists() and not self.mount_point.exists():
            raise self.no_bed()
        return f"export CEPH_CONF={self.conf}\nexport STRIPEWISE_CEPHFS={self.mount_point}"

    def mount(self, directory, options=(), narrow=False):
        """Mounts the file system on a directory; narrow: without widefuse.so (see widefuse.c)."""
        if mounted_from(directory) and not os.path.isdir(directory):
            run("umount", "--lazy", directory)  # its process died
        directory.mkdir(parents=True, exist_ok=True)
        if mounted_from(directory):
            raise Problem(f"{directory}: something is mounted there")
        environment = {} if narrow else {"LD_PRELOAD": ROOT / WIDE_FUSE}
        daemons.start(self.conf, "ceph-fuse", *ADMIN, directory, *options, environment=environment)
        if not wait_for(lambda: mounted_from(directory)):
            raise Problem(f"ceph-fuse did not mount {directory}; its log is in {self.base}/log")

    unmount = staticmethod(beds.unmount)

    def kill_mount(self, directory):
        """Kills ceph-fuse like a crash, then evicts the client.

        Without the eviction the MDS would keep the client's capabilities for a minute.
        """
        found = [daemon for daemon in self.running() if daemon.name == f"mount {directory}"]
        if not found:
            raise Problem(f"nothing of this bed is mounted on {directory}")
        beds.end(found, signal.SIGKILL)
        self.evict("mount_point", str(directory))

    def evict(self, key, value):
        """The MDS gives up clients, told by their metadata, as it does with dead ones after a time-out."""
        mds = ("ceph", "-c", self.conf, "--connect-timeout", 10, "tell", "mds.a")
        for session in json.loads(run(*mds, "session", "ls", "--format", "json")):
            if session["client_metadata"].get(key) == value:
                run(*mds, "session", "evict", f"id={session['id']}")

    def limits(self, on):
        """Switches the throttling of the disks."""
        self.farm.delay(on)

    def drop_caches(self):
        """Drops the page cache of this mount; other file systems, also the images', keep theirs."""
        for folder, _, files in os.walk(self.mount_point):
            for name in files:
                fd = os.open(Path(folder) / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)

    def status(self):
        """Daemons, pools and disks, as text for people."""
        lines = beds.process_lines(self.require())
        pools = run("ceph", "-c", self.conf, "--connect-timeout", 10, "df")
        disks = [json.dumps(counts) for counts in self.farm.statistics().values()]
        return "\n".join([*lines, "", pools, *disks])

    def stop_osd(self, number, kill=False):
        """Stops an OSD. Without SIGKILL it notifies the monitor, and clients wait from then on."""
        beds.end(self._osd(number), signal.SIGKILL if kill else signal.SIGTERM)

    def start_osd(self, number):
        """Starts an OSD and waits until it serves requests."""
        if not self._osd(number, must_run=False):
            daemons.start(self.conf, "ceph-osd", "-i", number)
        monitors = Monitors(self.conf)
        try:
            monitors.wait_for_osd(number, True)
            monitors.wait_for_clean()
        finally:
            monitors.close()

    def _osd(self, number, must_run=True):
        if not (self.base / f"osd.{number}").exists():
            raise Problem(f"{self.base} has no osd.{number}")
        found = [daemon for daemon in self.running() if daemon.name == f"osd.{number}"]
        if must_run and not found:
            raise Problem(f"osd.{number} does not run")
        return found

    # --- down

    def down(self):
        """Removes every part of the testbed that exists. Discards its data, so flushes nothing."""
        alive = self.running()
        for daemon in alive:
            if daemon.program == "ceph-fuse" and mounted_from(daemon.mount_point):
                self.unmount(daemon.mount_point)
        if mounted_from(self.mount_point):
            self.unmount(self.mount_point)
        beds.end(alive, signal.SIGKILL)
        self.farm.down()
        self.remove()


def check_possible(throttled_disk):
    """Raises a Problem that names a missing program or file."""
    for program in ("monmaptool", *daemons.PROGRAMS):
        if not shutil.which(program):
            raise Problem(f"{program} is not there; remedy: tools/setup.sh cephfs")
    for built in (throttled_disk, ROOT / WIDE_FUSE):
        if not Path(built).exists():
            raise Problem(f"{built} is not there; remedy: make cephfs-bed")
