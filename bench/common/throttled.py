"""The workload's files on throttled disks (testbed/disks): prepared, measured without caches, and
planned."""

import json
import os
import time
from pathlib import Path

from programs import Failed
from sizes import human

# Seed of the data that files hold before the timed writes, which use other seeds.
SEED_BEFORE = 1 << 20
# Size of the transfers that prepare files. It is large, so that a file system allocates a file
# contiguously.
PREPARE_BYTES = 4 << 20


class Throttled:
    """Throttled disks, a cluster on them, and files there. `directory` gets traces and plans.
    `file` is the workload's file, alone in the directory `data`. `farm` throttles the disks."""

    # How files are written before the measurement.
    api_before = "mpiio"

    def __init__(self, programs, farm, directory, data):
        self.programs, self.farm, self.directory, self.data = programs, farm, directory, data
        self.cluster = directory / "cluster.toml"
        self.file = data / "file"

    def remove_files(self):
        """Removes the workload's files with their objects."""
        files = sorted(path for path in self.data.iterdir())
        if files:
            self.farm.delay(False)
            self.programs.command("rm", *files)

    def prepare(self, ranks, plan, block_bytes, private):
        """Fills the files over a plan, unthrottled. Timed writes overwrite them in place."""
        self.remove_files()
        self.farm.delay(False)
        transfer = min(PREPARE_BYTES, block_bytes)
        while block_bytes % transfer:
            transfer //= 2
        words = ["--transfer", transfer, "--block", block_bytes, "--seed", SEED_BEFORE, "--op", "write", "--api", self.api_before]
        self.programs.run_ior(ranks, self.file, *words, *private_words(private), plan=plan)
        if self.api_before != "direct":
            os.sync()
        self.farm.delay(True)

    def measured(self, ranks, plan, private, *words, op="both", env=None):
        """Writes or reads the files, or both; each request bypasses all caches, and every byte read
        is verified. Returns {op: {"seconds", "bytes", "verified", "requests", "cpu"}}: requests to
        the disks, and the fraction of all processors that was busy meanwhile."""
        words = [*words, *private_words(private), "--api", "direct", "--op", op, *["--verify"] * (op != "write")]
        before, busy_s, begun_s = self.farm.statistics(), cpu_s(), time.monotonic()
        result = self.programs.run_ior(ranks, self.file, *words, plan=plan, env=env)
        cpu = (cpu_s() - busy_s) / (time.monotonic() - begun_s) / os.cpu_count()
        after = self.farm.statistics()
        if result["wrong_bytes"]:
            raise Failed(f"{result['wrong_bytes']} wrong bytes")

        def requests(counter):
            return sum(after[disk][counter] - before[disk][counter] for disk in after)

        return {
            phase["op"]: {
                "seconds": phase["elapsed_s"],
                "bytes": phase["bytes"],
                "verified": op == "write" or result["verified_bytes"] == phase["bytes"],
                "requests": requests({"read": "reads", "write": "writes"}[phase["op"]]),
                "cpu": round(cpu, 3),
            }
            for phase in result["phases"]
        }

    def check_exported(self, ranks, *words):
        """Exports the file and reads it without the library. Every byte must be right,
        else Failed."""
        self.farm.delay(False)
        self.programs.command("export", self.file)
        result = self.programs.run_ior(ranks, self.file, *words, *private_words(False), "--op", "read", "--verify")
        if result["wrong_bytes"] or not result["verified_bytes"]:
            raise Failed(f"{result['wrong_bytes']} wrong bytes after export")
        self.file.unlink()

    # --- traces and plans

    def trace(self, ranks, size, block_bytes, access, op, private, seed=0):
        """A trace of the workload's requests. The same seed gives exactly the same requests."""
        path = self.directory / f"{op}.trace"
        path.unlink(missing_ok=True)
        words = ["--procs", ranks, "--transfer", human(size), "--block", human(block_bytes), "--access", access, "--op", op]
        words += ["--seed", seed, *([] if private else ["--shared", "--random-within", "own"])]
        self.programs.command("synth", "ior", *words, "--file", self.file, "-o", path)
        return path

    def plan(self, trace, scheme, *words):
        """The plan of a scheme for a trace, and the output of `stripewise plan --json` about it."""
        path = Path(f"{self.directory}/{scheme.replace(' ', '-').replace(':', '-')}.plan.toml")
        words = ["-c", self.cluster, "--min-gain", "none", "--quiet", "--json", "--force", "-o", path, *words]
        return path, json.loads(self.programs.command("plan", trace, "--scheme", scheme, *words))["files"][0]

    def simulated(self, trace, plan):
        """The result of `stripewise sim` for a plan: {"elapsed_s", "bytes": {server: bytes}}."""
        (found,) = json.loads(self.programs.command("sim", trace, "-p", plan, "--json", "--quiet"))["plans"]
        (run,) = found["runs"]
        of_servers = zip(found["servers"], run["servers"], strict=True)
        return {"elapsed_s": run["elapsed_s"], "bytes": {name: server["bytes"] for name, server in of_servers}}


def private_words(private):
    """One file per process, or one file with a segment for each process."""
    return ["--file-per-process"] if private else ["--random-within", "block"]


def cpu_s():
    """Seconds that all cores together were busy since boot, with any work."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
