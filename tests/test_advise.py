"""`stripewise advise`: on every log that PyDarshan brings along a verdict of five lines that fit, with
the facts that PyDarshan reads; on traces of programs; and clear errors."""

import json
import re
import shutil

import pytest

from bad_input import assert_refused
from conftest import DARSHAN_LOGS, ROOT

LABELS = ["Slow:", "Why:", "Type:", "Gain:", "Sure:"]
WIDTH = 80
# Commands that must not be in an advice for another file system.
COMMANDS = {"lustre": "lfs ", "beegfs": "beegfs ", "cephfs": "setfattr ", "orangefs": "pvfs2-xattr "}


def quoted():
    """The verdicts on the page of examples, by the name of the log in the heading above."""
    page = (ROOT / "docs" / "advise-examples.md").read_text()
    sections = re.findall(r"^## \d+\. `([^`]+)`\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    return {name: re.search(r"```text\n(.*?)\n```", text, re.DOTALL)[1].splitlines() for name, text in sections}


QUOTED = quoted()


def test_ten_logs_are_judged():
    assert len(QUOTED) == 10
    page = (ROOT / "docs" / "advise.md").read_text()
    [block] = re.findall(r"```text\n\$ stripewise advise job.darshan\n(.*?)\n```", page, re.DOTALL)
    assert block.splitlines() == QUOTED["sample-badost.darshan"]
    names = {log.name for log in DARSHAN_LOGS}
    assert not names or set(QUOTED) <= names


def log_named(name):
    """A log that PyDarshan brings along."""
    found = [log for log in DARSHAN_LOGS if log.name == name]
    if not found:
        pytest.skip("PyDarshan is not installed")
    return found[0]


def verdict(out):
    """The five lines, by label."""
    lines = out.splitlines()[:5]
    assert [line.split()[0] for line in lines] == LABELS, out
    assert all(len(line) <= WIDTH for line in lines), out
    assert out.splitlines()[5] == "", out
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}


def commands(out):
    """The lines that can be pasted: each follows a comment."""
    lines = out.splitlines()
    return [after.strip() for line, after in zip(lines, lines[1:]) if line.startswith("     # ")]


# The largest logs take the planner some time, so text and JSON are those of one log each.
@pytest.mark.parametrize("log", DARSHAN_LOGS, ids=lambda log: log.name)
def test_every_log_gets_a_verdict(stripewise, log):
    result = stripewise("advise", log, "-q")
    found = verdict(result.out)
    assert QUOTED.get(log.name, result.out.splitlines()[:5]) == result.out.splitlines()[:5]
    assert re.match(r"(high|fair|low): ", found["Sure:"])
    assert result.err == ""
    wide = [line for line in result.out.splitlines() if len(line) > WIDTH]
    assert all(line.startswith("     ") for line in wide), "only commands are wide"
    pasted = "\n".join(commands(result.out))
    assert not re.search(r"POOL\(|ADDR\(|<n>|\(none\)", pasted), "commands have no placeholders"


@pytest.mark.parametrize("log", {log.name: log for log in DARSHAN_LOGS}.values(), ids=lambda log: log.name)
def test_the_json_has_the_facts_of_the_text_and_of_pydarshan(stripewise, log):
    darshan = pytest.importorskip("darshan")
    advice = stripewise("advise", log, "-q", "--fs", "local", "--json").json()
    text = stripewise("advise", log, "-q", "--fs", "local").out
    assert text.splitlines()[:5] == advice["lines"]
    report = darshan.DarshanReport(str(log), read_all=False)
    job = advice["job"]
    assert job["processes"] == report.metadata["job"]["nprocs"]
    assert job["runtime_s"] == pytest.approx(report.metadata["job"]["run_time"], abs=0.01)
    # All bytes are in data files, or left out. Those of MPI-IO become system calls.
    moved = 0
    for module, names in (("POSIX", "POSIX_BYTES_"), ("STDIO", "STDIO_BYTES_")):
        if module in report.modules:
            report.mod_read_all_records(module)
            counters = report.records[module].to_df()["counters"]
            moved += int(counters[names + "READ"].sum() + counters[names + "WRITTEN"].sum())
    counted = job["bytes_read"] + job["bytes_written"] + job["left_out"]["bytes"] + job["waits"]["bytes"]
    if "MPI-IO" not in report.modules:
        assert counted == moved
    else:
        assert counted >= moved
    for finding in advice["findings"]:
        assert finding["severity"] in ("high", "medium", "note")
        assert finding["what"] and finding["why"] and finding["remedy"]
        assert finding["at_most_share"] is None or 0 <= finding["at_most_share"] <= 1


