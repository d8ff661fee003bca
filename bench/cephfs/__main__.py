"""Measures stripewise on CephFS (testbed/cephfs: real daemons, throttled disks), as root.

    sudo stripewise-bench cephfs all --records cephfs.jsonl \\
        --document docs/evaluation/cephfs.json --page bench/results.d/cephfs.md
    sudo stripewise-bench cephfs layouts --quick --records quick.jsonl
    stripewise-bench cephfs all --only-print --records cephfs.jsonl

layouts: does the planner choose the best of 1-DH, 2-D and 1-DV?
schemes: DEF, PA, PSA and the planner's choice, on both classes; the expected and the measured
    bytes of each OSD.
cache: a cache on one class for a file on the other; the bytes of each OSD.
replicas: two copies of different layouts; the bytes of each OSD.
pools: the layouts again where the file system stripes over a pool.

An interrupted run continues where it was; more --repeats are added to the existing records. The
disks' parameters are measured once, by `stripewise calibrate`, and kept next to the records. The
tables go to standard output.
"""

import argparse
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "testbed" / "disks"), str(ROOT / "bench" / "common")]

# pylint: disable=wrong-import-position
import cache
import choice
import farm
import pools
import replicas
import schemes
import tables
from bed import Bed
from described import command_line
from programs import BINARIES, Failed, Programs
from records import Records
from sizes import parse_size

EXPERIMENTS = {"layouts": choice, "schemes": schemes, "cache": cache, "replicas": replicas, "pools": pools}


@dataclass
class Run:
    """The context in which all cells are measured."""

    bed: object
    records: object
    args: object
    say: object


def flags():
    parser = argparse.ArgumentParser(prog="stripewise-bench cephfs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("what", choices=[*EXPERIMENTS, "all"])
    add("--records", type=Path, default=Path("cephfs.jsonl"), help="JSON lines; what it has is not measured again")
    add("--document", type=Path, help="write all records there, as docs/evaluation/ has them")
    add("--page", type=Path, help="write the tables there, too, as bench/results.d/ has them")
    add("--note", default="", help="a sentence for the page: what else the machine did")
    add("--dir", type=Path, default=Path("/dev/shm/stripewise-bench-cephfs"), help="for the bed, traces and plans")
    add("--port", type=int, default=40200, help="of the bed's monitor, and the next one")
    add("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    add("--workloads", type=Path, default=ROOT / "build", help="of `make workloads`")
    add("--throttled-disk", type=Path, default=ROOT / "build" / "throttled-disk", help="of `make throttled-disk`")
    speed = "of each OSD's disk: random access in us, in order in us, MiB/s [default: %(default)s]"
    add("--hdd", type=farm.Speed.parse, default="8000:8000:4", metavar="SPEED", help=speed)
    add("--ssd", type=farm.Speed.parse, default="3000:3000:12", metavar="SPEED", help=speed)
    add("--servers", type=int, default=4, help="OSDs of each class")
    add("--size-mib", type=int, default=2048, help="of each disk; only what is used takes space")
    add("--seconds", type=float, default=2.2, help="of a run on the fastest layout, at least")
    add("--repeats", type=int, default=3)
    add("--sizes", type=parse_size, nargs="+", help="of requests, of the table of layouts")
    add("--quick", action="store_true", help="short runs, once each: to see whether all works")
    add("--only-print", action="store_true", help="print the tables of what was measured")
    args = parser.parse_args()
    if args.quick:
        args.repeats, args.seconds = 1, min(args.seconds, 0.7)
    return args


def measure(args, records):
    begin_s = time.monotonic()

    def say(message):
        print(f"[{time.monotonic() - begin_s:6.1f} s] {message}", file=sys.stderr, flush=True)

    with Bed(args, Programs(args.binaries, args.workloads, "mpich")) as bed:
        say("the bed is up")
        bed.calibrated(args.records.with_suffix(".profile.toml"))
        say("calibrated")
        for experiment in EXPERIMENTS.values() if args.what == "all" else [EXPERIMENTS[args.what]]:
            experiment.measure(Run(bed, records, args, say), args)


def main():
    args = flags()
    # SIGTERM takes the testbed down, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cephfs: ended by SIGTERM"))
    records = Records(args.records, where="cephfs")
    if not args.only_print:
        try:
            measure(args, records)
        except (farm.Problem, Failed) as problem:
            sys.exit(f"cephfs: {problem}")
    text = tables.page(records, args)
    print(text)
    if args.page:
        args.page.write_text(text + "\n")
    if args.document:
        args.document.write_text(records.document(command_line()))


main()
