"""Malformed cluster files are rejected by every command that reads one, with the file, key, value
and remedy."""

import pytest

from bad_input import Unchanged, assert_refused


def replaced(old, new, count=1):
    """A damage: replaces the first `count` occurrences of old by new."""

    def damage(text):
        assert old in text, old
        return text.replace(old, new, count)

    return damage


def emulated_without_class(text):
    """A damage: emulated servers of a class without parameters. (Those of real servers would be
    measured.)"""
    return replaced("emulate = false", "emulate = true")(replaced('class = "hdd"', 'class = "tape"')(text))


DAMAGES = {
    "not TOML": (lambda text: text + "\n[[[", []),
    "empty": (lambda text: "", ["tier"]),
    "truncated": (lambda text: text[: len(text) // 2], []),
    "binary": (lambda text: "\x00\x01\x02" + text, []),
    "zero servers": (lambda text: text[: text.index("servers = ")] + "servers = []\n" + text[text.index("capacity") :], ["servers"]),
    "relative server": (replaced('servers = ["/', 'servers = ["'), ["servers", "absolute"]),
    "negative startup": (replaced("startup_s = 3e-07", "startup_s = -1.0"), ["startup_s", "-1"]),
    "NaN per byte": (replaced("per_byte_s = 7.95e-12", "per_byte_s = nan"), ["per_byte_s", "nan"]),
    "infinite startup": (replaced("startup_s = 3e-07", "startup_s = inf"), ["startup_s", "inf"]),
    "text for a number": (replaced("startup_s = 3e-07", 'startup_s = "fast"'), ["startup_s", "fast"]),
    "capacity below a stripe": (replaced('"1T"', '"4K"'), ["capacity_per_server", "4K"]),
    "capacity no size": (replaced('"1T"', '"1Q"'), ["capacity_per_server", "1Q"]),
    "negative capacity": (replaced('"1T"', "-5"), ["capacity_per_server", "-5"]),
    "unknown key": (replaced("emulate =", "emulated ="), ["emulated"]),
    "unknown driver": (replaced('"dirs"', '"nfs"'), ["driver", "nfs"]),
    "root missing": (replaced('"dirs"', '"lustre"'), ["root", "Lustre"]),
    "unknown class": (emulated_without_class, ["tape"]),
    "tier named twice": (replaced('name = "ssd"', 'name = "hdd"'), ["hdd"]),
    "server named twice": (replaced("hdd1", "hdd0"), ["servers", "already"]),
    "missing access kind": (replaced("read.random", "read.sideways"), ["sideways"]),
}


@pytest.mark.parametrize("command", ["plan", "calibrate"])
@pytest.mark.parametrize("name", DAMAGES)
def test_malformed_cluster(stripewise, cluster, trace, command, name):
    damage, words = DAMAGES[name]
    cluster.toml.write_text(damage(cluster.text()))
    args = {
        "plan": ["plan", trace, "-c", cluster.toml, "-o", cluster.plan],
        "calibrate": ["calibrate", "-c", cluster.toml, "-o", cluster.root / "profile.toml"],
    }[command]
    with Unchanged(cluster.root):
        result = stripewise(*args, ok=False)
    assert_refused(result, "cluster.toml", *words)


def test_missing_cluster_file(stripewise, cluster, trace):
    cluster.toml.unlink()
    with Unchanged(cluster.root):
        result = stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan, ok=False)
    assert_refused(result, "cluster.toml")


def test_bytes_that_are_no_text(stripewise, cluster, trace):
    cluster.toml.write_bytes(b"\xff\xfe" + cluster.text().encode())
    with Unchanged(cluster.root):
        result = stripewise("plan", trace, "-c", cluster.toml, "-o", cluster.plan, ok=False)
    assert_refused(result, "cluster.toml")
