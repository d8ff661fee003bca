"""Runs of hpio, tile and btio with both MPIs: they make the requests that the dry run lists, write
the right bytes to the right places, detect wrong ones, and run over layouts."""

import json
from collections import Counter

import numpy as np
import pytest
from conftest import run_command

from . import derive

parquet = pytest.importorskip("pyarrow.parquet")

HPIO = ["--regions", 5, "--region-size", 1000]
TILE = ["--tiles-x", 3, "--tiles-y", 2, "--elements-x", 4, "--elements-y", 5, "--element-size", 100]

# Program, ranks, flags, requests of each rank (as many calls as there are dumps).
INDEPENDENT = {
    "hpio": ("hpio", 3, [*HPIO, "--spacing", 7, "--type", "nc-nc"], derive.hpio(3, 5, 1000, 7, True)),
    "hpio own": ("hpio", 4, [*HPIO, "--spacing", 24], derive.hpio(4, 5, 1000, 24)),
    "tile": ("tile", 6, [*TILE, "--overlap-x", 1, "--overlap-y", 2, "--header", 77],
             derive.tile((3, 2), (4, 5), 100, (1, 2), 77)),
    "btio": ("btio", 9, ["--grid", 11, "--steps", 6, "--subtype", "simple"], derive.btio(9, 11, 2)),
}
COLLECTIVE = {
    "hpio": ("hpio", 2, [*HPIO, "--spacing", 100, "--interleaved", "--collective"], derive.hpio(2, 5, 1000, 100, True)),
    "hpio by region": ("hpio", 2, [*HPIO, "--call", "region", "--collective"], derive.hpio(2, 5, 1000)),
    "hpio memory": ("hpio", 2, [*HPIO, "--spacing", 9, "--type", "nc-c"], derive.hpio(2, 5, 1000)),
    "tile": ("tile", 6, [*TILE, "--overlap-x", 3, "--collective"], derive.tile((3, 2), (4, 5), 100, (3, 0))),
    "tile by row": ("tile", 6, [*TILE, "--call", "row", "--collective"], derive.tile((3, 2), (4, 5), 100)),
    "btio": ("btio", 4, ["--grid", 7, "--steps", 12], derive.btio(4, 7, 3)),
}


def check_bytes(path, requests, seed=1):
    """The file has the pattern where a rank wrote, and zeros elsewhere. NumPy alone checks this."""
    mask = derive.covered(requests)
    found = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    expected = np.frombuffer(derive.content(len(mask), seed), dtype=np.uint8) * mask
    assert np.array_equal(found, expected)


def bytes_of(requests):
    """Bytes of the requests of all ranks."""
    return sum(length for own in requests.values() for _, length in own)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_traced_requests_are_those_of_the_benchmark(mpi, stripewise, name, tmp_path):
    program, ranks, flags, requests = INDEPENDENT[name]
    path, trace = tmp_path / "f", tmp_path / "t.trace"
    run = mpi.command(ranks, program, "-o", path, *flags, "--verify", "--json")
    stripewise("trace", "-o", trace, "--", *run)
    rows = [row for row in parquet.read_table(trace).to_pylist() if row["file"] == str(path) and row["result"]]
    data = [row for row in rows if row["op"] in ("read", "write")]
    expected = {rank: own if program == "btio" else derive.joined(own) for rank, own in requests.items()}
    assert Counter((row["rank"], row["op"], row["offset"], row["result"]) for row in data) == Counter(
        (rank, op, *piece) for rank, own in expected.items() for op in ("write", "read") for piece in own
    )
    check_bytes(path, requests)


@pytest.mark.parametrize("name", COLLECTIVE)
def test_every_byte_of_collective_and_packed_runs(mpi, name, tmp_path):
    program, ranks, flags, requests = COLLECTIVE[name]
    path = tmp_path / "f"
    result = mpi.run(ranks, program, "-o", path, *flags, "--seed", 5, "--fsync", "--verify", "--json").json()
    assert [phase["op"] for phase in result["phases"]] == ["write", "read"]
    assert all(phase["bytes"] == bytes_of(requests) and phase["elapsed_s"] > 0 for phase in result["phases"])
    assert all(len(phase["rank_s"]) == ranks for phase in result["phases"])
    assert (result["program"], result["ranks"], result["seed"]) == (program, ranks, 5)
    assert (result["verified_bytes"], result["wrong_bytes"]) == (bytes_of(requests), 0)
    check_bytes(path, requests, seed=5)


WRITES = {"hpio": INDEPENDENT["hpio"], "tile": INDEPENDENT["tile"], "btio": COLLECTIVE["btio"]}


