"""Mounts with and without the kernel's page cache. Only without it does a node see what others
write, so only there do nodes share files with several copies."""

import pytest
from conftest import HDD, SSD
from copies import cat, write_plan  # noqa: F401 (a fixture)

from .conftest import CephCluster

COHERENT = "--fuse_disable_pagecache=true"


@pytest.fixture
def mount(bed, tmp_path):
    """mount(options of ceph-fuse): mounts the file system at `mount.path`, in place of its last
    mount there."""
    directory = tmp_path / "mount"
    directory.mkdir()

    def make(*options):
        unmount()
        bed("mount", directory, "--", *options)

    def unmount():
        if directory.is_mount():
            bed("umount", directory)

    make.path = directory
    yield make
    unmount()


@pytest.fixture
def placed(mount, on_ceph, bin_dir, stripewise):
    """placed() -> a cluster on the mount, with a placed plan for replicas."""

    def place():
        cluster = CephCluster(mount.path / on_ceph.name / "cluster", [HDD, SSD], bin_dir, driver="cephfs")
        write_plan(cluster, "replicas")
        stripewise("place", cluster.plan)
        return cluster

    return place


def promises(cluster):
    """Whether the marker of each target promises that nodes may share its files."""
    return {"sessions = true" in (target / "stripewise-target.toml").read_text() for target in cluster.targets}


def test_nodes_share_nothing_through_a_page_cache(mount, placed):
    mount()
    assert promises(placed()) == {False}


def test_a_mount_with_a_page_cache_is_refused_what_nodes_share(mount, placed, stripewise, cat):
    mount(COHERENT)
    cluster, content = placed(), b"bytes" * 100_000
    assert promises(cluster) == {True}
    (cluster.root / "source").write_bytes(content)
    cluster.run("cp", cluster.root / "source", cluster.data / "f")
    mount()
    refused = stripewise("cat", cluster.data / "f", ok=False)
    assert refused.code != 0 and COHERENT.split("=", maxsplit=1)[0] in refused.err, str(refused)
    mount(COHERENT)
    assert cat(cluster.data / "f") == content
