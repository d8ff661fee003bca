"""Measures files with several copies on emulated servers: the cache, the replicas, and their
overhead for programs that gain nothing.

    stripewise-bench copies cache --dir /dev/shm/copies \\
        --results copies-cache.json

An interrupted run continues where it was. The tables go to standard output; `--only-print` prints
those of earlier results.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "common"))

# pylint: disable=wrong-import-position
import cache
import cache_tables
import overhead
import overhead_tables
import replica_tables
import replicas
import sizes
from programs import BINARIES, ROOT, Programs
from servers import Emulation
from store import Store


EXPERIMENTS = {
    "cache": (cache.measure, cache_tables.tables),
    "replicas": (replicas.measure, replica_tables.tables),
    "overhead": (overhead.measure, overhead_tables.tables),
}
SIZES = [8 << 10, 64 << 10, 512 << 10, 4 << 20]


def common(parser, hdds):
    """Flags of all benchmarks."""
    add = parser.add_argument
    add("--dir", type=Path, default=Path("/dev/shm/stripewise-copies"), help="for the servers and files; emptied")
    add("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    add("--workloads", type=Path, default=ROOT / "build", help="of `make workloads`")
    add("--results", type=Path, help="JSON; what it has is not measured again [default: copies-WHAT.json]")
    add("--repeats", type=int, default=3)
    add("--seconds", type=float, default=4.0, help="of a run without copies: the servers are made as slow as that takes")
    add("--requests", type=int, default=64, help="of each process, if that is not too much data")
    add("--most-data", type=sizes.parse_size, default=512 << 20, help="in a file, or all files of a run")
    add("--hdds", type=int, default=hdds)
    add("--hdd-startup", type=float, default=3e-4, help="seconds, of a random access, before the servers are made slower")
    add("--durability", choices=["sync", "each-write"], default="sync")
    add("--quick", action="store_true", help="shorter runs, once each: to see whether all works")
    add("--only-print", action="store_true", help="print the tables of the results")


def with_cache(parser):
    """Flags of the benchmarks with a cache."""
    common(parser, hdds=8)
    add = parser.add_argument
    add("--ranks", type=int, default=32)
    add("--ssds", type=int, default=4)
    add("--ssd", choices=["given", "ratios"], default="given", help="0.05 ms + 400 MB/s, or SLA's ratios to the HDD")
    add("--space", type=float, default=0.3, help="part of the data that the cache holds")


def flags():
    parser = argparse.ArgumentParser(prog="stripewise-bench copies", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    of_cache = what.add_parser("cache", help="S1: random access, 8K to 4M, under every mode of the cache")
    with_cache(of_cache)
    of_cache.add_argument("--sizes", type=sizes.parse_size, nargs="+", default=SIZES)
    of_cache.add_argument("--modes", nargs="+", choices=list(cache.MODES), default=list(cache.MODES))
    names = [name for name, _ in cache.PHASES]
    of_cache.add_argument("--phases", nargs="+", choices=names, default=names, help="those left out are not run")
    of_replicas = what.add_parser("replicas", help="C3, C4: mixed workloads on three replicas and on each layout alone")
    common(of_replicas, hdds=16)
    of_replicas.add_argument("--only", nargs="+", choices=["shared", "private"], default=["shared", "private"], help="files")
    with_cache(what.add_parser("overhead", help="S7: writes that miss, with and without a cache"))
    return parser.parse_args()


def settings(args):
    """The settings that results of one table must share."""
    ours = {"dir", "binaries", "workloads", "results", "repeats", "only_print", "modes", "sizes", "what", "quick", "only"}
    return {name: value for name, value in vars(args).items() if name not in ours}


def main():
    args = flags()
    if args.quick:
        args.seconds, args.requests, args.repeats = 0.4, 16, 1
    store = Store(args.results or Path(f"copies-{args.what}.json"), args.what, settings(args))
    measure, tables = EXPERIMENTS[args.what]
    if not args.only_print:
        measure(args, Programs(args.binaries, args.workloads), Emulation(), store)
    print(tables(args, store.records))


main()
