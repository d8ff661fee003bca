"""fsx on managed files of every kind: random reads, writes, mappings, truncates and allocations,
each compared with a model in memory.

fsx is the crate of that name; `make workloads` installs it. To see the operations of a failed run,
run its command again with `-v`: the same seed gives the same operations.
"""

import json
import re
import subprocess
import threading
from collections import Counter

import pytest
from conftest import LONG

OPERATIONS = 1_000_000 if LONG else 10_000
SEEDS = range(1, 4) if LONG else [1]
# fsx does not unmap what it reads through mappings, and a process can have at most 65530 mappings.
SEGMENT = 50_000
SIZE = 4 << 20


def copy(kind, name, cycle, more=""):
    """An extra copy of the rule."""
    return f'[[rule.copy]]\nkind = "{kind}"\nname = "{name}"\n{more}\nlayouts = [[{{ cycle = "{cycle}" }}]]\n'


def cache(overlay):
    """Two cache copies that are much smaller than the file, so that write-back and eviction are
    constantly active."""
    copies = copy("cache", "1-DH", "ssd/0-3:16K", "groups = 1") + copy("cache", "1-DV", "ssd/0-3:1M", "groups = 4")
    return f"{copies}[rule.overlay]\n{overlay}\n"


HDDS = '[{ cycle = "hdd/0-3:64K" }]'
# The first layout is that of the file. Plans of file-per-process schemes have several layouts,
# which files use in turn.
KINDS = {
    "1-DH": ('[{ cycle = "hdd/0-3:64K ssd/0-3:64K" }]', ""),
    "1-DV": (", ".join(f'[{{ cycle = "{tier}/{n}:64K" }}]' for tier in ("ssd", "hdd") for n in range(4)), ""),
    "2-D": (", ".join(f'[{{ cycle = "hdd/{n}-{n + 1}:64K ssd/{n}-{n + 1}:64K" }}]' for n in (0, 2)), ""),
    "PA": ('[{ cycle = "hdd/0-3:16K ssd/0-3:48K" }]', ""),
    "PSA": (
        '[{ end = "1M", cycle = "hdd/0-3:16K ssd/0-3:48K" }, { end = "2500K", cycle = "ssd/0-3:12K" }, { cycle = "hdd/0-3:64K" }]',
        "",
    ),
    "unmappable": ('[{ end = "300001", cycle = "hdd/0-3:1000 ssd/0-3:333" }, { cycle = "hdd/0-3:64K" }]', ""),
    "replicas": (HDDS, copy("replica", "wide", "ssd/0-3:16K") + copy("replica", "narrow", "hdd/1:1M")),
    "cache, all": (HDDS, cache('mode = "nsca"\ncapacity_per_server = "512K"')),
    "cache, selective": (HDDS, cache('mode = "sla"\ncapacity_per_server = "256K"\nprocs = 4\nprocs_per_node = 4')),
}

MAPPED = {"mapread": 4, "mapwrite": 6, "invalidate": 0.3}
WEIGHTS = {
    "read": 20, "write": 20, **MAPPED, "truncate": 2, "posix_fallocate": 1, "copy_file_range": 3, "sendfile": 3, "close_open": 0.5,
    "fsync": 0.2, "fdatasync": 0.2, "posix_fadvise": 0.5,
}  # fmt: skip
# Names in the output of `fsx -v` where they differ from the name of the weight.
SAID = {"invalidate": "msync(MS_INVALIDATE)", "close_open": "close/open"}


def write_plan(cluster, kind):
    """A plan with one rule for all files in the cluster's data directory."""
    layouts, copies = KINDS[kind]
    text = re.sub(r"^(\[+)", r"\1cluster.", cluster.text(), flags=re.MULTILINE)
    cluster.plan.write_text(
        f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = {json.dumps(f"{cluster.data}/**")}\nscheme = "DEF"\nreason = "a test"\n'
        f"predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [{layouts}]\n{copies}\n{text}"
    )


def write_weights(path, kind, seed):
    """Writes fsx's configuration; returns the operations that occur."""
    weights = {name: 0 if kind == "unmappable" and name in MAPPED else weight for name, weight in WEIGHTS.items()}
    # A third of the long runs syncs every mapping that it wrote to.
    unsynced = "false" if seed % 3 == 0 else "true"
    lines = [f"flen = {SIZE}", f"nomsyncafterwrite = {unsynced}", "[opsize]", "max = 65536", "[weights]"]
    path.write_text("\n".join([*lines, *(f"{name} = {weight}" for name, weight in weights.items())]) + "\n")
    return [SAID.get(name, name) for name, weight in weights.items() if weight]


