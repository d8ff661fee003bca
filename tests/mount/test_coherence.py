"""Programs of the mount and programs under the library use the same files at the same time."""

import errno
import fcntl
import mmap
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import run_command

CONTENT = bytes(number * 7 % 251 for number in range(300_000))

# Serves lines on stdin: an expression with `os`, `fd` and others, whose value is printed.
SERVER = """
import fcntl, os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except OSError as error:
        print(repr(error.errno), flush=True)
"""


class Other:
    """A program under the library that has a file of the directory open."""

    def __init__(self, view, name):
        words = [sys.executable, "-c", SERVER, view.cluster.data / name]
        environment = {**os.environ, **view.cluster.environment()}
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, expression):
        """The value of an expression there."""
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return eval(self.process.stdout.readline())

    def end(self):
        """Ends the program."""
        self.process.stdin.close()
        assert self.process.wait() == 0


@pytest.fixture
def other(view):
    """One with the file `file`."""
    made = Other(view, "file")
    made.do("0")
    yield made
    made.end()


@pytest.fixture
def file(view, other):
    """The same file, open through the mount."""
    assert view.is_managed("file")
    fd = os.open(view.path / "file", os.O_RDWR)
    yield fd
    os.close(fd)


def test_each_sees_at_once_what_the_other_writes(view, other, file):
    for turn in range(50):
        block = bytes([turn]) * (1000 + 7777 * turn)
        assert other.do(f"os.pwrite(fd, bytes([{turn}]) * {len(block)}, {turn})") == len(block)
        assert os.fstat(file).st_size == len(block) + turn == (view.path / "file").stat().st_size
        assert os.pread(file, len(block), turn) == block
        os.pwrite(file, b"mount", turn)
        assert other.do(f"os.pread(fd, 5, {turn})") == b"mount"
    os.ftruncate(file, 10)
    assert other.do("os.fstat(fd).st_size") == 10
    assert other.do("os.ftruncate(fd, 5)") is None
    assert os.pread(file, 100, 0) == os.pread(file, 5, 0) and os.lseek(file, 0, os.SEEK_END) == 5


def test_appends_of_both_follow_each_other(view, other):
    assert other.do("globals().update(end=os.open(path, os.O_WRONLY | os.O_APPEND))") is None
    end = os.open(view.path / "file", os.O_WRONLY | os.O_APPEND)
    for turn in range(40):
        assert os.write(end, b"m%03d" % turn) == 4 and other.do(f"os.write(end, b'l%03d' % {turn})") == 4
    os.close(end)
    assert (view.path / "file").read_bytes() == b"".join(b"m%03dl%03d" % (turn, turn) for turn in range(40))


def test_record_locks_exclude_the_other(other, file):
    lock, unlock = "fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)", "fcntl.lockf(fd, fcntl.LOCK_UN, 10, 5)"
    assert other.do(lock) is None
    with pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 14)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 15)
    assert other.do("fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 20)") == 11
    assert other.do(unlock) is None
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 14)
    # A close of any descriptor of the process releases all its locks.
    os.close(os.open(f"/proc/self/fd/{file}", os.O_RDONLY))
    assert other.do("fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 0)") is None


WAITS = "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR); print('waits', flush=True); fcntl.lockf(fd, fcntl.LOCK_EX); print('has it', flush=True)"


def test_a_wait_for_a_lock_ends_with_the_lock_or_a_signal(view, other, file):
    assert other.do("fcntl.lockf(fd, fcntl.LOCK_EX)") is None
    # More waits than threads that serve do not keep others from being served.
    words = [sys.executable, "-c", WAITS, view.path / "file"]
    waiting, *others = (subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(8))
    for process in (waiting, *others):
        assert process.stdout.readline() == "waits\n"
    os.pwrite(file, b"served", 0)
    for process in others:
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
    assert other.do("fcntl.lockf(fd, fcntl.LOCK_UN)") is None
    assert waiting.stdout.readline() == "has it\n" and waiting.wait() == 0


def test_names_are_those_of_the_directory(view, other, file):
    data = view.cluster.data
    os.pwrite(file, CONTENT, 0)
    os.rename(data / "file", data / "renamed")
    assert os.pread(file, len(CONTENT), 0) == CONTENT and not (view.path / "file").exists()
    assert (view.path / "renamed").read_bytes() == CONTENT
    os.rename(view.path / "renamed", view.path / "again")
    assert view.with_library("sha256sum", data / "again").code == 0
    (view.path / "dir").mkdir()
    os.link(view.path / "again", view.path / "dir" / "linked")
    assert (view.path / "again").stat().st_ino == (view.path / "dir" / "linked").stat().st_ino
    assert os.fstat(file).st_nlink == 2
    os.rename(data / "dir", data / "moved")
    assert (view.path / "moved" / "linked").read_bytes() == CONTENT
    view.with_library("rm", data / "again")
    assert sorted(path.name for path in view.path.iterdir()) == ["moved"]
    (view.path / "moved" / "linked").unlink()
    assert os.fstat(file).st_nlink == 0 and os.fstat(file).st_size == len(CONTENT)
    assert os.pread(file, len(CONTENT), 0) == CONTENT, "it is open"
    os.ftruncate(file, 7)
    os.fchmod(file, 0o600)
    assert os.fstat(file).st_size == 7


