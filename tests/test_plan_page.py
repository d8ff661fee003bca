"""What `plan` prints of real programs: short, and about their data only."""

import json
import re

import pytest

COLUMNS, LINES = 80, 24

# Data in two files, and beside it what a job also writes and reads.
JOB = """
import os, sys
with open("settings.ini") as settings:
    settings.read()
for number in range(2):
    with open(f"out{number}.dat", "wb", buffering=0) as file:
        for _ in range(32):
            file.write(bytes(65536))
with open("run.log", "w") as log:
    for step in range(100):
        print("step", step, file=log, flush=True)
for step in range(100):
    print("step", step, flush=True)
    print("warning", step, file=sys.stderr, flush=True)
"""


@pytest.fixture
def job(tmp_path, python, stripewise, cluster):
    """The trace of a shell job whose output is in files."""
    (tmp_path / "settings.ini").write_text("[all]")
    (tmp_path / "job.py").write_text(JOB)
    trace = tmp_path / "t.trace"
    stripewise("trace", "-o", trace, "--", "sh", "-c", f"{python} job.py > job.out 2> messages", cwd=tmp_path)
    return trace


def test_only_data_is_planned(job, stripewise, cluster, tmp_path):
    planned = stripewise("plan", job, "-c", cluster.toml, "-o", cluster.plan, "--json").json()
    assert [files["pattern"] for files in planned["files"]] == [f"{escaped(tmp_path)}/out<n>.dat"]
    others = planned["left_out"]
    assert others["files"] >= 4 and 0 < others["ns"] < others["all_ns"]
    page = stripewise("plan", job, "-c", cluster.toml, "-o", cluster.plan).out
    assert f"\n{others['files']} other files stay as they are" in page
    for name in ("job.out", "messages", "run.log", "settings.ini"):
        assert name not in page + cluster.plan.read_text(), name


def test_the_promise_is_held_against_the_trace(python, stripewise, cluster, tmp_path):
    """A program that sleeps, and reads what memory has: slow servers are no reason for its time."""
    trace, slow = tmp_path / "t.trace", tmp_path / "slow.toml"
    (cluster.data / "f.dat").write_bytes(bytes(1 << 20))
    script = "import os, sys, time\nfd = os.open(sys.argv[1], os.O_RDONLY)\nfor n in range(16): os.pread(fd, 65536, 65536 * n)\ntime.sleep(0.3)"
    stripewise("trace", "-o", trace, "--", python, "-c", script, cluster.data / "f.dat")
    slow.write_text(re.sub(r"(startup_s = [^,]+, per_byte_s = )[^,} ]+", r"\g<1>1e-5", cluster.text()))
    page = " ".join(stripewise("plan", trace, "-c", slow, "-o", cluster.plan).out.split())
    said = re.search(r"reads, writes and syncs for ([\d.]+) s of a run of ([\d.]+) s, so no layout makes the run more than ([\d.]+) times", page)
    io_s, run_s, factor = map(float, said.groups())
    assert run_s > 0.3 and factor == pytest.approx(run_s / (run_s - io_s), abs=0.02)
    assert "No promise: the model says" in page and not re.search(r"saves [\d.]+ |% less", page)
    assert re.search(r"\S+ is planned, without a promise \(", page) and "without a promise" in cluster.plan.read_text()
    planned = stripewise("plan", trace, "-c", slow, "-o", cluster.plan, "--json").json()
    (traced,) = planned["traced"]
    assert planned["promise"]["saves"] is None and planned["promise"]["limit"] == 0.25
    assert planned["promise"]["traced_s"] == pytest.approx(io_s, abs=1e-3)
    assert traced["wall_s"] == pytest.approx(run_s, abs=1e-3) and traced["busiest"]["ns"] / 1e9 == pytest.approx(io_s, abs=1e-3)
    synthetic = tmp_path / "synthetic"
    stripewise("synth", "ior", "--procs", 2, "--transfer", "64K", "--total", "1M", "--file", cluster.data / "g", "-o", synthetic)
    page = stripewise("plan", synthetic, "-c", slow, "-o", cluster.plan).out
    assert "No promise" not in page and "of a run of" not in page, "nothing was measured"


