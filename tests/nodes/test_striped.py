"""What one node's programs may expect of a striped file, from several nodes: the same as of a plain
file of the same file system."""

import errno
import fcntl
import os

import pytest
from conftest import wait_until

from .conftest import Refused

RW, CREATE, EXCLUSIVE = os.O_RDWR, os.O_CREAT, os.O_EXCL
LOCKS = ["lock", "posix_lock", "flock"]
MAPPED = 8192


@pytest.fixture
def path(files):
    """A file that does not exist yet."""
    return files.directory / "file"


def opened(files, path, content=b""):
    """A new file with that content, open on every node: [(actor, fd)]."""
    first = files.actors[0]
    fd = first.open(path, RW | CREATE, 0o666)
    if content:
        assert first.pwrite(fd, content, 0) == len(content)
    return [(first, fd), *((actor, actor.open(path, RW)) for actor in files.actors[1:])]


def refused(number, call, *args):
    """The call fails with this error."""
    with pytest.raises(Refused) as failed:
        call(*args)
    assert failed.value.errno == number, os.strerror(failed.value.errno)


def pattern(seed, length):
    """Bytes that differ from those of another seed."""
    return bytes((seed * 31 + i * 7) % 251 + 1 for i in range(length))


# --------------------------------------------------------------------------------- bytes


def test_what_one_node_wrote_the_others_read(files, path):
    """Unaligned ranges that touch each other, written in turn by all nodes."""
    nodes = opened(files, path)
    expected, at = b"", 0
    for turn in range(12):
        actor, fd = nodes[turn % len(nodes)]
        data = pattern(turn, 3001 + 977 * turn)
        assert actor.pwrite(fd, data, at) == len(data)
        expected, at = expected + data, at + len(data)
        for reader, its in nodes:
            assert reader.size(its) == at
            assert reader.pread(its, at + 10, 0) == expected


def test_neighboring_ranges_are_written_at_once(files, path):
    """No node's write touches the bytes beside it."""
    length, rounds = 1013, 60
    nodes = opened(files, path)
    for turn in range(rounds):
        for number, (actor, fd) in enumerate(nodes):
            actor.ask("pwrite", fd, pattern(number + turn, length), (turn * len(nodes) + number) * length)
        for actor, _ in nodes:
            assert actor.answer() == length
    expected = b"".join(pattern(number + turn, length) for turn in range(rounds) for number in range(len(nodes)))
    for actor, fd in nodes:
        assert actor.pread(fd, len(expected) + 1, 0) == expected


def test_holes_are_zeros_everywhere(files, path):
    nodes = opened(files, path)
    (writer, fd), (reader, its) = nodes[0], nodes[1]
    writer.pwrite(fd, b"end", 300_000)
    assert reader.size(its) == 300_003
    assert reader.pread(its, 300_010, 0) == bytes(300_000) + b"end"


# --------------------------------------------------------------------------------- size


def test_truncate_is_seen_by_all(files, path):
    nodes = opened(files, path, pattern(1, 200_000))
    for turn, size in enumerate((150_001, 77, 40_000, 0, 12_345)):
        actor, fd = nodes[turn % len(nodes)]
        actor.ftruncate(fd, size)
        for reader, its in nodes:
            assert reader.size(its) == size and reader.size_at(path) == size
            assert len(reader.pread(its, 300_000, 0)) == size
    assert nodes[2][0].pread(nodes[2][1], 20_000, 0) == bytes(12_345), "what was cut off does not come back"


def test_a_file_grows_where_any_node_writes(files, path):
    nodes = opened(files, path)
    for turn in range(9):
        actor, fd = nodes[turn % len(nodes)]
        actor.pwrite(fd, b"x", turn * 5000)
        assert [reader.size(its) for reader, its in nodes] == [turn * 5000 + 1] * len(nodes)


def test_open_with_o_trunc_empties_it_for_all(files, path):
    nodes = opened(files, path, pattern(2, 50_000))
    other = nodes[1][0]
    other.close(other.open(path, RW | os.O_TRUNC))
    assert [(reader.size(its), reader.pread(its, 10, 0)) for reader, its in nodes] == [(0, b"")] * len(nodes)


def test_appends_of_several_nodes_are_all_there(files, path, bed):
    """Every record is whole. (Plain files on CephFS lose records: docs/filesystems/README.md.)"""
    if bed.is_ceph and not files.is_managed:
        pytest.skip("appends of several clients to a plain file overwrite each other on CephFS")
    opened(files, path)
    records, length = 40, 333
    for letter, actor in zip("abc", files.actors, strict=True):
        actor.ask("append_all", path, records, length, letter)
    assert all(actor.answer() for actor in files.actors)
    reader = files.actors[1]
    content = reader.pread(reader.open(path, os.O_RDONLY), 1 << 20, 0)
    found = [content[at : at + length] for at in range(0, len(content), length)]
    assert sorted(found) == sorted(letter.encode() * length for letter in "abc" for _ in range(records))


# --------------------------------------------------------------------------------- names


def test_exactly_one_node_creates_with_o_excl(files):
    paths = [str(files.directory / f"race{number}") for number in range(25)]
    for actor in files.actors:
        actor.ask("create_all", paths)
    made = [actor.answer() for actor in files.actors]
    assert sorted(sum(made, [])) == sorted(paths)


