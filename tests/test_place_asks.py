"""`place` asks before it moves more than a user may expect. Without a terminal, the answer is no."""

import os
import pty
import subprocess

import pytest

MANY = 1001


@pytest.fixture
def site(stripewise, cluster, tmp_path):
    """place(...), for a plan of the files data/f<n>, of which there are some."""

    def make(count):
        for number in range(count):
            (cluster.data / f"f{number}").write_bytes(b"data")
        trace = tmp_path / "t.trace"
        synth = ["ior", "--procs", 1, "--shared", "--file", cluster.data / "f7", "--transfer", "64K", "--total", "1M", "-o", trace]
        stripewise("synth", *synth)
        stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan, "--scheme", "1-DH")
        return lambda *flags, **how: stripewise("place", cluster.plan, *flags, **how)

    return make


def managed(cluster):
    return sum(file.read_bytes().startswith(b"stripewise file") for file in cluster.data.iterdir())


def test_many_files(site, cluster):
    place = site(MANY)
    said = place(ok=False)
    assert said.code == 1 and f"{MANY} files" in said.err and "--yes" in said.err
    assert managed(cluster) == 0
    assert f"{MANY} files" in place("--dry-run").out
    assert f"placed: {MANY}" in place("--yes").out and managed(cluster) == MANY
    assert "placed: 0" in place().out, "nothing is left to ask about"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_others(site, cluster):
    place = site(3)
    os.chown(cluster.data / "f1", 63_999, 63_999)
    said = place(ok=False)
    assert said.code == 1 and f"{cluster.data / 'f1'} belongs to another user (63999)" in said.err
    assert managed(cluster) == 0
    assert "placed: 1" in place(cluster.data / "f2").out, "it is not among these"
    assert "placed: 2" in place("-y").out
    assert (cluster.data / "f1").stat().st_uid == 63_999


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("answer", "expected"), [(b"n\n", 0), (b"\n", 0), (b"y\n", 1)])
def test_the_answer_of_a_terminal_counts(site, cluster, bin_dir, answer, expected):
    site(1)
    os.chown(cluster.data / "f0", 63_999, 63_999)
    ours, terminal = pty.openpty()
    os.write(ours, answer)
    said = subprocess.run([bin_dir / "stripewise", "place", cluster.plan], stdin=terminal, capture_output=True, text=True)
    os.close(terminal)
    os.close(ours)
    assert "Place them? [y/N]" in said.stderr and managed(cluster) == expected
