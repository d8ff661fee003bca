"""The same random calls on a plain and on a managed file, in one process, with all results
compared."""

import pytest
from conftest import LONG, run_command

from .conftest import seeds

STEPS = 20000 if LONG else 3000


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_random_calls(layouts, programs, seed):
    """conform.c prints the call at which the results differ, and how to reproduce it."""
    page = ["page"] if layouts.name in ("striped", "one server") else []
    layouts.with_library(programs / "conform", layouts.plain, layouts.managed, seed, STEPS, *page)


def test_the_program_itself(worlds, programs):
    """Two plain directories behave alike, so any difference that conform finds comes from the
    library."""
    other = worlds.cluster.root / "other"
    other.mkdir()
    run_command(programs / "conform", worlds.plain, other, 1, STEPS, "page")


def test_while_recorded(worlds, programs, tmp_path):
    """The recorder sees everything and changes nothing."""
    spool = tmp_path / "spool"
    spool.mkdir()
    env = {"STRIPEWISE_TRACE_DIR": str(spool)}
    worlds.with_library(programs / "conform", worlds.plain, worlds.managed, 77, STEPS, "page", env=env)
    assert any(spool.iterdir())


@pytest.mark.parametrize("engine", ["uring", "threads", "serial"])
def test_engines(worlds, programs, engine):
    """The result does not depend on how the pieces of a request are executed."""
    env = {"STRIPEWISE_FANOUT": engine}
    worlds.with_library(programs / "conform", worlds.plain, worlds.managed, 5, STEPS, "page", env=env)
