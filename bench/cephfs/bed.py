"""The CephFS (testbed/cephfs), targets and a cluster on it, its calibration, and the files of the workload."""

import json
import os
import subprocess
import time
from pathlib import Path

from farm import Farm
from programs import Failed
from sizes import MIB, human

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / "testbed" / "cephfs"
# Data that files hold before they are written in the timed part; those have other seeds.
SEED_BEFORE = 1 << 20
# Transfers that prepare files.
PREPARE_BYTES = 4 << 20
# OSDs report what they did every 2 s (mgr_stats_period of the bed): what does not change for longer is complete.
SETTLED_S = 4.5
# For a bed to be ready, or at rest, on a machine that does other things, too.
WAIT_MOST_S = 60


class Bed:
    """A CephFS that was brought up for as long as this is entered."""

    def __init__(self, args, programs):
        self.args, self.programs = args, programs
        self.directory = args.dir.resolve()
        self.base = self.directory / "bed"
        self.mount = self.base / "mnt"
        self.data = self.mount / "data"
        self.file = self.data / "file"
        self.farm = Farm(self.base / "disks")
        self.cluster = self.directory / "cluster.toml"
        self.profile = self.directory / "profile.toml"

    def __enter__(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        args = self.args
        shape = ["--port", args.port, "--hdds", args.servers, "--ssds", args.servers, "--hdd", args.hdd, "--ssd", args.ssd]
        # What a run that was killed has left may be another bed than this one.
        self.testbed("down")
        self.testbed("up", *shape, "--size-mib", args.size_mib, "--slowdisk", args.slowdisk)
        os.environ["CEPH_CONF"] = str(self.base / "ceph.conf")
        try:
            for directory in (self.data, self.mount / "targets"):
                directory.mkdir()
            # A new cluster has no free space, and does not know its pools, until all OSDs have reported.
            self._wait("free space", lambda: os.statvfs(self.mount).f_bavail > 0 and self._counters())
        except BaseException:
            self.testbed("down")
            raise
        return self

    def __exit__(self, *error):
        self.testbed("down")

    def testbed(self, what, *words):
        """python3 testbed/cephfs WHAT WORDS..."""
        words = [str(word) for word in ["python3", TESTBED, what, "--base", self.base, *words]]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")

    # --- the cluster

    def write_cluster(self, tiers):
        """cluster.toml with these tiers, {class: bytes of each server}: each OSD is a server."""
        of = {name: [f"{name}{number}" for number in range(self.args.servers)] for name in tiers}
        self._write([(name, f"servers = {json.dumps(of[name])}", capacity) for name, capacity in tiers.items()])

    def write_cluster_of_pools(self, tiers):
        """The same, but the OSDs of a class are a pool, over which the file system stripes."""
        self._write([(name, f'pool = "{name}"\ncount = {self.args.servers}', capacity) for name, capacity in tiers.items()])

    def _write(self, tiers):
        parts = []
        for name, members, capacity in tiers:
            parts += [f'[[tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "cephfs"\nroot = "{self.mount}/targets"']
            parts += [f"{members}\ncapacity_per_server = {capacity}"]
        self.cluster.write_text("\n".join(parts) + "\n")

    def calibrated(self, keep):
        """Measures both classes with `stripewise calibrate`, unless the profile `keep` is there from an earlier run on a bed
        like this."""
        self.write_cluster({"hdd": self.capacity_bytes(), "ssd": self.capacity_bytes()})
        if not keep.exists():
            self.profile.unlink(missing_ok=True)
            self.programs.command("calibrate", "-c", self.cluster, "--quiet", "--quick")
            keep.write_text(self.profile.read_text())
        self.profile.write_text(keep.read_text())

    def capacity_bytes(self):
        """Of a disk, for data: half of it, as bluestore writes anew before it frees."""
        return self.args.size_mib // 2 * MIB

    # --- files

    def remove_files(self):
        """Removes the workload's files with their components."""
        files = sorted(path for path in self.data.iterdir())
        if files:
            self.farm.delay(False)
            self.programs.command("rm", *files)

    def prepare(self, ranks, plan, block_bytes, private):
        """Fills the files over a plan, at full speed: timed writes overwrite them. Past the kernel's cache: a direct write where it
        has pages takes three times as long."""
        self.remove_files()
        self.farm.delay(False)
        transfer = min(PREPARE_BYTES, block_bytes)
        while block_bytes % transfer:
            transfer //= 2
        words = ["--transfer", transfer, "--block", block_bytes, "--seed", SEED_BEFORE, "--op", "write", "--api", "direct"]
        self.programs.run_ior(ranks, self.file, *words, *private_words(private), plan=plan)
        self.farm.delay(True)

    def measured(self, ranks, plan, private, *words, op="both", env=None):
        """Writes or reads the files, or both, each request past all caches; every byte that is read is checked.
        {op: {"seconds", "bytes", "verified", "requests", "cpu"}}: requests to the disks, and the part of all processors that was
        busy meanwhile."""
        words = [*words, *private_words(private), "--api", "direct", "--op", op, *["--verify"] * (op != "write")]
        before, busy_s, begun_s = self.farm.statistics(), cpu_s(), time.monotonic()
        result = self.programs.run_ior(ranks, self.file, *words, plan=plan, env=env)
        cpu = (cpu_s() - busy_s) / (time.monotonic() - begun_s) / os.cpu_count()
        after = self.farm.statistics()
        if result["wrong_bytes"]:
            raise Failed(f"{result['wrong_bytes']} wrong bytes")

        def requests(counter):
            return sum(after[disk][counter] - before[disk][counter] for disk in after)

        return {
            phase["op"]: {
                "seconds": phase["elapsed_s"],
                "bytes": phase["bytes"],
                "verified": op == "write" or result["verified_bytes"] == phase["bytes"],
                "requests": requests({"read": "reads", "write": "writes"}[phase["op"]]),
                "cpu": round(cpu, 3),
            }
            for phase in result["phases"]
        }

    def check_exported(self, ranks, *words):
        """Makes the file a plain one again, and reads it without the library: every byte is right, or Failed."""
        self.farm.delay(False)
        self.programs.command("export", self.file)
        result = self.programs.run_ior(ranks, self.file, *words, *private_words(False), "--op", "read", "--verify")
        if result["wrong_bytes"] or not result["verified_bytes"]:
            raise Failed(f"{result['wrong_bytes']} wrong bytes after export")
        self.file.unlink()

    # --- traces and plans

    def trace(self, ranks, size, block_bytes, access, op, private):
        """What the workload would do, as a trace."""
        path = self.directory / f"{op}.trace"
        path.unlink(missing_ok=True)
        words = ["--procs", ranks, "--transfer", human(size), "--block", human(block_bytes), "--access", access, "--op", op]
        words += [] if private else ["--shared", "--random-within", "own"]
        self.programs.command("synth", "ior", *words, "--file", self.file, "-o", path)
        return path

    def plan(self, trace, scheme, *words):
        """The plan of a scheme for a trace, and what `stripewise plan --json` says of it."""
        path = Path(f"{self.directory}/{scheme.replace(' ', '-').replace(':', '-')}.plan.toml")
        words = ["-c", self.cluster, "--min-gain", "none", "--quiet", "--json", "--force", "-o", path, *words]
        return path, json.loads(self.programs.command("plan", trace, "--scheme", scheme, *words))["files"][0]

    def simulated(self, trace, plan):
        """What `stripewise sim` says of a plan: {"elapsed_s", "bytes": {server: bytes}}."""
        (found,) = json.loads(self.programs.command("sim", trace, "-p", plan, "--json", "--quiet"))["plans"]
        (run,) = found["runs"]
        of_servers = zip(found["servers"], run["servers"], strict=True)
        return {"elapsed_s": run["elapsed_s"], "bytes": {name: server["bytes"] for name, server in of_servers}}

    # --- what the OSDs have done

    def counted(self):
        """Bytes written to and read from each OSD's pool so far, {"hdd/0": {"write", "read"}, ...}, as `rados df` has them once
        all OSDs have reported."""
        last, since_s = None, 0.0

        def settled():
            nonlocal last, since_s
            now = self._counters()
            if now != last:
                last, since_s = now, time.monotonic()
            return last and time.monotonic() - since_s >= SETTLED_S

        self._wait("counters that come to rest", settled)
        return last

    def _wait(self, what, condition):
        end_s = time.monotonic() + WAIT_MOST_S
        while not condition():
            if time.monotonic() > end_s:
                raise Failed(f"{self.mount} has no {what} after {WAIT_MOST_S} s; its logs are in {self.base}/log")
            time.sleep(0.5)

    def _counters(self):
        found = json.loads(self.programs.run("rados", "-c", self.base / "ceph.conf", "df", "--format", "json"))["pools"]
        pools = {pool["name"]: {"write": pool["write_bytes"], "read": pool["read_bytes"]} for pool in found}
        servers = [(tier, number) for tier in ("hdd", "ssd") for number in range(self.args.servers)]
        known = all(f"{tier}{number}" in pools for tier, number in servers)
        return {f"{tier}/{number}": pools[f"{tier}{number}"] for tier, number in servers} if known else None


def difference(before, after, op):
    """Bytes of one direction per OSD, between two `counted`."""
    return {server: after[server][op] - before[server][op] for server in after}


def private_words(private):
    """A file for each process, or one in which each has a part of its own."""
    return ["--file-per-process"] if private else ["--random-within", "block"]


def cpu_s():
    """Seconds that all cores were busy so far, with whatever."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
