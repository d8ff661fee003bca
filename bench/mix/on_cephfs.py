"""Two of the cases on a CephFS with throttled disks (bench/cephfs/bed.py)."""

import sys
from dataclasses import replace
from pathlib import Path

import cases as on_emulated
import farm
from programs import ROOT

# The testbed of bench/cephfs.
sys.path.append(str(ROOT / "bench" / "cephfs"))

# pylint: disable=wrong-import-position
from bed import Bed  # noqa: E402, F401

# The files are smaller by this factor: all daemons run on two cores.
SMALLER = 4


def flags(parser):
    """The flags of the testbed."""
    add = parser.add_argument_group("cephfs").add_argument
    add("--port", type=int, default=40300, help="of the bed's monitor, and the next one")
    add("--throttled-disk", type=Path, default=ROOT / "build" / "throttled-disk", help="of `make throttled-disk`")
    speed = "of each OSD's disk: random access in us, in order in us, MiB/s [default: %(default)s]"
    add("--hdd", type=farm.Speed.parse, default="40000:4000:8", metavar="SPEED", help=speed)
    add("--ssd", type=farm.Speed.parse, default="4000:4000:20", metavar="SPEED", help=speed)
    add("--servers", type=int, default=4, help="OSDs of each class")
    add("--size-mib", type=int, default=2048, help="of each disk; only what is used takes space")


def cases(args, hdd_bytes):
    """The first two cases on the OSDs of both classes, with SSDs for as much of the data. The hot
    part gets as many reads, so that a run takes seconds."""
    scale = SMALLER * args.scale
    both = on_emulated.small_and_large(scale), on_emulated.hot_middle(scale, fewer=args.scale)
    return [on_osds(case, args.servers, hdd_bytes) for case in both]


def on_osds(case, servers, hdd_bytes):
    ssds = next(tier for tier in case.tiers if tier.name == "ssd")
    each = case.capacity_bytes["ssd"] * ssds.count // servers
    tiers = tuple(replace(tier, count=servers) for tier in case.tiers)
    return replace(case, tiers=tiers, capacity_bytes={"hdd": hdd_bytes, "ssd": each})


def described(args):
    """The testbed in words."""
    return f"""A CephFS 16.2 on one machine with real daemons (`testbed/cephfs`): {args.servers} OSDs on HDDs and
    {args.servers} on SSDs. Each is a server, and has a disk of its own, throttled to {args.hdd} and {args.ssd}
    (us for a random access : us in order : MiB/s). The models know the disks by `stripewise calibrate
    --quick` alone. Programs bypass all caches, and ceph-fuse has none. The cases are the first two of those
    above, with files that are smaller by a factor of {SMALLER} and as many reads in the second one; the SSDs
    hold as much of the data as there.
    Stripes by hand: 64K, 1M and 16M. CPU time of the daemons, which share two cores, is in the measured
    times and not in the simulated ones."""


class System:
    """A case on the testbed."""

    direct = True

    def __init__(self, bed, case):
        self.bed, self.case, self.programs = bed, case, bed.programs
        self.directory, self.data, self.cluster = bed.directory, bed.data, bed.cluster
        bed.write_cluster(case.capacity_bytes)

    def empty(self):
        """Removes all files."""
        self.bed.remove_files()

    remove = empty

    def fast(self, fast):
        """Whether the disks take no time."""
        self.bed.farm.delay(not fast)

    def stored(self):
        """Nothing to check: the files are where the driver has put them."""
        return {}
