"""What programs do at the edges of the calls: edges.c."""

import pytest

from copies import KINDS, write_plan

from .conftest import cases


@pytest.mark.parametrize("case", cases("edges"))
def test_edges(worlds, programs, case):
    worlds.both(lambda directory: [programs / "edges", case, directory / "file"])
    worlds.assert_same("file")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["cancel_in_calls", "processes_alone"])
def test_with_copies(cluster, programs, kind, case):
    """Files with copies have a thread of their own, and locks of LMDB's."""
    write_plan(cluster, kind)
    cluster.run(programs / "edges", case, cluster.data / "file")
