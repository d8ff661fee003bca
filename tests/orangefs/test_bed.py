"""The testbed itself: what it says, and that a testbed that was killed is cleaned up."""

import os
import signal
from pathlib import Path

import testbeds

SERVERS = 2


def installed(bed):
    """Where its OrangeFS is installed."""
    path = next(line for line in bed("env").out.splitlines() if line.startswith("export PATH="))
    return Path(path.split('"')[1].split(":")[0]).parent


def test_a_bed_that_is_up_stays(bed):
    before = bed("status").out
    said = bed("up", installed(bed))
    assert "is up already" in said.err and str(bed.mount) in said.out
    assert [line.split(",")[0] for line in bed("status").out.splitlines()] == [line.split(",")[0] for line in before.splitlines()]


def test_what_it_cannot_do_is_said(bed, tmp_path):
    nothing = testbeds.call("orangefs", "up", tmp_path / "no", tmp_path, ok=False)
    assert nothing.code == 1 and "neither an installed OrangeFS" in nothing.err and not (tmp_path / "no").exists()
    testbeds.assert_takes_no_foreign_directory("orangefs", tmp_path)


def test_what_was_killed_is_removed(bed, tmp_path):
    base = tmp_path / "bed"

    def call(command, *words):
        return testbeds.call("orangefs", command, base, *words)

    up = ["up", installed(bed), "--servers", SERVERS, "--port", testbeds.free_port()]
    call(*up)
    try:
        assert len(testbeds.processes(base)) == SERVERS + 1
        (base / "mnt" / "file").write_bytes(b"x" * 1000)
        assert sum(call("bytes").json().values()) == 1000
        os.kill(next(iter(testbeds.processes(base))), signal.SIGKILL)
        again = call(*up)
        assert "removing what is left" in again.err and list((base / "mnt").glob("file")) == []
    finally:
        call("down")
    assert not testbeds.processes(base) and not testbeds.mounts(base) and not base.exists()
