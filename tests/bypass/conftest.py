"""Managed files of every kind, and calls that bypass the library that serves them."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from conftest import run_command

HERE = Path(__file__).resolve().parent
WARNINGS = ["-O1", "-g", "-Wall", "-Wextra"]

REPLICA = '[[rule.copy]]\nkind = "replica"\nname = "replica"\nlayouts = [[{ cycle = "ssd/0-3:64K" }]]\n'
CACHE = (
    '[[rule.copy]]\nkind = "cache"\nname = "cache"\nlayouts = [[{ cycle = "ssd/0-3:64K" }]]\n'
    '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "1G"\n'
)
# The layout and the extra copies of each kind of managed file.
REGIONS = '[{ end = "100K", cycle = "hdd/0-3:4K ssd/0-3:12K" }, { cycle = "hdd/0-3:64K" }]'
KINDS = {
    "1-DH": ('[{ cycle = "hdd/0-3:64K ssd/0-3:64K" }]', ""),
    "2-D": ('[{ cycle = "hdd/0-1:64K hdd/2-3:64K ssd/0-3:64K" }]', ""),
    "PSA": (REGIONS, ""),
    "replicas": ('[{ cycle = "hdd/0-3:64K" }]', REPLICA),
    "cache": ('[{ cycle = "hdd/0-3:64K" }]', CACHE),
}


def plan_text(cluster, layout, copies):
    """A plan with one rule for all files in the cluster's data directory."""
    text = cluster.text().replace("[network]", "[cluster.network]").replace("[class.", "[cluster.class.")
    pattern = json.dumps(f"{cluster.data}/**")
    return (
        f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = {pattern}\nscheme = "DEF"\nreason = "a test"\n'
        f"predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [{layout}]\n{copies}\n" + text.replace("[[tier]]", "[[cluster.tier]]")
    )


class Prey:
    """A managed file, with the expected bytes of its anchor and of its data."""

    def __init__(self, cluster, kind, stripewise):
        self.cluster, self.kind, self.stripewise = cluster, kind, stripewise
        cluster.plan.write_text(plan_text(cluster, *KINDS[kind]))
        self.path = cluster.data / "file"
        self.scratch = cluster.root / "scratch"
        self.data = bytes(i * 7 % 251 for i in range(300_000))
        self.scratch.write_bytes(self.data)
        self.with_library("cp", self.scratch, self.path)
        self.settle()
        assert self.path.read_bytes().startswith(b"stripewise file, format ")
        self.anchor = self.anchor_now()

    def restore(self):
        """Writes the original bytes again."""
        self.with_library("dd", f"if={self.scratch}", f"of={self.path}", "conv=notrunc", "status=none")
        self.settle()

    def with_library(self, *command, **options):
        """Runs a command over the plan."""
        return self.cluster.run(*command, **options)

    def settle(self):
        """Drains the file, so that copies and anchor are up to date."""
        self.stripewise("drain", self.path)

    def content(self):
        """The bytes as a program with the library reads them."""
        environment = {"PATH": "/usr/bin:/bin", **self.cluster.environment()}
        return subprocess.run(["cat", self.path], env=environment, capture_output=True, check=True).stdout

    def anchor_now(self):
        """The anchor's size and a digest of its bytes, read without the library."""
        content = self.path.read_bytes()
        return len(content), hashlib.sha256(content).hexdigest()

    def assert_unharmed(self):
        """The manifest and the data are unchanged, and fsck finds nothing."""
        assert self.anchor_now() == self.anchor
        assert self.content() == self.data
        self.assert_clean()

    def assert_clean(self):
        """fsck finds nothing in the file and the targets."""
        checked = self.stripewise("fsck", "-c", self.cluster.toml, self.cluster.data, ok=False)
        assert checked.code == 0, checked


@pytest.fixture(params=KINDS)
def prey(cluster, request, stripewise):
    """A managed file of each kind."""
    return Prey(cluster, request.param, stripewise)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The directory of the built programs."""
    directory = tmp_path_factory.mktemp("bypass")
    compiled(directory, ["gcc"], "bypass.c")
    return directory


def compiled(directory, compiler, source, *flags, to=None, env=None):
    """Builds a program of this directory, and returns its path."""
    program = directory / (to or Path(source).stem)
    warnings = [] if source.endswith(".go") else WARNINGS
    run_command(*compiler, *warnings, "-o", program, HERE / source, *flags, env=env)
    return program


def cases(source):
    """The names of a program's cases, from its source."""
    text = (HERE / source).read_text()
    table = text[text.index("} cases[] = {") :]
    return [part.split('"')[1] for part in table[: table.index("};")].split("{")[2:] if '"' in part]


def run_raw(*command):
    """Runs a command without the library."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
