"""Programs at the edges of the calls: edges.c."""

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
    """Files with copies involve a thread of their own, and locks of LMDB."""
    write_plan(cluster, kind)
    cluster.run(programs / "edges", case, cluster.data / "file")


def test_a_removed_file_in_another_program(worlds):
    """A program that inherits the descriptor of a removed file cannot reach its bytes, and gets an
    error."""
    result = worlds.with_library("sh", "-c", 'exec 3<>"$0"; echo x >&3; rm "$0"; cat <&3', worlds.managed / "file", ok=False)
    assert result.code != 0 and "Input/output error" in result.err
    assert "was removed; only programs that had opened it themselves by then can use it" in result.err, result
