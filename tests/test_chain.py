"""The whole chain with real programs: trace or synth, plan, place, run, fsck, export; both MPIs and
h5py."""

import hashlib

import pytest

# All layouts that the planner makes for a shared file; PSA, PA and DEF have two regions with small
# SSDs.
SCHEMES = ["1-DH", "1-DV", "2-D g=2", "def", "pa", "psa", "auto"]


def sha(path):
    """The checksum of a plain file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ior_args(path, *more):
    """A small shared file: 4 ranks, 64 KiB requests, 4 MiB."""
    return ["-o", path, "-t", "64K", "-b", "1M", "--access", "random", *more]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mpi_program_from_trace_to_export(mpi, stripewise, make_cluster, small_ssds, scheme, tmp_path):
    cluster = make_cluster(small_ssds)
    path, trace = cluster.data / "shared.dat", tmp_path / "t.trace"
    stripewise("trace", "-o", trace, "--", *mpi.command(4, "ior", *ior_args(path)))
    plain = sha(path)
    path.unlink()

    stripewise("plan", trace, "-c", cluster.toml, "--scheme", scheme, "-o", cluster.plan)
    stripewise("place", cluster.plan)
    run = ["run", "-p", cluster.plan, "--"]
    stripewise(*run, *mpi.command(4, "ior", *ior_args(path, "-C", "--verify", "-e")))
    assert path.read_bytes().startswith(b"stripewise file"), "the program's file must be managed now"
    assert sum(f.stat().st_size for t in cluster.targets for f in t.rglob("*") if f.is_file()) >= 4 << 20

    stripewise("fsck", "-p", cluster.plan, path)
    assert stripewise("cat", path).err == ""
    stripewise("export", path)
    assert sha(path) == plain


def test_existing_file_is_migrated_and_comes_back(mpi, stripewise, cluster, tmp_path):
    path, trace = cluster.data / "shared.dat", tmp_path / "t.trace"
    stripewise("trace", "-o", trace, "--", *mpi.command(4, "ior", *ior_args(path)))
    plain = sha(path)
    stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan, "--scheme", "1-DH")
    stripewise("place", cluster.plan)
    assert path.read_bytes().startswith(b"stripewise file")
    stripewise("run", "-p", cluster.plan, "--", *mpi.command(4, "ior", *ior_args(path, "--op", "read", "--verify")))
    stripewise("export", path)
    assert sha(path) == plain
