#!/usr/bin/env python3
"""An h5py program: writes a dataset block by block and reads it back, one file per process.

The values depend on the file and on their place in it, so that every misplaced byte is detected.
The program checks them outside of the timed phases.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time

import h5py
import numpy as np

WORD = 8  # bytes of one element


def size(text):
    """'64K' -> 65536; K, M, G are binary."""
    units = {"K": 10, "M": 20, "G": 30}
    shift = units.get(text[-1:], 0)
    digits = text[:-1] if shift else text
    if not digits.isdecimal() or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; give bytes, or a number with K, M or G")
    return int(digits) << shift


def values(start, count, key):
    """The elements [start, start + count) of the dataset in the file with this key."""
    index = np.arange(start, start + count, dtype=np.uint64)
    mixed = (index + np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


def blocks(args, number):
    """First elements of the blocks, in the order of access."""
    starts = np.arange(args.total // args.block, dtype=np.int64) * (args.block // WORD)
    if args.access == "random":
        np.random.default_rng([args.seed, number]).shuffle(starts)
    return starts.tolist()


def write(args, path, number, starting):
    """Writes the whole dataset; returns the seconds of the transfers, with flush and close."""
    count = args.block // WORD
    data = {start: values(start, count, args.seed * 1000 + number) for start in blocks(args, number)}
    chunks = (args.chunk // WORD,) if args.chunk else None
    starting.wait()
    begin = time.monotonic()
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("data", shape=(args.total // WORD,), dtype="<u8", chunks=chunks)
        for start, block in data.items():
            dataset[start : start + count] = block
        file.flush()
        if args.fsync:
            os.fsync(file.id.get_vfd_handle())
    return time.monotonic() - begin, 0


def read(args, path, number, starting):
    """Reads the whole dataset; returns the seconds and the number of wrong bytes."""
    count = args.block // WORD
    kept = {start: np.full(count, 1, dtype=np.uint64) for start in blocks(args, number)}
    starting.wait()
    begin = time.monotonic()
    with h5py.File(path, "r") as file:
        dataset = file["data"]
        for start, block in kept.items():
            dataset.read_direct(block, np.s_[start : start + count])
    elapsed = time.monotonic() - begin
    wrong = 0
    if args.verify:
        for start, block in kept.items():
            wrong += int(np.count_nonzero(block != values(start, count, args.seed * 1000 + number))) * WORD
    return elapsed, wrong


def path_of(args, number):
    """The file of one process: the given name, or with the process's number before the suffix."""
    if args.procs == 1:
        return args.file
    stem, suffix = os.path.splitext(args.file)
    return f"{stem}.{number}{suffix}"


def work(args, action, number, starting, results):
    """The body of one process."""
    try:
        results.put((number, *action(args, path_of(args, number), number, starting), None))
    except Exception as error:  # reported by the parent, which ends the program
        starting.abort()
        results.put((number, 0.0, 0, f"{path_of(args, number)}: {type(error).__name__}: {error}"))


def phase(args, op):
    """Runs one phase in all processes; the time of the slowest counts."""
    action = {"write": write, "read": read}[op]
    context = multiprocessing.get_context("fork")
    starting, results = context.Barrier(args.procs), context.Queue()
    arguments = [(args, action, number, starting, results) for number in range(args.procs)]
    processes = [context.Process(target=work, args=argument) for argument in arguments]
    for process in processes:
        process.start()
    done = sorted(results.get() for _ in processes)
    for process in processes:
        process.join()
    errors = [error for *_, error in done if error and "BrokenBarrierError" not in error]
    if errors:
        sys.exit(f"h5.py: {op} {errors[0]}")
    elapsed = max(seconds for _, seconds, _, _ in done)
    total = args.total * args.procs
    result = {"op": op, "elapsed_s": elapsed, "bytes": total, "mib_per_s": total / 2**20 / elapsed}
    result["rank_s"] = [seconds for _, seconds, _, _ in done]
    return result, sum(wrong for _, _, wrong, _ in done)


def dry_run(args, ops):
    """Prints 'process op element-offset-in-bytes length path' for every block.

    HDF5 chooses the dataset's place in the file.
    """
    for op in ops:
        for number in range(args.procs):
            for start in blocks(args, number):
                print(number, op, start * WORD, args.block, path_of(args, number))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="example: h5.py --file d.h5 --total 64M --block 1M --op both --verify --json")
    parser.add_argument("-o", "--file", required=True, help="the file; with several processes their number is put before the suffix")
    parser.add_argument("--total", type=size, default="16M", help="bytes of the dataset, per process (default 16M)")
    parser.add_argument("--block", type=size, default="1M", help="bytes of one access (default 1M)")
    parser.add_argument("--chunk", type=size, help="HDF5 chunk in bytes (default: a contiguous dataset)")
    parser.add_argument("--procs", type=int, default=1, help="processes, each with a file of its own (default 1)")
    parser.add_argument("--access", choices=["sequential", "random"], default="sequential")
    parser.add_argument("--op", choices=["write", "read", "both"], default="both")
    parser.add_argument("--fsync", action="store_true", help="make the data durable inside the timed write")
    parser.add_argument("--seed", type=int, default=1, help="of the data and the random order (default 1)")
    parser.add_argument("--verify", action="store_true", help="check every byte, outside of the timed phases")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--dry-run", action="store_true", help="print every access and do nothing else")
    args = parser.parse_args()
    for name, value in (("--block", args.block), ("--chunk", args.chunk or WORD)):
        if value % WORD or args.total % args.block:
            parser.error(f"{name} {value}: must be a multiple of {WORD}, and --total {args.total} of --block")
    if args.procs < 1:
        parser.error(f"--procs {args.procs}: at least 1 is needed")
    return args


def main():
    args = parse()
    ops = ["write", "read"] if args.op == "both" else [args.op]
    if args.dry_run:
        return dry_run(args, ops)
    phases, wrong, verified = [], 0, 0
    for op in ops:
        result, bad = phase(args, op)
        phases.append(result)
        wrong += bad
        verified += result["bytes"] if op == "read" and args.verify else 0
    if args.verify and args.op == "write":
        result, wrong = phase(args, "read")
        verified = result["bytes"]
    if args.json:
        summary = {"program": "h5py", "ranks": args.procs, "file": args.file, "phases": phases}
        print(json.dumps(summary | {"verified_bytes": verified, "wrong_bytes": wrong}))
    else:
        for p in phases:
            print(f"{p['op']:5}  {p['mib_per_s']:10.3f} MiB/s  {p['elapsed_s']:9.4f} s")
        if args.verify:
            print(f"verified {verified} bytes, {wrong} wrong")
    if wrong:
        sys.exit(f"h5.py: {wrong} wrong bytes in {args.file}")
    return None


if __name__ == "__main__":
    main()
