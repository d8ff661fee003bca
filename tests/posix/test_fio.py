"""fio writes, reads back and verifies checksums through each of its engines."""

import re

import pytest
from conftest import LONG

ENGINES = ["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "mmap"]
SIZE = "64m" if LONG else "8m"


def fio(engine, file, *more):
    return [
        "fio", "--name=job", f"--filename={file}", f"--ioengine={engine}", f"--size={SIZE}", "--iodepth=16",
        "--verify=crc32c", "--do_verify=1", "--verify_state_save=0", "--verify_fatal=1", "--randseed=7", "--thread=0", *more,
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["randrw", "write"])
@pytest.mark.parametrize("engine", ENGINES)
def test_engine(worlds, engine, pattern):
    result = worlds.with_library(*fio(engine, worlds.managed / "file", f"--rw={pattern}", "--bsrange=4k-256k"))
    assert re.search(r"err= ?0", result.out), result
    assert worlds.is_managed("file")
    # Another engine reads the data; a program without the library would find no checksums.
    read = [*fio("psync", worlds.managed / "file", "--rw=read", "--bs=64k")]
    if pattern == "write":
        worlds.with_library(*fio(engine, worlds.managed / "again", "--rw=write", "--bs=64k"))
        worlds.with_library(*[arg.replace("/file", "/again") for arg in read], "--verify_only")


def test_several_jobs(worlds):
    """Four processes on one file, each in a segment of its own, with direct I/O."""
    command = fio("psync", worlds.managed / "file", "--rw=randrw", "--bs=4k", "--numjobs=4", "--offset_increment=8m", "--direct=1")
    result = worlds.with_library(*command)
    assert re.search(r"err= ?0", result.out) and worlds.is_managed("file")


def test_io_uring_is_denied_on_request(worlds):
    """io_uring requests would bypass the library."""
    command = fio("io_uring", worlds.managed / "file", "--rw=write", "--bs=64k")
    result = worlds.with_library(*command, env={"STRIPEWISE_DENY_IO_URING": "1"}, ok=False)
    assert result.code != 0 and "not implemented" in (result.out + result.err).lower(), result
    # The library's own data path then uses another engine.
    worlds.with_library(*fio("psync", worlds.managed / "file", "--rw=write", "--bs=64k"), env={"STRIPEWISE_DENY_IO_URING": "1"})
