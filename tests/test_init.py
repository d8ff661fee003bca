"""`stripewise init` on plain directories; tests/cephfs/test_init.py covers a parallel file system.
"""

import os
import re

import pytest


@pytest.fixture
def disks(tmp_path):
    """Two directories on one disk."""
    found = [tmp_path / "first", tmp_path / "second"]
    for disk in found:
        disk.mkdir()
    return found


def test_directories_become_servers_and_what_is_written_can_be_used(stripewise, disks, tmp_path):
    cluster = tmp_path / "cluster.toml"
    out = stripewise("init", *disks, "-o", cluster).out
    assert f"stripewise calibrate -c {cluster}" in out
    text = cluster.read_text()
    assert f'servers = ["{disks[0]}", "{disks[1]}"]' in text
    assert "are on the same file system" in text, "they share a disk"
    stripewise("calibrate", "-c", cluster, "--quick", "--file-size", "64M", "--seconds-per-point", "0.001", "-q")
    stripewise("synth", "ior", "--file", tmp_path / "data", "--procs", "2", "--transfer", "64K", "--total", "1M", "--shared", "-o", tmp_path / "t")
    stripewise("plan", tmp_path / "t", "-c", cluster, "-o", tmp_path / "plan.toml")
    assert sorted(os.listdir(disks[0])) == [], "looking and measuring leave nothing"


def test_to_standard_output_and_as_json(stripewise, disks, tmp_path):
    text = stripewise("init", *disks).out
    found = stripewise("init", *disks, "--json").json()
    # The capacity follows the free space, which others change between the two calls.
    texts = {re.sub("(capacity_per_server) = .*", r"\1", text) for text in [text, found["cluster"]]}
    assert len(texts) == 1 and found["output"] is None
    assert [place["driver"] for place in found["directories"]] == ["dirs", "dirs"]
    assert found["tiers"][0]["servers"] == [str(disk) for disk in disks]
    assert found["tiers"][0]["capacity_per_server"] <= found["directories"][0]["free_bytes"] / 2


def test_nothing_is_overwritten_unasked(stripewise, disks, tmp_path):
    precious = tmp_path / "cluster.toml"
    precious.write_text("mine")
    refused = stripewise("init", *disks, "-o", precious, ok=False)
    assert refused.code == 1 and "--force" in refused.err and precious.read_text() == "mine"
    stripewise("init", *disks, "-o", precious, "--force")
    assert "[[tier]]" in precious.read_text()


def test_what_is_no_directory_is_named(stripewise, tmp_path):
    (tmp_path / "file").write_text("")
    for wrong, part in [(tmp_path / "missing", "cannot be used"), (tmp_path / "file", "no directory")]:
        refused = stripewise("init", wrong, ok=False)
        assert refused.code == 1 and str(wrong) in refused.err and part in refused.err, str(refused)
