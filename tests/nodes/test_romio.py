"""ROMIO's own tests (src/mpi/romio/test of MPICH's sources) over two nodes: striped files, and
files with copies, pass those that plain files pass.

STRIPEWISE_ROMIO is that directory; without it these tests are skipped. `make test-romio` sets it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BIN, run_command
from copies import KINDS
from worlds import CYCLES

from .conftest import ALL_NODES, compare_copies
from .test_jobs import LAYOUTS, launched

SOURCES = os.environ.get("STRIPEWISE_ROMIO")
NODES_OF_A_JOB = 2


@dataclass(frozen=True)
class Program:
    """How `runtests` of ROMIO calls a program."""

    ranks: int = 4
    words: tuple = ("-fname", "FILE")


ONLY_A_NAME = ("FILE",)
# Without large_file, large_array and coll_perf, which write gigabytes, perf, which only measures,
# external32 and syshints, which write to no file of this name, and the programs in Fortran.
PROGRAMS = {
    "simple": Program(),
    "psimple": Program(),
    "async": Program(),
    "async-multiple": Program(),
    "atomicity": Program(),
    "coll_test": Program(),
    "creat_excl": Program(),
    "excl": Program(),
    "file_info": Program(),
    "i_noncontig": Program(ranks=2),
    "noncontig": Program(ranks=2),
    "noncontig_coll": Program(ranks=2),
    "noncontig_coll2": Program(),
    "aggregation1": Program(words=("-h", "-f", "FILE")),
    "aggregation2": Program(words=ONLY_A_NAME),
    "hindexed": Program(words=ONLY_A_NAME),
    "big_extents": Program(words=ONLY_A_NAME),
    "misc": Program(),
    "shared_fp": Program(),
    "ordered_fp": Program(),
    "split_coll": Program(),
    "error": Program(ranks=1),
    "status": Program(ranks=1),
    "types_with_zeros": Program(ranks=2, words=ONLY_A_NAME),
    "darray_read": Program(words=ONLY_A_NAME),
}


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(name) -> a program of ROMIO's tests."""
    if not SOURCES:
        pytest.skip("no sources of ROMIO's tests: make test-romio")
    directory = tmp_path_factory.mktemp("romio")

    def compile_(name):
        source = next(path for path in (Path(SOURCES) / f"{name}.c", Path(SOURCES) / f"{name}.c.in") if path.exists())
        # The format of a `long long`, which ROMIO's configure fills in.
        (directory / f"{name}.c").write_text(source.read_text().replace("@LL@", "lld"))
        run_command("mpicc.mpich", "-w", "-o", directory / name, directory / f"{name}.c")
        return directory / name

    return compile_


# The file of a shared file pointer. Every rank deletes it when it has closed it; on files with
# copies that succeeds for the last one, and the library says of the others why it does not.
POINTER = ".f.shfp."


def outcome(done, path):
    """What a program said, in any order of its ranks, and its exit code."""
    lines = (done.out + done.err).replace(str(path), "FILE").splitlines()
    return done.code, sorted(line for line in lines if not (POINTER in line and "in use by node" in line))


def run_both(bed, worlds, binary, program):
    """Runs a program on a plain and on a managed file; what it says must be equal."""
    job = launched("mpirun", "mpich", ALL_NODES[: min(NODES_OF_A_JOB, program.ranks)], program.ranks)
    over_plan = [BIN / "stripewise", "run", "-p", worlds.cluster.plan, "--"]
    outcomes = []
    for before, path in ([], worlds.plain / "f"), (over_plan, worlds.managed / "f"):
        words = [path if word == "FILE" else word for word in program.words]
        outcomes.append(outcome(bed.on("node1", *job, *before, binary, *words, ok=False), path))
    assert outcomes[1] == outcomes[0]
    assert any("No Errors" in line for line in outcomes[0][1]), outcomes[0]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_striped_files_pass_what_plain_files_pass(bed, worlds_of, compiled, name, layout):
    run_both(bed, worlds_of(CYCLES[layout]), compiled(name), PROGRAMS[name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_shared_files_with_copies_pass_what_plain_files_pass(bed, shared_of, compiled, name, kind):
    binary, worlds = compiled(name), shared_of(kind)
    run_both(bed, worlds, binary, PROGRAMS[name])
    left = [file.name for file in worlds.managed.iterdir()]
    assert not [name for name in left if name.startswith(POINTER)]
    for name in left:
        compare_copies(bed, worlds, name)
