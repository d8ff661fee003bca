"""What calls cost the client: measured by `calibrate` through the preload library, counted by
`plan`."""

import tomllib

from conftest import Tier

QUICK = ["--quick", "--file-size", "64M", "--seconds-per-point", "0.001", "--repeats", "2"]
ATTEMPTS = 10
CALLS = {"open", "create", "close", "stat", "unlink", "read", "write"}


def few_servers(make_cluster):
    return make_cluster([Tier("hdd", 2), Tier("ssd", 1)])


def costs_of_objects_show(report):
    """Whether calls on names take longer with each object, and on 16 of them than on a plain file."""
    calls = [call for call in report["calls"] if call["call"] in ("open", "create", "stat", "unlink")]
    return all(call["per_object_s"] > 0 and call["medians"][-1][1] > call["plain_s"] > 0 for call in calls)


def test_calls_are_measured_on_each_tier(make_cluster, stripewise):
    cluster = few_servers(make_cluster)
    before = sorted(cluster.root.rglob("*"))
    profile = cluster.root / "profile.toml"
    measured = stripewise("calibrate", "-c", cluster.toml, *QUICK, "--json").json()
    assert [client["tier"] for client in measured["client"]] == ["hdd", "ssd"]
    client = tomllib.loads(profile.read_text())["client"]
    for report in measured["client"]:
        assert {call["call"] for call in report["calls"]} == CALLS
        for call in report["calls"]:
            assert [objects for objects, _ in call["medians"]] == [1, 2, 4, 8, 16]
            assert client[report["tier"]][call["call"]]["per_object_s"] == call["per_object_s"]
    # An object is a file: to open and to create it takes time. A busy machine may hide that once.
    attempts = iter(range(ATTEMPTS))
    while not all(map(costs_of_objects_show, measured["client"])):
        assert next(attempts, None) is not None, measured["client"]
        measured = stripewise("calibrate", "-c", cluster.toml, *QUICK, "--json").json()
    profile.unlink()
    assert sorted(cluster.root.rglob("*")) == before


def test_what_was_not_measured_is_said_and_not_made_up(make_cluster, stripewise):
    cluster = few_servers(make_cluster)
    profile = cluster.root / "profile.toml"
    stripewise("calibrate", "-c", cluster.toml, *QUICK)
    absent = {"STRIPEWISE_LIB": str(cluster.root / "absent.so")}
    # Only this tier is measured anew, and it loses what it had.
    page = stripewise("calibrate", "-c", cluster.toml, *QUICK, "--tier", "ssd", env=absent).out
    assert "note: tier ssd: what calls cost the client was not measured" in page and "absent.so" in page
    assert set(tomllib.loads(profile.read_text())["client"]) == {"hdd"}
    stripewise("calibrate", "-c", cluster.toml, *QUICK, env=absent)
    assert "client" not in tomllib.loads(profile.read_text())


def test_plans_count_them(make_cluster, stripewise, python, tmp_path):
    """Many small files: what their opens cost is in each candidate's time, by its number of objects."""
    cluster = few_servers(make_cluster)
    script = (
        "import os, sys\nfor n in range(100):\n  name = f'{sys.argv[1]}/f{n}'\n"
        "  with open(name, 'wb', buffering=0) as file: file.write(bytes(4096)), os.fsync(file)\n"
        "  open(name, 'rb', buffering=0).read(4096)"
    )
    stripewise("trace", "-o", tmp_path / "t.trace", "--", python, "-c", script, cluster.data)
    command = ["plan", tmp_path / "t.trace", "-c", cluster.toml, "-o", cluster.plan, "--json", "--candidates"]
    before = stripewise(*command).json()["files"][0]
    assert "client_s" not in before and all("client_s" not in one for one in before["candidates"])
    stripewise("calibrate", "-c", cluster.toml, *QUICK)
    tiers = tomllib.loads((cluster.root / "profile.toml").read_text())["client"]
    client = tiers["hdd"]
    after = stripewise(*command).json()["files"][0]
    counts = {"open": 100, "create": 100, "close": 200}
    # What is measured of the tiers differs by chance, and the interpreter asks for the state of
    # each file that it opens, once or twice.
    plain = [{call: tier[call]["plain_s"] for call in ("stat", *counts)} for tier in tiers.values()]
    lowest_s, highest_s = (sum(count * pick(tier[call] for tier in plain) for call, count in counts.items()) for pick in (min, max))
    stats_s = 2 * counts["close"] * max(tier["stat"] for tier in plain)
    # Memory may have served the reads. They take as long as in the trace, of one process.
    calls_s = after["present"]["client_s"] - after["memory"]["ns"] * 1e-9
    assert lowest_s * 0.99 < calls_s < highest_s * 1.01 + stats_s
    striped = next(one for one in after["candidates"] if one["name"] == "1-DH on hdd")
    least_s = sum(count * (client[call]["base_s"] + 2 * client[call]["per_object_s"]) for call, count in counts.items())
    assert striped["client_s"] > least_s * 0.99 and striped["elapsed_s"] >= striped["client_s"]
