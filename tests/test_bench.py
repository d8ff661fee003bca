"""The measurements in bench/: they start by `stripewise-bench`, and the CephFS benchmark that of
the joint plan and that of promises render a page from given records. One case of the joint plan is
measured, with small files."""

import json

import pytest
from conftest import BIN, ROOT, run_command


def record(experiment, scheme, labels, seconds, details, size=1 << 20):
    """A record as bench/common/records.py writes it."""
    return {
        "experiment": experiment,
        "where": "cephfs",
        "labels": labels,
        "scheme": scheme,
        "seconds": seconds,
        "dates": [],
        "bytes": size,
        "verified": True,
        "layout": "<1M>",
        "details": details,
    }


def page(tmp_path, lines, bench="cephfs"):
    """The rows of the page's tables: [[cell, ...], ...]."""
    records = tmp_path / "records.jsonl"
    records.write_text("\n".join(lines) + "\n")
    return rows_of(run_command(BIN / "stripewise-bench", bench, "all", "--only-print", "--records", records).out)


def rows_of(out):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in (ROOT / "bench").glob("*/__main__.py")))
def test_each_measurement_is_a_command_that_teaches(name):
    bench = BIN / "stripewise-bench"
    assert f"\n  {name} " in run_command(bench, "--help").out
    said = run_command(bench, name, *(["cache"] if name == "copies" else []), "--help").out
    assert f"usage: stripewise-bench {name} " in said
    assert "--binaries" in said and str(BIN) in "".join(said.split())


def test_outside_the_source_tree_a_measurement_says_where_it_is(tmp_path):
    program = tmp_path / "stripewise-bench"
    program.write_bytes((BIN / "stripewise-bench").read_bytes())
    program.chmod(0o755)
    result = run_command(program, "disks", "--help", ok=False, cwd=tmp_path)
    assert result.code == 1 and "in the source tree" in result.err


def case(op, picked_s):
    """A case in which 1-DV is predicted to be the fastest, but 2-D is, with 1 s."""
    labels = {"size": "64K", "file": "own", "op": op}
    expected = {"1-DH": 3.0, "2-D": 2.0, "1-DV": 1.5}
    measured = {"1-DH": [4.0, 4.0], "2-D": [1.0, 1.0], "1-DV": [picked_s, picked_s]}
    return [
        record("layouts", scheme, labels, measured[scheme], {"elapsed_s": seconds, "cost_s": seconds, "simulated_s": seconds})
        for scheme, seconds in expected.items()
    ]


def test_a_choice_is_good_up_to_five_per_cent(tmp_path):
    rows = page(tmp_path, map(json.dumps, [*case("write", 1.04), *case("read", 1.2)]))
    assert ["64K own write", "2-D", "1-DV", "4.0%", "1.50", "1.04", "0.0%"] in rows
    assert ["64K own read", "2-D", "1-DV", "20.0%", "1.50", "1.20", "0.0%"] in rows
    assert ["planner", "all: 2", "50.0%", "12.00%", "20.0%"] in rows
    assert ["64K", "0.25 / 0.25", "1.00 / 1.00", "0.96 / 0.83", "", "", "", "", "", ""][:4] in [row[:4] for row in rows]


def test_bytes_are_compared_server_by_server(tmp_path):
    expected = {"hdd/0": 1000, "hdd/1": 1000, "ssd/0": 500, "ssd/1": 500}
    counted = {"hdd/0": 1000, "hdd/1": 990, "ssd/0": 500, "ssd/1": 515}
    details = {"simulated_s": 1.0, "bytes_expected": expected, "bytes_counted": counted}
    rows = page(tmp_path, [json.dumps(record("schemes", "PSA", {"size": "512K", "op": "write"}, [1.0], details))])
    assert [row[-1] for row in rows if row[0] == "512K write"] == ["3.00%"]


