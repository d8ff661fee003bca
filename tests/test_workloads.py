"""The workloads themselves: their request streams are as specified, and verification finds damage.
"""

import json
import re
from collections import Counter

import pytest

KIB = 1024
APIS = ["posix", "mpiio"]


def stream(mpi, ranks, *args):
    """The dry run's requests: [(rank, op, offset, length, path)]."""
    lines = mpi.run(ranks, "ior", "--file", "/nowhere/f", "--dry-run", *args).out.splitlines()
    return [(int(r), op, int(offset), int(length), path) for r, op, offset, length, path in map(str.split, lines)]


def offsets(requests, rank, op="write"):
    """One rank's offsets in the order of access."""
    return [offset for r, o, offset, _, _ in requests if (r, o) == (rank, op)]


def test_sequential_is_segments_of_blocks_of_transfers(mpi):
    requests = stream(mpi, 2, "-t", "1K", "-b", "2K", "-s", "2", "--op", "write")
    assert offsets(requests, 0) == [0, 1 * KIB, 4 * KIB, 5 * KIB]
    assert offsets(requests, 1) == [2 * KIB, 3 * KIB, 6 * KIB, 7 * KIB]
    assert {length for *_, length, _ in requests} == {KIB}


def test_strided_deals_transfers_out(mpi):
    requests = stream(mpi, 3, "-t", "1K", "-b", "2K", "--access", "strided", "--op", "read")
    assert offsets(requests, 1, "read") == [1 * KIB, 4 * KIB]


def test_random_touches_every_transfer_once(mpi):
    args = ["-t", "4K", "-b", "64K", "-s", "3", "--access", "random", "--op", "write"]
    requests = stream(mpi, 4, *args)
    assert sorted(offset for _, _, offset, _, _ in requests) == [4 * KIB * i for i in range(4 * 16 * 3)]
    assert Counter(rank for rank, *_ in requests) == {rank: 48 for rank in range(4)}
    assert requests == stream(mpi, 4, *args), "the same seed must give the same stream"
    assert requests != stream(mpi, 4, *args, "--seed", "2")
    assert offsets(requests, 0) != sorted(offsets(requests, 0))


def test_another_order_of_the_same_data(mpi, tmp_path):
    args = ["-o", tmp_path / "f", "-t", "4K", "-b", "64K", "--access", "random"]
    mpi.run(2, "ior", *args, "--op", "write")
    result = mpi.run(2, "ior", *args, "--op", "read", "--order", "7", "--verify", "--json").json()
    assert (result["seed"], result["order"], result["wrong_bytes"]) == (1, 7, 0)
    dealt = ["-t", "4K", "-b", "64K", "--access", "random", "--op", "read"]
    assert offsets(stream(mpi, 2, *dealt, "--order", "7"), 0, "read") != offsets(stream(mpi, 2, *dealt), 0, "read")


def test_reorder_reads_what_the_next_rank_wrote(mpi):
    requests = stream(mpi, 3, "-t", "1K", "-b", "4K", "--access", "random", "--reorder")
    for rank in range(3):
        assert offsets(requests, rank, "read") == offsets(requests, (rank + 1) % 3, "write")


def test_file_per_process_names_and_offsets(mpi):
    requests = stream(mpi, 2, "-t", "1K", "-b", "2K", "-s", "2", "-F", "--op", "write")
    assert offsets(requests, 1) == [0, 1 * KIB, 2 * KIB, 3 * KIB]
    assert {(rank, path) for rank, *_, path in requests} == {
        (0, "/nowhere/f.00000000"),
        (1, "/nowhere/f.00000001"),
    }


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("shape", [[], ["-F"], ["--access", "random"], ["--access", "strided"]], ids=" ".join)
def test_write_and_read_verify(mpi, api, shape, tmp_path):
    args = ["-o", tmp_path / "f", "-a", api, "-t", "5000", "-b", "20000", "-s", "2", "-C", "-e", "--verify", "--json"]
    result = mpi.run(4, "ior", *args, *shape).json()
    assert [phase["op"] for phase in result["phases"]] == ["write", "read"]
    assert all(phase["bytes"] == 160000 and phase["elapsed_s"] > 0 for phase in result["phases"])
    assert (result["verified_bytes"], result["wrong_bytes"]) == (160000, 0)
    assert all(len(phase["rank_s"]) == 4 for phase in result["phases"])
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) == 160000


