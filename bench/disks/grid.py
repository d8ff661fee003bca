"""C1's cells: the processes' requests, the layouts, and the duration."""

import itertools
from dataclasses import dataclass

from sizes import human

KIB, MIB = 1 << 10, 1 << 20
DISKS = 8
# The paper's three layouts and their number of disk groups: one group, groups of two, groups of
# one.
GROUPS = {"1-DH": 1, "2-D": DISKS // 2, "1-DV": DISKS}
CANDIDATES = {"1-DH": "1-DH", "2-D": f"2-D g={DISKS // 2}", "1-DV": "1-DV"}
SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB]
PROCESSES = [1, 2, 4, 8, 16, 32]
QUICK_SIZES = [4 * KIB, 64 * KIB, 512 * KIB, 4 * MIB]
QUICK_PROCESSES = [1, 2, 16]
ACCESSES = ["sequential", "random"]
OPS = ["read", "write"]
# Minimum number of requests of a process: the first request of a sequential stream is never
# sequential.
REQUESTS_MIN = 4
# Maximum for all processes together, because the data is kept in memory for verification.
BYTES_MAX = 256 * MIB


@dataclass(frozen=True)
class Cell:
    """Files of a size, one per process, that are accessed in both orders and both directions."""

    size: int
    processes: int

    def labels(self, access, op):
        return {"size": human(self.size), "procs": str(self.processes), "access": access, "op": op}

    def disks_touched(self, groups):
        """Number of disks that a request touches."""
        return DISKS // groups

    def requests(self, speed, seconds):
        """Number of requests per process with which the layouts take about this long on average. If
        one is much slower than the others, short runs distinguish them, too."""

        def each_s(groups):
            """Seconds per request: all disks are busy, or all processes wait."""
            touched = self.disks_touched(groups)
            startup_s = (speed.sequential_us + speed.random_us) / 2e6
            transfer_s = self.size / (speed.mib_per_s * MIB)
            disks_used = min(DISKS, self.processes * touched)
            return max((touched * startup_s + transfer_s) / disks_used, (startup_s + transfer_s / touched) / self.processes)

        average_s = sum(map(each_s, GROUPS.values())) / len(GROUPS)
        wanted = seconds / (average_s * self.processes)
        most = BYTES_MAX // (self.size * self.processes)
        return max(REQUESTS_MIN if self.size < 4 * MIB else REQUESTS_MIN // 2, min(int(wanted) + 1, most))


def cells(args):
    """All cells selected by the flags, the smaller ones first."""
    sizes = args.sizes or (QUICK_SIZES if args.quick else SIZES)
    processes = args.processes or (QUICK_PROCESSES if args.quick else PROCESSES)
    return [Cell(size, count) for size, count in itertools.product(sizes, processes)]
