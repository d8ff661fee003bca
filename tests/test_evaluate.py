"""Experiments are measured: each of their programs on emulated servers, with every byte verified
and every failure reported."""

import json
import signal
import subprocess

import pytest
from conftest import HANGS_S, wait_until

# One cell per program: experiment, filter, number of runs, requested schemes.
CELLS = {
    "ior": ("S2", ["procs=8", "scheme=stripe 64K"]),
    "hpio": ("S4", ["spacing=0", "scheme=SCA"]),
    "tile": ("P6", ["procs=100", "scheme=PSA"]),
    "btio": ("P7", ["procs=16", "scheme=PSA"]),
}


def records_of(cell):
    """The records of a cell: what its runs have in common, with what each has of its own."""
    details = cell.get("details", {})
    return [{**cell, **run, "details": {**details, **run.get("details", {})}} for run in cell.pop("runs", [{}])]


class Evaluation:
    """The command, its store and its scratch directory, all below one directory."""

    def __init__(self, stripewise_bench, root, workloads):
        self.stripewise_bench, self.root, self.workloads = stripewise_bench, root, workloads
        self.scratch = root / "scratch"
        self.scratch.mkdir()

    def words(self, experiment, only, workloads=None):
        built = workloads or self.workloads
        words = ["evaluate", experiment, "--measured", "--quick", "--dir", self.root / "records"]
        words += ["--scratch", self.scratch, "--workloads", built]
        return [*words, *(word for value in only for word in ("--only", value))]

    def run(self, experiment, only, workloads=None, ok=True):
        return self.stripewise_bench(*self.words(experiment, only, workloads), ok=ok)

    def records(self):
        document = json.loads((self.root / "records" / "emulated.json").read_text())
        lines = (self.root / "records" / "emulated.jsonl").read_text().splitlines()
        assert document["version"] == 2 and document["machine"]["cores"] > 0
        assert "--measured --quick" in document["command"] and "/" not in document["command"]
        # A bound covers all schemes of a cell. A line in the store was written while --only
        # selected one of them.
        records = [record for cell in document["cells"] for record in records_of(cell)]
        for record in (known := [json.loads(line) for line in lines]) + records:
            record["details"].pop("least_s", None)
        assert records[-1] in known
        return records


@pytest.fixture
def evaluation(stripewise_bench, tmp_path, workloads):
    return Evaluation(stripewise_bench, tmp_path, workloads)


@pytest.fixture
def broken(workloads, tmp_path):
    """Workloads whose ior starts, but then runs the given script."""

    def make(name, script):
        build = tmp_path / name
        (build / "openmpi").mkdir(parents=True)
        (build / "h5.py").touch()
        ior = build / "openmpi" / "ior"
        real = workloads / "openmpi" / "ior"
        ior.write_text(f'#!/bin/sh\n[ "$1" = --help ] && exit 0\nreal={real}\n{script}\n')
        ior.chmod(0o755)
        return build

    return make


@pytest.mark.parametrize("program", CELLS)
def test_each_program_is_measured_and_verified(evaluation, program):
    experiment, only = CELLS[program]
    evaluation.run(experiment, only)
    records = evaluation.records()
    assert records
    for record in records:
        assert record["experiment"] == experiment and record["where"] == "emulated"
        assert record["verified"] is True and "failed" not in record
        assert record["bytes"] > 1 << 20 and record["layout"]
        (seconds,) = record["seconds"]
        # Servers are never faster than their class. How much slower they are depends on the
        # machine.
        busy_s = record["details"].get("busy_s", 0)
        assert 0.9 * busy_s < seconds
        assert record["details"]["elapsed_s"] > 0
    assert not list(evaluation.scratch.iterdir()), "everything that was made is removed"
    again = evaluation.run(experiment, only)
    assert f"0 of {len(records)} runs to do" in again.err
    assert evaluation.records() == records


def test_a_failing_program_is_a_record_and_is_run_again(evaluation, broken):
    experiment, only = CELLS["ior"]
    result = evaluation.run(experiment, only, broken("failing", 'echo "the disk is on fire" >&2; exec $real --burning'), ok=False)
    assert result.code == 1 and "the disk is on fire" in result.err
    (record,) = evaluation.records()
    assert "the disk is on fire" in record["failed"] and not record["seconds"] and "verified" not in record
    evaluation.run(experiment, only)
    (record,) = evaluation.records()
    assert "failed" not in record and record["verified"] is True


def test_wrong_bytes_that_a_program_does_not_notice_are_noticed(evaluation, broken):
    experiment, only = CELLS["ior"]
    result = evaluation.run(experiment, only, broken("lying", 'exec $real "$@" --seed 2'), ok=False)
    assert result.code == 1
    (record,) = evaluation.records()
    assert "is wrong" in record["failed"] and not record["seconds"]


def test_it_is_alone_and_an_interrupt_ends_it_soon_and_leaves_nothing(evaluation, broken, bin_dir):
    experiment, only = CELLS["ior"]
    words = evaluation.words(experiment, only, broken("hanging", "exec sleep 6000"))
    command = [str(word) for word in (bin_dir / "stripewise-bench", *words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: list(evaluation.scratch.glob("*/plan.toml")), process)
    other = evaluation.run(experiment, only, ok=False)
    assert other.code == 1 and "another evaluate is writing" in other.err and "--dir" in other.err
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == 1 and "interrupted" in err
    assert not list(evaluation.scratch.iterdir())
    assert (evaluation.root / "records" / "emulated.jsonl").read_text() == "", "not finished is no record"
