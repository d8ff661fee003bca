"""The requests of hpio, tile, btio and ior are those of the original benchmarks: the programs,
`stripewise synth` and an independent derivation agree."""

import pytest
from conftest import LONG, MPIS

from .cases import cases
from .derive import covered, joined, tile

EVERY = list(cases(40 if LONG else 2))


def both(expected):
    """Converts a dict by rank to one by (op, rank), for writes and reads."""
    return {(op, rank): own for op in ("write", "read") for rank, own in expected.items()}


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_program_synth_and_derivation_agree(case, dry_run, synth):
    one_by_one = both(case.expected)
    at_once = {key: joined(own, case.calls) for key, own in one_by_one.items()}
    assert dry_run(case.program, case.ranks, *case.flags, *case.by_piece) == one_by_one
    assert dry_run(case.program, case.ranks, *case.flags) == at_once
    if not case.in_synth:
        return
    flags = {"hpio": [], "tile": [], "btio": ["--subtype", "simple"]}[case.program]
    flags += ["--procs", case.ranks] if case.program != "tile" else []
    expected = at_once if case.program == "tile" else one_by_one  # mpi-tile-io itself makes one call through a view
    assert synth(case.program, *case.flags, *flags) == expected


@pytest.mark.parametrize("case", [EVERY[0], EVERY[6], EVERY[8]], ids=str)
def test_both_builds_say_the_same(case, dry_run):
    said = [dry_run(case.program, case.ranks, *case.flags, mpi=mpi) for mpi in MPIS]
    assert said[0] == said[1]


def test_the_picture_of_hpio(dry_run):
    """HPIO's --help, --region_spacing: 0___1___0___1 for 2 processes, 2 regions of 1 byte, spacing
    3."""
    flags = ["--regions", 2, "--region-size", 1, "--spacing", 3, "--op", "write"]
    assert dry_run("hpio", 2, *flags, "--type", "c-nc") == {("write", 0): [(0, 1), (8, 1)], ("write", 1): [(4, 1), (12, 1)]}
    assert dry_run("hpio", 2, *flags, "--type", "c-c") == {("write", 0): [(0, 2)], ("write", 1): [(2, 2)]}
    apart = dry_run("hpio", 2, *flags, "--type", "nc-c")
    assert apart[("write", 0)] == [(0, 1), (1, 1)], "what lies apart in memory is not one piece"


def test_the_real_flags_of_mpi_tile_io(dry_run):
    real = ["--nr_tiles_x", 3, "--nr_tiles_y", 2, "--sz_tile_x", 5, "--sz_tile_y", 4, "--sz_element", 7, "--overlap_x", 2]
    real += ["--overlap_y", 1, "--header_bytes", 100, "--op", "read"]
    expected = tile((3, 2), (5, 4), 7, (2, 1), 100)
    assert dry_run("tile", 6, *real) == {("read", rank): own for rank, own in expected.items()}


def test_btio_writes_every_byte_once(dry_run):
    found = dry_run("btio", 16, "--class", "W", "--steps", 5, "--op", "write")
    assert covered({rank: own for (_, rank), own in found.items()}).all()
    assert sum(length for own in found.values() for _, length in own) == 24**3 * 40


IOR = [
    (5, ("--transfer", 100, "--block", 3700, "--segments", 3), 12345),
    (96, ("--transfer", "64K", "--block", "1M"), 7),
]


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own-files"])
@pytest.mark.parametrize("within", [None, "file", "block"])
@pytest.mark.parametrize(("ranks", "shape", "seed"), IOR, ids=lambda value: str(value))
def test_ior_is_synth_ior(ranks, shape, seed, within, shared, dry_run, synth):
    order = ["--access", "random", "--random-within", within, "--order", seed] if within else []
    program = dry_run("ior", ranks, *shape, *order, *([] if shared else ["-F"]))
    order = ["--access", "random", "--random-within", within.replace("block", "own"), "--seed", seed] if within else []
    assert program == synth("ior", "--procs", ranks, *shape, *order, *(["--shared"] if shared else []))


def test_ior_strided_is_synth_ior(dry_run, synth):
    program = dry_run("ior", 6, "--transfer", 5000, "--block", 25000, "--access", "strided")
    assert program == synth("ior", "--procs", 6, "--transfer", 5000, "--segments", 5, "--access", "strided", "--shared")


def test_ior_reads_what_a_rank_of_the_next_node_wrote(dry_run):
    found = dry_run("ior", 6, "--transfer", "1K", "--block", "4K", "--access", "random", "--reorder=2")
    assert all(found["read", rank] == found["write", (rank + 2) % 6] for rank in range(6))
