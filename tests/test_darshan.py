"""Darshan logs: the reader finds in them what PyDarshan finds, and the commands take them as traces."""

import json
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bad_input import assert_refused
from conftest import DARSHAN_LOGS, ROOT, run_command

pytest.importorskip("darshan")

LOGS = list(DARSHAN_LOGS)
# More logs than PyDarshan brings along, such as a checkout of darshan-hpc/darshan-logs.
MORE = os.environ.get("STRIPEWISE_DARSHAN_LOGS")
LOGS += sorted(path for path in Path(MORE).rglob("*.darshan") if path.stat().st_size) if MORE else []
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


@pytest.fixture(scope="session")
def example():
    """The reader's examples, by name."""
    build = ["cargo", "build", "-q", "--profile", "test", "-p", "stripewise-darshan", "--examples"]
    subprocess.run(build, cwd=ROOT, check=True)
    return lambda name: TARGET / "debug" / "examples" / name


def found(*command):
    """The lines of a program that prints a log, those of names apart: the first that is not empty
    counts. Darshan's library sorts mounts."""
    names, others = {}, []
    for line in map(json.loads, run_command(*command).out.splitlines()):
        if "is" in line:
            names[line["name"]] = names.get(line["name"]) or line["is"]
        else:
            others.append(line)
        if "mounts" in line:
            line["mounts"].sort()
    return names, others


def swapped(number):
    return struct.unpack(">Q", struct.pack("<Q", number))[0]


def as_the_library_says(lines, is_big_endian):
    """The lines with the defects of Darshan's library 3.5.0. Where `darshan-posix-logutils.c` makes
    records of version 4 of older ones, it loses the last numbers, and of those of the other byte
    order it leaves three times as they are. `darshan-logutils.c` does not swap the flags of partial
    modules, and finds no command without mounts."""
    version = next((line["version"] for line in lines if line.get("module") == "POSIX"), 4)
    lost = {2: 4, 3: 2}.get(version, 0)
    for line in lines:
        if line.get("of") == "POSIX":
            line["f"][17 - lost :] = [0] * lost
            if version < 4 and is_big_endian:
                line["f"][10:13] = map(swapped, line["f"][10:13])
        if "partial" in line and is_big_endian:
            line["partial"] = False
        if line.get("mounts") == []:
            line["command"] = ""
    return lines


def in_order(lines):
    """The lines by module, each module's in the order of the log."""
    return sorted(lines, key=lambda line: (sorted(line)[-1], str(line.get("of") or line.get("dxt"))))


def assert_equal(log, example):
    is_big_endian = log.read_bytes()[8:16] == struct.pack(">q", 6567223)
    names, lines = found(example("dump"), log)
    expected_names, expected = found(sys.executable, ROOT / "tests" / "pydarshan.py", log)
    assert names == expected_names
    assert in_order(as_the_library_says(lines, is_big_endian)) == in_order(expected)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_log_is_read_as_pydarshan_reads_it(example, log):
    assert_equal(log, example)


@pytest.fixture(scope="session")
def samples(example, tmp_path_factory):
    """A directory with logs of all formats, byte orders, compressions and versions of records."""
    directory = tmp_path_factory.mktemp("samples")
    run_command(example("samples"), directory)
    return directory


@pytest.mark.parametrize("age", range(4))
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("version", ["3.00", "3.10", "3.20", "3.21", "3.41"])
def test_logs_of_all_formats_are_read_as_pydarshan_reads_them(example, samples, version, order, age):
    log = samples / f"{version}-{order}-zlib-{age}.darshan"
    assert_equal(log, example)
    # PyDarshan's library cannot read bzip2.
    for compression in ("bzip2", "none"):
        other = samples / log.name.replace("zlib", compression)
        assert found(example("dump"), other) == found(example("dump"), log)


