"""`place` moves only the files whose layout changes, and `plan` says how much that is and keeps to a
limit."""

from dataclasses import replace

import pytest
from conftest import Tier

KIB, MIB = 1 << 10, 1 << 20
SLOW = Tier("hdd", 4, startup_s=5e-3, per_byte_s=1e-8)
FAST = Tier("ssd", 2, startup_s=5e-5, per_byte_s=2e-9)

# Reads files at random: (path, request size, number of requests)...
READER = """
import os, sys
for path, size, count in zip(*[iter(sys.argv[1:])] * 3):
    fd = os.open(path, os.O_RDONLY)
    blocks = os.fstat(fd).st_size // int(size)
    for i in range(int(count)):
        os.pread(fd, int(size), i * 2741 % blocks * int(size))
    os.close(fd)
"""


class Site:
    """A cluster with three files: small.dat and large7.dat are in the trace, large8.dat is not, but
    the rule for large7.dat applies to it."""

    def __init__(self, stripewise, cluster, python):
        self.stripewise, self.cluster = stripewise, cluster
        self.trace, self.files = cluster.root / "t", {}
        for name, size in (("small.dat", MIB), ("large7.dat", 8 * MIB), ("large8.dat", 4 * MIB)):
            self.files[name] = cluster.data / name
            self.files[name].write_bytes(bytes(range(256)) * (size // 256))
        reads = [self.files["small.dat"], 4 * KIB, 1024, self.files["large7.dat"], 64 * KIB, 512]
        stripewise("trace", "-o", self.trace, "--", python, "-c", READER, *reads)

    def plan(self, *args, **options):
        """Plans for the three files."""
        words = ["plan", self.trace, "-c", self.cluster.toml, "-o", self.cluster.plan, "--only", f"{self.cluster.data}/**"]
        return self.stripewise(*words, *args, **options)

    def place(self, *args):
        """Places the plan."""
        return self.stripewise("place", self.cluster.plan, *args)

    def moves(self, *args):
        """Files and bytes that the plan says are moved; `place` says the same."""
        said = self.plan(*args, "--json").json()["moves"]
        assert self.place("--dry-run", "--json").json()["moves"] == said
        return said["files"], said["bytes"]

    def kept(self, *args):
        """The names of the traced files that are to stay where they are."""
        files = self.plan(*args, "--json").json()["files"]
        return sorted(files["first"].rsplit("/", 1)[1] for files in files if files["keep"])

    def identities(self):
        """What changes if a file is moved, by name."""
        stats = {name: path.stat() for name, path in self.files.items()}
        return {name: (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns) for name, stat in stats.items()}


@pytest.fixture
def site(stripewise, make_cluster, python):
    return Site(stripewise, make_cluster([SLOW, FAST]), python)


def test_plan_says_what_place_moves(site):
    assert site.moves() == (3, 13 * MIB)
    assert "\n`place` moves 13 MiB in 3 files.\n" in site.plan().out
    placed = site.place("--json").json()["files"]
    assert sum(file["bytes"] for file in placed if file["placed"]) == 13 * MIB
    before = site.identities()
    assert "to move: 0 B in 0 files; in their layout already: 3" in site.place("--dry-run").out
    assert "placed: 0; in their layout already: 3" in site.place().out
    assert site.identities() == before
    assert site.moves() == (0, 0), "the next plan keeps them there"


def test_only_files_whose_layout_changes_are_moved(site):
    site.plan("--scheme", "1-DH")
    site.place()
    before, text = site.identities(), site.cluster.plan.read_text()
    rules = text.split("[[rule]]")
    changed = [rule.replace("hdd/0-3:", "hdd/0-2:") if "/large" in rule else rule for rule in rules]
    assert changed != rules
    site.cluster.plan.write_text("[[rule]]".join(changed))
    shown = site.place("--dry-run").out
    assert f"{site.files['small.dat']}: 1 MiB, in its layout already" in shown
    assert "to move: 12 MiB in 2 files; in their layout already: 1" in shown
    assert "placed: 2; in their layout already: 1" in site.place().out
    after = site.identities()
    assert [name for name in before if before[name] != after[name]] == ["large7.dat", "large8.dat"]
    site.stripewise("fsck", "-p", site.cluster.plan, site.cluster.data)


def test_a_limit_on_moving_is_kept(site):
    limit = ["--dont-move-more-than", "11M"]
    # The rule for large7.dat would move large8.dat, too: 12 MiB in all.
    assert site.moves(*limit) == (1, MIB)
    assert site.kept(*limit) == ["large7.dat"]
    joint = site.plan(*limit, "--json").json()["joint"]
    assert joint["moving"]["unlimited_bytes"] == 13 * MIB and joint["moving"]["saves_s_per_byte"] > 0
    assert joint["bound_s"] <= joint["planned_s"] < joint["now_s"]
    out = " ".join(site.plan(*limit, "--candidates").out.split())
    assert "Moving is limited to 11M, and without a limit 13M would be moved; moving another " in out
    assert "no better one is within the limit on moving" in out
    assert "placed: 1" in site.place().out
    # What is placed costs nothing any more.
    assert site.moves("--dont-move-more-than", "12M") == (2, 12 * MIB)
    assert site.moves("--dont-move-more-than", "12287K") == (0, 0)


def test_files_that_do_not_exist_are_not_moved(site):
    assert site.kept("--dont-move-more-than", "0") == ["large7.dat", "small.dat"]
    site.files["small.dat"].unlink()
    assert site.kept("--dont-move-more-than", "0") == ["large7.dat"]
    assert site.moves("--dont-move-more-than", "0") == (0, 0)


def test_programs_stay_and_do_not_count(site):
    site.files["large8.dat"].chmod(0o755)
    assert site.moves() == (2, 9 * MIB)
    assert site.moves("--dont-move-more-than", "9M") == (2, 9 * MIB)


def test_the_one_of_many_files_that_is_read_again_moves_alone(stripewise, make_cluster, python):
    cluster = make_cluster([SLOW, replace(FAST, capacity="3M")])
    names = [cluster.data / f"ckpt.{step:03}" for step in range(4)]
    for name in names:
        name.write_bytes(bytes(4 * MIB))
    reads = [word for name in names for word in (name, 4 * KIB, 2000 if name is names[2] else 10)]
    stripewise("trace", "-o", cluster.root / "t", "--", python, "-c", READER, *reads)
    for limit, moves in (("4M", (1, 4 * MIB)), ("4095K", (0, 0))):
        words = ["--dont-move-more-than", limit, "--only", f"{cluster.data}/**", "--json"]
        planned = stripewise("plan", cluster.root / "t", "-c", cluster.toml, "-o", cluster.plan, *words).json()
        assert {files["pattern"]: files["count"] for files in planned["files"]} == {
            str(names[2]): 1,
            f"{cluster.data}/ckpt.<n>": 3,
        }
        assert (planned["moves"]["files"], planned["moves"]["bytes"]) == moves
        assert stripewise("place", cluster.plan, "--dry-run", "--json").json()["moves"] == planned["moves"]


def test_a_large_limit_changes_nothing(site):
    site.plan()
    plan = site.cluster.plan.read_text()
    site.plan("--dont-move-more-than", "1T")
    assert site.cluster.plan.read_text() == plan


@pytest.mark.parametrize("flags, word", [(["--native"], "--native"), (["--scheme", "psa"], "--scheme psa")])
def test_a_limit_that_cannot_be_kept_is_refused(site, flags, word):
    result = site.plan("--dont-move-more-than", "1G", *flags, ok=False)
    assert result.code in (1, 2) and "--dont-move-more-than" in result.err and word in result.err, str(result)
    assert not site.cluster.plan.exists()
