"""STRIPEWISE_STATISTICS and `stripewise run --statistics`: docs/formats/statistics.md."""

import json
import os
import re
from collections import Counter

import pytest
from conftest import ROOT, Tier, run_command

from .conftest import HERE, WARNINGS, Worlds
from .test_copies import COPIES, HDDS

PAGE = (ROOT / "docs" / "formats" / "statistics.md").read_text()
EXAMPLE = json.loads(re.search(r"```json\n(.*?)\n```", PAGE, re.S)[1])
WAYS = re.search(r"ways\[\] = \{(.*?)\}", (HERE / "ends.c").read_text(), re.S)[1]
WAYS = [way.strip().strip('"') for way in WAYS.split(",")]


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """The program that ends in many ways."""
    program = tmp_path_factory.mktemp("ends") / "ends"
    run_command("gcc", *WARNINGS, "-o", program, HERE / "ends.c", "-pthread")
    return program


@pytest.fixture
def replicas(cluster):
    """Managed files with three replicas."""
    return Worlds(cluster, HDDS, COPIES["replicas"])


@pytest.fixture
def cache(cluster):
    """Managed files with a cache that admits everything."""
    return Worlds(cluster, HDDS, COPIES["cache of everything"])


def lines(path):
    """The statistics in a file, one object per line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def total(found, key, copies=False):
    """The sum of a value over lines, or over all copies of all lines."""
    return sum(sum(copy[key] for copy in line["copies"]) if copies else line[key] for line in found)


def with_statistics(worlds, *args, **options):
    """Runs a command; returns its result and its statistics."""
    worlds.counts = True
    worlds.statistics.unlink(missing_ok=True)
    result = worlds.with_library(*args, **options)
    return result, worlds.counted()


def types(value):
    """The structure of a JSON value: its keys and types."""
    if isinstance(value, dict):
        return {key: types(inner) for key, inner in value.items()}
    return [types(value[0])] if isinstance(value, list) else type(value).__name__


def test_the_page_says_what_lines_are_like(cache, python):
    """The page gives the keys, their order and types, and the meaning of null."""
    script = "import sys; f = open(sys.argv[1], 'w+b', buffering=0); f.write(b'x' * 5000); f.seek(0); f.read(4000)"
    _, found = with_statistics(cache, python, "-c", script, cache.managed / "ä \"file\"", env={"PMI_RANK": "3"})
    assert len(found) == 1 and types(found[0]) == types(EXAMPLE), found
    table = re.findall(r"^\| `(.*?)` \| (.*?) \|", PAGE, re.M)
    top = [key for key, _ in table if not key.startswith("copies[]")]
    assert list(found[0]) == top == list(EXAMPLE)
    assert list(found[0]["copies"][0]) == [key.removeprefix("copies[].") for key, _ in table if key.startswith("copies[]")]
    line = found[0]
    assert line["path"] == str(cache.managed / "ä \"file\"") and re.fullmatch("[0-9a-f]{32}", line["file"])
    assert (line["rank"], line["kind"], line["mode"], line["requests"]) == (3, "cache", "nsca", 2)
    assert [c["name"] for c in line["copies"]] == ["original", "1-DH", "1-DV"]
    assert (total(found, "written_bytes", copies=True), total(found, "read_bytes", copies=True)) == (5000, 4000)


def test_replicas_have_no_mode(replicas, python):
    script = "import sys; f = open(sys.argv[1], 'w+b', buffering=0); f.write(b'x' * 5000)"
    environment = {name: "" for name in os.environ if "RANK" in name or "PROCID" in name}
    _, found = with_statistics(replicas, python, "-c", script, replicas.managed / "file", env=environment)
    assert [(line["kind"], line["mode"], line["rank"]) for line in found] == [("replicas", None, None)]
    # The close synchronized the two other replicas.
    assert Counter(c["copied_bytes"] for c in found[0]["copies"]) == {0: 1, 5000: 2}


@pytest.mark.parametrize("way", WAYS)
def test_every_end_is_counted(replicas, ends, way):
    """Every kind of end also leaves the data, the size, and synchronized copies."""
    _, found = with_statistics(replicas, ends, way, replicas.managed / "file")
    assert total(found, "requests") == 4, found
    assert total(found, "written_bytes", copies=True) == 4 * 4096
    assert all(line["path"] == str(replicas.managed / "file") for line in found)
    assert len({line["pid"] for line in found}) == (2 if way == "fork" else 1)
    assert replicas.content("file") == b"x" * 4 * 4096
    # Each copy is complete: its objects add up to the length of the file.
    sizes = Counter()
    for object in replicas.objects():
        if not {".extents", ".manifest"} & set(object.suffixes):
            sizes[object.name.split(".")[0]] += object.stat().st_size
    assert [size for size in sizes.values() if size > 0] == [4 * 4096] * 3, sizes


def test_who_is_killed_says_nothing(replicas, ends):
    result, found = with_statistics(replicas, ends, "kill", replicas.managed / "file", ok=False)
    assert result.code == -9 and found == []
    assert replicas.content("file") == b"x" * 4 * 4096


def test_files_with_one_copy_are_not_counted(worlds, ends):
    _, found = with_statistics(worlds, ends, "exit", worlds.managed / "file")
    assert found == [] and worlds.is_managed("file")


def test_processes_add_up(cache, workloads):
    """Every rank reports its own work; together they report all of it."""
    size = ["-t", "8K", "-b", "64K", "-s", 4]
    command = ["mpirun.mpich", "-n", 8, workloads / "mpich" / "ior", *size, "--verify", "-C", "-o", cache.managed / "file"]
    _, found = with_statistics(cache, *command)
    assert sorted({line["rank"] for line in found}) == list(range(8))
    assert total(found, "written_bytes", copies=True) == 8 * 4 * 64 << 10
    assert total(found, "read_bytes", copies=True) == 8 * 4 * 64 << 10
    assert total(found, "hits") + total(found, "partial_hits") <= total(found, "requests")


def test_run_sets_it(replicas, stripewise, ends):
    path = replicas.cluster.root / "s.jsonl"
    path.write_text("of an earlier run\n")
    command = ["run", "-p", replicas.cluster.plan, "--statistics", "s.jsonl", "--"]
    stripewise(*command, "sh", "-c", 'cd /; "$0" exit "$1"; "$0" _exit "$1"', ends, replicas.managed / "file", cwd=path.parent)
    assert total(lines(path), "requests") == 8
    stripewise(*command, "true", cwd=path.parent)
    assert path.read_text() == ""
    result = stripewise("run", "-p", replicas.cluster.plan, "--statistics", "/no/such/directory/s", "--", "true", ok=False)
    assert result.code == 1 and len(result.err.splitlines()) == 1 and "/no/such/directory/s" in result.err
    variables = stripewise("run", "-p", replicas.cluster.plan, "--statistics", "s.jsonl", "--print-env", "--json", cwd=path.parent).json()
    assert variables["STRIPEWISE_STATISTICS"] == str(path)


def test_a_file_that_cannot_be_written_to_is_said_once(replicas, ends):
    """The failure is logged once and is no error of the program."""
    env = {"STRIPEWISE_STATISTICS": "/no/such/directory/s"}
    result = replicas.with_library(ends, "exit", replicas.managed / "file", env=env)
    assert result.err.count("/no/such/directory/s") == 1 and len(result.err.splitlines()) == 1


class TestConcurrency:
    """The replica that a file per process is written to depends on the number of processes."""

    LAYOUTS = {"1-DH": '[{ cycle = "ssd/0-3:4K" }]', "1-DV": ", ".join(f'[{{ cycle = "ssd/{n}:64K" }}]' for n in range(4))}
    ALPHA, BETA = 1e-6, 1e-9

    @pytest.fixture
    def worlds(self, make_cluster):
        """1-DH is the original, 1-DV a replica."""
        replica = f'[[rule.copy]]\nkind = "replica"\nname = "1-DV"\nlayouts = [{self.LAYOUTS["1-DV"]}]\n'
        return Worlds(make_cluster([Tier("ssd", 4, self.ALPHA, self.BETA)]), self.LAYOUTS["1-DH"], replica)

    def cheapest(self, stripewise, procs):
        """The cheapest copy by the cost model, for requests of 16 KiB."""
        cost = ["cost", "--model", "cil", "--servers", 4, "--procs", procs, "--size", "16K", "--json", "--procs-per-node", procs]
        cost += ["--alpha", self.ALPHA, "--beta", self.BETA, "--establish", 0, "--per-byte", 0]
        cost = {layout: stripewise(*cost, "--layout", layout).json()["total_s"] for layout in self.LAYOUTS}
        return min(cost, key=cost.get)

    SCRIPT = r"""
