"""Raw system calls and io_uring on descriptors that the library gave: an error, and no damage."""

import pytest

from .conftest import cases

COUNT = {"calls": 0}
# What does not write: it may succeed.
HARMLESS = ("fcntl", "get_")


@pytest.mark.parametrize("case", cases("bypass.c"))
def test_a_call_past_the_library_is_an_error_and_changes_nothing(prey, programs, case):
    result = prey.with_library(programs / "bypass", case, prey.path, prey.scratch)
    lines = result.out.splitlines()
    assert lines
    COUNT["calls"] += len(lines)
    wrote = [line for line in lines if line.endswith(" ok") and not line.startswith(HARMLESS)]
    assert wrote == []
    prey.assert_unharmed()


def test_the_cases_are_counted(capsys):
    with capsys.disabled():
        print(f"\nbypass: {COUNT['calls']} raw calls on descriptors of managed files")
