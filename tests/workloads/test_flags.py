"""The programs' flags: a help text that names them all, and one-line errors with value
and remedy."""

import re

import pytest
from conftest import run_command

from .conftest import NOWHERE

PROGRAMS = ["ior", "hpio", "tile", "btio"]

BAD = [
    ("ior", 2, ["--random-within", "rows"], ["rows", "even, file, block"]),
    ("ior", 2, ["--access", "random", "--random-within", "file", "--call", "all"], ["--random-within even"]),
    ("ior", 2, ["-t", "100", "-b", "1000", "--api", "direct"], ["--transfer"]),
    ("hpio", 2, ["--regions", "0"], ["--regions 0"]),
    ("hpio", 2, ["--region-size", "2G"], ["--region-size 2147483648"]),
    ("hpio", 2, ["--type", "c-d"], ["'c-d'", "c-c, nc-c, c-nc, nc-nc"]),
    ("hpio", 2, ["--type", "c-c", "--interleaved"], ["leave out --interleaved"]),
    ("hpio", 2, ["--regions", "1M", "--region-size", "1G", "--spacing", "3G"], ["--spacing 3221225472"]),
    ("hpio", 1, ["--regions", "1M", "--region-size", "4K", "--op", "write"], ["4294967296 bytes per rank", "more ranks"]),
    ("hpio", 2, ["--hint", "nothing"], ["'nothing' is not KEY=VALUE"]),
    ("tile", 2, ["--tiles-x", "3"], ["3 x 1 tiles need 3 ranks, but there are 2", "mpirun -n 3"]),
    ("tile", 2, ["--tiles-y", "2", "--elements-y", "4", "--overlap-y", "4"], ["--overlap-y 4"]),
    ("tile", 2, ["--tiles-x", "2", "--elements-x", "2000M"], ["more than MPI counts"]),
    ("tile", 1, ["--element-size", "0"], ["--element-size 0"]),
    ("tile", 1, ["--elements-x", "1000M", "--elements-y", "1000M", "--element-size", "1K"], ["2^62", "smaller"]),
    ("btio", 3, [], ["3 ranks", "square"]),
    ("btio", 4, ["--grid", "5"], ["5 points in 2 cells", "fewer ranks"]),
    ("btio", 1, ["--class", "F"], ["'F'", "S, W, A, B, C, D, E"]),
    ("btio", 1, ["--steps", "0"], ["--steps 0"]),
    ("btio", 1, ["--compute", "long"], ["'long'", "0.25"]),
    ("btio", 1, ["--class", "D"], ["2716692480 bytes per rank", "more ranks"]),
    ("btio", 1, ["--dry-run=0"], ["--dry-run=0"]),
]


@pytest.mark.parametrize(("program", "ranks", "flags", "words"), BAD, ids=str)
def test_bad_flags_are_one_clear_line(workloads, program, ranks, flags, words, tmp_path):
    """A dry run of one process reports the error for any number of ranks. Errors that only a run
    detects are provoked by a run."""
    dry = [f"--dry-run={ranks}"] if ranks > 1 else []
    result = run_command(workloads / "mpich" / program, "-o", tmp_path / "f", *dry, *flags, ok=False)
    said = [line for line in result.err.splitlines() if line.startswith(f"{program}:")]
    assert result.code == 1 and len(said) == 1, str(result)
    assert all(word in said[0] for word in words), said[0]
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_teaches(workloads, program):
    text = run_command(workloads / "mpich" / program, "--help").out
    for flag in ["--file", "--op", "--hint", "--fsync", "--seed", "--verify", "--json", "--dry-run", "mpirun"]:
        assert flag in text
    assert max(map(len, text.splitlines())) <= 120
    source = (workloads.parent / "workloads" / f"{program}.c").read_text()
    own = re.findall(r'\{"([\w-]+)", (?:required|no|optional)_argument', source)
    assert own and all(f"--{flag}" in text for flag in own), "every flag is explained"


def test_examples_of_the_help_are_possible(workloads):
    """Dry-runs the commands in the help text."""
    for program in PROGRAMS:
        text = run_command(workloads / "mpich" / program, "--help").out.replace("\\\n", " ")
        examples = re.findall(rf"mpirun -n (\d+) {program} (-o .*?)(?:  |\n|$)", text.split("example", 1)[1] + "\n")
        assert examples
        for ranks, flags in examples:
            if "--class C" in flags:
                continue  # millions of lines
            flags = flags.replace("/scratch/f", NOWHERE).split() + (["--regions", 8] if program == "hpio" else [])
            assert run_command(workloads / "mpich" / program, *flags, "--op", "write", f"--dry-run={ranks}").out
