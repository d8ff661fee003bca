"""The commands on Lustre, BeeGFS and OrangeFS, with strict fakes of their tools (tests/fakes):
targets are prepared and hold what the plan says, files get native layouts, `init` describes the
file system."""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT
from copies import status

FAKES = ROOT / "tests" / "fakes"
ACCESSES = [f"{op}.{order}" for op in ("read", "write") for order in ("random", "sequential")]
CLASSES = "".join(
    f"[class.{name}]\n" + "".join(f"{access} = {{ {cost} }}\n" for access in ACCESSES)
    for name, cost in [("hdd", "startup_s = 3e-4, per_byte_s = 8e-8"), ("ssd", "startup_s = 5e-5, per_byte_s = 1e-9")]
)


@dataclass
class System:
    """A fake file system, and its names for its servers."""

    name: str
    configuration: str
    hdd: list
    ssd: list
    # The lines of each tier if the file system stripes.
    pools: tuple


SYSTEMS = [
    System(
        "lustre",
        "fsname fs\nost 0 9000000\nost 1 9000000\nost 4 9000000\nost 5 9000000\npool slow 0 1\npool fast 4 5\n",
        ["0", "1"],
        ["4", "5"],
        ("slow", "fast"),
    ),
    System(
        "beegfs",
        "pool 1 Default\npool 2 h0\npool 3 h1\npool 4 s0\npool 5 s1\npool 6 fast\npool 7 slow\ntarget 9 Default 7\n"
        + "".join(f"target {10 * (i + 1)} {name} 9000000000\n" for i, name in enumerate(["h0", "h1", "s0", "s1"]))
        + "".join(f"target {100 + i} {name} 9000000000\n" for i, name in enumerate(["fast", "fast", "slow", "slow"])),
        ["h0", "h1"],
        ["s0", "s1"],
        ("slow", "fast"),
    ),
    System(
        "orangefs",
        "".join(f"server tcp://io{i}:3334 9000000000\n" for i in range(4)),
        ["tcp://io0:3334", "tcp://io1:3334"],
        ["tcp://io2:3334", "tcp://io3:3334"],
        ("all", "every"),
    ),
]


class Site:
    """A fake file system together with the project's commands."""

    def __init__(self, system, where, stripewise):
        self.system, self.mount, self.state, self.command = system, where / "mount", where / "state", stripewise
        self.root, self.data = self.mount / "targets", self.mount / "data"
        self.root.mkdir(parents=True)
        self.data.mkdir()
        self.state.mkdir()
        (self.state / "fake.conf").write_text(f"mount {self.mount}\n{system.configuration}")
        tools = {"lustre": ["lfs"], "beegfs": ["beegfs"]}
        tools["orangefs"] = [f"pvfs2-{tool}" for tool in ("xattr", "viewdist", "statfs")]
        self.environment = {"STRIPEWISE_FAKE": str(self.state)}
        for tool in tools[system.name]:
            self.environment[f"STRIPEWISE_{tool.upper().replace('-', '_')}"] = str(FAKES / tool)

    def stripewise(self, *args, **options):
        return self.command(*args, env=self.environment, **options)

    def cluster(self, *members):
        """A cluster.toml with an hdd and an ssd tier; `members` are the lines that describe their
        servers."""
        text = CLASSES
        for name, lines in zip(["hdd", "ssd"], members, strict=True):
            text += f'[[tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "{self.system.name}"\nroot = "{self.root}"\n'
            text += f'{lines}\ncapacity_per_server = "1G"\n'
        path = self.mount.parent / "cluster.toml"
        path.write_text(text)
        return path

    def plan(self, cluster, scheme, *words):
        trace, plan = self.mount.parent / "t.trace", self.mount.parent / "plan.toml"
        synth = ["synth", "ior", "--procs", 4, "--transfer", "256K", "--total", "4M", "--access", "random", "--op", "read"]
        self.command(*synth, "--shared", "--file", self.data / "shared.dat", "-o", trace)
        self.command("plan", trace, "-c", cluster, "--scheme", scheme, *words, "--min-gain", "none", "-o", plan)
        return plan

    def ask(self, *call):
        """The output of a tool."""
        environment = {**os.environ, **self.environment}
        call = [str(FAKES / call[0]), *map(str, call[1:])]
        return subprocess.run(call, env=environment, capture_output=True, text=True, check=True).stdout

    def servers_of(self, path):
        """The servers that a file is on, by the names in its layout."""
        if self.system.name == "lustre":
            words = self.ask("lfs", "getstripe", "-d", "--yaml", path).split()
            return [words[i + 1] for i, word in enumerate(words) if word == "l_ost_idx:"]
        if self.system.name == "beegfs":
            told = self.ask("beegfs", "entry", "info", path, "--output", "json", "--raw")
            return [target.removeprefix("s:") for target in told.split('"storage_targets":"')[1].split('"')[0].split(",")]
        lines = self.ask("pvfs2-viewdist", "-f", path).splitlines()
        return [line.split(" - ")[1].split(",")[0] for line in lines if line.startswith("Datafile")]


