"""Programs through the mount: those that the library does not reach, and those that use files as
hard as they can be used. Whatever they leave is managed, and is the same without the mount."""

import hashlib
import os
import shutil
import sqlite3
import subprocess

import pytest
from conftest import LONG, run_command

from bypass.test_outsiders import outsider  # noqa: F401
from fsx.conftest import fsx  # noqa: F401
from fsx.test_fsx import write_weights

OPERATIONS = 200_000 if LONG else 5_000
SEGMENT = 50_000
CONTENT = bytes(number * 7 % 251 for number in range(300_000))


def digests(directory, run=run_command):
    """The digest of each file below the directory, by its path in it, as a program reads them."""
    listed = run("find", ".", "-type", "f", "-exec", "sha256sum", "{}", "+", cwd=directory).out
    return sorted(line.split(maxsplit=1)[::-1] for line in listed.splitlines())


def assert_sound(view):
    """fsck finds nothing."""
    cluster = view.cluster
    found = view.stripewise("fsck", "--json", "-p", cluster.plan, cluster.data, "--orphan-age", 0, ok=False).json()
    assert [finding for finding in found["findings"] if finding["problem"]] == []


def test_fsx(view, fsx):  # noqa: F811
    """Every operation is compared with a model in memory."""
    write_weights(view.cluster.root / "fsx.toml", "1-DH", 1)
    path = view.path / "file"
    for segment in range(-(-OPERATIONS // SEGMENT)):
        count = min(SEGMENT, OPERATIONS)
        run_command(fsx, "-f", view.cluster.root / "fsx.toml", "-P", view.cluster.root, "-N", count, "-S", segment + 1, path)
    assert view.is_managed("file")
    view.end()
    assert_sound(view)


def test_programs_that_make_their_system_calls_themselves(view, outsider):  # noqa: F811
    path = view.path / "file"
    path.write_bytes(CONTENT)
    assert view.is_managed("file")
    for work in ("write", "append", "truncate", "grow", "map"):
        plain = view.cluster.root / "plain"
        plain.write_bytes(path.read_bytes())
        for file in (plain, path):
            run_command(outsider, work, file)
        assert path.read_bytes() == plain.read_bytes(), work
        assert view.with_library("cmp", view.cluster.data / "file", plain).out == ""
    assert_sound(view)


def test_a_database(view):
    """SQLite locks ranges, writes journals and syncs; with a journal beside (WAL) it maps one."""
    path = view.path / "data.db"
    for mode in ("delete", "wal"):
        with sqlite3.connect(path) as database:
            assert database.execute(f"pragma journal_mode = {mode}").fetchone() == (mode,)
            database.execute("create table if not exists t (n integer, text text)")
            for turn in range(5):
                database.executemany("insert into t values (?, ?)", ((n, f"{turn} {n}") for n in range(500)))
                database.commit()
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        database.close()
    assert view.is_managed("data.db")
    count = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select count(*) from t').fetchone()[0])"
    assert view.with_library("python3", "-c", count, view.cluster.data / "data.db").out == "5000\n"


def test_a_repository(view):
    """git maps, links, renames, and checks every byte."""
    source, clone = view.cluster.root / "source", view.path / "clone"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main", "-c", "safe.directory=*"]
    run_command(*git, "init", "-q", source)
    for number in range(20):
        (source / f"file{number}").write_bytes(CONTENT[: 1000 * number] * 3)
        run_command(*git, "-C", source, "add", ".")
        run_command(*git, "-C", source, "commit", "-q", "-m", str(number))
    run_command(*git, "clone", "-q", source, clone)
    run_command(*git, "-C", clone, "gc", "-q")
    run_command(*git, "-C", clone, "fsck", "--full", "--strict")
    assert run_command(*git, "-C", clone, "status", "--porcelain").out == ""
    assert view.is_managed("clone/file5")
    inside = [entry for entry in digests(clone) if not entry[0].startswith("./.git/")]
    assert inside == [entry for entry in digests(source) if not entry[0].startswith("./.git/")]


def tree(root):
    """A directory with files of many sizes, links, holes, and permissions."""
    (root / "deep" / "er").mkdir(parents=True)
    for number, size in enumerate([0, 1, 4095, 4096, 65536, 1_000_003]):
        (root / "deep" / f"f{number}").write_bytes((CONTENT * 4)[:size])
    os.link(root / "deep" / "f4", root / "deep" / "er" / "linked")
    os.symlink("../f3", root / "deep" / "er" / "symbolic")
    with open(root / "holes", "wb") as file:
        file.truncate(3 << 20)
        file.seek(1 << 20)
        file.write(b"data")
    os.chmod(root / "deep" / "f1", 0o640)
    os.utime(root / "deep" / "f2", ns=(10**18 + 1, 10**18 + 2))


def shape(root):
    """Path, kind and permissions, size, number of links, times and target of everything below a
    directory."""
    found = []
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        is_dir, is_link = path.is_dir() and not path.is_symlink(), path.is_symlink()
        times = None if is_dir or is_link else stat.st_mtime_ns
        size, links = (None, None) if is_dir else (stat.st_size, stat.st_nlink)
        found.append((str(path.relative_to(root)), stat.st_mode, size, links, times, os.readlink(path) if is_link else None))
    return found


@pytest.mark.parametrize("tool", ["tar", "rsync", "cp"])
def test_copies_of_trees(view, tool):
    source, there, back = view.cluster.root / "source", view.path / "there", view.cluster.root / "back"
    source.mkdir()
    tree(source)
    for start, end in ((source, there), (there, back)):
        end.mkdir()
        if tool == "tar":
            run_command("sh", "-c", f"tar -C {start} --sparse --xattrs -cf - . | tar -C {end} -xpf -")
        elif tool == "rsync":
            run_command("rsync", "-aHXS", f"{start}/", f"{end}/")
        else:
            run_command("cp", "-a", "--sparse=always", f"{start}/.", end)
    # The background copies of a file with several copies change its times (docs/guide.md, Limits).
    keep = (lambda found: found) if view.kind == "1-DH" else (lambda found: [(*entry[:4], None, entry[5]) for entry in found])
    assert keep(shape(source)) == keep(shape(there)) == keep(shape(back))
    assert digests(source) == digests(there) == digests(back)
    assert view.is_managed("there/holes") and digests(view.cluster.data / "there", view.with_library) == digests(source)
    shutil.rmtree(there)
    assert list(view.path.iterdir()) == []
    assert_sound(view)


def test_a_program_is_run_from_it(view):
    shutil.copy("/bin/true", view.path / "program")
    shutil.copy("/bin/sh", view.path / "shell")
    assert view.is_managed("shell")
    run_command(view.path / "program")
    assert run_command(view.path / "shell", "-c", "echo $((6 * 7))").out == "42\n"


@pytest.mark.parametrize("engine", ["io_uring", "libaio", "mmap"])
def test_asynchronous_requests(view, engine):
    """fio verifies what it has written, with many requests under way."""
    words = ["--name=f", f"--filename={view.path}/file", "--size=16M", "--bsrange=512-200K", "--iodepth=16", "--rw=randrw"]
    run_command("fio", *words, f"--ioengine={engine}", "--verify=crc32c", "--verify_fatal=1", "--verify_async=1")
    assert view.is_managed("file")


def test_large_requests_of_several_programs_at_once(view):
    """Each program has a file of its own, written and read in requests of 1 MiB and odd sizes."""
    sizes = [1 << 20, (1 << 20) + 1, 77_777, 5 << 20]
    script = """
import hashlib, os, sys
path, size = sys.argv[1], int(sys.argv[2])
block, hashed = os.urandom(size), hashlib.sha256()
with open(path, "wb", buffering=0) as file:
    for number in range(1 + (16 << 20) // size):
        assert file.write(block) == size
        hashed.update(block)
    os.fsync(file.fileno())
found = hashlib.sha256()
with open(path, "rb", buffering=0) as file:
    while part := file.read(size):
        found.update(part)
assert found.digest() == hashed.digest()
print(found.hexdigest())
"""
    jobs = [subprocess.Popen(["python3", "-c", script, view.path / str(size), str(size)], stdout=subprocess.PIPE, text=True) for size in sizes]
    for job, size in zip(jobs, sizes, strict=True):
        digest = job.communicate()[0].strip()
        assert job.returncode == 0
        assert hashlib.sha256((view.path / str(size)).read_bytes()).hexdigest() == digest
        assert view.with_library("sha256sum", view.cluster.data / str(size)).out.startswith(digest)