class Bystander:
    """Other processes that keep the file open during the run, read and sync it, and drain its
    copies if it has any."""

    READER = r"""
import os, random, sys, time
reads = 0
while os.path.exists(sys.argv[2]):
    try:
        file = os.open(sys.argv[1], os.O_RDWR)
    except FileNotFoundError:
        continue
    for _ in range(20):
        os.pread(file, 70000, random.randrange(4 << 20))
        reads += 1
    if reads % 100 == 0:
        os.fsync(file)
    os.close(file)
    time.sleep(0.02)
print(reads)
"""

    def __init__(self, cluster, python, path, has_copies):
        self.cluster, self.path, self.ended = cluster, path, threading.Event()
        self.flag = cluster.root / "flag"
        self.flag.touch()
        command = ["nice", python, "-c", self.READER, path, self.flag]
        environment = {"PATH": "/usr/bin:/bin", **cluster.environment()}
        self.reader = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.copier = threading.Thread(target=self.copy) if has_copies else None

    def copy(self):
        """Drains the copies until fsx has ended."""
        while not self.ended.wait(0.2):
            for command in ("drain", "warm"):
                subprocess.run([self.cluster.bin_dir / "stripewise", command, "-q", self.path], capture_output=True, check=False)

    def __enter__(self):
        if self.copier:
            self.copier.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.flag.unlink()
        if self.copier:
            self.copier.join()
        said, _ = self.reader.communicate()
        assert self.reader.returncode == 0 and int(said) > 0


def operations(said):
    """Number of operations of each kind, from the output of `fsx -v`."""
    return Counter(re.findall(r"^\[INFO +fsx\] +\d+ ([a-z_]+(?:/open|\(MS_INVALIDATE\))?)", said, re.MULTILINE))


def run(cluster, fsx, path, seed, count):
    """Runs fsx over the plan. Returns the number of its operations by kind."""
    command = [fsx, "-v", "-f", cluster.root / "fsx.toml", "-P", cluster.root, "-N", count, "-S", seed, path]
    environment = {"STRIPEWISE_STATISTICS": str(cluster.root / "statistics")}
    result = cluster.run(*command, env=environment, ok=False, timeout=7200)
    assert result.code == 0, f"{' '.join(map(str, command))}\n{result.err[-100_000:]}"
    return operations(result.err)


def assert_managed(cluster, stripewise, path, has_copies):
    """The file is an anchor, and fsck finds nothing. With several copies, others than the original
    were used."""
    assert path.read_bytes().startswith(b"stripewise file, format ")
    found = stripewise("fsck", "--json", "-p", cluster.plan, cluster.data, "--orphan-age", 0, ok=False).json()
    assert [it for it in found["findings"] if it["problem"]] == []
    if not has_copies:
        return
    counted = [json.loads(line) for line in (cluster.root / "statistics").read_text().splitlines()]
    assert sum(line["requests"] for line in counted) > OPERATIONS / 4
    further = [copy for line in counted for copy in line["copies"][1:]]
    assert sum(copy["written_bytes"] for copy in further) > 0 and sum(copy["read_bytes"] for copy in further) > 0, counted
    if counted[0]["kind"] == "cache":
        assert sum(line["evictions"] for line in counted) > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_is_as_the_model_says(cluster, stripewise, fsx, python, kind, seed):
    write_plan(cluster, kind)
    stripewise("place", cluster.plan)
    occur = write_weights(cluster.root / "fsx.toml", kind, seed)
    path, made = cluster.data / "file", Counter()
    has_copies = bool(KINDS[kind][1])
    with Bystander(cluster, python, path, has_copies):
        for segment in range(OPERATIONS // min(SEGMENT, OPERATIONS)):
            made += run(cluster, fsx, path, seed * 1000 + segment, min(SEGMENT, OPERATIONS))
    assert_managed(cluster, stripewise, path, has_copies)
    # The weights add up to 60, so the rarest operation occurs about 30 times in 10,000. Some
    # reads of an empty file are skipped.
    assert all(made[name] > OPERATIONS / 1000 for name in occur), made
    assert sum(made.values()) > OPERATIONS * 0.9, made


@pytest.mark.parametrize("how", ["--punch-hole", "--zero-range", "--collapse-range", "--insert-range"])
def test_what_stripes_of_many_files_cannot_do_at_once_is_refused(cluster, how):
    """These operations fail with the errno on which programs fall back to zeros or to copying, and
    nothing is changed."""
    write_plan(cluster, "1-DH")
    path, content = cluster.data / "file", bytes(n % 251 for n in range(300_000))
    (cluster.root / "plain").write_bytes(content)
    cluster.run("cp", cluster.root / "plain", path)
    refused = cluster.run("fallocate", how, "--offset", 65536, "--length", 65536, path, ok=False)
    assert refused.code != 0 and re.search("not supported|unsupported", refused.err), str(refused)
    assert cluster.run("cmp", cluster.root / "plain", path).out == ""