@pytest.fixture(params=SYSTEMS, ids=[system.name for system in SYSTEMS])
def site(request, tmp_path, stripewise):
    return Site(request.param, tmp_path, stripewise)


def listed(names):
    return "servers = [" + ", ".join(f'"{name}"' for name in names) + "]"


CONTENT = bytes(range(256)) * (4 << 12)


def written_and_exported(site, plan, python):
    """Writes a file over a plan and returns its objects, by target."""
    path, source = site.data / "shared.dat", site.mount.parent / "source"
    source.write_bytes(CONTENT)
    script = f"import shutil; shutil.copyfileobj(open({str(source)!r}, 'rb'), open({str(path)!r}, 'wb'), 1 << 18)"
    site.stripewise("run", "-p", plan, "--", python, "-c", script)
    assert path.read_bytes().startswith(b"stripewise file")
    site.stripewise("fsck", "-p", plan, path)
    components = {}
    for file in site.root.rglob("*"):
        if file.is_file() and file.stat().st_size >= 4096:
            components.setdefault(file.relative_to(site.root).parts[0], []).append(file)
    of = lambda files: (sum(file.stat().st_size for file in files), site.servers_of(files[0]))
    found = {target: of(files) for target, files in components.items()}
    site.stripewise("export", path)
    assert path.read_bytes() == CONTENT
    return found


# A real OrangeFS cannot hold targets (docs/filesystems/orangefs.md).
WITH_TARGETS = pytest.mark.parametrize("site", SYSTEMS[:2], ids=["lustre", "beegfs"], indirect=True)


@WITH_TARGETS
def test_servers_one_by_one_hold_what_the_plan_says(site, python):
    plan = site.plan(site.cluster(listed(site.system.hdd), listed(site.system.ssd)), "pa")
    site.stripewise("place", plan)
    found = written_and_exported(site, plan, python)
    assert sum(size for size, _ in found.values()) == len(CONTENT)
    numbers = {"h0": "10", "h1": "20", "s0": "30", "s1": "40"}
    names = [numbers.get(name, name) for name in site.system.hdd + site.system.ssd]
    servers = {f"{tier}-{index}": [names[2 * place + index]] for place, tier in enumerate(["hdd", "ssd"]) for index in (0, 1)}
    assert {target: servers for target, (_, servers) in found.items()} == {target: servers[target] for target in found}
    # With varied stripes the fast servers hold more.
    assert min(found[f"ssd-{i}"][0] for i in (0, 1)) > max((found.get(f"hdd-{i}", (0, 0))[0] for i in (0, 1)))


@WITH_TARGETS
def test_pools_are_striped_by_the_file_system(site, python):
    slow, fast = (f'pool = "{pool}"\ncount = 2' for pool in site.system.pools)
    plan = site.plan(site.cluster(slow, fast), "stripe 64K on ssd")
    site.stripewise("place", plan)
    found = written_and_exported(site, plan, python)
    [(target, (size, servers))] = found.items()
    assert (target, size, len(set(servers))) == ("ssd-64Kx2", len(CONTENT), 2)
    if site.system.name == "lustre":
        assert set(servers) == {"4", "5"}


@WITH_TARGETS
def test_what_calibrate_leaves_is_no_target(site, python):
    """Where the file system picks the servers, the directories of plans and of `calibrate` are found
    by their names. Those of `calibrate` have no marker, which is no problem until they hold
    objects."""
    slow, fast = (f'pool = "{pool}"\ncount = 2' for pool in site.system.pools)
    cluster = site.cluster(slow, fast)
    site.stripewise("calibrate", "-c", cluster, "--quick", "--file-size", "64M", "--seconds-per-point", "0.001", "-q")
    measured = {path.name for path in site.root.iterdir()}
    assert measured == {"hdd-4Mx1", "ssd-4Mx1"}
    plan = site.plan(cluster, "stripe 64K on ssd")
    site.stripewise("place", plan)
    assert written_and_exported(site, plan, python).keys() == {"ssd-64Kx2"}
    assert "1 targets checked: 0 problems" in site.stripewise("fsck", "-c", cluster).out
    (site.root / "ssd-4Mx1" / "stripewise").mkdir(exist_ok=True)
    (site.root / "ssd-4Mx1" / "stripewise" / "u0").mkdir()
    found = site.stripewise("fsck", "-c", cluster, ok=False)
    assert found.code == 1 and "ssd-4Mx1: target is missing" in found.out, str(found)


