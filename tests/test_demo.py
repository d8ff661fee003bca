"""The demo's short version predicts, measures and verifies every layout of the papers, and rejects
directories with other files."""

import json
import re

import pytest

EVERY = {"1-DH", "1-DV", "DEF", "PA", "PSA"} | {f"2-D g={groups}" for groups in range(2, 8)}


@pytest.fixture
def demo(stripewise_bench, workloads, python):
    """Runs the demo in a directory."""

    def run(directory, *args, **options):
        tools = ["--workloads", workloads, "--python", python]
        return stripewise_bench("demo", "--quick", "--dir", directory, *tools, *args, **options)

    return run


def test_demo(demo, tmp_path):
    directory = tmp_path / "demo"
    result = demo(directory, "--json")
    results = result.json()
    assert results == json.loads((directory / "results.json").read_text())
    names = {workload["name"] for workload in results["workloads"]}
    assert {re.sub(r" \d+[KM]$", "", name) for name in names} == {"ior read", "ior write", "h5py read", "h5py write"}
    for workload in results["workloads"]:
        candidates = {candidate["name"]: candidate for candidate in workload["candidates"]}
        assert EVERY | {workload["choice"], workload["present"]} <= candidates.keys()
        for candidate in candidates.values():
            assert candidate["elapsed_s"] > 0 and candidate["predicted_s"] > 0
            assert candidate["measured_s"] and all(seconds > 0 for seconds in candidate["measured_s"])
            assert candidate["verified"] is True
        assert (directory / workload["trace"]).exists() and (directory / workload["plan"]).exists()
    assert all(servers["emulated"] for servers in results["servers"])
    assert "<html" in (directory / "report.html").read_text()[:1000].lower()
    assert not (directory / "servers").exists() and not (directory / "data").exists(), "removed without --keep"


def test_a_directory_with_other_files_is_refused(demo, tmp_path):
    (tmp_path / "thesis.tex").write_text("three years")
    result = demo(tmp_path, ok=False)
    assert result.code == 1 and "--dir" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_is_missing_is_said_with_the_remedy(stripewise_bench, python, workloads, tmp_path):
    nowhere = ["demo", "--dir", tmp_path / "demo"]
    result = stripewise_bench(*nowhere, "--workloads", tmp_path, ok=False)
    assert result.code == 1 and "make build" in result.err
    result = stripewise_bench(*nowhere, "--workloads", workloads, "--python", "/bin/false", ok=False)
    assert result.code == 1 and "make setup" in result.err
    assert not (tmp_path / "demo").exists()
