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


REMOVE = """
import os, shutil, sys
top = sys.argv[1]
os.makedirs(f"{top}/real/sub"); os.symlink("real", f"{top}/link")
for name in ("real/a", "real/b", "real/sub/c", "real/sub/d", "e"):
    open(f"{top}/{name}", "w").write("x")
os.unlink(f"{top}/link/a")
os.chdir(f"{top}/real"); os.remove("b")
dir_fd = os.open("sub", os.O_RDONLY); os.unlink("c", dir_fd=dir_fd); os.unlink("../../e", dir_fd=dir_fd)
for refused in ("missing", "sub"):
    try: os.unlink(refused)
    except OSError: pass
os.symlink("a", "dangling"); os.unlink("dangling")
shutil.rmtree("sub")
"""


def test_removed_files_are_recorded_however_they_are_named(stripewise, python, tmp_path):
    trace, top = tmp_path / "t.trace", tmp_path / "top"
    stripewise("trace", "-o", trace, "--", python, "-c", REMOVE, top)
    rows = [row for row in parquet.read_table(trace).to_pylist() if row["op"] == "unlink"]
    assert [row["file"] for row in rows] == [f"{top}/{name}" for name in ("real/a", "real/b", "real/sub/c", "e", "real/sub/d")]
    assert all(row["result"] == 0 and row["start_ns"] <= row["end_ns"] for row in rows)
    assert metadata(trace)["stripewise.complete"] == "true"


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


# Runs a command that cannot map files shared, as on a file system without the page cache: a filter
# makes mmap(MAP_SHARED) of a descriptor fail with ENODEV.
UNMAPPABLE = """
import ctypes, os, struct, sys
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, FLAGS, ALLOW, REFUSE, ENODEV = 0, 16 + 8 * 3, 0x7FFF0000, 0x50000, 19
mmap = {"x86_64": 9, "aarch64": 222}[os.uname().machine]
SHARED, ANONYMOUS = 1, 0x20
steps = [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 4, mmap), (LOAD, 0, 0, FLAGS), (SET, 2, 0, ANONYMOUS)]
steps += [(SET, 0, 1, SHARED), (RETURN, 0, 0, REFUSE | ENODEV), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def unmappable(python):
    """The command line that begins one of a command that cannot map files shared."""
    return [python, "-c", UNMAPPABLE]


def test_a_spool_that_cannot_be_mapped_is_refused_before_the_command_starts(unmappable, execute, bin_dir, tmp_path):
    trace = [bin_dir / "stripewise", "trace", "-o", tmp_path / "t", "--", "touch", tmp_path / "f"]
    refused = execute(*unmappable, *trace, ok=False)
    assert refused.code == 1 and f"{tmp_path}/t.spool" in refused.err, refused
    assert "cannot map files shared" in refused.err and "--spool" in refused.err
    assert list(tmp_path.iterdir()) == []
    execute(*trace)


def test_processes_that_could_not_be_recorded_make_the_trace_incomplete(unmappable, stripewise, tmp_path):
    done = stripewise("trace", "-o", tmp_path / "t", "--", *unmappable, "touch", tmp_path / "f")
    assert "1 processes could not be recorded (No such device" in done.err, done.err
    assert metadata(tmp_path / "t")["stripewise.complete"] == "false"
