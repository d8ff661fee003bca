"""A file of a job on 1, 2 and 4 nodes, striped or with copies: the same processes, and the throughput
that they get.

    python3 testbed/nodes up --nodes 4 --on cephfs --no-slurm --base /tmp/nodes
    python3 bench/nodes.py --base /tmp/nodes
    python3 bench/nodes.py --base /tmp/nodes --kinds striped replicas cache

Each node mounts the CephFS by itself (testbed/nodes); its OSDs are on throttled disks, so the disks
and not this machine's processors are what a job waits for. The MPI program writes and then reads a
file over four OSDs in stripes of 1-DH, and checks every byte outside of the timed phases. A file with
replicas has a second copy on the SSDs; one with a cache caches everything there. The kinds and
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
# Timeout of a job, seconds; none takes longer.
JOB_SECONDS_MAX = 120
# Maximum number of times that a job is launched.
LAUNCHES_MAX = 4
# As the defaults of testbed/cephfs: seconds to start a request, and per byte.
PLAN = """
version = 1
scheme = "by hand"

[[rule]]
pattern = "{file}"
scheme = "{kind}"
reason = "a benchmark"
predicted_s = 1.0
elapsed_s = 1.0
layouts = [[{{ cycle = "hdd/0-3:64K" }}]]
{copies}
"""
TIER = """
[cluster.class.{tier}]
read.random = {service}
read.sequential = {service}
write.random = {service}
write.sequential = {service}

[[cluster.tier]]
name = "{tier}"
class = "{tier}"
driver = "cephfs"
root = "{root}"
servers = ["{tier}0", "{tier}1", "{tier}2", "{tier}3"]
capacity_per_server = "1G"
"""
# As the defaults of testbed/cephfs: seconds to start a request, and per byte.
TIERS = {"hdd": "{ startup_s = 8e-3, per_byte_s = 1.2e-7 }", "ssd": "{ startup_s = 3e-3, per_byte_s = 4e-8 }"}
OVERLAY = """
[rule.overlay]
lazy_close = true
procs = 4
procs_per_node = 4
"""
COPY = """
[[rule.copy]]
kind = "{word}"
name = "fast"
layouts = [[{{ cycle = "ssd/0-3:64K" }}]]
"""
KINDS = {
    "striped": "",
    "replicas": COPY.format(word="replica") + OVERLAY,
    "cache": COPY.format(word="cache") + "groups = 1\n" + OVERLAY + 'mode = "nsca"\ncapacity_per_server = "CAPACITY"\n',
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="of a testbed of four nodes with a CephFS")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["striped"], help="of files [default: striped]")
    parser.add_argument("--repeats", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--ranks", type=int, default=4, help="[default: %(default)s]")
    parser.add_argument("--transfer", default="1M", help="[default: %(default)s]")
    parser.add_argument("--block", default="8M", help="of each rank [default: %(default)s]")
    parser.add_argument("--capacity", default="1G", help="of a cache on each of its servers [default: %(default)s]")
    parser.add_argument("--access", choices=("sequential", "random"), default="sequential")
    parser.add_argument("--mpi", choices=("mpich", "openmpi"), default="mpich")
    parser.add_argument("--bin", type=Path, default=ROOT / "target" / "release", help="[default: target/release]")
    return parser.parse_args()


class Failed(SystemExit):
    """A command that failed, with its exit status."""

    def __init__(self, words, done):
        super().__init__(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        self.status = done.returncode


def run(*words):
    """What a command prints."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failed(words, done)
    return done.stdout


