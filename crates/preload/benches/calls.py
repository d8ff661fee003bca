#!/usr/bin/env python3
"""Measures the library's CPU time per call on plain, recorded and managed files, and compares it with
runs without the library and with other builds of it.

    nice -n -20 crates/preload/benches/calls.py [NAME=]LIBRARY [[NAME=]LIBRARY ...] [--dir /dev/shm] [--rounds 101] [--only TEXT] [--calls TEXT] [--floor]

Every kind of file in every build has a process of its own. All processes take turns on one
processor: each does a few calls of one kind, then of the next kind. So a change of the machine's
speed affects all of them. The tables have the median of the rounds, nanoseconds per call, and below
each build the median and the quartiles of its ratio to the first one in the same round. "bare" runs
twice: the difference between the two is noise.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Duration of a round of one kind of call, ns, and largest number of calls in it.
ROUND_NS, CALLS_MAX = 200_000, 100
# Largest number of columns of a table.
COLUMNS = 9

RULE = """[[rule]]
pattern = "{0}/{1}/**"
scheme = "DEF"
reason = "a benchmark"
predicted_s = 1.0
elapsed_s = 1.0
layouts = [[{{ cycle = "{2}" }}]]
"""
COPY = '[[rule.copy]]\nkind = "{0}"\nname = "{0}"\nlayouts = [[{{ cycle = "c/0-3:64K" }}]]\n'

def cache(mode, capacity):
    """The lines of a rule for a cache copy; `capacity` is per server."""
    return COPY.format("cache") + f'[rule.overlay]\nmode = "{mode}"\ncapacity_per_server = "{capacity}"\n'


# The directory of each kind of managed file, and additional lines of its rule.
MANAGED = {
    "managed": "",
    "one": "",
    "replicas": COPY.format("replica"),
    "off": cache("off", "1G"),
    "hits": cache("nsca", "1G"),
    # A cache full of dirty data: the copier is too slow to leave clean data that could be evicted.
    "misses": cache("sla", "4K") + "background = 1\n",
}
# The layout of each kind of managed file, unless it is this one.
CYCLE = "s/0-3:64K"
CYCLES = {"one": "s/0:64K"}
# Kinds of files: name of the row, directory, and environment.
KINDS = {
    "plain": ("plain", {}),
    "plain, with a plan": ("planned", {"STRIPEWISE_PLAN": "PLAN"}),
    "plain, recorded": ("recorded", {"STRIPEWISE_TRACE_DIR": "SPOOL"}),
    "managed, one target": ("one", {"STRIPEWISE_PLAN": "PLAN"}),
    "managed, 4 targets": ("managed", {"STRIPEWISE_PLAN": "PLAN"}),
    "two replicas": ("replicas", {"STRIPEWISE_PLAN": "PLAN"}),
    "cache, off": ("off", {"STRIPEWISE_PLAN": "PLAN"}),
    "cache, all hits": ("hits", {"STRIPEWISE_PLAN": "PLAN"}),
    "cache full of dirty data": ("misses", {"STRIPEWISE_PLAN": "PLAN"}),
}


def plan_text(root):
    """A plan with rules for the directories of managed files, and eight targets."""
    text = 'version = 1\nscheme = "DEF"\n' + "".join(RULE.format(root, name, CYCLES.get(name, CYCLE)) + rest for name, rest in MANAGED.items())
    text += "[cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n"
    for tier, startup in (("s", 1e-4), ("c", 1e-6)):
        text += f"[cluster.class.{tier}]\n"
        for access in ("read.random", "read.sequential", "write.random", "write.sequential"):
            text += f"{access} = {{ startup_s = {startup}, per_byte_s = 1e-9 }}\n"
        servers = ", ".join(f'"{root}/{tier}{number}"' for number in range(4))
        text += f'[[cluster.tier]]\nname = "{tier}"\nclass = "{tier}"\ndriver = "dirs"\ncapacity_per_server = "1G"\nservers = [{servers}]\n'
    return text


class Worker:
    """A process (calls.c) that times calls on a file of its own."""

    def __init__(self, program, row, build, path, env):
        self.row, self.build = row, build
        path.parent.mkdir(parents=True, exist_ok=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STRIPEWISE_")} | env
        self.process = subprocess.Popen([program, path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.times = {}  # ns per call of every round, by kind of call
        self.counts = {}

    def ask(self, kind, count):
        """Returns the time of one call, ns."""
        self.process.stdin.write(f"{kind} {count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.row}, {self.build}: the program ended with {self.process.wait()}")
        return float(answer) / count

    def measure(self, kind):
        """Runs one round."""
        if kind not in self.counts:
            self.counts[kind] = max(2, min(CALLS_MAX, int(ROUND_NS / self.ask(kind, 3))))
        self.times.setdefault(kind, []).append(self.ask(kind, self.counts[kind]))

    def median(self, kind):
        return statistics.median(self.times[kind])

    def ratio(self, other, kind):
        """The quartiles of the ratio to another worker in the same rounds."""
        ratios = [mine / its for mine, its in zip(self.times[kind], other.times[kind], strict=True)]
        return statistics.quantiles(ratios, n=4)


def built(name, work):
    """Compiles a program that stands beside this one."""
    program = work / name
    subprocess.run(["gcc", "-O2", "-o", program, HERE / f"{name}.c"], check=True)
    return program


def start(program, root, libraries, only):
    """Starts all processes."""
    workers = [Worker(program, "bare", "bare", root / "bare" / "file", {})]
    for build, library in libraries.items():
        base = root / build
        base.mkdir()
        for tier in "sc":
            for number in range(4):
                (base / f"{tier}{number}").mkdir()
        (base / "plan.toml").write_text(plan_text(base))
        (base / "spool").mkdir()
        for row, (directory, env) in KINDS.items():
            if only in row:
                path = base / directory / "file"
                env = {key: {"PLAN": str(base / "plan.toml"), "SPOOL": str(base / "spool")}[value] for key, value in env.items()}
                env |= {"LD_PRELOAD": str(library), "STRIPEWISE_TRACE_ONLY": str(path)}
                workers.append(Worker(program, row, build, path, env))
    workers.append(Worker(program, "bare", "bare again", root / "bare-again" / "file", {}))
    # Within a round the builds of one row run one after the other.
    order = ["bare", *KINDS]
    return sorted(workers, key=lambda worker: order.index(worker.row))


def print_tables(workers, names, kinds):
    for first in range(0, len(kinds), COLUMNS):
        columns = kinds[first : first + COLUMNS]
        print("| ns per call | " + " | ".join(names[kind] for kind in columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
        leader = None
        for worker in workers:
            label = worker.build if worker.row == "bare" else f"{worker.row}: {worker.build}"
            print(f"| {label} | " + " | ".join(f"{worker.median(kind):.0f}" for kind in columns) + " |")
            if leader is None or leader.row != worker.row:
                leader = worker
            else:
                ratios = ("{1:.2f} ({0:.2f} to {2:.2f})".format(*worker.ratio(leader, kind)) for kind in columns)
                print("| ratio to the first | " + " | ".join(ratios) + " |")
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+", metavar="[NAME=]LIBRARY")
    parser.add_argument("--dir", default="/dev/shm", help="should be in memory, so that only the calls are measured")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--only", default="", help="only rows whose name has this in it")
    parser.add_argument("--calls", default="", help="only calls whose name has this in it")
    parser.add_argument("--floor", action="store_true", help="also measure the system calls alone; only with --calls 4K")
    arguments = parser.parse_args()
    if arguments.floor and arguments.calls != "4K":
        parser.error("--floor needs --calls 4K")
    pairs = (text.rpartition("=") for text in arguments.libraries)
    libraries = {name or f"build {number}": Path(path).resolve(strict=True) for number, (name, _, path) in enumerate(pairs, 1)}
    processor = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="calls.", dir=arguments.dir) as work:
        program = built("calls", Path(work))
        names = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
        os.sched_setaffinity(0, {processor})
        kinds = [kind for kind, name in enumerate(names) if arguments.calls in name]
        workers = start(program, Path(work), libraries, arguments.only)
        if arguments.floor:
            workers.append(Worker(built("floor", Path(work)), "system calls alone", "floor.c", Path(work) / "floor.file", {}))
        for _ in range(arguments.rounds):
            for kind in kinds:
                for worker in workers:
                    worker.measure(kind)
        for worker in workers:
            worker.process.stdin.close()
            worker.process.wait()
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"{arguments.rounds} rounds, processor {processor}, load average {load}\n")
        print_tables(workers, names, kinds)


if __name__ == "__main__":
    main()