@pytest.mark.parametrize("site", SYSTEMS[:1], ids=["lustre"], indirect=True)
def test_a_cache_fills_what_all_servers_of_a_pool_may_hold(site, python):
    """The targets are directories over all servers of the pool. tests/cephfs does the same on a
    file system that stripes."""
    slow, fast = (f'pool = "{pool}"\ncount = 2' for pool in site.system.pools)
    capacity = 1 << 20
    plan = site.plan(site.cluster(slow, fast), "cache", "--cache-mode", "nsca", "--cache-capacity", capacity)
    site.stripewise("place", plan)
    path, source = site.data / "shared.dat", site.mount.parent / "source"
    source.write_bytes(CONTENT)
    script = f"c = open({str(source)!r}, 'rb').read(); f = open({str(path)!r}, 'wb'); [f.write(c[i : i + 65536]) for i in range(0, len(c), 65536)]"
    site.stripewise("run", "-p", plan, "--", python, "-c", script)
    _original, *caches = status(site.stripewise, path)["copies"]
    assert [target["name"] for target in caches[0]["targets"]] == ["ssd/64Kx2"]
    assert capacity < sum(copy["valid_bytes"] for copy in caches) <= 2 * capacity
    site.stripewise("fsck", "-p", plan, path)
    site.stripewise("export", path)
    assert path.read_bytes() == CONTENT


def test_native_layouts_of_files_that_exist(site):
    slow, fast = (f'pool = "{pool}"\ncount = 2' for pool in site.system.pools)
    plan = site.plan(site.cluster(slow, fast), "stripe 64K on ssd")
    path = site.data / "shared.dat"
    path.write_bytes(CONTENT)
    site.stripewise("place", "--native", plan)
    assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(CONTENT).digest()
    assert len(site.servers_of(path)) == 2
    assert [file.name for file in site.data.iterdir() if not file.name.startswith(".")] == ["shared.dat"]


BEEGFS = pytest.mark.parametrize("site", SYSTEMS[1:2], ids=["beegfs"], indirect=True)


@BEEGFS
def test_a_mirrored_file_stays_as_it_is(site):
    with open(site.state / "fake.conf", "a") as conf:
        conf.write("buddy 1 Default\n")
    path, info = site.data / "shared.dat", ["beegfs", "entry", "info", "--output", "json", "--raw"]
    site.ask("beegfs", "entry", "set", "--pattern=mirrored", site.data)
    path.write_bytes(CONTENT)
    site.ask(*info, path)  # the fake notes the pattern of new files
    site.ask("beegfs", "entry", "set", "--pattern=raid0", site.data)
    before, inode = site.ask(*info, path), path.stat().st_ino
    slow, fast = (f'pool = "{pool}"\ncount = 2' for pool in site.system.pools)
    plan = site.plan(site.cluster(slow, fast), "stripe 64K on ssd")
    placed = site.stripewise("place", "--native", plan, ok=False)
    assert placed.code == 1 and "shared.dat: stays as it is: the pattern is Buddy Mirror" in placed.err, str(placed)
    site.stripewise("place", "--native", "--undo", plan)
    assert "Buddy Mirror" in before and (site.ask(*info, path), path.stat().st_ino) == (before, inode)
    assert path.read_bytes() == CONTENT


@BEEGFS
def test_a_directory_that_asks_for_more_targets_than_its_pool_has_comes_back(site):
    info = ["beegfs", "entry", "info", "--output", "json", "--raw", site.data]
    site.ask("beegfs", "entry", "set", "--pool=slow", "--num-targets=4", site.data)
    (site.data / "shared.dat").write_bytes(CONTENT)
    before = site.ask(*info)
    slow, fast = (f'pool = "{pool}"\ncount = 2' for pool in site.system.pools)
    plan = site.plan(site.cluster(slow, fast), "stripe 64K on ssd")
    site.stripewise("place", "--native", plan)
    assert site.ask(*info) != before
    site.stripewise("place", "--native", "--undo", plan)
    assert site.ask(*info) == before and (site.data / "shared.dat").read_bytes() == CONTENT


def test_init_says_what_is_there(site):
    text = site.stripewise("init", site.root).out
    assert f'driver = "{site.system.name}"' in text
    assert all(name in text for name in site.system.ssd), text
    assert list(Path(site.root).iterdir()) == []


def test_without_the_tool_it_is_a_plain_directory(tmp_path, stripewise):
    nowhere = {name: "/nowhere" for name in ("STRIPEWISE_LFS", "STRIPEWISE_BEEGFS", "STRIPEWISE_PVFS2_STATFS")}
    assert 'driver = "dirs"' in stripewise("init", tmp_path, env=nowhere).out
