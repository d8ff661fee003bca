"""The cells of the table of layouts: the processes' requests and the duration."""

import itertools
import math
from dataclasses import dataclass

from sizes import KIB, MIB, human

PROCESSES = 8
SIZES = [64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB]
OPS = ["write", "read"]
# Minimum number of requests of a process.
REQUESTS_MIN = 2


def groups(servers):
    """The three layouts and their number of server groups: one group, groups of two servers, groups
    of one server."""
    return {"1-DH": 1, "2-D": servers // 2, "1-DV": servers}


def candidate(scheme, servers):
    """The name of the layout in `stripewise plan`."""
    return f"2-D g={groups(servers)[scheme]}" if scheme == "2-D" else scheme


@dataclass(frozen=True)
class Cell:
    """Requests of one size in random order, to one file per process or to segments of one shared
    file."""

    size: int
    private: bool

    @property
    def name(self):
        return f"{human(self.size)} {'own files' if self.private else 'shared'}"

    def labels(self, op):
        return {"size": human(self.size), "file": "own" if self.private else "shared", "op": op}

    def requests(self, speed, servers, seconds):
        """Number of requests per process with which the fastest layout takes at least about this
        long."""

        def each_s(count):
            """Seconds per request: all servers are busy, or all processes wait."""
            touched = servers // count
            startup_s, transfer_s = speed.random_us / 1e6, self.size / (speed.mib_per_s * MIB)
            return max((touched * startup_s + transfer_s) / servers, (startup_s + transfer_s / touched) / PROCESSES)

        fastest_s = min(map(each_s, groups(servers).values()))
        return max(REQUESTS_MIN, math.ceil(seconds / (fastest_s * PROCESSES)))


def cells(args):
    """All cells selected by the flags, the smaller ones first."""
    return [Cell(size, private) for size, private in itertools.product(args.sizes or SIZES, (True, False))]
