"""Validates the simulator against real MPI programs on emulated servers: the same requests,
measured and simulated.

    stripewise-bench simulation --results simulation.jsonl -o bench/results.d/sim.md

Every cell is one kind of file in one layout, written and read by a number of processes with
requests of one size in one order. The servers are slowed down so that a phase takes --seconds. A
table of errors goes to standard output (and into the file of -o, after the line `<!-- simulation
-->` if it has one), every cell to --results. Existing results are not measured again. The cells
come in a fixed pseudo-random order, so that --minutes can end the run at any cell.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent / "common"))

import sizes  # noqa: E402
from cells import Cell, copies, grid  # noqa: E402
from measure import Bench  # noqa: E402
from programs import BINARIES, ROOT, Failed, Programs  # noqa: E402
from tables import tables  # noqa: E402


# The output after this mark is replaced.
MARK = "<!-- simulation -->"


def by_chance(cell):
    """A fixed pseudo-random order, which has all kinds of cells among the first ones."""
    return hashlib.sha256(cell.name.encode()).digest()


def flags():
    parser = argparse.ArgumentParser(prog="stripewise-bench simulation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--dir", type=Path, default=Path("/dev/shm/stripewise-simulation"), help="for the servers and files; emptied")
    add("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    add("--workloads", type=Path, default=ROOT / "build", help="of `make workloads`")
    add("--results", type=Path, help="JSON lines; what it has is not measured again")
    add("-o", "--output", type=Path, help="the table, also written there")
    add("--seconds", type=float, default=0.5, help="of every phase")
    add("--sizes", type=sizes.parse_size, nargs="+", default=[16 << 10, 256 << 10, 4 << 20])
    add("--ranks", type=int, nargs="+", default=[1, 4, 16, 32])
    add("--most-data", type=sizes.parse_size, default=64 << 20, help="in the files of a cell")
    add("--only", nargs="+", choices=["striped", "replicas", "cache"], default=["striped", "replicas", "cache"], help="kinds of files")
    add("--minutes", type=float, default=7.5, help="no cell is begun later")
    add("--every", type=int, default=1, help="only every Nth cell, for a quick look")
    add("--only-print", action="store_true", help="print the tables of --results")
    return parser.parse_args()


def known(path):
    """The records of earlier runs, by cell."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    records = [json.loads(line) for line in lines]
    return {record["cell"]: record for record in records if "failed" not in record}


def main():
    args = flags()
    records = known(args.results)
    # Cells with several copies come first, because they are few.
    cells = sorted(grid(args), key=by_chance) if "striped" in args.only else []
    cells = [cell for cell in copies(args) if cell.kind in args.only] + cells[:: args.every]
    began_s = time.monotonic()
    if not args.only_print:
        bench = Bench(args, Programs(args.binaries, args.workloads))
        for number, cell in enumerate(cells):
            if cell.name in records:
                continue
            if time.monotonic() - began_s > 60 * args.minutes:
                print(f"{len(cells) - number} cells are left: again with the same --results", file=sys.stderr)
                break
            print(f"[{time.monotonic() - began_s:5.0f} s] {number + 1} of {len(cells)}: {cell.name}", file=sys.stderr)
            record = run(bench, cell)
            records[cell.name] = record
            if args.results:
                with args.results.open("a") as out:
                    out.write(json.dumps(record) + "\n")
        bench.remove()
    text = tables([records[cell.name] for cell in cells if cell.name in records])
    print(text)
    if args.output:
        before, mark, _ = (args.output.read_text() if args.output.exists() else "").partition(MARK)
        args.output.write_text((before + mark + "\n\n" if mark else "") + text + "\n")
    return any("failed" in record for record in records.values())


def run(bench, cell: Cell):
    """The result of a cell. A failure does not end the run."""
    load = os.getloadavg()[0]
    try:
        return {"cell": cell.name, "kind": cell.kind, "load": load, **bench.cell(cell)}
    except Failed as error:
        print(f"  failed: {error}", file=sys.stderr)
        return {"cell": cell.name, "kind": cell.kind, "load": load, "failed": str(error)}


sys.exit(main())
