"""The CephFS (testbed/cephfs), the cluster on it, its calibration, and the bytes that its OSDs
moved."""

import json
import os
import subprocess
import time
from pathlib import Path

from farm import Farm
from programs import Failed
from sizes import MIB
from throttled import Throttled

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / "testbed" / "cephfs"
# OSDs report their counters every 2 s (mgr_stats_period of the testbed). Counters that do not
# change for longer are complete.
SETTLED_S = 4.5
# Maximum wait for a testbed to be ready, or at rest, on a machine that also does other work.
WAIT_MOST_S = 60


class Bed(Throttled):
    """A CephFS that exists while this context is active."""

    # Bypasses the kernel's cache: a direct write where the cache has pages takes three times as
    # long.
    api_before = "direct"

    def __init__(self, args, programs):
        directory = args.dir.resolve()
        self.args, self.base = args, directory / "bed"
        self.mount = self.base / "mnt"
        super().__init__(programs, Farm(self.base / "disks"), directory, self.mount / "data")
        self.profile = directory / "profile.toml"

    def __enter__(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        args = self.args
        shape = ["--port", args.port, "--hdds", args.servers, "--ssds", args.servers, "--hdd", args.hdd, "--ssd", args.ssd]
        # A killed run may have left another testbed than this one.
        self.testbed("down")
        self.testbed("up", *shape, "--size-mib", args.size_mib, "--throttled-disk", args.throttled_disk)
        os.environ["CEPH_CONF"] = str(self.base / "ceph.conf")
        try:
            for directory in (self.data, self.mount / "targets"):
                directory.mkdir()
            # A new cluster has no free space, and does not know its pools, until all OSDs have
            # reported.
            self._wait("free space", lambda: os.statvfs(self.mount).f_bavail > 0 and self._counters())
        except BaseException:
            self.testbed("down")
            raise
        return self

    def __exit__(self, *error):
        self.testbed("down")

    def testbed(self, what, *words):
        """Runs python3 testbed/cephfs WHAT WORDS..."""
        words = [str(word) for word in ["python3", TESTBED, what, "--base", self.base, *words]]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.stdout.strip()}")

    # --- the cluster

    def write_cluster(self, tiers):
        """Writes cluster.toml with these tiers, {class: bytes of each server}. Each OSD is a
        server."""
        of = {name: [f"{name}{number}" for number in range(self.args.servers)] for name in tiers}
        self._write([(name, f"servers = {json.dumps(of[name])}", capacity) for name, capacity in tiers.items()])

    def write_cluster_of_pools(self, tiers):
        """The same, but the OSDs of a class form a pool, over which the file system stripes."""
        self._write([(name, f'pool = "{name}"\ncount = {self.args.servers}', capacity) for name, capacity in tiers.items()])

    def _write(self, tiers):
        parts = []
        for name, members, capacity in tiers:
            parts += [f'[[tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "cephfs"\nroot = "{self.mount}/targets"']
            parts += [f"{members}\ncapacity_per_server = {capacity}"]
        self.cluster.write_text("\n".join(parts) + "\n")

    def calibrated(self, keep):
        """Measures both classes with `stripewise calibrate`, unless an earlier run on such a
        testbed has left the profile `keep`."""
        self.write_cluster({"hdd": self.capacity_bytes(), "ssd": self.capacity_bytes()})
        if not keep.exists():
            self.profile.unlink(missing_ok=True)
            self.programs.command("calibrate", "-c", self.cluster, "--quiet", "--quick")
            keep.write_text(self.profile.read_text())
        self.profile.write_text(keep.read_text())

    def capacity_bytes(self):
        """A disk's capacity for data: half of its size, because bluestore writes new blocks before
        it frees the old ones."""
        return self.args.size_mib // 2 * MIB

    # --- what the OSDs have done

    def counted(self):
        """Bytes written to and read from each OSD's pool so far, {"hdd/0": {"write", "read"}, ...},
        from `rados df` after all OSDs have reported."""
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
    """Bytes of one direction per OSD, between two results of `counted`."""
    return {server: after[server][op] - before[server][op] for server in after}
