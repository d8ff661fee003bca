"""The recorder sees every request of real programs, compared with the requests that the programs
report."""

from collections import Counter

import pytest

parquet = pytest.importorskip("pyarrow.parquet")

DATA_OPS = ("read", "write")


def requests(trace, path):
    """The trace's data requests to a file: Counter of (rank, op, offset, bytes)."""
    rows = parquet.read_table(trace).to_pylist()
    data = [row for row in rows if row["file"] == str(path) and row["op"] in DATA_OPS]
    assert all(row["start_ns"] <= row["end_ns"] for row in data)
    return Counter((row["rank"], row["op"], row["offset"], row["result"]) for row in data)


def metadata(trace):
    """The footer's key-value pairs."""
    return {key.decode(): value.decode() for key, value in parquet.read_metadata(trace).metadata.items()}


def dry_run(mpi, ranks, *args):
    """The program's planned requests: Counter of (rank, op, offset, bytes)."""
    lines = mpi.run(ranks, "ior", *args, "--dry-run").out.splitlines()
    return Counter((int(r), op, int(o), int(n)) for r, op, o, n, _ in (line.split(maxsplit=4) for line in lines))


@pytest.mark.parametrize("api", ["posix", "mpiio"])
@pytest.mark.parametrize("shape", [["--access", "random"], ["--access", "strided"], ["-s", "3"]], ids=" ".join)
def test_every_request_of_an_mpi_program(mpi, stripewise, api, shape, tmp_path):
    path, trace = tmp_path / "f", tmp_path / "t.trace"
    args = ["-o", path, "-a", api, "-t", "16K", "-b", "256K", "-C", *shape]
    expected = dry_run(mpi, 4, *args)
    stripewise("trace", "-o", trace, "--", *mpi.command(4, "ior", *args))
    assert requests(trace, path) == expected
    assert metadata(trace)["stripewise.complete"] == "true"


def test_every_request_of_every_file_per_process(mpi, stripewise, tmp_path):
    trace = tmp_path / "t.trace"
    args = ["-o", tmp_path / "f", "-t", "16K", "-b", "256K", "-F"]
    expected = dry_run(mpi, 3, *args)
    stripewise("trace", "-o", trace, "--", *mpi.command(3, "ior", *args))
    found = sum((requests(trace, tmp_path / f"f.{rank:08}") for rank in range(3)), Counter())
    assert found == expected


def test_every_block_of_an_h5py_program(python, workloads, stripewise, tmp_path):
    path, trace = tmp_path / "d.h5", tmp_path / "t.trace"
    args = [python, workloads / "h5.py", "-o", path, "--total", "4M", "--block", "256K", "--verify"]
    stripewise("trace", "-o", trace, "--", *args)
    blocks = [r for r in requests(trace, path).elements() if r[3] == 256 << 10]
    for op in DATA_OPS:
        offsets = sorted(offset for _, o, offset, _ in blocks if o == op)
        assert len(offsets) == 16
        assert [b - a for a, b in zip(offsets, offsets[1:])] == [256 << 10] * 15, "the blocks of one contiguous dataset"


def test_collective_requests_cover_the_file(mpi, stripewise, tmp_path):
    """Two-phase I/O changes which process issues which request, but the bytes that move are the
    same."""
    path, trace = tmp_path / "f", tmp_path / "t.trace"
    args = ["-o", path, "-t", "16K", "-b", "256K", "--access", "strided", "--call", "view-all", "--op", "write"]
    stripewise("trace", "-o", trace, "--", *mpi.command(4, "ior", *args))
    written = bytearray(1 << 20)
    for _, op, offset, count in requests(trace, path).elements():
        if op == "write":
            written[offset : offset + count] = b"\x01" * count
    assert all(written)


ENDINGS = {
    "_exit": "os._exit(3)",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "abort": "os.abort()",
    "exec": "os.execvp('true', ['true'])",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_lost_however_a_process_ends(stripewise, python, tmp_path, ending):
    path, trace = tmp_path / "f", tmp_path / "t.trace"
    program = (
        "import os, signal, sys\n"
        "f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "for i in range(1000): os.pwrite(f, b'x' * 100, i * 100)\n" + ENDINGS[ending]
    )
    result = stripewise("trace", "-o", trace, "--", python, "-c", program, path, ok=False)
    assert trace.exists(), str(result)
    assert requests(trace, path) == Counter((rank_of(trace), "write", i * 100, 100) for i in range(1000))


def rank_of(trace):
    """The rank of a trace's only process: a program without MPI has none."""
    ranks = {row["rank"] for row in parquet.read_table(trace, columns=["rank"]).to_pylist()}
    assert len(ranks) == 1
    return ranks.pop()


def test_exit_code_of_the_program_is_passed_on(stripewise, python, tmp_path):
    for code in (0, 7):
        result = stripewise("trace", "-o", tmp_path / "t", "--", python, "-c", f"exit({code})", ok=False)
        assert result.code == code, str(result)
        assert metadata(tmp_path / "t")["stripewise.exit_code"] == str(code)
        assert ("--accept-failed" in result.err) == (code != 0), str(result)


def test_program_that_does_not_exist(stripewise, tmp_path):
    result = stripewise("trace", "-o", tmp_path / "t", "--", "/no/such/program", ok=False)
    assert result.code != 0 and "/no/such/program" in result.err
    assert not (tmp_path / "t").exists()
