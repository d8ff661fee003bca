"""The commands in the documentation work: the guide, the page of the joint plan, the README's
chain, the examples of every --help."""

import os
import re

import pytest
from conftest import DARSHAN_LOGS, ROOT, has_fuse

NOT_RUN = "<!-- tests/test_guide.py builds in its own way -->"

# Real servers are measured for minutes; these directories for moments.
HURRY = {"STRIPEWISE_SECONDS_PER_POINT": "0.001", "STRIPEWISE_FILE_SIZE": "64M"}


@pytest.fixture
def shell(execute, bin_dir, tmp_path):
    """Runs lines in one bash that stops at the first failure, with stripewise (and tmp_path/bin) in
    the PATH."""

    def run(lines, directory, **environment):
        script = tmp_path / "script"
        script.write_text(f"{lines}\n")
        environment |= {**HURRY, "PATH": f"{tmp_path}/bin:{bin_dir}:{os.environ['PATH']}"}
        return execute("bash", "-eux", "-o", "pipefail", script, env=environment, cwd=directory, stdin="")

    return run


def test_the_guide(shell, workloads, tmp_path):
    page = (ROOT / "docs" / "guide.md").read_text()
    blocks = re.findall(r"([^\n]*)\n```sh\n(.*?)\n```", page, re.DOTALL)
    typed = [block for line_before, block in blocks if line_before != NOT_RUN]
    steps = re.findall(r"^## \d", page, re.MULTILINE)
    assert len(typed) == len(blocks) - 1 >= len(steps) > 9, "every step has a block, one block is not typed"
    result = shell("\n".join(typed), tmp_path, APP=str(workloads / "mpich" / "ior"))
    assert "verified 8388608 bytes, 0 wrong" in result.out
    assert "1 managed files and 8 targets checked: 0 problems" in result.out
    session = tmp_path / "session"
    for name in ("profile.toml", "app.trace", "plan.toml", "1-dh.toml", "report.html"):
        assert (session / name).stat().st_size > 0
    left = [file.name for file in (session / "disks").rglob("*") if file.is_file()]
    assert left == ["stripewise-target.toml"] * 8, "the objects are gone with the file"


