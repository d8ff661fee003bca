"""What a commit of a collective sync costs over several nodes: its parts.

    python3 testbed/nodes up --nodes 4 --on cephfs --no-slurm --base /tmp/nodes -- --no-limits
    python3 bench/commits.py --base /tmp/nodes

The MPI program of bench/nodes.py writes a file with replicas on 1, 2 and 4 nodes, one rank on each,
and makes it durable with fsync in all ranks at once. Every rank runs below strace, which tells the
time of each system call, and slows all of them down: the parts matter, not their sum. Prints the
table of bench/results.d/nodes.md: medians over all ranks and repeats, ms.

The parts are recognized by what a committing process does (docs/formats/nodes.md): it takes the sync
lock of its node (byte 1 of board.lock), syncs the objects, takes the node lock and the commit lock
(byte 1 of the journal), reads the log, appends, syncs, and releases the lock.
"""

import argparse
import re
import sys
from pathlib import Path
from statistics import median

import nodes

CALLS = "fcntl,pread64,pwrite64,fdatasync,fsync,fallocate,io_uring_enter"
LINE = re.compile(r"^(\d+\.\d+) (\w+)\((.*)$")
DURATION = re.compile(r"<(\d+\.\d+)>$")
LOCKED = re.compile(r"F_OFD_SETLKW?, \{l_type=F_(\w+), .*?l_start=(\d+).*= 0 <")
# Bytes of board.lock and, the last, of the journal.
SYNC_BYTE, NODE_BYTE, COMMIT_BYTE = 1, 2, 1
PARTS = ["sync of the data", "wait for the lock", "read of the log", "append", "sync of the log", "unlock"]


class Call:
    """A system call of a line of strace."""

    def __init__(self, line, match):
        self.begin, self.name, rest = float(match[1]), match[2], match[3]
        duration = DURATION.search(line)
        self.end = self.begin + (float(duration[1]) if duration else 0)
        path = re.search(r"<([^>]*)>", rest)
        self.path = path[1] if path else ""
        lock = LOCKED.search(line) if self.name == "fcntl" else None
        self.lock = (lock[1], int(lock[2])) if lock else None

    @property
    def is_of_log(self):
        return ".extents" in self.path

    def takes(self, name, byte):
        return name in self.path and self.lock == ("WRLCK", byte)


def calls_of(trace):
    """The calls of a thread."""
    lines = trace.read_text(errors="replace").splitlines()
    return [Call(line, match) for line in lines if (match := LINE.match(line))]


def last_taken(calls, name, byte):
    """The index of the last call that takes a lock."""
    return next((index for index in range(len(calls) - 1, -1, -1) if calls[index].takes(name, byte)), None)


def commits(calls):
    """The parts of each commit of a thread, seconds."""
    for number, call in enumerate(calls):
        if call.name != "fdatasync" or not call.is_of_log:
            continue
        before = calls[:number]
        locked = last_taken(before, ".extents", COMMIT_BYTE)
        # An append without the sync lock is that of a hold, or of a node that joins.
        begin = last_taken(before, "board.lock", SYNC_BYTE)
        log_from = last_taken(before, "board.lock", NODE_BYTE)
        if None in (locked, begin, log_from) or any(c.name == "fdatasync" and c.is_of_log for c in before[begin:]):
            continue
        unlocked = next((c for c in calls[number + 1 :] if c.is_of_log and c.name == "fcntl" and c.lock and c.lock[0] == "UNLCK"), call)
        if all(c.name == "fcntl" for c in before[begin:log_from]):
            continue  # nothing to sync: the commit of a close, or one that another node asked for
        append = [c for c in before[locked:] if c.is_of_log and c.name in ("fallocate", "pwrite64")]
        if not append:
            continue
        yield {
            "sync of the data": before[log_from].begin - before[begin].end,
            "wait for the lock": before[locked].end - before[log_from].begin,
            "read of the log": append[0].begin - before[locked].end,
            "append": call.begin - append[0].begin,
            "sync of the log": call.end - call.begin,
            "unlock": unlocked.end - call.end,
        }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="of a testbed of four nodes with a CephFS")
    parser.add_argument("--repeats", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--bin", type=Path, default=nodes.ROOT / "target" / "release", help="[default: target/release]")
    parser.set_defaults(block="8M", transfer="1M", access="sequential", mpi="mpich")
    return parser.parse_args()


def main():
    args = arguments()
    print(f"| nodes | {' | '.join(PARTS)} | all |\n|{'---|' * (len(PARTS) + 2)}")
    for count in nodes.COUNTS:
        args.ranks = count
        site, found = nodes.Site(args), []
        site.prepare("replicas")
        for _ in range(args.repeats):
            # Process ids of two nodes may be the same.
            below = f'exec strace -ff -T -ttt -y -s 0 -e trace={CALLS} -o {args.base}/traces.$(hostname) "$@"'
            site.job(count, below=["sh", "-c", below, "sh"])
            for trace in args.base.glob("traces.*"):
                found += commits(calls_of(trace))
                trace.unlink()
        cells = [f"{1000 * median(parts[part] for parts in found):.1f}" for part in PARTS]
        whole = 1000 * median(sum(parts.values()) for parts in found)
        print(f"| {count} | {' | '.join(cells)} | {whole:.1f} |")
        print(f"{count} nodes: {len(found)} commits", file=sys.stderr)


if __name__ == "__main__":
    main()
