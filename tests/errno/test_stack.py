"""What the library takes of its caller's stack on plain files: signal handlers and small threads have little."""

import pytest
from conftest import LIBRARY_NAME, run_command

from .conftest import HERE, WARNINGS
from .test_errno import plan_text

BUDGET_BYTES = 2048
WAYS = {
    "library alone": lambda cluster, spool: {"STRIPEWISE_PLAN": ""},
    "with a plan": lambda cluster, spool: {"STRIPEWISE_PLAN": str(cluster.plan)},
    "recorded": lambda cluster, spool: {"STRIPEWISE_TRACE_DIR": str(spool)},
}


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    """The built program. Bound at its start: the loader's stack is not the library's."""
    program = tmp_path_factory.mktemp("stack") / "stack"
    run_command("gcc", *WARNINGS, "-Wl,-z,now", "-o", program, HERE / "stack.c", HERE / "calls.c", "-laio", "-pthread")
    return program


def depths(text):
    """Bytes of the first and of the second call, by call."""
    rows = [line.split(" ", 2) for line in text.splitlines()]
    return {label: (int(first), int(second)) for first, second, label in rows}


@pytest.mark.parametrize("way", WAYS)
def test_plain_calls_take_little_stack(stack, cluster, bin_dir, tmp_path, way):
    cluster.plan.write_text(plan_text(cluster, ""))
    plain, spool = tmp_path / "plain", tmp_path / "spool"
    plain.mkdir()
    spool.mkdir()
    bare = depths(run_command(stack, plain).out)
    env = {"LD_PRELOAD": str(bin_dir / LIBRARY_NAME), **WAYS[way](cluster, spool)}
    loaded = depths(run_command(stack, plain, env=env).out)
    assert loaded.keys() == bare.keys() and sum(max(pair) > 0 for pair in loaded.values()) > 100
    taken = {label: [with_it - without for with_it, without in zip(loaded[label], bare[label])] for label in bare}
    assert {label: bytes_ for label, bytes_ in taken.items() if max(bytes_) > BUDGET_BYTES} == {}
