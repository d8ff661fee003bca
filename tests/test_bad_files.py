"""Damaged managed files, missing servers, full disks: one clear line, nothing lost, and the proper
errno for programs."""

import os
import shutil

import pytest

from bad_input import Unchanged, assert_refused, snapshot
from conftest import small_disk

COPY = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def managed(planned, python):
    """The planned cluster with a managed file `planned.data / "f"` that holds CONTENT."""
    source = planned.root / "source"
    source.write_bytes(CONTENT)
    planned.run("cp", source, planned.data / "f")
    assert (planned.data / "f").read_bytes().startswith(b"stripewise file, format 1\n")
    planned.path = planned.data / "f"
    return planned


def replace_line(key, line):
    """A damage: replaces the manifest's line with this key by another one of any length."""

    def damage(data):
        lines = data.split(b"\n")
        index = next(i for i, text in enumerate(lines) if text.startswith(key))
        lines[index] = line
        return b"\n".join(lines)

    return damage


DAMAGES = {
    "another format": lambda data: data.replace(b"format 1\n", b"format 9\n", 1),
    "wrong length": replace_line(b"length =", b"length = 7"),
    "negative length": replace_line(b"length =", b"length = -1"),
    "checksum": lambda data: data.replace(b"[[0, ", b"[[1, ", 1),
    "id": replace_line(b"id =", b'id = "../../../../etc/passwd"'),
    "not TOML": replace_line(b"id =", b"id = = ="),
    "truncated": lambda data: data[:200],
}


@pytest.mark.parametrize("command", ["cat", "export", "fsck"])
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_manifest(stripewise, managed, command, name):
    data = managed.path.read_bytes()
    damaged = DAMAGES[name](data)
    assert damaged != data
    managed.path.write_bytes(damaged)
    with Unchanged(managed.root):
        result = stripewise(command, managed.path, ok=False)
    assert result.code != 0, str(result)
    assert "panicked" not in result.err
    assert str(managed.path) in result.err + result.out, str(result)


@pytest.mark.parametrize("name", DAMAGES)
def test_programs_get_eio_for_a_damaged_manifest(managed, python, name):
    managed.path.write_bytes(DAMAGES[name](managed.path.read_bytes()))
    with Unchanged(managed.root):
        result = managed.run(python, "-c", COPY, managed.path, ok=False)
    assert result.code == 1 and "Errno 5" in result.err, str(result)
    assert CONTENT[:16].hex() not in result.out


@pytest.mark.parametrize("loss", ["directory", "marker", "other marker"])
def test_missing_server(stripewise, managed, python, loss):
    server = managed.targets[2]
    marker = server / "stripewise-target.toml"
    if loss == "directory":
        server.rename(managed.root / "unmounted")
    elif loss == "marker":
        shutil.copytree(server, managed.root / "kept")
        marker.unlink()
    else:
        shutil.copy(managed.targets[3] / "stripewise-target.toml", marker)
    with Unchanged(managed.root):
        program = managed.run(python, "-c", COPY, managed.path, ok=False)
        cat = stripewise("cat", managed.path, ok=False)
        fsck = stripewise("fsck", "-p", managed.plan, managed.path, ok=False)
    assert program.code == 1 and "Errno 5" in program.err, str(program)
    for result in (cat, fsck):
        assert result.code != 0 and server.name in result.err + result.out, str(result)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted by root")
def test_full_server(stripewise, managed, python):
    """A write that does not fit fails with ENOSPC; the existing content stays intact."""
    server = managed.targets[1]
    before = managed.run("sha256sum", managed.path).out
    kept = managed.root / "kept"
    shutil.copytree(server, kept)
    with small_disk(server, "2m"):
        shutil.copytree(kept, server, dirs_exist_ok=True)
        program = "import sys; f = open(sys.argv[1], 'r+b'); f.seek(1 << 20); f.write(b'x' * (64 << 20)); f.close()"
        result = managed.run(python, "-c", program, managed.path, ok=False)
        assert result.code == 1 and "Errno 28" in result.err, str(result)
        head = managed.run("head", "-c", str(len(CONTENT)), managed.path)
        assert managed.run("sha256sum", stdin=head.out).code == 0
        check = "import sys, hashlib; print(hashlib.sha256(open(sys.argv[1], 'rb').read(1 << 20)).hexdigest())"
        assert managed.run(python, "-c", check, managed.path).out.split()[0] == before.split()[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted by root")
def test_migration_into_a_full_server_leaves_the_file(stripewise, planned):
    path = planned.data / "f"
    path.write_bytes(os.urandom(16 << 20))
    stripewise("place", planned.plan, "--dry-run")
    before = snapshot(planned.data)
    server = planned.targets[0]
    with small_disk(server, "1m"):
        result = stripewise("place", planned.plan, ok=False)
        assert result.code != 0, str(result)
        assert snapshot(planned.data)["f"] == before["f"], "the file must still be the plain one"


@pytest.mark.parametrize("command", ["cat", "export", "cp", "rm"])
def test_missing_file(stripewise, cluster, command):
    path = cluster.data / "none"
    args = [command, path] + ([cluster.data / "copy"] if command == "cp" else [])
    with Unchanged(cluster.root):
        result = stripewise(*args, ok=False)
    assert_refused(result, "none")
