"""Ctrl-C while servers are measured: a clear line, the right exit code, and everything as before.
"""

import os
import signal
import subprocess

import pytest
from conftest import HANGS_S, Tier, wait_until

PROFILE = """# measured by somebody before
version = 1
"""


def open_scratch_file(pid, directory):
    """Whether the process has an unnamed file open in the directory."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return any(link.startswith(f"{directory}/") for link in links)


def interrupt(process, directory, how):
    """Sends the signal while the process is measuring on the directory."""
    wait_until(lambda: open_scratch_file(process.pid, directory), process)
    process.send_signal(how)
    out, err = process.communicate(timeout=HANGS_S)
    return process.returncode, out, err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("emulate", [False, True])
def test_interrupted(make_cluster, bin_dir, how, emulate):
    cluster = make_cluster([Tier("ssd", 1, emulate=emulate)])
    profile = cluster.root / "profile.toml"
    profile.write_text(PROFILE)
    before = sorted(cluster.root.rglob("*"))
    command = [bin_dir / "stripewise", "calibrate", "-c", cluster.toml, "--quiet", "--force"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    code, out, err = interrupt(process, cluster.targets[0], how)
    assert code == -how
    assert out == ""
    assert err == f"stripewise: calibrate was interrupted; {profile} is as it was before\n"
    assert profile.read_text() == PROFILE
    assert sorted(cluster.root.rglob("*")) == before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_calls_are_measured(make_cluster, bin_dir, how):
    """The files and directories of the trial, and its process, are gone afterwards."""
    cluster = make_cluster([Tier("ssd", 2, emulate=True)])
    profile = cluster.root / "profile.toml"
    profile.write_text(PROFILE)
    before = sorted(cluster.root.rglob("*"))
    arguments = ["-c", cluster.toml, "--quiet", "--force", "--repeats", "2"]
    command = [bin_dir / "stripewise", "calibrate", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    wait_until(lambda: any(cluster.targets[1].glob(".stripewise-trial-*/target-1/*")), process)
    process.send_signal(how)
    out, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == -how
    assert out == ""
    assert err == f"stripewise: calibrate was interrupted; {profile} is as it was before\n"
    assert profile.read_text() == PROFILE
    assert sorted(cluster.root.rglob("*")) == before