def test_nodes_that_create_one_file_at_once_share_it(files):
    """O_CREAT without O_EXCL: all open the same file, and nobody's first bytes are lost."""
    for turn in range(10):
        path = files.directory / f"shared{turn}"
        for actor in files.actors:
            actor.ask("open", path, RW | CREATE, 0o666)
        fds = [actor.answer() for actor in files.actors]
        for number, (actor, fd) in enumerate(zip(files.actors, fds, strict=True)):
            actor.pwrite(fd, pattern(number, 5000), number * 5000)
        expected = b"".join(pattern(number, 5000) for number in range(len(files.actors)))
        assert [actor.pread(fd, 20_000, 0) for actor, fd in zip(files.actors, fds, strict=True)] == [expected] * len(files.actors)


def test_a_renamed_file_is_the_same_file(files, path):
    nodes = opened(files, path, b"before")
    renamed = path.with_name("renamed")
    nodes[1][0].rename(path, renamed)
    nodes[0][0].pwrite(nodes[0][1], b"AFTER!", 0)
    third = files.actors[2]
    assert third.pread(third.open(renamed, os.O_RDONLY), 10, 0) == b"AFTER!"
    refused(errno.ENOENT, third.open, path, os.O_RDONLY)


def test_a_file_that_replaces_another_is_what_all_open(files, path):
    nodes = opened(files, path, b"old")
    new, writer = path.with_name("new"), files.actors[1]
    writer.pwrite(writer.open(new, RW | CREATE, 0o666), b"new content", 0)
    writer.rename(new, path)
    for actor in files.actors:
        assert actor.pread(actor.open(path, os.O_RDONLY), 20, 0) == b"new content"
    assert nodes[0][0].pread(nodes[0][1], 20, 0) == b"old", "who has it open keeps it"


def test_an_unlinked_file_lives_while_a_node_has_it_open(files, path):
    nodes = opened(files, path, pattern(3, 70_000))
    (keeper, fd), other = nodes[0], files.actors[1]
    other.close(nodes[1][1])
    other.unlink(path)
    refused(errno.ENOENT, files.actors[2].open, path, os.O_RDONLY)
    assert keeper.pread(fd, 70_001, 0) == pattern(3, 70_000)
    assert keeper.pwrite(fd, b"still here", 100) == 10
    assert keeper.pread(fd, 10, 100) == b"still here"


def test_a_file_is_made_anew_under_the_name_of_an_unlinked_one(files, path):
    nodes = opened(files, path, b"first")
    files.actors[1].unlink(path)
    again = files.actors[2]
    again.pwrite(again.open(path, RW | CREATE | EXCLUSIVE, 0o666), b"second", 0)
    first = files.actors[0]
    assert first.pread(nodes[0][1], 10, 0) == b"first"
    assert first.pread(first.open(path, os.O_RDONLY), 10, 0) == b"second"


# --------------------------------------------------------------------------------- locks


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_excludes_other_nodes(files, path, lock):
    nodes = opened(files, path, b"x" * 100)

    def take(actor, fd, kind=fcntl.F_WRLCK):
        getattr(actor, lock)(fd, kind, 10, 20)

    take(*nodes[0])
    for actor, fd in nodes[1:]:
        refused(errno.EAGAIN, take, actor, fd)
    take(*nodes[0], fcntl.F_UNLCK)
    take(*nodes[1])
    refused(errno.EAGAIN, take, *nodes[0])


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_ends_with_its_descriptor(files, path, lock):
    """After a close other nodes get it; on CephFS a moment later."""
    nodes = opened(files, path, b"x" * 100)
    getattr(nodes[0][0], lock)(nodes[0][1], fcntl.F_WRLCK, 10, 20)
    nodes[0][0].close(nodes[0][1])

    def is_free():
        try:
            getattr(nodes[1][0], lock)(nodes[1][1], fcntl.F_WRLCK, 10, 20)
        except Refused as failed:
            assert failed.errno == errno.EAGAIN
            return False
        return True

    wait_until(is_free)


def test_readers_share_a_lock(files, path):
    nodes = opened(files, path, b"x" * 100)
    for actor, fd in nodes:
        actor.lock(fd, fcntl.F_RDLCK, 0, 50)
    refused(errno.EAGAIN, nodes[0][0].lock, nodes[0][1], fcntl.F_WRLCK, 0, 50)
    nodes[0][0].lock(nodes[0][1], fcntl.F_WRLCK, 50, 50)


# --------------------------------------------------------------------------------- mappings


def test_what_was_stored_in_a_mapping_is_read_elsewhere_after_msync(files, path, bed):
    """Where the file system maps files: a CephFS without its page cache does not."""
    nodes = opened(files, path, bytes(MAPPED))
    (writer, fd), (reader, its) = nodes[0], nodes[1]
    if bed.is_ceph or files.kind == "odd":
        refused(errno.ENODEV, writer.map_file, fd, MAPPED)
        return
    writer.map_file(fd, MAPPED)
    writer.store(fd, 5000, b"stored")
    writer.flush(fd)
    assert reader.pread(its, 6, 5000) == b"stored"
    reader.pwrite(its, b"written", 100)
    reader.fsync(its)
    assert writer.load(fd, 100, 7) == b"written"