class Site:
    """The testbed, with a plan for one file."""

    def __init__(self, args):
        self.args, self.stripewise = args, args.bin / "stripewise"
        settings = dict(line[7:].split("=", 1) for line in self.bed("env").splitlines())
        self.mount = Path(settings["STRIPEWISE_NODES_SHARED"])
        self.file, self.plan = self.mount / "data" / "f", self.mount / "plan.toml"
        self.preload = settings["LD_PRELOAD"]

    def bed(self, *words):
        return run(sys.executable, ROOT / "testbed" / "nodes", *words, "--base", self.args.base)

    def on_node(self, *words):
        return run(sys.executable, ROOT / "testbed" / "nodes", "exec", "node1", "--base", self.args.base, "--", *words)

    def prepare(self, kind):
        """Makes this the kind of the file that jobs create from now on."""
        for directory in ("data", "targets"):
            (self.mount / directory).mkdir(exist_ok=True)
        text = PLAN.format(file=self.file, kind=kind, copies=KINDS[kind].replace("CAPACITY", self.args.capacity))
        for tier, service in TIERS.items():
            text += TIER.format(tier=tier, service=service, root=self.mount / "targets")
        self.plan.write_text(text)
        self.on_node(self.stripewise, "place", self.plan, "-q")
        for marker in self.mount.glob("targets/*/stripewise-target.toml"):
            if "sessions" not in marker.read_text():
                marker.write_text(marker.read_text() + "sessions = true\n")

    def job(self, count, below=()):
        """Runs the job on that many nodes, its ranks below another program if one is given;
        ({operation: bytes per second}, the CPU time of this machine meanwhile: (busy, idle) seconds).
        """
        args, nodes = self.args, [f"node{number}" for number in range(1, count + 1)]
        each = args.ranks // count
        hosts = ["-hosts", ",".join(nodes), "-ppn", each] if args.mpi == "mpich" else ["--host", ",".join(f"{node}:{each}" for node in nodes)]
        program = [ROOT / "build" / args.mpi / "ior", "-o", self.file, "-a", "posix", "-t", args.transfer, "-b", args.block]
        program += ["--access", args.access, "-e", "-C", "--verify", "--json"]
        over_plan = [self.stripewise, "run", "-p", self.plan, "--", *below]
        before, out = self.launched([f"mpirun.{args.mpi}", *hosts, "-n", args.ranks, *over_plan, *program])
        result = json.loads(out[out.index("{") :])
        busy, idle = (after - start for after, start in zip(ticks(), before, strict=True))
        speeds = {phase["op"]: phase["bytes"] / phase["elapsed_s"] for phase in result["phases"]}
        return speeds, (busy / 100, idle / 100)

    def launched(self, command):
        """(the CPU time before a job, what it prints). At times a proxy of MPICH ends before it has
        started a rank, and the others wait for ever: such a job is ended and launched again.
        """
        for _ in range(LAUNCHES_MAX):
            if self.file.exists():
                self.on_node(self.stripewise, "rm", self.file)
            before = ticks()
            try:
                return before, self.on_node("timeout", "--kill-after=5", JOB_SECONDS_MAX, *command)
            except Failed as failure:
                if failure.status not in (124, 137):
                    raise
                print(f"did not end within {JOB_SECONDS_MAX} s, launched again", file=sys.stderr)
        raise SystemExit(f"{' '.join(map(str, command))}: did not end {LAUNCHES_MAX} times")


def ticks():
    """The time that all processors were busy and idle so far, in hundredths of a second."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return sum(fields[:8]) - idle, idle


def main():
    args = arguments()
    site, found = Site(args), {}
    for repeat in range(args.repeats + 1):
        for kind in args.kinds:
            site.prepare(kind)
            for count in COUNTS:
                done = site.job(count)
                print(kind, count, done, file=sys.stderr)
                if repeat > 0:  # the first warms up
                    found.setdefault((kind, count), []).append(done)
    print_table(found)


def print_table(found):
    print("| file | nodes | write MB/s | of one node's | read MB/s | of one node's | processors idle | CPU s of the machine per job |")
    print("|---|---|---|---|---|---|---|---|")
    for (kind, count), jobs in found.items():
        cells = [kind, str(count)]
        for op in ("write", "read"):
            speed = median(speeds[op] for speeds, _ in jobs)
            of_one = median(speeds[op] for speeds, _ in found[kind, 1])
            cells += [f"{speed / 1e6:.1f}", f"{100 * speed / of_one:.0f} %"]
        busy, idle = (sum(seconds) for seconds in zip(*(cpu for _, cpu in jobs), strict=True))
        cells += [f"{100 * idle / (busy + idle):.0f} %", f"{busy / len(jobs):.1f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
