"""How a mount begins and ends, and what is refused."""

import errno
import os
import pwd
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import run_command, small_disk, wait_until

from .conftest import View, is_mounted

NOBODY = pwd.getpwnam("nobody")


def test_it_says_where_it_is_and_how_it_ends(unmounted):
    view = unmounted
    said = view.mount().out
    assert f"{view.cluster.data} is mounted at {view.path} (process {view.process()})" in said
    assert f"fusermount3 -u {view.path}" in said
    run_command("fusermount3", "-u", view.path)
    assert not is_mounted(view.path)
    wait_until(lambda: not Path(f"/proc/{said.split('process ')[1].split(')')[0]}").exists())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_unmounts(unmounted, number):
    unmounted.mount()
    unmounted.end(number)
    assert not is_mounted(unmounted.path)


def test_what_is_open_is_served_after_a_signal(view):
    path = view.path / "file"
    with open(path, "w+b", buffering=0) as file:
        file.write(b"before")
        process = view.process()
        os.kill(process, signal.SIGTERM)
        wait_until(lambda: not is_mounted(view.path))
        file.write(b" and after")
        assert os.pread(file.fileno(), 100, 0) == b"before and after"
    wait_until(lambda: not Path(f"/proc/{process}").exists())
    assert view.with_library("cat", view.cluster.data / "file").out == "before and after"


def test_a_killed_process_loses_nothing_that_was_written(view):
    """What is left of the mount is named, with its remedy."""
    (view.path / "file").write_bytes(b"x" * 300_000)
    view.end(signal.SIGKILL)
    with pytest.raises(OSError, match=os.strerror(errno.ENOTCONN)):
        (view.path / "file").read_bytes()
    assert is_mounted(view.path)
    refused = view.stripewise("mount", view.cluster.data, view.path, ok=False)
    assert refused.code == 1 and f"remove it: fusermount3 -u {view.path}" in refused.err
    run_command("fusermount3", "-u", view.path)
    view.mount()
    assert (view.path / "file").read_bytes() == b"x" * 300_000


def test_read_only(view):
    (view.path / "file").write_text("text")
    view.end()
    view.mount("--read-only")
    assert (view.path / "file").read_text() == "text"
    for change in (
        lambda: (view.path / "file").write_text("other"),
        lambda: (view.path / "new").touch(),
        lambda: (view.path / "file").unlink(),
        lambda: os.rename(view.path / "file", view.path / "other"),
        lambda: os.chmod(view.path / "file", 0o600),
    ):
        with pytest.raises(OSError, match=os.strerror(errno.EROFS)):
            change()


def test_two_mounts_of_one_directory(view):
    second = View(view.cluster, view.cluster.root / "second", view.stripewise)
    second.path.mkdir()
    second.mount()
    try:
        for turn in range(20):
            (view.path / "file").write_text(f"first {turn}")
            assert (second.path / "file").read_text() == f"first {turn}"
            with open(second.path / "file", "a") as file:
                file.write(" and second")
            assert (view.path / "file").read_text() == f"first {turn} and second"
    finally:
        second.end()


def test_without_a_plan_new_files_are_plain_and_managed_ones_stay(view):
    (view.path / "file").write_text("managed")
    view.end()
    view.mount()
    with open(view.path / "file", "a") as file:
        file.write(" still")
    (view.path / "new").write_text("plain")
    assert view.is_managed("file") and (view.cluster.data / "new").read_text() == "plain"
    assert (view.path / "file").read_text() == "managed still"


def test_in_the_foreground(unmounted, bin_dir):
    view = unmounted
    words = [bin_dir / "stripewise", "mount", "--foreground", view.cluster.data, view.path]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert "is mounted at" in process.stdout.readline()
    (view.path / "file").write_text("text")
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0 and not is_mounted(view.path)


@pytest.mark.parametrize(
    "mountpoint, says",
    [
        ("absent", "make one: mkdir -p"),
        ("data", "would show itself"),
        ("data/below", "would show itself"),
        (".", "would show itself"),
        ("servers", "is not empty"),
        ("plan.toml", "Not a directory"),
    ],
)
def test_where_nothing_can_be_mounted(unmounted, mountpoint, says):
    cluster = unmounted.cluster
    (cluster.data / "below").mkdir()
    refused = unmounted.stripewise("mount", cluster.data, cluster.root / mountpoint, ok=False)
    assert refused.code == 1 and says in refused.err and not is_mounted(unmounted.path), refused


def test_what_cannot_be_mounted(unmounted):
    root = unmounted.cluster.root
    for directory, says in ((root / "absent", "No such file"), (unmounted.cluster.toml, "not a directory")):
        refused = unmounted.stripewise("mount", directory, unmounted.path, ok=False)
        assert refused.code == 1 and says in refused.err, refused
    refused = unmounted.stripewise("mount", "-p", root / "absent", unmounted.cluster.data, unmounted.path, ok=False)
    assert refused.code == 1 and "cannot be read" in refused.err


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_an_ordinary_user_needs_no_root(unmounted, bin_dir):
    """The files are those of the user, who alone sees them."""
    view = unmounted
    for directory in (view.cluster.root, view.cluster.data, view.path, *view.cluster.targets):
        os.chown(directory, NOBODY.pw_uid, NOBODY.pw_gid)
    # The tests' own directories are closed to others.
    for parent in (view.cluster.root.parent, view.cluster.root / "servers"):
        os.chmod(parent, 0o711)
    # Where only root may use /dev/fuse, in namespaces of the test's own: as it is on most machines.
    script = f"""
    set -e
    mknod -m 666 {view.cluster.root}/fuse c 10 229
    mount --bind {view.cluster.root}/fuse /dev/fuse
    cd /
    user() {{ setpriv --reuid {NOBODY.pw_uid} --regid {NOBODY.pw_gid} --clear-groups "$@"; }}
    user {bin_dir}/stripewise mount -p {view.cluster.plan} {view.cluster.data} {view.path}
    user cp /bin/true {view.path}/file
    user cmp /bin/true {view.path}/file
    ! ls {view.path} 2>{view.cluster.root}/refused
    user fusermount3 -u {view.path}
    ! mountpoint -q {view.path}
    """
    run_command("unshare", "--mount", "sh", "-c", script)
    assert "Permission denied" in (view.cluster.root / "refused").read_text()
    assert view.is_managed("file")


def test_a_full_file_system_is_said(unmounted):
    """No space for the bytes: the write fails, and what was written stays."""
    view = unmounted
    with small_disk(view.cluster.targets[0], "400k"):
        view.stripewise("place", view.cluster.plan)
        view.mount("-p", view.cluster.plan)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            (view.path / "file").write_bytes(b"x" * (16 << 20))
        (view.path / "file").unlink()
        (view.path / "small").write_bytes(b"fits")
        assert (view.path / "small").read_bytes() == b"fits"
        view.end()
