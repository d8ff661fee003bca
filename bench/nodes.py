"""A striped file of a job on 1, 2 and 4 nodes: the same processes, and the throughput that they get.

    python3 testbed/nodes up --nodes 4 --on cephfs --no-slurm --base /tmp/nodes
    python3 bench/nodes.py --base /tmp/nodes

Each node mounts the CephFS by itself (testbed/nodes); its OSDs are on throttled disks, so the disks
and not this machine's processors are what a job waits for. The MPI program writes and then reads a
file over four OSDs in stripes of 1-DH, and checks every byte outside of the timed phases. The
numbers of nodes take turns. Prints the table of bench/results.d/nodes.md: the median throughput of
each, and relative to one node; how much of the two phases the processors were idle, in which they
could not slow the disks down; and the CPU time of the whole machine.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
COUNTS = [1, 2, 4]
# Timeout of a command, seconds; no job takes longer.
SECONDS_MAX = 120
# As the defaults of testbed/cephfs: seconds to start a request, and per byte.
CLUSTER = """
[class.hdd]
read.random      = { startup_s = 8e-3, per_byte_s = 1.2e-7 }
read.sequential  = { startup_s = 8e-3, per_byte_s = 1.2e-7 }
write.random     = { startup_s = 8e-3, per_byte_s = 1.2e-7 }
write.sequential = { startup_s = 8e-3, per_byte_s = 1.2e-7 }

[[tier]]
name = "hdd"
class = "hdd"
driver = "cephfs"
root = "%s/targets"
servers = ["hdd0", "hdd1", "hdd2", "hdd3"]
capacity_per_server = "256M"
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="of a testbed of four nodes with a CephFS")
    parser.add_argument("--repeats", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--ranks", type=int, default=4, help="[default: %(default)s]")
    parser.add_argument("--transfer", default="1M", help="[default: %(default)s]")
    parser.add_argument("--block", default="8M", help="of each rank [default: %(default)s]")
    parser.add_argument("--access", choices=("sequential", "random"), default="sequential")
    parser.add_argument("--mpi", choices=("mpich", "openmpi"), default="mpich")
    parser.add_argument("--bin", type=Path, default=ROOT / "target" / "release", help="[default: target/release]")
    return parser.parse_args()


def run(*words):
    """What a command prints. MPICH waits for ever if it cannot reach a node."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{' '.join(map(str, words))}: did not end within {SECONDS_MAX} s; run the benchmark again") from None
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Site:
    """The testbed, with a plan for one file."""

    def __init__(self, args):
        self.args = args
        settings = dict(line[7:].split("=", 1) for line in self.bed("env").splitlines())
        self.mount = Path(settings["STRIPEWISE_NODES_SHARED"])
        self.file, self.plan = self.mount / "data" / "f", self.mount / "plan.toml"
        self.preload = settings["LD_PRELOAD"]

    def bed(self, *words):
        return run(sys.executable, ROOT / "testbed" / "nodes", *words, "--base", self.args.base)

    def on_node(self, *words):
        return run(sys.executable, ROOT / "testbed" / "nodes", "exec", "node1", "--base", self.args.base, "--", *words)

    def prepare(self):
        args, stripewise = self.args, self.args.bin / "stripewise"
        cluster, trace = self.mount / "cluster.toml", self.mount / "trace"
        for directory in ("data", "targets"):
            (self.mount / directory).mkdir(exist_ok=True)
        cluster.write_text(CLUSTER % self.mount)
        # Only the name of the file counts: the scheme is given.
        job = ["--procs", args.ranks, "--transfer", "1M", "--total", "64M", "--shared", "--file", self.file]
        run(stripewise, "synth", "ior", *job, "-o", trace)
        run(stripewise, "plan", trace, "-c", cluster, "--scheme", "1-DH", "--only", self.file, "-o", self.plan, "-q")
        self.on_node(stripewise, "place", self.plan, "-q")

    def job(self, count):
        """Runs the job on that many nodes; {operation: bytes per second}, and the CPU time of this
        machine meanwhile: (busy, idle) seconds."""
        args, nodes = self.args, [f"node{number}" for number in range(1, count + 1)]
        each = args.ranks // count
        hosts = ["-hosts", ",".join(nodes), "-ppn", each] if args.mpi == "mpich" else ["--host", ",".join(f"{node}:{each}" for node in nodes)]
        if self.file.exists():
            self.on_node(args.bin / "stripewise", "rm", self.file)
        before = ticks()
        program = [ROOT / "build" / args.mpi / "ior", "-o", self.file, "-a", "posix", "-t", args.transfer, "-b", args.block]
        program += ["--access", args.access, "-e", "-C", "--verify", "--json"]
        over_plan = [args.bin / "stripewise", "run", "-p", self.plan, "--"]
        out = self.on_node(f"mpirun.{args.mpi}", *hosts, "-n", args.ranks, *over_plan, *program)
        result = json.loads(out[out.index("{") :])
        busy, idle = (after - start for after, start in zip(ticks(), before, strict=True))
        speeds = {phase["op"]: phase["bytes"] / phase["elapsed_s"] for phase in result["phases"]}
        return speeds, (busy / 100, idle / 100)


def ticks():
    """The time that all processors were busy and idle so far, in hundredths of a second."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return sum(fields[:8]) - idle, idle


def main():
    args = arguments()
    site = Site(args)
    site.prepare()
    site.job(1)  # warms up
    found = {count: [] for count in COUNTS}
    for _ in range(args.repeats):
        for count in COUNTS:
            found[count].append(site.job(count))
            print(count, found[count][-1], file=sys.stderr)
    print("| nodes | write MB/s | of one node's | read MB/s | of one node's | processors idle | CPU s of the machine per job |")
    print("|---|---|---|---|---|---|---|")
    for count, jobs in found.items():
        cells = [str(count)]
        for op in ("write", "read"):
            speed = median(speeds[op] for speeds, _ in jobs)
            cells += [f"{speed / 1e6:.1f}", f"{100 * speed / median(speeds[op] for speeds, _ in found[1]):.0f} %"]
        busy, idle = (sum(seconds) for seconds in zip(*(cpu for _, cpu in jobs), strict=True))
        cells += [f"{100 * idle / (busy + idle):.0f} %", f"{busy / len(jobs):.1f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
