"""Operations on descriptors, processes, threads and signals, and asynchronous I/O: robust.c,
sharing.c, processes.c, asynchronous.c."""

import pytest

from .conftest import PROGRAM_OF, cases

# The C library itself does not survive these cases, so only the library's side runs.
LIBRARY_ONLY = {"after_fork"}


@pytest.mark.parametrize("case", PROGRAM_OF)
def test_processes(worlds, programs, case):
    worlds.both(lambda directory: [programs / PROGRAM_OF[case], case, directory / "file"])
    worlds.assert_same("file")


@pytest.mark.parametrize("engine", ["uring", "threads", "serial"])
@pytest.mark.parametrize("case", ["signals_inside", "threads", "fork_among_threads", "few_descriptors"])
def test_engines(worlds, programs, case, engine):
    """Every engine with locks and threads of its own."""
    worlds.with_library(programs / PROGRAM_OF[case], case, worlds.managed / "file", env={"STRIPEWISE_FANOUT": engine})


@pytest.mark.parametrize("case", cases("asynchronous"))
def test_asynchronous(worlds, programs, case):
    command = [programs / "asynchronous", case]
    if case in LIBRARY_ONLY:
        result = worlds.with_library(*command, worlds.managed / "file")
        assert result.out == "child 0\n"
        return
    worlds.both(lambda directory: [*command, directory / "file"])
    worlds.assert_same("file")


def test_formatted_output_to_descriptors(worlds, programs):
    worlds.both(lambda directory: [programs / "formatted", directory / "file"])
    worlds.assert_same("file")


def test_cpp_streams(worlds, programs):
    worlds.both(lambda directory: [programs / "streams", directory / "file"])
    worlds.assert_same("file")