def test_the_page_of_the_joint_plan(shell, stripewise, tmp_path):
    page = (ROOT / "docs" / "joint-plan.md").read_text()
    out = shell("\n".join(re.findall(r"^```sh\n(.*?)\n```", page, re.DOTALL | re.MULTILINE)), tmp_path).out
    rows = re.findall(r"^\| `(\w+)\.trace` \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    plans = {"index": ("shares", "joint"), "result": ("shares", "joint"), "hot": ("whole", "regions")}
    assert [trace for trace, *_ in rows] == list(plans)
    for trace, before, planned in rows:
        times = [simulated_s(stripewise, tmp_path, trace, plan) for plan in plans[trace]]
        assert times[0] / times[1] == pytest.approx(float(before) / float(planned), rel=0.05), trace
    for lines in re.findall(r"^```text\n(All files.*?)\n```", page, re.DOTALL | re.MULTILINE):
        assert_printed(lines, out)
    drawn = "".join((ROOT / "docs" / f"joint-plan-{name}.svg").read_text() for name in ("files", "regions"))
    assert sorted(re.findall(r">([\d.]+) s<", drawn)) == sorted(time for _, *both in rows for time in both)


def simulated_s(stripewise, directory, trace, plan):
    result = stripewise("sim", f"{trace}.trace", "-p", f"{plan}.toml", "-q", "--json", cwd=directory).json()
    return result["plans"][0]["runs"][0]["elapsed_s"]


def assert_printed(lines, out):
    """Every line but dots is in the output, with numbers within 2 % or 0.002 of its own."""
    number = r"\d+\.\d+"
    for line in lines.splitlines():
        if line == "...":
            continue
        told = [float(text) for text in re.findall(number, line)]
        alike = re.findall(f"^{number.join(map(re.escape, re.split(number, line)))}$", out, re.MULTILINE)
        printed = [[float(text) for text in re.findall(number, one)] for one in alike]
        assert any(numbers == pytest.approx(told, rel=0.02, abs=0.002) for numbers in printed), (line, alike)


# Past the page cache, into which the test has just put the file: what memory serves is not moved.
APPLICATION = """#!/bin/sh
exec dd if="${1:-input}" of=/dev/null bs=64K iflag=direct status=none
"""


@pytest.fixture
def desk(make_cluster, tmp_path):
    """A directory with the files that the examples name. Its parent, tmp_path / "scratch", stands
    for /scratch."""
    desk = tmp_path / "scratch" / "run7"
    desk.mkdir(parents=True)
    (desk.parent / "run8").mkdir()
    (tmp_path / "bin").mkdir()
    (desk / "cluster.toml").write_text(make_cluster().text())
    (desk / "input").write_bytes(os.urandom(1 << 20))
    (desk / "train.py").write_text("print('trained')\n")
    for log in (log for log in DARSHAN_LOGS if log.name == "ior_hdf5_example.darshan"):
        (desk / "job.darshan").write_bytes(log.read_bytes())
    for path, text in ((desk / "app", APPLICATION), (desk / "job", APPLICATION), (tmp_path / "bin" / "srun", '#!/bin/sh\nexec "$@"\n')):
        path.write_text(text)
        path.chmod(0o755)
    return desk


def test_the_chain_of_the_readme(shell, desk):
    readme = (ROOT / "README.md").read_text()
    chain = readme[readme.index("## The chain") :].split("\n\n")[1]
    lines = [line.split("  #")[0].strip() for line in chain.splitlines()]
    assert len(lines) == 6 and all(line.startswith("stripewise ") for line in lines), lines
    shell("\n".join(lines), desk)
    assert (desk / "input").read_bytes().startswith(b"stripewise file")
    assert (desk / "app").read_text() == APPLICATION, "the script is in the trace, but stays where it was"
    assert (desk / "report.html").exists()


COMMANDS = "init calibrate trace synth advise plan cost place export run mount try drain warm status fsck cat cp rm report sim".split()

# A measurement between two machines; crates/cli/tests/calibrate.rs runs one on a single machine.
NEEDS_TWO_MACHINES = ("--serve", "--network")
# A parallel file system; tests/test_native_only.py fakes one, tests/cephfs uses one.
NEEDS_A_FILE_SYSTEM = ("--native", "/mnt/cephfs")

RESULTS = """{"version": 1, "date": "2026-11-21T01:00:00Z", "command": "stripewise-bench demo",
"machine": {"host": "node7", "cpu": "AMD", "cores": 2, "memory_bytes": 1073741824, "system": "Linux"},
"servers": [], "workloads": []}"""

# A trace of out.dat, a plan for it, and out.dat in that plan's layout.
PREPARATION = """
mkdir data
stripewise synth ior --procs 4 --transfer 64K --total 1M --shared --access random --file $PWD/out.dat -o t
for trace in app job before after nightly hourly; do cp t $trace.trace; done
head -c 1M /dev/urandom > out.dat
stripewise plan t -c cluster.toml --scheme def --min-gain none
stripewise place plan.toml
for plan in now new cache; do cp plan.toml $plan.toml; done
cp cluster.toml big.toml
"""


def examples(text):
    """The command lines among the examples of a help text. A comment follows three or more spaces.
    """
    lines = re.sub(r"\s*\\\n\s*", " ", text[text.index("Examples:") :]).splitlines()[1:]
    typed = [re.sub(r"^node\d\$ ", "", line.strip()) for line in lines if line.startswith("  ")]
    commands = [line for line in typed if re.match(r"stripewise |\(eval |mkdir |fusermount3 |[A-Z_]+=", line)]
    return [re.split(r"\s{3,}", line)[0] for line in commands if not any(flag in line for flag in NEEDS_TWO_MACHINES + NEEDS_A_FILE_SYSTEM)]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_help(shell, desk, stripewise, library, command):
    if command == "mount" and not has_fuse():
        pytest.skip("no FUSE here")
    found = examples(stripewise(command, "--help").out)
    assert any(f"stripewise {command} " in line for line in found), found
    (desk / "results.json").write_text(RESULTS)
    typed = "\n".join(found).replace("/path/libstripewise_posix.so", str(library))
    shell(PREPARATION + re.sub(r"(?<![\w.])/scratch\b", str(desk.parent), typed), desk)


def test_every_command_has_tested_examples(stripewise):
    listed = re.findall(r"^  (\w+) ", stripewise("--help").out.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    assert sorted(listed) == sorted([*COMMANDS, "help"])