WRITES_AND_READS = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for number in range(16):
    os.pwrite(fd, bytes(65536), 65536 * number)
os.fsync(fd)
for number in range(9):
    os.pread(fd, 4096, 65536 * (number * 7 % 16))
os.close(fd)
"""


def test_each_kind_of_request_is_held_against_the_trace(python, stripewise, cluster, tmp_path):
    trace, predictions, page = tmp_path / "t.trace", tmp_path / "p.json", tmp_path / "page.html"
    stripewise("trace", "-o", trace, "--", python, "-c", WRITES_AND_READS, cluster.data / "f.dat")
    words = ("plan", trace, "-c", cluster.toml, "-o", cluster.plan)
    predictions.write_text(stripewise(*words, "--json").out)
    planned = json.loads(predictions.read_text())
    compared = planned["files"][0]["compared"]
    kinds = [(kind["op"], kind["access"], kind["requests"], kind["bytes"]) for kind in compared["kinds"]]
    assert sorted(kinds) == [("read", "random", 9, 9 << 12), ("write", "sequential", 16, 1 << 20)]
    promise = planned["promise"]
    assert sum(kind["traced_s"] for kind in compared["kinds"]) + compared["flush_s"] == pytest.approx(promise["traced_s"], rel=1e-3)
    assert sum(kind["model_s"] for kind in compared["kinds"]) == pytest.approx(promise["model_s"], rel=1e-3)
    said = stripewise(*words, "--candidates").out
    (writes,) = [kind for kind in compared["kinds"] if kind["op"] == "write"]
    assert f"16 × write of 64K, in order; 1 process at a time, up to 1 per node; traced {writes['traced_s']:.3f} s, model {writes['model_s']:.3f} s\n" in said
    assert f"\n  syncs and closes; traced {compared['flush_s']:.3f} s, in the model a part of the writes\n" in said
    stripewise("report", "-t", trace, "-p", cluster.plan, "--predictions", predictions, "-o", page)
    assert "The model against the trace" in page.read_text() and "Syncs and closes: " in page.read_text()
    synthetic = tmp_path / "synthetic"
    stripewise("synth", "ior", "--procs", 2, "--transfer", "64K", "--total", "1M", "--file", cluster.data / "g", "-o", synthetic)
    (files,) = stripewise("plan", synthetic, "-c", cluster.toml, "-o", cluster.plan, "--json").json()["files"]
    assert "compared" not in files, "nothing was measured"


FIT = "startup_s = 0.02, per_byte_s = 1e-8, startup_spread_s = 1e-6, per_byte_spread_s = 1e-12, residual_relative = 0.02, samples = 99, outliers = 0"


def test_what_memory_served_cannot_gain(python, stripewise, cluster, tmp_path):
    """The servers take 20 ms for a read, which the page cache does in microseconds."""
    trace, profile = tmp_path / "t.trace", tmp_path / "profile.toml"
    (cluster.data / "f.dat").write_bytes(bytes(1 << 20))
    script = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nfor n in range(16): os.pread(fd, 65536, 65536 * n)"
    stripewise("trace", "-o", trace, "--", python, "-c", script, cluster.data / "f.dat")
    kinds = "\n".join(f"{op}.{access} = {{ {FIT} }}" for op in ("read", "write") for access in ("random", "sequential"))
    of_class = "".join(f'\n[class.{name}]\ntarget = "{name}/0"\ndirect_io = true\n{kinds}\n' for name in ("hdd", "ssd"))
    profile.write_text('version = 1\ndate = "2026-01-01T00:00:00Z"\nmethod = "by hand"\n' + of_class)
    words = ("plan", trace, "-c", cluster.toml, "--profile", profile, "-o", cluster.plan)
    (files,) = stripewise(*words, "--json").json()["files"]
    # A read may lose its processor.
    assert files["memory"]["requests"] >= 12 and files["memory"]["bytes"] >= 12 << 16
    assert files["requests"] + files["memory"]["requests"] == 16
    page = " ".join(stripewise(*words).out.split())
    assert f"Memory served {files['memory']['requests']} of 16 requests, as their durations show" in page
    if files["requests"] == 0:
        assert files["keep"] and "memory served all 16 requests" in page


def test_files_that_differ_in_a_hash_have_one_rule(python, stripewise, cluster, tmp_path):
    names = ["0a1b2c3d4e5f60718293a4b5c6d7e8f9", "f9e8d7c6b5a493827160f5e4d3c2b1a0", "550e8400-e29b-41d4-a716-446655440000"]
    script = "import sys\nfor name in sys.argv[1:]: open(name, 'wb').write(bytes(1 << 20))"
    trace = tmp_path / "t.trace"
    stripewise("trace", "-o", trace, "--", python, "-c", script, *(cluster.data / f"{name}.bin" for name in names))
    planned = stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan, "--json").json()
    assert [(files["pattern"], files["count"]) for files in planned["files"]] == [(f"{escaped(cluster.data)}/*.bin", 3)]
    assert "placed: 3" in stripewise("place", cluster.plan).out


def test_what_is_named_is_planned_whatever_it_is(job, stripewise, cluster, tmp_path):
    pattern = f"{escaped(tmp_path)}/*.log"
    planned = stripewise("plan", job, "-c", cluster.toml, "-o", cluster.plan, "--only", pattern, "--json").json()
    assert [files["pattern"] for files in planned["files"]] == [f"{escaped(tmp_path)}/run.log"]
    output = f"{escaped(tmp_path)}/job.out"
    planned = stripewise("plan", job, "-c", cluster.toml, "-o", cluster.plan, "--only", output, "--json").json()
    assert [files["pattern"] for files in planned["files"]] == [output]
    assert planned["files"][0]["requests"] >= 100 and "other file" not in stripewise("plan", job, "-c", cluster.toml, "-o", cluster.plan, "--only", output).out


def test_a_trace_without_data_says_so(python, stripewise, cluster, tmp_path):
    trace = tmp_path / "t.trace"
    stripewise("trace", "-o", trace, "--", "sh", "-c", "echo text > only.log", cwd=tmp_path)
    said = stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan, ok=False)
    assert said.code == 1 and "--only" in said.err and "logs" in said.err


@pytest.mark.parametrize("program", ["job", "h5py", "mpi"])
def test_the_page_fits_a_terminal(program, request, stripewise, cluster, python, workloads, tmp_path):
    trace = tmp_path / "t.trace"
    if program == "job":
        trace = request.getfixturevalue("job")
    elif program == "h5py":
        stripewise("trace", "-o", trace, "--", python, workloads / "h5.py", "-o", cluster.data / "f.h5")
    else:
        ior = [workloads / "mpich" / "ior", "-o", cluster.data / "f", "-t", "64K", "-b", "1M", "--access", "random"]
        stripewise("trace", "-o", trace, "--", "mpirun.mpich", "-n", 4, *ior)
    lines = stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan).out.splitlines()
    paths = (str(cluster.toml), str(cluster.plan))  # are not broken
    assert len(lines) <= LINES, lines
    assert [line for line in lines if len(line) > COLUMNS and not line.endswith(paths)] == []
    assert lines[0].startswith(("All files together: ", "No promise: "))


def escaped(path):
    """The pattern of a directory: digits match any number."""
    pattern = ""
    for letter in json.dumps(str(path))[1:-1]:
        pattern += letter if not letter.isdigit() else "" if pattern.endswith("<n>") else "<n>"
    return pattern
