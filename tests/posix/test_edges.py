"""What programs do at the edges of the calls: edges.c."""

import pytest

from .conftest import cases


@pytest.mark.parametrize("case", cases("edges"))
def test_edges(worlds, programs, case):
    worlds.both(lambda directory: [programs / "edges", case, directory / "file"])
    worlds.assert_same("file")
