"""Throttled disks: loop devices with a file system each, on throttled images (throttled.c).

    sudo python3 testbed/disks up --dir /tmp/disks --hdds 4 --ssds 4
    python3 testbed/disks status --dir /tmp/disks
    sudo python3 testbed/disks down --dir /tmp/disks

`up` prints the mount points as JSON, `status` the counters of each disk. `down` removes only what
`up` created, according to its notes in DIR/made.json. Needs root, FUSE and loop devices;
`make throttled-disk` builds the disk.
"""

import argparse
import json
import sys
from pathlib import Path

import farm
from farm import ROOT, Farm, Problem, Speed


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    up = what.add_parser("up", help="make the disks; those of an earlier `up` must be down")
    for command in (up, what.add_parser("down", help="remove them"), what.add_parser("status", help="show them")):
        command.add_argument("--dir", type=Path, required=True, help="mount points, and notes of what was made")
    add_flags_of_disks(up)
    return parser.parse_args()


def add_flags_of_disks(parser):
    """Adds the flags for the number, size and speed of the disks."""
    add = parser.add_argument
    add("--images", type=Path, help="a directory for the images [default: in --dir]; /dev/shm/... keeps them in memory")
    add("--hdds", type=int, default=4)
    add("--ssds", type=int, default=4)
    speed = "random access in us, in order in us, MiB/s [default: %(default)s]"
    add("--hdd", type=Speed.parse, default="3000:1000:12", metavar="SPEED", help=speed)
    add("--ssd", type=Speed.parse, default="500:500:40", metavar="SPEED", help=speed)
    add("--size-mib", type=int, default=1024, help="of each disk; only what is used takes space [default: %(default)s]")
    add("--file-system", choices=farm.FILE_SYSTEMS, default="ext4")
    add("--throttled-disk", type=Path, default=ROOT / "build" / "throttled-disk", help="the program that `make throttled-disk` built")


def disks_of(args):
    """(name, speed) of each disk that the flags request."""
    classes = (("hdd", args.hdds, args.hdd), ("ssd", args.ssds, args.ssd))
    return [(f"{name}{number}", speed) for name, count, speed in classes for number in range(count)]


def main():
    args = flags()
    disks = Farm(args.dir)
    if args.what == "up":
        disks.up(args.throttled_disk, disks_of(args), args.images, args.size_mib, args.file_system)
        print(json.dumps({name: str(disks.mount_point(name)) for name, _ in disks_of(args)}))
    elif args.what == "down":
        disks.down()
    elif disks.is_up():
        print("\n".join(json.dumps(counts) for counts in disks.statistics().values()))
    else:
        print("no disks")


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(f"disks: {problem}")