def test_a_line_that_was_not_written_to_its_end_does_not_count(tmp_path):
    whole = json.dumps(record("schemes", "PSA", {"size": "512K", "op": "write"}, [1.0], {"simulated_s": 1.0, "bytes_expected": {}, "bytes_counted": {}}))
    for length in (len(whole) - 40, len(whole) - 1):
        rows = page(tmp_path, [whole, whole[:length]])
        assert [row[0] for row in rows if row[0].startswith("512K")] == ["512K write"]


def under_plan(scheme, simulated_s, seconds):
    """A record of a case of the joint plan, as bench/mix writes it."""
    runs = [{"load": 1.0, "applications": {}} for _ in seconds]
    details = {"simulated_s": simulated_s, "runs": runs, "joint": {"planned_s": 1.0, "bound_s": 0.9}}
    return json.dumps(record("cases", scheme, {"case": "hot middle"}, seconds, details))


def test_the_order_of_plans_is_compared_where_their_times_differ_by_more_than_the_spread(tmp_path):
    plans = [
        under_plan("joint plan", 1.0, [1.0, 1.1]),
        under_plan("as fast", 1.02, [1.05, 1.06]),
        under_plan("slower", 2.0, [2.0, 2.1]),
        under_plan("faster than simulated", 3.0, [1.9, 1.95]),
    ]
    rows = page(tmp_path, plans, "mix")
    assert ["hot middle", "1.05", "1.06", "1.00", "1.00", "0.90", "4", "1", "1", "0.64 to 1.05"] in rows
    assert ["slower", "2.000", "2.050", "2.4 %"] in rows


def test_the_joint_plan_is_measured_beside_plans_made_by_hand(tmp_path):
    words = ["cases", "--quick", "--only", "small and large", "--slowest", "1"]
    words += ["--dir", tmp_path / "dir", "--records", tmp_path / "records.jsonl"]
    rows = rows_of(run_command(BIN / "stripewise-bench", "mix", *words).out)
    (joint,) = [row for row in rows if row[0] == "joint plan"]
    assert float(joint[1]) > 0 and float(joint[2]) > 0
    assert not (tmp_path / "dir").exists(), "nothing is left"


def promises(tmp_path, refused):
    """The page of four recorded tries; the plans of the `refused` ones, by set-up and program,
    promise nothing."""
    lines = (ROOT / "tests" / "records" / "promises.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for each in records:
        key = (each["scheme"], each["labels"]["program"])
        if key in refused:
            each["details"]["plan"]["promise"] = {"saves": None}
    file = tmp_path / "promises.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    return run_command(BIN / "stripewise-bench", "promises", "--only-print", "--records", file).out


def test_every_promise_is_held_against_what_was_measured(tmp_path):
    out = promises(tmp_path, ())
    words = " ".join(out.split())
    assert "**Worst promise**: +385.9% (two-disks, BT-IO). 2 of 4 promises are off by more than 25%." in words
    assert "**No promise**: 0 of 4 tries." in words
    rows = {row[0]: row for row in rows_of(out)}
    assert rows["fio"][2:6] == ["95%", "93% ± 6%", "kept", "-30%"]
    assert rows["BT-IO"][4:8] == ["undone", "+386%", "0.20, 0.27", "0.07, 0.35"]


def test_what_is_not_promised_is_not_off(tmp_path):
    out = promises(tmp_path, {("two-disks", "BT-IO"), ("cached", "fio")})
    words = " ".join(out.split())
    assert "0 of 2 promises are off by more than 25%." in words
    assert "**No promise**: 2 of 4 tries." in words
    rows = {row[0]: row for row in rows_of(out)}
    assert rows["fio"][2:6] == ["no promise", "93% ± 6%", "kept", ""], "what was measured stays"
    assert rows["IOR shared"][2] == "91%" and rows["IOR shared"][5] == "-4%"


def test_if_nothing_is_promised_there_is_no_worst_promise(tmp_path):
    every = {("two-disks", "BT-IO"), ("cached", "fio"), ("cached", "IOR own files"), ("throttled", "IOR shared")}
    words = " ".join(promises(tmp_path, every).split())
    assert "Worst promise" not in words and "**No promise**: 4 of 4 tries." in words
