"""The disks, the cluster on them, and its calibration."""

import json

from farm import Farm
from throttled import Throttled

# Space of a disk that the file system itself needs, MiB.
RESERVE_MIB = 64


class Bed(Throttled):
    """Disks that exist while this context is active."""

    def __init__(self, args, programs, disks):
        directory = args.dir.resolve()
        super().__init__(programs, Farm(args.dir / "bed"), directory, directory / "data")
        self.args, self.disks = args, disks

    def __enter__(self):
        self.data.mkdir(parents=True, exist_ok=True)
        self.farm.up(self.args.throttled_disk, self.disks, self.args.images, self.args.size_mib, self.args.file_system)
        return self

    def __exit__(self, *error):
        self.remove_files()
        self.farm.down()

    def calibrated(self, tiers, quick=True):
        """Writes cluster.toml with these tiers, {name: (disks, bytes per disk)}, and calibrates
        them with `stripewise calibrate`."""
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
        """Capacity of a disk for data, bytes."""
        return self.args.size_mib - RESERVE_MIB << 20
