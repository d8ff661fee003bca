r"""Measures C1 and the rows of PSA on throttled disks under a file system (testbed/disks), as root.

    sudo stripewise-bench disks all --quick --records disks.jsonl \
        --document docs/evaluation/disks.json --page bench/results.d/disks.md
    sudo stripewise-bench disks c1 --sizes 64K --processes 2 --records disks.jsonl
    stripewise-bench disks all --only-print --records disks.jsonl

Every request of a program becomes one request of each disk that its layout touches, because files
are overwritten in place without the page cache. An interrupted run continues where it was; more
--repeats are added to the existing records. The tables go to standard output.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "testbed" / "disks"), str(ROOT / "bench" / "common")]

# pylint: disable=wrong-import-position
import choice
import farm
import psa
import tables
from bed import Bed
from described import command_line
from programs import BINARIES, Failed, Programs
from records import Records
from sizes import parse_size


EXPERIMENTS = {"c1": [choice], "psa": [psa], "all": [choice, psa]}


def flags():
    parser = argparse.ArgumentParser(prog="stripewise-bench disks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("what", choices=["c1", "psa", "all"])
    add("--records", type=Path, default=Path("disks.jsonl"), help="JSON lines; what it has is not measured again")
    add("--document", type=Path, help="write all records there, as docs/evaluation/ has them")
    add("--page", type=Path, help="write the tables there, too, as bench/results.d/ has them")
    add("--dir", type=Path, default=Path("/tmp/stripewise-disks"), help="for mount points and files")
    add("--images", type=Path, default=Path("/dev/shm/stripewise-disks"), help="a directory for the disks' images")
    add("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    add("--workloads", type=Path, default=ROOT / "build", help="of `make workloads`")
    add("--throttled-disk", type=Path, default=ROOT / "build" / "throttled-disk", help="of `make throttled-disk`")
    speed = "random access in us, in order in us, MiB/s [default: %(default)s]"
    add("--hdd", type=farm.Speed.parse, default="3000:1000:12", metavar="SPEED", help=speed)
    add("--ssd", type=farm.Speed.parse, default="500:500:40", metavar="SPEED", help=speed)
    add("--size-mib", type=int, default=1024, help="of each disk; only what is used takes space")
    add("--file-system", choices=farm.FILE_SYSTEMS, default="ext4")
    add("--seconds", type=float, default=0.7, help="of a run, on average over the layouts")
    add("--repeats", type=int, default=3)
    add("--sizes", type=parse_size, nargs="+", help="of requests, of those of C1")
    add("--processes", type=int, nargs="+", help="of those of C1")
    add("--quick", action="store_true", help="a part of the grid, twice: under 6 minutes")
    add("--only-print", action="store_true", help="print the tables of what was measured")
    args = parser.parse_args()
    if args.quick:
        args.repeats = min(args.repeats, 2)
    return args


def measure(args, records):
    begin_s = time.monotonic()

    def say(message):
        print(f"[{time.monotonic() - begin_s:6.1f} s] {message}", file=sys.stderr, flush=True)

    for experiment in EXPERIMENTS[args.what]:
        with Bed(args, Programs(args.binaries, args.workloads), experiment.disks(args)) as bed:
            experiment.measure(choice.Run(bed, records, args.hdd, args.seconds, say), args)


def main():
    args = flags()
    # SIGTERM removes the disks, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("disks: ended by SIGTERM"))
    records = Records(args.records, where="disks")
    if not args.only_print:
        try:
            measure(args, records)
        except (farm.Problem, Failed) as problem:
            sys.exit(f"disks: {problem}")
    text = tables.page(records, args)
    print(text)
    if args.page:
        args.page.write_text(text + "\n")
    if args.document:
        args.document.parent.mkdir(parents=True, exist_ok=True)
        args.document.write_text(records.document(command_line()))


main()