def transferred(lines):
    """The bytes that a log counts: Counter of (file id, operation). Of layers of calls on a file,
    the lowest counts."""
    fields = {"POSIX": (14, 15), "STDIO": (7, 6)}
    posix = {line["ids"][0] for line in lines if line.get("of") == "POSIX"}
    counted = Counter()
    for line in (line for line in lines if line.get("of") in ("POSIX", "STDIO", "MPI-IO")):
        if line["of"] == "MPI-IO" and line["ids"][0] in posix:
            continue
        read, written = fields.get(line["of"], (14, 15))
        counted[line["ids"][0], "read"] += line["n"][read]
        counted[line["ids"][0], "write"] += line["n"][written]
    return counted


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_trace_of_a_log_has_the_bytes_that_the_log_counts(stripewise, example, log, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    names, lines = found(example("dump"), log)
    expected = Counter()
    for (file, op), count in transferred(lines).items():
        name = names.get(file) or f"darshan-record-{file:016x}"
        if name != "<STDIN>" and count > 0:
            expected[name, op] += count
    stripewise("trace", "--from", log, "-o", tmp_path / "t", "-q")
    rows = parquet.read_table(tmp_path / "t", columns=["file", "op", "result"])
    sums = rows.group_by(["file", "op"]).aggregate([("result", "sum")]).to_pylist()
    data = {(row["file"], row["op"]): row["result_sum"] for row in sums if row["op"] in ("read", "write")}
    if "DXT lacks" in parquet.read_metadata(tmp_path / "t").metadata[b"stripewise.incomplete"].decode():
        expected = Counter({file: min(count, data[file]) for file, count in expected.items()})
    assert +Counter(data) == expected


# A small log of counters, and one with DXT, of those that PyDarshan brings along.
COUNTERS = next(log for log in LOGS if log.name == "sample-goodost.darshan")
EXTENDED = next(log for log in LOGS if log.name == "ior_hdf5_example.darshan")


def test_a_summary_says_what_is_guessed(stripewise):
    counters = stripewise("trace", "--summary", COUNTERS)
    assert f"{COUNTERS} (Darshan counters)" in counters.out
    assert "guessed, since the log has no extended trace (DXT)" in " ".join(counters.out.split())
    extended = stripewise("trace", "--summary", EXTENDED, "--json").json()
    assert extended["origin"] == "Darshan DXT" and extended["complete"]
    assert "reads and writes only" in extended["notes"][0]


def test_a_log_is_planned_and_reported_as_a_trace(stripewise, cluster):
    plan = stripewise("plan", EXTENDED, "-c", cluster.toml, "-o", cluster.plan)
    assert f"{EXTENDED}: guessed" in " ".join(plan.out.split())
    stripewise("report", "-t", EXTENDED, "-p", cluster.plan, "-o", cluster.root / "r.html")
    page = (cluster.root / "r.html").read_text()
    assert "Darshan DXT" in page and "no program ran" not in page


def test_a_log_that_is_cut_off_is_an_incomplete_trace(stripewise, cluster):
    log = cluster.root / "cut.darshan"
    log.write_bytes(EXTENDED.read_bytes()[:-1])
    shown = stripewise("trace", "--summary", log).out
    assert "INCOMPLETE: module" in shown and "is cut off after" in shown
    assert_refused(stripewise("plan", log, "-c", cluster.toml, "-o", cluster.plan, ok=False), "cut.darshan", "incomplete")


def test_a_log_without_its_job_is_refused(stripewise, tmp_path):
    log = tmp_path / "short.darshan"
    for size in (20, 400):
        log.write_bytes(EXTENDED.read_bytes()[:size])
        assert_refused(stripewise("trace", "--summary", log, ok=False), "short.darshan")


def test_what_is_no_log_is_refused_by_name(stripewise, tmp_path):
    other = tmp_path / "other.darshan"
    other.write_text("no log\n")
    refused = stripewise("trace", "--from", other, "-o", tmp_path / "t", ok=False)
    assert_refused(refused, "other.darshan", "is not a Darshan log")
    assert not (tmp_path / "t").exists()
