"""How much of its caller's stack the library uses on plain files: signal handlers and small threads
have little."""

import pytest
from conftest import LIBRARY_NAME, run_command

from .conftest import HERE, WARNINGS
from .test_injection import plan_text

BUDGET_BYTES = 2048
# A call that uses too much does so in every run. The C library's aio_write starts a thread, which
# takes 4 KB, unless its previous one is still idle.
RUNS_MAX = 10
WAYS = {
    "library alone": lambda cluster, spool: {"STRIPEWISE_PLAN": ""},
    "with a plan": lambda cluster, spool: {"STRIPEWISE_PLAN": str(cluster.plan)},
    "recorded": lambda cluster, spool: {"STRIPEWISE_TRACE_DIR": str(spool)},
}


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    """The built program. It is bound at startup, because the loader's stack does not count as the
    library's."""
    program = tmp_path_factory.mktemp("stack") / "stack"
    run_command("gcc", *WARNINGS, "-Wl,-z,now", "-o", program, HERE / "stack.c", HERE / "calls.c", "-laio", "-pthread")
    return program


def depths(text):
    """Stack used by the first and by the second call, bytes, by call."""
    rows = [line.split(" ", 2) for line in text.splitlines()]
    return {label: (int(first), int(second)) for first, second, label in rows}


def over_budget(bare, loaded):
    """The stack that the library uses in addition, by call, where it is over the budget."""
    taken = {label: [with_it - without for with_it, without in zip(loaded[label], bare[label])] for label in bare}
    return {label: bytes_ for label, bytes_ in taken.items() if max(bytes_) > BUDGET_BYTES}


@pytest.mark.parametrize("way", WAYS)
def test_plain_calls_take_little_stack(stack, cluster, bin_dir, tmp_path, way):
    cluster.plan.write_text(plan_text(cluster, ""))
    plain, spool = tmp_path / "plain", tmp_path / "spool"
    plain.mkdir()
    spool.mkdir()
    env = {"LD_PRELOAD": str(bin_dir / LIBRARY_NAME), **WAYS[way](cluster, spool)}
    always = None
    for _ in range(RUNS_MAX):
        bare, loaded = depths(run_command(stack, plain).out), depths(run_command(stack, plain, env=env).out)
        assert loaded.keys() == bare.keys() and sum(max(pair) > 0 for pair in loaded.values()) > 100
        over = over_budget(bare, loaded)
        always = over if always is None else {label: over[label] for label in always.keys() & over.keys()}
        if not always:
            break
    assert always == {}