@pytest.mark.parametrize("call", ["all", "nonblocking", "view", "view-all"])
def test_all_calls_write_the_same_file(mpi, call, tmp_path):
    args = ["-t", "1000", "-b", "6000", "--access", "strided", "--verify"]
    mpi.run(3, "ior", "-o", tmp_path / "at", *args)
    mpi.run(3, "ior", "-o", tmp_path / "other", "--call", call, *args)
    assert (tmp_path / "at").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("damage", ["flip", "swap", "shift"])
def test_verification_finds_damage(mpi, damage, tmp_path):
    path = tmp_path / "f"
    args = ["-o", path, "-t", "1K", "-b", "8K", "--access", "random"]
    mpi.run(2, "ior", *args, "--op", "write")
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[9000] ^= 1
    elif damage == "swap":
        data[0:1024], data[4096:5120] = data[4096:5120], data[0:1024]
    else:
        data[:] = data[8:] + data[:8]
    path.write_bytes(data)
    result = mpi.run(2, "ior", *args, "--op", "read", "--verify", "--json", ok=False)
    assert result.code != 0
    assert "wrong bytes" in result.err
    if damage == "flip":
        assert "the first at byte 9000" in result.err
        assert json.loads(result.out.splitlines()[0])["wrong_bytes"] == 1


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["-t", "7", "-b", "10"], "--block"),
        (["-t", "0"], "--transfer"),
        (["-t", "12Q"], "12Q"),
        (["-t", "-5"], "-5"),
        (["-s", "0"], "--segments"),
        (["--access", "sideways"], "sideways"),
        (["-F", "--access", "strided"], "--file-per-process"),
        (["-a", "posix", "--call", "all"], "--api mpiio"),
        (["--call", "view", "--access", "random"], "ascending"),
        (["-b", "8G", "--verify"], "memory"),
        (["extra"], "extra"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_bad_flags_are_one_clear_line(mpi, args, word, tmp_path):
    result = mpi.run(2, "ior", "-o", tmp_path / "f", *args, ok=False)
    said = [line for line in result.err.splitlines() if line.startswith("ior:")]
    assert result.code != 0
    assert len(said) == 1 and word in said[0], str(result)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("chunk", [[], ["--chunk", "64K"]], ids=["contiguous", "chunked"])
@pytest.mark.parametrize("procs", [1, 3])
def test_h5py_round_trip(python, workloads, chunk, procs, tmp_path, execute):
    args = ["-o", tmp_path / "d.h5", "--total", "1M", "--block", "128K", "--procs", procs, "--verify", "--json"]
    result = execute(python, workloads / "h5.py", *args, *chunk, "--access", "random", "--fsync").json()
    assert (result["verified_bytes"], result["wrong_bytes"]) == (procs << 20, 0)
    assert len(list(tmp_path.iterdir())) == procs


def test_h5py_finds_damage(python, workloads, tmp_path, execute):
    path = tmp_path / "d.h5"
    args = [python, workloads / "h5.py", "-o", path, "--total", "1M", "--block", "128K"]
    execute(*args, "--op", "write")
    data = bytearray(path.read_bytes())
    data[-5000] ^= 1
    path.write_bytes(data)
    result = execute(*args, "--op", "read", "--verify", ok=False)
    assert result.code != 0 and "8 wrong bytes" in result.err


def test_h5py_says_which_file_is_missing(python, workloads, tmp_path, execute):
    args = ["-o", tmp_path / "none.h5", "--procs", 2, "--op", "read"]
    result = execute(python, workloads / "h5.py", *args, ok=False)
    # Either process may be the first to miss its file.
    assert result.code != 0 and re.search(r"none\.[01]\.h5", result.err) and "Traceback" not in result.err
