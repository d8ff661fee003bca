"""Dry runs of the programs, and synthetic traces of the same runs."""

import pytest

from conftest import Mpi, run_command

parquet = pytest.importorskip("pyarrow.parquet")

NOWHERE = "/nowhere/f"


def by_rank(rows):
    """{(op, rank): [(offset, length), ...]} of (rank, op, offset, length) in order."""
    found = {}
    for rank, op, offset, length in rows:
        found.setdefault((op, int(rank)), []).append((int(offset), int(length)))
    return found


@pytest.fixture(scope="session")
def dry_run(workloads):
    """dry_run(program, ranks, *flags) -> by_rank of a dry run; one process stands for all ranks."""

    def run(program, ranks, *flags, mpi="mpich"):
        args = ["--file", NOWHERE, f"--dry-run={ranks}", *flags]
        lines = run_command(workloads / mpi / program, *args).out.splitlines()
        rows = [line.split() for line in lines]
        assert {row[4].split(".")[0] for row in rows} == {NOWHERE}
        return by_rank(row[:4] for row in rows)

    return run


@pytest.fixture
def synth(stripewise, tmp_path):
    """synth(program, *flags) -> by_rank of the data requests of a synthetic trace."""

    def run(program, *flags):
        trace = tmp_path / "synthetic"
        stripewise("synth", program, *flags, "--file", NOWHERE, "-o", trace)
        rows = sorted(parquet.read_table(trace).to_pylist(), key=lambda row: row["start_ns"])
        data = [row for row in rows if row["op"] in ("read", "write")]
        return by_rank((row["rank"], row["op"], row["offset"], row["size"]) for row in data)

    return run


@pytest.fixture
def mpich(workloads):
    """The MPI for tests that do not depend on the choice."""
    return Mpi("mpich", workloads)
