"""A directory with emulated servers, and the files of the workload on them."""

import shutil
from pathlib import Path

import servers
import statistics_of


class Workspace:
    """Cluster, plans and files of one experiment."""

    def __init__(self, directory, programs, emulation, tiers, capacity_bytes, emulate=True):
        self.directory = Path(directory).resolve()
        self.programs, self.emulation, self.tiers = programs, emulation, tiers
        self.remove()
        (self.directory / "data").mkdir(parents=True)
        self.cluster = servers.write_cluster(self.directory, tiers, capacity_bytes, emulate)

    def remove(self):
        """Removes everything that an earlier workspace created here."""
        for own in ("servers", "data"):
            shutil.rmtree(self.directory / own, ignore_errors=True)

    @property
    def file(self):
        return self.directory / "data" / "file"

    def plan(self, name, trace, *words):
        """Makes the plan called `name` for a trace; discards the output."""
        path = self.directory / f"{name}.plan.toml"
        stripewise = self.programs.command
        stripewise("plan", trace, "-c", self.cluster, "--min-gain", "none", "--quiet", "-o", path, *words)
        return path

    def cluster_of_plans(self):
        """The cluster section of a plan."""
        trace = self.directory / "trace"
        synth = ["synth", "ior", "--procs", 1, "--transfer", "64K", "--total", "1M", "--op", "read", "--shared"]
        self.programs.command(*synth, "--file", self.file, "-o", trace)
        text = self.plan("any", trace, "--scheme", "1-DH").read_text()
        return text[text.index("# The cluster") :]

    def measured(self, ranks, plan, *words, path=None, env=None):
        """Runs the workload over a plan, in one direction. Returns the seconds and the servers'
        work. Every byte read is verified. Written bytes are verified when they are read, because an
        immediate check would read everything and affect the cache."""
        counts = self.directory / "statistics.jsonl"
        counts.unlink(missing_ok=True)
        watch = servers.Watch(self.emulation, self.directory, self.tiers)
        path = path or self.file
        verify = ["--verify"] if "read" in words else []
        result = self.programs.run_ior(ranks, path, *words, *verify, plan=plan, env={"STRIPEWISE_STATISTICS": str(counts), **(env or {})})
        usage = {name: vars(tier) for name, tier in watch.usage().items()}
        (phase,) = result["phases"]
        values = {key: phase[key] for key in ("op", "elapsed_s", "open_s", "close_s", "bytes")}
        return {
            **values,
            "verified_bytes": result["verified_bytes"],
            "servers": usage,
            "statistics": statistics_of.counted(counts),
        }

    def export_and_check(self, ranks, words):
        """Exports the file and reads it without the library. Returns the number of bytes, all of
        which are right."""
        self.programs.command("export", self.file)
        return self.programs.run_ior(ranks, self.file, *words, "--op", "read", "--verify")["verified_bytes"]
