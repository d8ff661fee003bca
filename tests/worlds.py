"""Plain files beside managed ones: what programs do on both must be equal."""

import hashlib
import json
import subprocess
from dataclasses import dataclass

from conftest import ClusterDir, Result, run_command

MAGIC = b"stripewise file, format "

# Stripes that are multiples of the page size, odd ones, one server, and several regions.
CYCLES = {
    "striped": '[{ cycle = "hdd/0-3:4K ssd/0-3:8K" }]',
    "odd": '[{ cycle = "hdd/0-3:1000 ssd/0-3:333" }]',
    "one server": '[{ cycle = "hdd/1:1G" }]',
    "regions": '[{ end = "100K", cycle = "hdd/0-3:4K ssd/0-3:12K" }, { end = "300001", cycle = "ssd/1:77" },'
    ' { cycle = "hdd/0-3:64K" }]',
}


@dataclass
class Worlds:
    """Two directories: the files of one are plain, those of the other managed."""

    cluster: ClusterDir
    layout: str = CYCLES["striped"]
    copies: str = ""  # tables of the rule: extra copies and their settings
    counts: bool = False  # processes write statistics of their use of the copies

    def __post_init__(self):
        self.plain = self.cluster.root / "plain"
        self.plain.mkdir()
        self.managed = self.cluster.data
        self.cluster.plan.write_text(self.plan_text())

    def plan_text(self):
        """A plan with one rule for all files in the managed directory."""
        cluster = self.cluster.text().replace("[network]", "[cluster.network]").replace("[class.", "[cluster.class.")
        return (
            f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = {json.dumps(f"{self.managed}/**")}\nscheme = "DEF"\n'
            f'reason = "a test"\npredicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [{self.layout}]\n{self.copies}\n'
            + cluster.replace("[[tier]]", "[[cluster.tier]]")
        )

    def with_library(self, *args, **options):
        """Runs a command over the plan."""
        if self.counts:
            options["env"] = {"STRIPEWISE_STATISTICS": str(self.statistics), **(options.get("env") or {})}
        return self.cluster.run(*args, **options)

    @property
    def statistics(self):
        """The file into which processes write their statistics."""
        return self.cluster.root / "statistics"

    def counted(self):
        """The statistics that were written (docs/formats/statistics.md)."""
        return [json.loads(line) for line in self.statistics.read_text().splitlines()] if self.statistics.exists() else []

    def both(self, make_args, ok=True, **options):
        """Runs make_args(directory) in both directories. The output must be equal except for the
        directory's name."""
        results = []
        for directory, run in ((self.plain, run_command), (self.managed, self.with_library)):
            result = run(*make_args(directory), ok=ok, **options)
            results.append(Result(result.args, result.code, *(t.replace(str(directory), "DIR") for t in (result.out, result.err))))
        plain, managed = results
        assert (plain.code, plain.out, plain.err) == (managed.code, managed.out, managed.err), f"{plain}\n\n{managed}"
        return managed

    def content(self, name):
        """The bytes of a managed file as a program with the library reads them."""
        done = subprocess.run(
            ["cat", self.managed / name], env={"PATH": "/usr/bin:/bin", **self.cluster.environment()}, capture_output=True, check=True
        )
        return done.stdout

    def assert_same(self, name):
        """The file is managed, and has the bytes and the size of the plain one."""
        assert self.is_managed(name), f"{name} is not managed"
        plain, managed = (self.plain / name).read_bytes(), self.content(name)
        assert (len(plain), hashlib.sha256(plain).digest()) == (len(managed), hashlib.sha256(managed).digest()), name
        assert self.anchor_length(name) == (self.managed / name).stat().st_size, "the anchor is the manifest, and nothing else"

    def anchor_length(self, name):
        """Size of the manifest, bytes."""
        with open(self.managed / name, "rb") as anchor:
            return int(next(line for line in anchor if line.startswith(b"length")).split(b"=")[1].split()[0])

    def is_managed(self, name):
        """Whether the file at the path is an anchor."""
        with open(self.managed / name, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC

    def objects(self):
        """All object files."""
        return [file for target in self.cluster.targets for file in target.rglob("*") if file.is_file() and "stripewise/" in str(file)]