def test_a_slow_server_is_named(stripewise):
    """PyDarshan's example of a bad OST: files on OST 14 take 46 times as long as others."""
    found = verdict(stripewise("advise", log_named("sample-badost.darshan"), "-q").out)
    assert "OST 14 takes 46 times as long" in found["Why:"]
    assert found["Type:"].startswith("lfs df /scratch1")
    assert found["Gain:"].startswith("at most 98 % of the run")


def test_named_pipes_are_no_metadata_load(stripewise):
    """In this log, opens of named pipes wait 1462 s for their peers."""
    advice = stripewise("advise", log_named("dxt.darshan"), "-q", "--json").json()
    assert advice["job"]["waits"]["files"] == 10 and advice["job"]["waits"]["time_s"] > 10_000
    assert advice["job"]["busiest_s"] < 1
    assert advice["verdict"]["slow"].startswith("nothing much")


def test_data_sieving_is_found(stripewise):
    """MPI-IO writes 13 MiB, for which ROMIO reads 38 MiB and writes 52 MiB."""
    log = next((log for log in DARSHAN_LOGS if "macsio" in log.name), None)
    if log is None:
        pytest.skip("PyDarshan is not installed")
    advice = stripewise("advise", log, "-q", "--json").json()
    [finding] = [finding for finding in advice["findings"] if finding["code"] == "data-sieving"]
    assert "38M were read and 52M written for 13M" in finding["what"]
    assert "romio_ds_write disable" in finding["commands"][0]["text"]


def test_the_present_layout_is_not_advised_again(stripewise):
    """The file lies on all 24 OSTs already."""
    advice = stripewise("advise", log_named("example.darshan"), "-q", "--json").json()
    assert (advice["storage"]["servers"], advice["storage"]["mount"], advice["storage"]["origin"]) == (24, "/scratch2", "deduced")
    [layout] = advice["layouts"]
    assert (layout["present"], layout["is_present_known"], layout["proposed"]) == ("1M x 24", True, None)
    assert not any("lfs setstripe" in command["text"] for finding in advice["findings"] for command in finding["commands"])


