"""A mounted CephFS, and clusters on it with one server per OSD. `make test-cephfs` sets the
environment: STRIPEWISE_CEPHFS is the mount, CEPH_CONF the testbed's configuration (testbed/cephfs).
Without it these tests are skipped."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import testbeds
from conftest import HDD, SSD, ClusterDir, run_command

MOUNT = os.environ.get("STRIPEWISE_CEPHFS")
# How files are placed. "dirs": by stripewise, in directories that the test has pinned to a pool.
# "cephfs": by `place`, through the driver. "pools" (only on request): through the driver, with one
# pool per class.
DRIVERS = ["dirs", "cephfs"]
SECONDS_OF_STATISTICS = 30  # until the monitor has the statistics


class Bed(testbeds.Bed):
    """The running testbed."""

    name = "cephfs"

    def ceph(self, *words):
        """The JSON output of `ceph WORDS...`."""
        return run_command("ceph", "-c", self.base / "ceph.conf", *words, "--format", "json").json()

    def bytes_of_pools(self):
        """The bytes of each pool according to `rados df`."""
        pools = run_command("rados", "-c", self.base / "ceph.conf", "df", "--format", "json").json()["pools"]
        return {pool["name"]: pool["size_bytes"] for pool in pools}

    def wait_for_bytes(self, is_so):
        """The pools' bytes, as soon as they are as expected, or after a timeout."""
        end_s = time.monotonic() + SECONDS_OF_STATISTICS
        while not is_so(found := self.bytes_of_pools()) and time.monotonic() < end_s:
            time.sleep(0.5)
        return found


@pytest.fixture(scope="session")
def bed():
    """The testbed with unthrottled disks, because correctness does not depend on their speed."""
    if not MOUNT:
        pytest.skip("no CephFS: `make test-cephfs` brings one up")
    bed = Bed(Path(os.environ["CEPH_CONF"]).parent, Path(MOUNT))
    bed("limits", "off")
    yield bed
    bed("limits", "on")


@dataclass
class CephCluster(ClusterDir):
    """A cluster below a directory of the mount. A server is a directory whose files are in the pool
    of one OSD; a tier is a directory whose files are in the pool of a class."""

    driver: str = "dirs"

    def __post_init__(self):
        super().__post_init__()
        if self.driver == "dirs":
            for target in self.targets:
                os.setxattr(target, "ceph.dir.layout.pool", target.name.encode())
            return
        for target in self.targets:
            target.rmdir()
        # The driver's names: hdd-0 for the first server of the tier hdd.
        self.targets = [self.root / "servers" / f"{tier.name}-{i}" for tier in self.tiers for i in range(tier.servers)]

    def text(self):
        """The content of cluster.toml."""
        if self.driver == "dirs":
            return super().text()
        head, *tiers = super().text().split("[[tier]]")
        for tier, spec in zip(tiers, self.tiers, strict=True):
            servers = [f"servers = {json.dumps([f'{spec.name}{i}' for i in range(spec.servers)])}"]
            if self.driver == "pools":
                servers = [f'pool = "{spec.name}"', f"count = {spec.servers}"]
            lines = [line for line in tier.splitlines() if not line.startswith(("servers", "driver"))]
            lines += ['driver = "cephfs"', f'root = "{self.root}/servers"', *servers]
            head += "[[tier]]" + "\n".join(lines) + "\n"
        return head


@pytest.fixture
def on_ceph(bed):
    """A directory of the mount."""
    with testbeds.directory_of(bed.mount / testbeds.new_name()) as directory:
        yield directory


@pytest.fixture(params=DRIVERS)
def cluster(request, on_ceph, bin_dir):
    """4 HDD and 4 SSD servers on CephFS, with each driver in turn."""
    return CephCluster(on_ceph / "cluster", [HDD, SSD], bin_dir, driver=request.param)
