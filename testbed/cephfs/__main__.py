"""A CephFS on one machine, for tests and measurements.

It consists of Ceph's real daemons, with each OSD on a throttled disk (testbed/disks).

    sudo python3 testbed/cephfs up --base /tmp/cephfs        # about 15 s; prints output of `env`
    eval "$(python3 testbed/cephfs env --base /tmp/cephfs)"  # CEPH_CONF, STRIPEWISE_CEPHFS (mount)
    python3 testbed/cephfs limits off --base /tmp/cephfs     # no throttling, to prepare files
    python3 testbed/cephfs stop-osd 2 --base /tmp/cephfs     # OSDs 0..: the HDDs, then the SSDs
    sudo python3 testbed/cephfs down --base /tmp/cephfs

Pools: hdd and ssd, each over all OSDs of its class (round robin), and hdd0.. and ssd0.., one OSD
each. All are data pools of the file system. There is one copy of all data and no authentication.
The testbed uses only --base and the ports from --port on of --address, so several testbeds with
different values can run at the same time. `up` removes the remains of a testbed that was killed.
Needs root, FUSE, and the packages and programs that `make cephfs-bed` installs and builds.
"""

import importlib.util
import os
import sys
from pathlib import Path

SYSTEM_PYTHON = "/usr/bin/python3"

# Ceph's Python libraries belong to the system's interpreter. A virtual environment does not see
# them, even if its interpreter is a link to the system's.
if not importlib.util.find_spec("rados") and sys.executable != SYSTEM_PYTHON:
    os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "testbed" / name) for name in ("disks", "shared")]

import beds  # noqa: E402  (needs the path above)
from bed import Bed, Shape  # noqa: E402
from farm import Speed  # noqa: E402


def flags():
    parser, command = beds.commands(__doc__, "/tmp/stripewise-cephfs")
    add_flags_of_up(command("up", "make the bed; one that is complete already stays as it is"))
    command("down", "remove it, or what is left of it")
    command("status", "daemons, pools, disks")
    command("env", "what a shell evaluates to use it")
    command("dropcaches", "forget the bytes that the kernel has of its files, so that reads reach the disks")
    mount = command("mount", "mount it a second time")
    mount.add_argument("directory", type=Path)
    mount.add_argument("--narrow", action="store_true", help="at most 128 KiB at a time, as ceph-fuse with libfuse 2 does it")
    mount.add_argument("options", nargs="*", help="of ceph-fuse, after --, e.g. -- --rados_osd_op_timeout=10")
    umount = command("umount", "end a mount")
    umount.add_argument("directory", type=Path)
    umount.add_argument("--kill", action="store_true", help="with SIGKILL: what is mounted stays there, dead; the MDS is told")
    command("limits", "whether requests to the disks take time").add_argument("state", choices=("on", "off"))
    command("start-osd", "start an OSD that was stopped").add_argument("osd", type=int)
    stop = command("stop-osd", "stop an OSD")
    stop.add_argument("osd", type=int)
    stop.add_argument("--kill", action="store_true", help="with SIGKILL: it does not say goodbye to the monitor")
    command("evict", "the MDS gives up the clients of a host, as after a time-out").add_argument("host")
    return parser.parse_args()


def add_flags_of_up(parser):
    """Adds the flags for the size and speed of a testbed.

    The default speeds make the disks the bottleneck. On two cores of 2026 a write of 64 KiB took
    1.4 ms of CPU time and one of 1 MiB 4 ms (reads 0.6 and 3), summed over all processes; all disks
    together serve 960 writes of 64 KiB or 110 of 1 MiB per second. Sequential and random access
    take the same time, because the order of bytes on bluestore's disk differs from the file's.
    """
    add = parser.add_argument
    add("--address", default="127.0.0.1", help="of this machine, for all daemons [default: %(default)s]")
    add("--port", type=int, default=40100, help="of the monitor, and the next one [default: %(default)s]")
    add("--hdds", type=int, default=4)
    add("--ssds", type=int, default=4)
    speed = "random access in us, in order in us, MiB/s [default: %(default)s]"
    add("--hdd", type=Speed.parse, default="8000:8000:8", metavar="SPEED", help=speed)
    add("--ssd", type=Speed.parse, default="3000:3000:24", metavar="SPEED", help=speed)
    add("--size-mib", type=int, default=8192, help="of each disk; only what is used takes space [default: %(default)s]")
    add("--images", type=Path, help="a directory for the disks [default: in --base]; /dev/shm/... keeps them in memory")
    add("--pgs", type=int, default=32, help="placement groups of the class pools [default: %(default)s]")
    add("--no-limits", action="store_true", help="requests take no time until `limits on`")
    add("--throttled-disk", type=Path, default=ROOT / "build" / "throttled-disk", help="the program that `make throttled-disk` built")


def main():
    args = flags()
    bed = Bed(args.base)
    match args.what:
        case "up":
            shape = Shape(args.address, args.port, args.hdds, args.ssds, args.hdd, args.ssd, args.size_mib, args.pgs)
            bed.up(shape, args.throttled_disk, args.images, limits=not args.no_limits)
            print(bed.environment())
        case "down":
            bed.down()
        case "status":
            print(bed.status())
        case "env":
            print(bed.environment())
        case "dropcaches":
            bed.drop_caches()
        case "mount":
            bed.mount(args.directory.absolute(), args.options, args.narrow)
        case "umount":
            (bed.kill_mount if args.kill else bed.unmount)(args.directory.absolute())
        case "limits":
            bed.limits(args.state == "on")
        case "start-osd":
            bed.start_osd(args.osd)
        case "stop-osd":
            bed.stop_osd(args.osd, args.kill)
        case "evict":
            bed.evict("hostname", args.host)


if __name__ == "__main__":
    beds.run_main("cephfs", main)