@pytest.fixture
def trace(stripewise, tmp_path):
    """A trace of 16 processes that share a large file."""
    shape = ["--procs", 16, "--transfer", "1M", "--total", "4G", "--shared", "--file", "/scratch/u/out.dat"]
    stripewise("synth", "ior", *shape, "-o", tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.parametrize("fs", ["lustre:24", "lustre:ost=24,class=ssd", "beegfs:16", "cephfs:12", "orangefs:8", "local"])
def test_commands_are_those_of_the_file_system(stripewise, trace, fs):
    out = stripewise("advise", trace, "--fs", fs, "-q").out
    verdict(out)
    system = fs.split(":")[0]
    assert f"(--fs {fs})" in " ".join(out.split())
    for other, command in COMMANDS.items():
        assert other == system or not any(command in pasted for pasted in commands(out)), out
    if system in ("lustre", "beegfs"):
        assert any(pasted.startswith(COMMANDS[system]) for pasted in commands(out)), out


def test_a_pool_is_named_if_it_exists(stripewise, trace):
    with_pool = commands(stripewise("advise", trace, "--fs", "lustre:ost=24,pool=flash:8:nvme", "-q").out)
    assert any(" -p flash " in command for command in with_pool)
    without = commands(stripewise("advise", trace, "--fs", "lustre:24", "-q").out)
    assert without and not any(" -p " in command for command in without)


def test_commands_are_whole_words_of_a_shell(execute, stripewise, trace, tmp_path):
    """The shell takes them, and passes them to tools of these names."""
    (tmp_path / "bin").mkdir()
    for tool in ("lfs", "beegfs", "setfattr", "pvfs2-xattr", "cp", "mv", "xargs"):
        path = tmp_path / "bin" / tool
        path.write_text(f"#!/bin/sh\necho {tool} \"$@\" >> {tmp_path}/called\n")
        path.chmod(0o755)
    script = []
    for fs in ("lustre:24", "beegfs:16", "cephfs:12"):
        script += commands(stripewise("advise", trace, "--fs", fs, "-q").out)
    shell = shutil.which("bash")
    execute(shell, "-euc", "\n".join(script), env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, cwd=tmp_path)
    called = (tmp_path / "called").read_text()
    assert "lfs setstripe -S " in called and "beegfs entry set " in called


def test_a_cluster_file_describes_the_servers(stripewise, trace, tmp_path):
    classes = "{ startup_s = 1e-4, per_byte_s = 1e-9 }"
    four = "\n".join(f"{op}.{kind} = {classes}" for op in ("read", "write") for kind in ("random", "sequential"))
    text = f'[class.ost]\n{four}\n[[tier]]\nname = "fast"\nclass = "ost"\ndriver = "lustre"\nroot = "/scratch"\npool = "nvme2"\ncount = 6\n'
    (tmp_path / "c.toml").write_text(text + 'capacity_per_server = "10T"\n')
    out = stripewise("advise", trace, "-c", tmp_path / "c.toml", "-q").out
    assert any(re.match(r"lfs setstripe -S \w+ -c 6 -p nvme2 /scratch/u$", command) for command in commands(out)), out


def test_directories_of_a_cluster_file_are_for_plan(stripewise, trace, make_cluster):
    cluster = make_cluster()
    advice = stripewise("advise", trace, "-c", cluster.toml, "-q", "--json").json()
    assert any("stripewise plan" in note for note in advice["notes"])
    assert advice["layouts"] == []


def test_a_recorded_trace_of_a_small_file(stripewise, python, tmp_path):
    """A program that does next to nothing gets no invented trouble."""
    program = "import time; time.sleep(0.7); open('out.dat', 'wb').write(bytes(256 << 10))"
    stripewise("trace", "-o", tmp_path / "t", "--", python, "-c", program, cwd=tmp_path)
    advice = stripewise("advise", tmp_path / "t", "--json", "-q").json()
    assert advice["job"]["source"] == "recorded" and advice["job"]["bytes_written"] == 256 << 10
    assert advice["verdict"]["todo"].startswith("nothing")


@pytest.mark.parametrize("spec, said", [("gpfs:4", "no file system"), ("lustre:0", "no number of servers"), ("lustre:4,pool=x", "no count")])
def test_a_spec_that_is_none_is_refused_with_the_remedy(stripewise, trace, spec, said):
    result = stripewise("advise", trace, "--fs", spec, ok=False)
    assert result.code == 2 and spec in result.err and said in result.err and "lustre:24" in result.err


def test_bad_logs_are_refused_by_name(stripewise, tmp_path):
    (tmp_path / "none.darshan").write_bytes(b"no log\n" * 1000)
    assert_refused(stripewise("advise", tmp_path / "none.darshan", ok=False), "none.darshan")
    assert_refused(stripewise("advise", tmp_path / "missing.darshan", ok=False), "missing.darshan")


def test_a_log_that_is_cut_off_is_said(stripewise, tmp_path):
    log = log_named("ior_hdf5_example.darshan")
    data = log.read_bytes()
    (tmp_path / "cut.darshan").write_bytes(data[: len(data) * 3 // 4])
    out = stripewise("advise", tmp_path / "cut.darshan", "-q").out
    assert verdict(out)["Sure:"].startswith("low: the log is incomplete")
    (tmp_path / "short.darshan").write_bytes(data[:400])
    assert_refused(stripewise("advise", tmp_path / "short.darshan", ok=False), "short.darshan")


def test_json_is_one_document(stripewise, trace):
    out = stripewise("advise", trace, "--fs", "lustre:8", "--json").out
    assert json.loads(out)["version"] == 1
