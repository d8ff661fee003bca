"""Replicas and caches on pools that CephFS stripes over. A prepared directory there counts as
several servers, for the choice of copies and for space."""

import random

import pytest
from conftest import Mpi
from copies import cat, status, write_plan

RANKS, BLOCK, TRANSFER = 4, 4 << 20, "256K"
SERVERS = 4  # per pool


@pytest.fixture
def placed(cluster, stripewise, tmp_path):
    """placed(WORDS of plan...): plans and places a file that several processes share; returns its
    path."""

    def place(*words):
        path = cluster.data / "f"
        shape = ["--transfer", TRANSFER, "--block", BLOCK, "--access", "random", "--procs", RANKS, "--op", "write", "--shared"]
        stripewise("synth", "ior", *shape, "--file", path, "-o", tmp_path / "trace")
        stripewise("plan", tmp_path / "trace", "-c", cluster.toml, "--min-gain", "none", *words, "-o", cluster.plan)
        stripewise("place", cluster.plan)
        return path

    return place


def ior(stripewise, cluster, workloads, path):
    """IOR writes the file and reads it back, over the plan."""
    words = ["--file", path, "--transfer", TRANSFER, "--block", BLOCK, "--access", "random", "--op", "both", "--fsync", "--verify", "--json"]
    command = Mpi("mpich", workloads).command(RANKS, "ior", *words)
    result = stripewise("run", "-p", cluster.plan, "--", *command).json()
    assert (result["verified_bytes"], result["wrong_bytes"]) == (RANKS * BLOCK, 0)


def written(cluster, cat, path):
    """Random bytes that cp writes over the plan."""
    content = random.Random(5).randbytes(RANKS * BLOCK)
    source = cluster.root / "source"
    source.write_bytes(content)
    cluster.run("cp", source, path)
    assert cat(path) == content
    return content


def assert_clean(stripewise, cluster):
    assert stripewise("fsck", "-p", cluster.plan, cluster.data, "--json").json()["findings"] == []


def cached_bytes(stripewise, path):
    """Bytes in the file's cache copies."""
    original, *caches = status(stripewise, path)["copies"]
    assert all(name.startswith("ssd/") and "x" in name for copy in caches for name in (target["name"] for target in copy["targets"]))
    return sum(copy["valid_bytes"] for copy in caches)


@pytest.mark.parametrize("cluster", ["pools"], indirect=True)
def test_a_cache_fills_what_all_servers_of_the_pool_may_hold(cluster, placed, stripewise, cat, workloads):
    capacity = 1 << 20
    path = placed("--scheme", "cache", "--cache-mode", "nsca", "--cache-capacity", capacity)
    content = written(cluster, cat, path)
    assert 2 * capacity < cached_bytes(stripewise, path) <= SERVERS * capacity
    stripewise("drain", path)
    assert cat(path) == content
    ior(stripewise, cluster, workloads, path)
    assert 2 * capacity < cached_bytes(stripewise, path) <= SERVERS * capacity
    assert_clean(stripewise, cluster)
    stripewise("rm", path)
    # The space is given back: the next file finds all of it free.
    written(cluster, cat, path)
    assert 2 * capacity < cached_bytes(stripewise, path) <= SERVERS * capacity


@pytest.mark.parametrize("cluster", ["pools"], indirect=True)
def test_replicas(cluster, stripewise, cat, workloads):
    path = cluster.data / "f"
    write_plan(cluster, "replicas", pools=True)
    stripewise("place", cluster.plan)
    ior(stripewise, cluster, workloads, path)
    content = written(cluster, cat, path)
    stripewise("drain", path)
    copies = status(stripewise, path)["by_name"]
    assert [copies[name]["targets"][0]["name"] for name in ("wide", "narrow")] == ["ssd/64Kx4", "hdd/1Mx1"]
    assert all(copy["stale_bytes"] == 0 for copy in copies.values())
    assert_clean(stripewise, cluster)
    stripewise("export", path)
    assert path.read_bytes() == content
