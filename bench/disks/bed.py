"""The disks, the cluster on them, its calibration, and the files of the workload."""

import json
import os
from pathlib import Path

from farm import Farm
from programs import Failed
from sizes import human

# Of a disk, for the file system itself.
RESERVE_MIB = 64
# Data that files hold before they are written in the timed part; those have other seeds.
SEED_BEFORE = 1 << 20
# Transfers that prepare files: large ones, so that the file system lays a file out in one piece.
PREPARE_BYTES = 4 << 20


class Bed:
    """Disks that were brought up for as long as this is entered."""

    def __init__(self, args, programs, disks):
        self.args, self.programs, self.disks = args, programs, disks
        self.farm = Farm(args.dir / "bed")
        self.directory = args.dir.resolve()
        self.cluster = self.directory / "cluster.toml"
        self.data = self.directory / "data"
        self.file = self.data / "file"

    def __enter__(self):
        self.data.mkdir(parents=True, exist_ok=True)
        self.farm.up(self.args.slowdisk, self.disks, self.args.images, self.args.size_mib, self.args.file_system)
        return self

    def __exit__(self, *error):
        self.remove_files()
        self.farm.down()

    def calibrated(self, tiers, quick=True):
        """Writes cluster.toml with these tiers, {name: (disks, bytes per disk)}, and measures them with `stripewise calibrate`."""
        parts = []
        for tier, (names, capacity_bytes) in tiers.items():
            servers = [self.farm.mount_point(name) / "target" for name in names]
            for server in servers:
                server.mkdir(exist_ok=True)
            parts += [f'[[tier]]\nname = "{tier}"\nclass = "{tier}"\ndriver = "dirs"']
            parts += [f"servers = {json.dumps([str(server) for server in servers])}"]
            parts += [f"capacity_per_server = {capacity_bytes}"]
        self.cluster.write_text("\n".join(parts) + "\n")
        (self.directory / "profile.toml").unlink(missing_ok=True)
        words = ["--quick"] if quick else []
        self.programs.command("calibrate", "-c", self.cluster, "--quiet", *words)

    def capacity_bytes(self):
        """Of a disk, for data."""
        return self.args.size_mib - RESERVE_MIB << 20

    def remove_files(self):
        """Removes the workload's files with their components."""
        files = sorted(self.data.iterdir())
        if files:
            self.farm.delay(False)
            self.programs.command("rm", *files)

    def prepare(self, ranks, plan, block_bytes, private):
        """Fills the files over a plan, at full speed: timed writes overwrite them where they are."""
        self.remove_files()
        transfer = min(PREPARE_BYTES, block_bytes)
        while block_bytes % transfer:
            transfer //= 2
        words = ["--transfer", transfer, "--block", block_bytes, "--seed", SEED_BEFORE, "--op", "write"]
        self.programs.run_ior(ranks, self.file, *words, *private_words(private), plan=plan)
        os.sync()
        self.farm.delay(True)

    def measured(self, ranks, plan, private, *words):
        """Writes and reads the files, each request one of the disk; {op: {"seconds", "bytes", "verified", "requests"}}."""
        before = self.farm.statistics()
        result = self.programs.run_ior(
            ranks, self.file, *words, *private_words(private), "--api", "direct", "--op", "both", "--verify", plan=plan
        )
        after = self.farm.statistics()
        if result["wrong_bytes"]:
            raise Failed(f"{result['wrong_bytes']} wrong bytes")

        def requests(counter):
            return sum(after[disk][counter] - before[disk][counter] for disk in after)

        return {
            phase["op"]: {
                "seconds": phase["elapsed_s"],
                "bytes": phase["bytes"],
                "verified": result["verified_bytes"] == phase["bytes"],
                "requests": requests({"read": "reads", "write": "writes"}[phase["op"]]),
            }
            for phase in result["phases"]
        }

    def trace(self, ranks, size, block_bytes, access, op, private):
        """What the workload would do, as a trace."""
        path = self.directory / "trace"
        path.unlink(missing_ok=True)
        words = ["--procs", ranks, "--transfer", human(size), "--block", human(block_bytes), "--access", access, "--op", op]
        words += [] if private else ["--shared", "--random-within", "own"]
        self.programs.command("synth", "ior", *words, "--file", self.file, "-o", path)
        return path

    def plan(self, trace, scheme, *words):
        """The plan of a scheme for a trace, and what `stripewise plan --json` says of it."""
        path = Path(f"{self.directory}/{scheme.replace(' ', '-')}.plan.toml")
        words = ["-c", self.cluster, "--min-gain", "none", "--quiet", "--json", "--force", "-o", path, *words]
        return path, json.loads(self.programs.command("plan", trace, "--scheme", scheme, *words))["files"][0]


def private_words(private):
    """A file for each process, or one in which each has a part of its own."""
    return ["--file-per-process"] if private else ["--random-within", "block"]
