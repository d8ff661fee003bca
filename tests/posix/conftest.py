"""Programs on plain files, and the same programs on managed files with the library: results and
bytes must be equal."""

from pathlib import Path

import pytest
from conftest import LONG, run_command
from worlds import CYCLES, Worlds

HERE = Path(__file__).resolve().parent
WARNINGS = ["-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-result"]


@pytest.fixture
def worlds(cluster):
    """Plain and managed files; the latter in stripes of 4K and 8K."""
    return Worlds(cluster)


@pytest.fixture(params=CYCLES)
def layouts(cluster, request):
    """Plain and managed files; the latter in each of several layouts."""
    worlds = Worlds(cluster, CYCLES[request.param])
    worlds.name = request.param
    return worlds


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The directory of the built programs."""
    directory = tmp_path_factory.mktemp("programs")

    def build(compiler, source, *flags, to=None):
        run_command(*compiler, "-o", directory / (to or Path(source).stem), HERE / source, *flags)

    build(["gcc", *WARNINGS], "conform.c")
    build(["gcc", *WARNINGS], "robust.c", "-pthread", "-ldl")
    build(["gcc", *WARNINGS], "sharing.c", "-pthread")
    build(["gcc", *WARNINGS], "processes.c", "-pthread")
    build(["gcc", *WARNINGS], "handlers.c", "-pthread")
    build(["gcc", *WARNINGS], "edges.c", "-pthread", "-ldl")
    build(["gcc", *WARNINGS], "asynchronous.c", "-pthread", "-laio")
    build(["gcc", *WARNINGS, "-D_FORTIFY_SOURCE=2", "-O2"], "formatted.c")
    build(["g++", *WARNINGS], "streams.cpp")
    for mpi in ("mpich", "openmpi"):
        build([f"mpicc.{mpi}", *WARNINGS], "mpi.c", to=f"mpi.{mpi}")
        build([f"mpifort.{mpi}", "-O1"], "fortran.f90", to=f"fortran.{mpi}")
    return directory


def cases(program):
    """The names of a program's cases, from its source."""
    source = (HERE / f"{program}.c").read_text()
    table = source[source.index("static const struct test tests[]") :]
    return [line.split('"')[1] for part in table.split("{")[2:] if '"' in part for line in [part]]


# Case of operations on descriptors, processes, threads and signals -> the program that has
# the case.
PROGRAM_OF = {case: program for program in ("robust", "sharing", "processes") for case in cases(program)}


def seeds(quick, long):
    """The seeds of the random runs."""
    return range(1, 1 + (long if LONG else quick))
