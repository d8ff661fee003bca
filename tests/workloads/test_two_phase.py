"""ROMIO's two-phase I/O: the aggregators' requests in a real collective run are those of
`stripewise synth --collective`."""

import pytest
from conftest import run_command

from .cases import btio, hpio, tile
from .conftest import by_rank, parquet

# Sizes at which domains end in holes, and buffers do not divide domains.
CASES = [
    hpio(2, 5, 1000, 100, True),
    hpio(3, 5, 1000, 100, False),
    hpio(3, 5, 1000, 0, True),
    tile((2, 2), (4, 5), 100, (1, 2), 77),
    btio(4, "S"),
]


def in_order(found):
    """{op: [the requests of each process that made any]}. Which processes are aggregators depends
    on the nodes."""
    return {op: [found[key] for key in sorted(found) if key[0] == op] for op in ("read", "write")}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_aggregators_of_a_real_run(mpich, stripewise, synth, case, tmp_path):
    path, trace = tmp_path / "f", tmp_path / "t.trace"
    run = [case.program, "-o", path, *case.flags]
    buffer = 4096 if case.program != "btio" else 30000
    hints = {"cb_nodes": 2, "cb_buffer_size": buffer, "cb_config_list": "*:*", "romio_cb_write": "enable"}
    hints = [word for hint in [*hints.items(), ("romio_cb_read", "enable")] for word in ("--hint", "%s=%s" % hint)]
    collective = ["--collective"] if case.program != "btio" else []
    run_command(*mpich.command(case.ranks, *run, "--op", "write"))  # so that no read is cut at the file's end
    stripewise("trace", "-o", trace, "--", *mpich.command(case.ranks, *run, *collective, *hints))
    rows = sorted(parquet.read_table(trace).to_pylist(), key=lambda row: row["start_ns"])
    data = [row for row in rows if row["file"] == str(path) and row["op"] in ("read", "write") and row["result"]]
    procs = ["--procs", case.ranks] if case.program != "tile" else []
    said = synth(case.program, *procs, *case.flags, *collective, "--cb-nodes", 2, "--cb-buffer-size", buffer)
    assert in_order(by_rank((row["rank"], row["op"], row["offset"], row["result"]) for row in data)) == in_order(said)