@pytest.mark.parametrize("name", WRITES)
def test_one_wrong_byte_is_found(mpich, name, tmp_path):
    program, ranks, flags, requests = WRITES[name]
    path = tmp_path / "f"
    run = ["-o", path, *flags, "--json"]
    mpich.run(ranks, program, *run, "--op", "write")
    data = bytearray(path.read_bytes())
    wrong = int(np.flatnonzero(derive.covered(requests))[-7])
    data[wrong] ^= 0x10
    path.write_bytes(data)
    result = mpich.run(ranks, program, *run, "--op", "read", "--verify", ok=False)
    sharing = sum(offset <= wrong < offset + length for own in requests.values() for offset, length in own)
    assert result.code == 1 and f"the first at byte {wrong}" in result.err, str(result)
    assert json.loads(result.out.splitlines()[0])["wrong_bytes"] == sharing
    assert path.read_bytes() == data, "reading changes nothing"


def test_the_data_of_another_seed_are_other_data(mpich, tmp_path):
    run = ["-o", tmp_path / "f", *HPIO, "--verify"]
    mpich.run(1, "hpio", *run, "--op", "write")
    assert mpich.run(1, "hpio", *run, "--op", "read", "--seed", 2, ok=False).code == 1


def test_a_file_that_is_too_short_is_said(workloads, tmp_path):
    """Runs without mpirun, which may lose a message when a rank ends the job."""
    run = [workloads / "mpich" / "hpio", "-o", tmp_path / "f", "--region-size", 1000]
    run_command(*run, "--regions", 5, "--op", "write")
    result = run_command(*run, "--regions", 9, "--op", "read", ok=False)
    assert result.code != 0 and "write it first" in result.err


@pytest.mark.parametrize("name", ["hpio", "tile", "btio"])
def test_over_a_striped_plan(mpi, stripewise, cluster, name, tmp_path):
    program, ranks, flags, requests = {**INDEPENDENT, "tile": COLLECTIVE["tile"]}[name]
    path, trace = cluster.data / "f", tmp_path / "t.trace"
    synth = ["synth", "ior", "--procs", 4, "--transfer", "1K", "--total", "256K", "--shared", "--file", path]
    stripewise(*synth, "-o", trace)
    stripewise("plan", trace, "-c", cluster.toml, "--scheme", "1-DH", "--min-gain", "none", "-o", cluster.plan)
    run = mpi.command(ranks, program, "-o", path, *flags, "--verify", "--json")
    result = stripewise("run", "-p", cluster.plan, "--", *run)
    assert json.loads(result.out.splitlines()[0])["verified_bytes"] == bytes_of(requests)
    assert path.read_bytes().startswith(b"stripewise file"), "the file must be managed"
    stripewise("export", path)
    check_bytes(path, requests)


def test_computing_is_told_apart(mpich, tmp_path):
    flags = ["--grid", 6, "--steps", 12, "--compute", 0.01, "--verify", "--json"]
    for how in ("sleep", "busy"):
        result = mpich.run(1, "btio", "-o", tmp_path / "f", *flags, "--compute-by", how).json()
        write, read = result["phases"]
        assert 0.12 <= write["compute_s"] < write["elapsed_s"], "12 time steps: 5, 5 and 2 before the dumps"
        assert read["compute_s"] < 0.12, "reading back computes nothing"
        assert result["wrong_bytes"] == 0


def test_hints_reach_mpi_io(mpich, stripewise, tmp_path):
    """ROMIO's data sieving is off unless requested. With it, a rank writes whole ranges, including
    the bytes it read in between."""
    path, trace = tmp_path / "f", tmp_path / "t.trace"
    flags = [*HPIO, "--spacing", 7, "--interleaved", "--op", "write", "--verify", "--hint", "romio_ds_write=enable"]
    stripewise("trace", "-o", trace, "--", *mpich.command(2, "hpio", "-o", path, *flags))
    longest = max(row["result"] for row in parquet.read_table(trace).to_pylist() if row["op"] == "write")
    assert longest > 1000


@pytest.mark.parametrize("within", ["file", "block"])
def test_ior_deals_out_every_byte(mpich, within, tmp_path):
    """As in IOR, a rank may get no transfer at all."""
    args = ["-t", "1K", "-b", "1K", "-s", 3, "--access", "random", "--random-within", within, "--order", 3]
    result = mpich.run(4, "ior", "-o", tmp_path / "f", *args, "-C", "--verify", "--json").json()
    assert (result["verified_bytes"], result["wrong_bytes"]) == (12 << 10, 0)
    assert (tmp_path / "f").read_bytes() == derive.content(12 << 10)


def test_ior_files_of_their_own_have_their_own_bytes(mpich, tmp_path):
    mpich.run(3, "ior", "-o", tmp_path / "f", "-F", "-t", 1000, "-b", 5000, "--op", "write", "--seed", 9)
    for rank in range(3):
        assert (tmp_path / f"f.{rank:08}").read_bytes() == derive.content(5000, seed=9, file=rank + 1)