import os, sys
name = sys.argv[1] + "." + next((os.environ[v] for v in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if v in os.environ), "0")
file = os.open(name, os.O_RDWR | os.O_CREAT)
for n in range(8):
    os.pwrite(file, b"x" * 16384, n * 16384 * 3)
"""

    def written(self, found):
        """The copies that were written to."""
        return {c["name"].replace("original", "1-DH") for line in found for c in line["copies"] if c["written_bytes"]}

    def test_the_launcher_says_p(self, worlds, stripewise, python):
        assert (self.cheapest(stripewise, 1), self.cheapest(stripewise, 8)) == ("1-DH", "1-DV")
        alone = {name: "" for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")}
        _, found = with_statistics(worlds, python, "-c", self.SCRIPT, worlds.managed / "alone", env=alone)
        assert self.written(found) == {"1-DH"}
        for mpirun in ("mpirun.mpich", "mpirun.openmpi"):
            _, found = with_statistics(worlds, mpirun, "-n", 8, python, "-c", self.SCRIPT, worlds.managed / mpirun)
            assert len(found) == 8 and self.written(found) == {"1-DV"}, found

    @pytest.mark.parametrize("learns", [False, True])
    def test_mpi_counts_more_than_the_launcher(self, worlds, workloads, learns):
        """Eight ranks of a launcher that reports 1."""
        library = workloads / "openmpi" / "libstripewise_mpi.so"
        env = {"LD_PRELOAD": f"{worlds.cluster.environment()['LD_PRELOAD']}:{library}"} if learns else {}
        says = ["env", "OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_LOCAL_SIZE=1"]
        ior = [workloads / "openmpi" / "ior", "-F", "-a", "posix", "-t", "16K", "-b", "128K", "--access", "random", "--op", "write"]
        _, found = with_statistics(worlds, "mpirun.openmpi", "-n", 8, *says, *ior, "-o", worlds.managed / "file", env=env)
        assert len(found) == 8 and self.written(found) == {"1-DV" if learns else "1-DH"}, found
