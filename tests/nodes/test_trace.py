"""Traces of jobs on several nodes: one trace for all, with clocks that agree."""

import pytest
from conftest import BIN, BUILD, MPIS

from .conftest import NODES
from .test_jobs import launched

parquet = pytest.importorskip("pyarrow.parquet")

AHEAD_S = 90
# Where the real time of a process's start is in its spool (crates/trace/src/spool.rs).
START_REALTIME = 40


def rows(trace):
    """The reads and writes by (node, rank), each as [(op, offset, start in ns), ...]."""
    found = {}
    for row in parquet.read_table(trace).to_pylist():
        if row["op"] in ("read", "write") and row["rank"] >= 0:
            found.setdefault((row["node"], row["rank"]), []).append((row["op"], row["offset"], row["start_ns"]))
    return found


def set_ahead(spool, node, seconds):
    """What the spool would be if the clock of a node were ahead."""
    changed = list(spool.glob(f"{node}-*.live"))
    for live in changed:
        data = bytearray(live.read_bytes())
        was = int.from_bytes(data[START_REALTIME : START_REALTIME + 8], "little")
        assert abs(was / 1e9 - live.stat().st_mtime) < 3600, "the field is where this test says"
        data[START_REALTIME : START_REALTIME + 8] = (was + seconds * 10**9).to_bytes(8, "little")
        live.write_bytes(data)
    assert changed


@pytest.mark.parametrize("mpi", MPIS)
def test_clocks_that_are_apart_are_aligned(bed, place, mpi):
    if not bed.has_slurm:
        pytest.skip("mpirun of Open MPI does not pass the environment on; no Slurm: tools/setup.sh nodes")
    file, trace = place / "f", place / "trace"
    spool = bed.base / place.name if bed.is_ceph else place / "spool"
    program = [BUILD / mpi / "ior", "--file", file, "-t", "64K", "-b", "256K"]
    record = [BIN / "stripewise", "trace", "--only", file, "--spool", spool, "--keep-spool", "-o", trace, "--"]
    bed.on("node1", *record, *launched("srun", mpi, NODES), *program)
    right = rows(trace)
    assert {node for node, _ in right} <= set(NODES) and len({node for node, _ in right}) > 1
    victim = sorted(node for node, _ in right)[-1]
    set_ahead(spool, victim, AHEAD_S)
    merged = bed.on("node1", BIN / "stripewise", "trace", "--merge", spool, "-o", place / "aligned")
    assert f"the clock of {victim} was 9" in merged.err or f"the clock of {victim} was 8" in merged.err, merged.err
    aligned = rows(place / "aligned")
    assert {key: [row[:2] for row in calls] for key, calls in aligned.items()} == {key: [row[:2] for row in calls] for key, calls in right.items()}
    begin = min(calls[0][2] for calls in aligned.values())
    assert max(calls[-1][2] for calls in aligned.values()) - begin < AHEAD_S * 10**9 / 2


def test_a_spool_on_a_file_system_that_maps_no_files_is_refused(bed, place):
    if not bed.is_ceph:
        pytest.skip("this file system maps files")
    refused = bed.on("node1", BIN / "stripewise", "trace", "-o", place / "trace", "--", "touch", place / "f", ok=False)
    assert refused.code == 1 and f"{place}/trace.spool" in refused.err and "--spool" in refused.err, refused
    assert list(place.iterdir()) == []
