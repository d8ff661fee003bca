"""Raw system calls and io_uring on descriptors from the library: an error, and no damage."""

import pytest

from .conftest import cases

# Calls that do not write may succeed.
HARMLESS = ("fcntl", "get_")


@pytest.mark.parametrize("case", cases("bypass.c"))
def test_a_call_past_the_library_is_an_error_and_changes_nothing(prey, programs, case, count):
    result = prey.with_library(programs / "bypass", case, prey.path, prey.scratch)
    lines = result.out.splitlines()
    assert lines
    count("raw calls on descriptors of managed files", len(lines))
    wrote = [line for line in lines if line.endswith(" ok") and not line.startswith(HARMLESS)]
    assert wrote == []
    prey.assert_unharmed()
