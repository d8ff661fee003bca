"""Signal handlers that use managed files, whatever the signal interrupted: handlers.c."""

import pytest
from conftest import LONG, run_command

from copies import KINDS, write_plan

from .conftest import cases

CASES = cases("handlers")
# Number of handler runs that interrupt the intended call.
COUNT = {"HANDLERS_COUNT": "5000" if LONG else "500"}


@pytest.mark.parametrize("case", CASES)
def test_one_copy(worlds, programs, case):
    worlds.both(lambda directory: [programs / "handlers", case, directory / "file"], env=COUNT)
    worlds.assert_same("file")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_several_copies(cluster, programs, case, kind):
    write_plan(cluster, kind)
    # The process ends only after a piece of background work, which has a lower priority than the
    # rest.
    result = cluster.run(programs / "handlers", case, cluster.data / "file", env=COUNT, timeout=600)
    assert result.out == "done\n"


@pytest.mark.parametrize("engine", ["uring", "threads", "serial"])
@pytest.mark.parametrize("case", ["in_malloc_open", "in_malloc_first", "in_calls"])
def test_engines(worlds, programs, case, engine):
    """Handlers do not start the threads of the fan-out."""
    result = worlds.with_library(programs / "handlers", case, worlds.managed / "file", env={**COUNT, "STRIPEWISE_FANOUT": engine})
    assert result.out == "done\n"


@pytest.mark.parametrize("case", CASES)
def test_plain_files_of_a_recorded_program(bin_dir, programs, tmp_path, case):
    """The library only records, which does not allocate either."""
    (tmp_path / "trace").mkdir()
    env = {"LD_PRELOAD": str(bin_dir / "libstripewise_posix.so"), "STRIPEWISE_TRACE_DIR": str(tmp_path / "trace"), **COUNT}
    result = run_command(programs / "handlers", case, tmp_path / "file", env=env)
    assert result.out == "done\n"
