"""The storage on which programs are tried: local directories, throttled disks, and a CephFS. Each
exists while its context is active, has the programs' files in `data`, and its cluster file in
`cluster`."""

import contextlib
import importlib.util
import shutil
from argparse import Namespace

import farm
from programs import ROOT
from throttled import Throttled


def bed_of(bench):
    """The class Bed of another benchmark. Its module has the same name in all of them."""
    spec = importlib.util.spec_from_file_location(f"bed_of_{bench}", ROOT / "bench" / bench / "bed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Bed


@contextlib.contextmanager
def in_memory(directory):
    """A tmpfs on this directory."""
    directory.mkdir(parents=True, exist_ok=True)
    farm.run("mount", "-t", "tmpfs", "tmpfs", directory)
    try:
        yield directory
    finally:
        # The process of the throttled disks ends after its mount.
        if not farm.wait_for(lambda: not farm.attempt("umount", directory)):
            raise farm.Problem(f"{directory} is in use; end what uses it, then `umount {directory}`")


class Unthrottled:
    """Disks that are as fast as they are."""

    def delay(self, on):
        pass


class Local(Throttled):
    """The machine's disk and a second directory as servers, as `stripewise init` finds them. The
    files are on the disk."""

    def __init__(self, args, programs, memory):
        self.memory, directory = memory / self.name, args.dir / self.name
        self.disk = directory / "disk"
        super().__init__(programs, Unthrottled(), directory, self.disk / "data")

    def __enter__(self):
        for directory in (self.data, self.disk / "target", self.memory):
            directory.mkdir(parents=True, exist_ok=True)
        self.programs.command("init", self.disk / "target", self.second(), "--force", "-o", self.cluster)
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.disk)
        shutil.rmtree(self.memory)

    def calibrate(self):
        self.programs.command("calibrate", "-c", self.cluster, "--quiet", "--quick")


class Cached(Local):
    """A disk and memory, and files in the page cache."""

    name, cold, scale = "cached", False, 24
    described = """The machine's own (virtual) disk, `hdd`, and a tmpfs, `disk`, are the servers, both
    real. The page cache serves what a run reads if an earlier run has read or written it; nothing
    empties it. (fio drops its file from the page cache when it starts.)"""

    def second(self):
        return self.memory


class TwoDisks(Local):
    """A disk, and a loop device whose image is in memory."""

    name, cold, scale = "two-disks", True, 24
    described = """The machine's own (virtual) disk, `hdd`, and a loop device with ext4 on an image in
    memory, `ssd`, are the servers, both real and not throttled. The page cache is emptied before
    each run."""
    size_mib = 4096

    def second(self):
        """Makes the loop device; unmounting removes it."""
        image, mounted = self.memory / "image", self.memory / "mnt"
        with open(image, "xb") as file:
            file.truncate(self.size_mib << 20)
        mounted.mkdir()
        farm.run("mkfs.ext4", "-q", "-F", image)
        farm.run("mount", "-o", "loop,noatime", image, mounted)
        return mounted

    def __exit__(self, *error):
        farm.run("umount", self.memory / "mnt")
        super().__exit__(*error)


class OnDisks(bed_of("disks")):
    """Throttled disks. The files are on the first HDD."""

    name, cold, scale = "throttled", True, 2
    described = """Four HDDs and four SSDs are the servers: loop devices with ext4 on images in memory
    that are **throttled** to {args.hdd} and {args.ssd} (us for a random access : us in order :
    MiB/s). File systems and page cache are real. The page cache is emptied before each run."""

    def __init__(self, args, programs, memory):
        args = Namespace(**vars(args), images=memory / "images", size_mib=1024, file_system="ext4")
        args.dir = args.dir / self.name
        self.tiers = {tier: [f"{tier}{number}" for number in range(4)] for tier in ("hdd", "ssd")}
        super().__init__(args, programs, [(name, getattr(args, tier)) for tier, names in self.tiers.items() for name in names])

    def __enter__(self):
        super().__enter__()
        self.data = self.farm.mount_point("hdd0") / "data"
        self.data.mkdir()
        return self

    def calibrate(self):
        self.calibrated({tier: (names, self.capacity_bytes()) for tier, names in self.tiers.items()})


class OnCephFs(bed_of("cephfs")):
    """A CephFS, each OSD of which is a server. The files are in its first data pool."""

    name, cold, scale = "cephfs", True, 1
    described = """A CephFS 16.2 with real daemons has four OSDs on HDDs and four on SSDs; each OSD is
    a server. Their disks are images in memory that are **throttled** to {args.osd_hdd} and
    {args.osd_ssd} (us for a random access : us in order : MiB/s). ceph-fuse has no cache of its own;
    the kernel's page cache is in use, and emptied before each run."""

    def __init__(self, args, programs, memory):
        args = Namespace(**vars(args), servers=4, size_mib=2048)
        args.dir, args.hdd, args.ssd = memory / self.name, args.osd_hdd, args.osd_ssd
        super().__init__(args, programs)

    def calibrate(self):
        self.calibrated(self.directory / "measured.toml")


SETUPS = {kind.name: kind for kind in (Cached, TwoDisks, OnDisks, OnCephFs)}
