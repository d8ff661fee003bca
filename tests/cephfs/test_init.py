"""From a mount to placed files, with the cluster file that `stripewise init` writes: individual
servers, and the class pools instead of them."""

import os
import re
import shutil

import pytest


@pytest.fixture
def place(bed, tmp_path):
    """A directory on the mount for targets, and one for the user's files."""
    root = bed.mount / tmp_path.name
    (root / "targets").mkdir(parents=True)
    (root / "data").mkdir()
    yield root
    shutil.rmtree(root, ignore_errors=True)


def pools_instead(text):
    """The cluster file with the commented-out tiers instead of the active ones."""
    _, *tiers = re.split(r"(?m)^(?=\[\[tier\]\]|# \[\[tier\]\])", text)
    comments = [tier for tier in tiers if tier.startswith("# [[tier]]")]
    lines = [line[2:] for tier in comments for line in tier.splitlines() if " = " in line or "[[tier]]" in line]
    return "\n".join(lines)


@pytest.mark.parametrize("members", ["servers", "pools"])
def test_init_calibrate_plan_place(stripewise, library, python, place, tmp_path, members):
    cluster, data = tmp_path / "cluster.toml", place / "data" / "shared"
    stripewise("init", place / "targets", "-o", cluster)
    if members == "pools":
        cluster.write_text(pools_instead(cluster.read_text()))
    measured = stripewise(
        "calibrate", "-c", cluster, "--quick", "--file-size", "64M", "--seconds-per-point", "0.002", "--json", "-q"
    ).json()
    assert {server["mode"] for server in measured["servers"]} == {"direct"}, "direct I/O"
    assert sum("network" in note for note in measured["notes"]) == 2, "what cannot be separated is said"
    assert any("picked the server" in note for note in measured["notes"]) == (members == "pools")
    stripewise("synth", "ior", "--file", data, "--procs", "2", "--transfer", "1M", "--total", "8M", "--shared", "-o", tmp_path / "t")
    bytes_before = os.urandom(8 << 20)
    for scheme in ["def", "psa", "cache"]:
        plan = tmp_path / f"{scheme}.toml"
        out = stripewise("plan", tmp_path / "t", "-c", cluster, "--scheme", scheme, "--min-gain", "none", "-o", plan).out
        assert ("decides which servers" in " ".join(out.split())) == (members == "pools")
        data.write_bytes(bytes_before)
        stripewise("place", plan)
        assert "in their layout already: 1" in stripewise("place", plan).out
        write = f"f = open({str(data)!r}, 'r+b'); f.seek(3 << 20); f.write(b'new' * 100000)"
        stripewise("run", "-p", plan, "--", python, "-c", write)
        expected = bytes_before[: 3 << 20] + b"new" * 100000 + bytes_before[(3 << 20) + 300000 :]
        stripewise("drain", data)
        assert "0 problems" in stripewise("fsck", data.parent, "-c", cluster).out
        stripewise("sim", tmp_path / "t", "-p", plan, "-q")
        stripewise("export", data)
        assert data.read_bytes() == expected


def test_a_target_that_was_given_another_layout_is_named(stripewise, place, tmp_path):
    cluster, data = tmp_path / "cluster.toml", place / "data" / "shared"
    stripewise("init", place / "targets", "-o", cluster)
    cluster.write_text(pools_instead(cluster.read_text()))
    stripewise("calibrate", "-c", cluster, "--quick", "--file-size", "64M", "--seconds-per-point", "0.001", "-q")
    stripewise("synth", "ior", "--file", data, "--procs", "2", "--transfer", "1M", "--total", "4M", "--shared", "-o", tmp_path / "t")
    plan = tmp_path / "plan.toml"
    stripewise("plan", tmp_path / "t", "-c", cluster, "--scheme", "def", "--min-gain", "none", "-o", plan)
    data.write_bytes(b"0" * (4 << 20))
    stripewise("place", plan)
    prepared = next(path for path in (place / "targets").iterdir() if "64Kx" in path.name)
    os.setxattr(prepared / "stripewise", "ceph.dir.layout.stripe_unit", b"131072")
    refused = stripewise("place", plan, ok=False)
    assert refused.code == 1 and str(prepared) in refused.err, str(refused)
    assert "64K" in refused.err and "128K" in refused.err, "asked and got"
