"""Malformed plans are rejected by `place` and `run`; a program with only the preload library runs
as without it."""

import re

import pytest

from bad_input import Unchanged, assert_refused

DAMAGES = {
    "not TOML": (lambda text: "rules: none\n" + text, []),
    "empty": (lambda text: "", ["version"]),
    "truncated": (lambda text: text[: text.index("layouts")], []),
    "another version": (lambda text: text.replace("version = 1", "version = 99", 1), ["version", "99"]),
    "stripe 0": (lambda text: text.replace(":64K", ":0", 1), ["0"]),
    "negative stripe": (lambda text: text.replace(":64K", ":-64K", 1), ["-64K"]),
    "stripe no size": (lambda text: text.replace(":64K", ":lots", 1), ["lots"]),
    # Replaced everywhere, because the text of the reason names servers, too.
    "unknown target": (lambda text: text.replace("hdd/0", "tape/0"), ["tape/0"]),
    "server out of range": (lambda text: text.replace("hdd/0-3", "hdd/0-9", 1), ["hdd/9"]),
    "unknown key": (lambda text: text.replace("reason =", "raison =", 1), ["raison"]),
    "relative pattern": (lambda text: text.replace('pattern = "/', 'pattern = "', 1), ["pattern"]),
    "NaN time": (lambda text: re.sub(r"(?m)^elapsed_s = .*", "elapsed_s = nan", text), ["elapsed_s", "nan"]),
    "no cluster": (lambda text: text[: text.index("[cluster.network]")], ["cluster"]),
}


@pytest.mark.parametrize("command", ["place", "run"])
@pytest.mark.parametrize("name", DAMAGES)
def test_malformed_plan(stripewise, planned, command, name):
    damage, words = DAMAGES[name]
    text = planned.plan.read_text()
    damaged = damage(text)
    assert damaged != text
    planned.plan.write_text(damaged)
    (planned.data / "f").write_bytes(b"precious" * 1000)
    args = {"place": ["place", planned.plan], "run": ["run", "-p", planned.plan, "--", "touch", planned.data / "new"]}
    with Unchanged(planned.root):
        result = stripewise(*args[command], ok=False)
    assert_refused(result, "plan.toml", *words)


@pytest.mark.parametrize("command", ["place", "run"])
def test_missing_plan(stripewise, cluster, command):
    args = {"place": ["place", cluster.plan], "run": ["run", "-p", cluster.plan, "--", "true"]}
    with Unchanged(cluster.root):
        result = stripewise(*args[command], ok=False)
    assert_refused(result, "plan.toml")


def test_library_with_a_bad_plan_leaves_programs_alone(planned):
    """Invariant 6: the program runs as without the library, which warns once."""
    planned.plan.write_text("nonsense")
    result = planned.run("cp", "/etc/passwd", planned.data / "copy")
    assert (planned.data / "copy").read_bytes() == open("/etc/passwd", "rb").read()
    assert len([line for line in result.err.splitlines() if "stripewise" in line]) == 1, str(result)