def test_a_file_that_takes_the_place_of_another_is_not_taken_for_it(view, other, file):
    """Behind the mount's back, again and again, while programs of the mount look at it."""
    data = view.cluster.data
    for turn in range(100):
        (view.cluster.root / "new").write_bytes(b"%03d" % turn)
        os.rename(view.cluster.root / "new", data / "place")
        assert (view.path / "place").read_bytes() == b"%03d" % turn
        stat, there = (view.path / "place").stat(), (data / "place").stat()
        assert (stat.st_ino, stat.st_size) == (there.st_ino, there.st_size)


def test_maps(view, other, file):
    os.pwrite(file, CONTENT, 0)
    with mmap.mmap(file, len(CONTENT)) as shared:
        assert shared[:] == CONTENT
        shared[1000:1005] = b"shown"
        shared.flush()
        assert other.do("os.pread(fd, 5, 1000)") == b"shown" == os.pread(file, 5, 1000)
        shared[0:5] = b"later"
    os.fsync(file)
    assert other.do("os.pread(fd, 5, 0)") == b"later"
    with mmap.mmap(file, len(CONTENT), access=mmap.ACCESS_COPY) as private:
        private[0:5] = b"alone"
        assert os.pread(file, 5, 0) == b"later"


def test_attributes_are_those_of_the_directory(view, other, file):
    path, data = view.path / "file", view.cluster.data / "file"
    os.setxattr(path, "user.one", b"value")
    assert os.getxattr(data, "user.one") == b"value" and os.listxattr(path) == os.listxattr(data)
    os.removexattr(path, "user.one")
    with pytest.raises(OSError, match="No data"):
        os.getxattr(path, "user.one")
    os.chmod(path, 0o751)
    os.utime(path, ns=(10**9 + 1, -3))
    # A file with copies does not change its owner while several processes have it open.
    refused = other.do("os.chown(path, 12, 34)")
    try:
        os.chown(path, 12, 34)
        assert refused is None
    except OSError as error:
        assert error.errno == refused == errno.EBUSY
    stat = path.stat()
    assert (stat.st_mode & 0o7777, stat.st_mtime_ns) == (0o751, -3)
    there = other.do("(lambda s: (s.st_mode, s.st_uid, s.st_gid, s.st_mtime_ns, s.st_size, s.st_ino))(os.fstat(fd))")
    assert there == (stat.st_mode, stat.st_uid, stat.st_gid, -3, stat.st_size, stat.st_ino)
    assert os.statvfs(path).f_blocks == os.statvfs(data).f_blocks
    os.mkfifo(view.path / "fifo")
    os.symlink("nowhere", view.path / "link")
    os.chown(view.path / "link", 12, 34, follow_symlinks=False)
    assert (view.cluster.data / "link").lstat().st_uid == 12 and (view.cluster.data / "fifo").is_fifo()
    os.mknod(view.path / "made")
    assert view.is_managed("made")


def test_a_directory_is_read_while_it_changes(view):
    """Each name that is there all the time is seen exactly once."""
    stay = {f"stay{number:05}" for number in range(2000)}
    for name in stay:
        (view.cluster.data / name).touch()
    for turn in range(5):
        seen = []
        with os.scandir(view.path) as entries:
            for number, entry in enumerate(entries):
                seen.append(entry.name)
                if number % 100 == 0:
                    (view.path / f"new{turn}-{number}").touch()
                    (view.path / f"new{turn}-{number}").unlink()
        assert sorted(name for name in seen if name.startswith("stay")) == sorted(stay)


def test_holes_and_space(view, other, file):
    os.ftruncate(file, 4 << 20)
    os.pwrite(file, b"data", 2 << 20)
    assert os.lseek(file, 0, os.SEEK_DATA) == other.do("os.lseek(fd, 0, os.SEEK_DATA)")
    assert os.lseek(file, 2 << 20, os.SEEK_HOLE) == other.do("os.lseek(fd, 2 << 20, os.SEEK_HOLE)")
    os.posix_fallocate(file, 0, 5 << 20)
    assert os.fstat(file).st_size == 5 << 20 == other.do("os.fstat(fd).st_size")
    refused = run_command("fallocate", "--punch-hole", "-o", 0, "-l", 4096, view.path / "file", ok=False)
    assert refused.code != 0 and re.search("not supported|unsupported", refused.err)


def test_a_wait_for_a_lock_goes_on_after_a_handler(view, other, file):
    assert other.do("fcntl.lockf(fd, fcntl.LOCK_EX)") is None
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(other.do("fcntl.lockf(fd, fcntl.LOCK_UN)")))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    fcntl.lockf(file, fcntl.LOCK_EX)
    signal.signal(signal.SIGALRM, before)
    assert handled == [None]
