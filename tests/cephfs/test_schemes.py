"""The planner's schemes on CephFS: IOR with both MPIs verifies every byte, and the OSDs hold what
the plan says according to `rados df` and `stripewise status`."""

import re

import pytest
from conftest import Mpi
from dealt import expected

RANKS, BLOCK = 4, 4 << 20
SIZE = RANKS * BLOCK
# Scheme, flags of IOR, MPI.
SCHEMES = {
    "1-DH": (["--shared"], "mpich"),
    "1-DV": ([], "openmpi"),
    "2-D g=2": (["--shared"], "openmpi"),
    "def": (["--shared"], "mpich"),
    "pa": (["--shared"], "openmpi"),
    "psa": (["--shared"], "mpich"),
}
POOL_SCHEMES = ["1-DH on hdd", "def"]
MARKERS = 16 << 10  # of a target and the files' manifests, in blocks of 4 KiB


def pools_of(target):
    """The pools of "hdd/0-3" (one per server) or of "hdd/64Kx4" (that of the class, which CephFS
    stripes over)."""
    tier, first, last = re.fullmatch(r"(\w+)/(?:\w+x\d+|(\d+)(?:-(\d+))?)", target).groups()
    return [f"{tier}{i}" for i in range(int(first), int(last or first) + 1)] if first else [tier]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_pool_for_each_osd(bed, cluster, stripewise, workloads, scheme, tmp_path):
    words, mpi = SCHEMES[scheme]
    assert_right_and_where_planned(bed, cluster, stripewise, scheme, words, Mpi(mpi, workloads), tmp_path)


@pytest.mark.parametrize("cluster", ["pools"], indirect=True)
@pytest.mark.parametrize("scheme", POOL_SCHEMES)
def test_a_pool_for_each_class(bed, cluster, stripewise, workloads, scheme, tmp_path):
    """CephFS stripes; the plan still decides how much of a file is in which class."""
    assert_right_and_where_planned(bed, cluster, stripewise, scheme, ["--shared"], Mpi("mpich", workloads), tmp_path)


def assert_right_and_where_planned(bed, cluster, stripewise, scheme, words, mpi, tmp_path):
    """Runs IOR over a scheme's plan. `words` are the flags of synth, for a shared file."""
    path, files = cluster.data / "f", 1 if words else RANKS
    shape = ["--transfer", "256K", "--block", BLOCK, "--access", "sequential"]
    synth = ["synth", "ior", *shape, "--procs", RANKS, "--op", "write", *words, "--file", path]
    stripewise(*synth, "-o", tmp_path / "trace")
    stripewise("plan", tmp_path / "trace", "-c", cluster.toml, "--scheme", scheme, "--min-gain", "none", "-o", cluster.plan)
    stripewise("place", cluster.plan)
    before = bed.wait_for_bytes(lambda pools: all(count < 64 << 10 for name, count in pools.items() if name != "cephfs_metadata"))

    ior = [*([] if words else ["--file-per-process"]), "--file", path, *shape, "--op", "both", "--fsync", "--verify", "--json"]
    result = stripewise("run", "-p", cluster.plan, "--", *mpi.command(RANKS, "ior", *ior)).json()
    assert (result["verified_bytes"], result["wrong_bytes"]) == (SIZE, 0)
    assert stripewise("fsck", "-p", cluster.plan, cluster.data, "--json").json()["findings"] == []

    planned = expected(cluster.plan, files, SIZE, pools_of)
    assert sum(planned.values()) == SIZE
    counted = {}
    for file in stripewise("status", "--json", cluster.data).json()["files"]:
        for target in file["targets"]:
            (pool,) = pools_of(target["name"])
            counted[pool] = counted.get(pool, 0) + target["bytes"]
    assert {pool: count for pool, count in counted.items() if count} == planned

    def agrees(pools):
        grown = {name: pools[name] - before[name] for name in planned}
        return all(grown[name] == pytest.approx(count, rel=0.02, abs=MARKERS) for name, count in planned.items())

    pools = bed.wait_for_bytes(agrees)
    assert agrees(pools), (planned, before, pools)
