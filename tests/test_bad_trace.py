"""Damaged and incomplete traces are rejected by `plan`."""

import pytest

from bad_input import Unchanged, assert_refused

DAMAGES = {
    "empty": lambda data: b"",
    "no Parquet": lambda data: b"rank,offset\n0,1\n",
    "cut in half": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "footer damaged": lambda data: data[:-12] + b"\xff" * 4 + data[-8:],
    "pages damaged": lambda data: data[:100] + bytes(b ^ 0x5A for b in data[100:300]) + data[300:],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_trace(stripewise, cluster, trace, name):
    trace.write_bytes(DAMAGES[name](trace.read_bytes()))
    for args in (["plan", trace, "-c", cluster.toml, "-o", cluster.plan], ["trace", "--summary", trace]):
        with Unchanged(cluster.root):
            result = stripewise(*args, ok=False)
        assert_refused(result, trace.name)


def test_parquet_file_that_is_no_trace(stripewise, cluster):
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    other = cluster.root / "other.parquet"
    parquet.write_table(arrow.table({"x": [1, 2, 3]}), other)
    with Unchanged(cluster.root):
        result = stripewise("plan", other, "-c", cluster.toml, "-o", cluster.plan, ok=False)
    assert_refused(result, "other.parquet", "trace")


def test_missing_trace(stripewise, cluster):
    with Unchanged(cluster.root):
        result = stripewise("plan", cluster.root / "none.trace", "-c", cluster.toml, "-o", cluster.plan, ok=False)
    assert_refused(result, "none.trace")


def test_directory_for_a_trace(stripewise, cluster):
    with Unchanged(cluster.root):
        result = stripewise("plan", cluster.data, "-c", cluster.toml, "-o", cluster.plan, ok=False)
    assert_refused(result, "data")
