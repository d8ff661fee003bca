"""The cells of the table of layouts: what the processes do, and for how long."""

import itertools
import math
from dataclasses import dataclass

from sizes import KIB, MIB, human

PROCESSES = 8
SIZES = [64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB]
OPS = ["write", "read"]
# Requests of a process, at least.
REQUESTS_MIN = 2


def groups(servers):
    """The three layouts, by their groups of servers: one, of two servers each, of one."""
    return {"1-DH": 1, "2-D": servers // 2, "1-DV": servers}


def candidate(scheme, servers):
    """What `stripewise plan` calls it."""
    return f"2-D g={groups(servers)[scheme]}" if scheme == "2-D" else scheme


@dataclass(frozen=True)
class Cell:
    """Requests of one size, to a file of each process's own or to parts of one file, in an order by chance."""

    size: int
    private: bool

    @property
    def name(self):
        return f"{human(self.size)} {'own files' if self.private else 'shared'}"

    def labels(self, op):
        return {"size": human(self.size), "file": "own" if self.private else "shared", "op": op}

    def requests(self, speed, servers, seconds):
        """Of a process, so that the fastest layout takes about this long at least."""

        def each_s(count):
            """Of one request: all servers are busy, or all processes wait."""
            touched = servers // count
            startup_s, transfer_s = speed.random_us / 1e6, self.size / (speed.mib_per_s * MIB)
            return max((touched * startup_s + transfer_s) / servers, (startup_s + transfer_s / touched) / PROCESSES)

        fastest_s = min(map(each_s, groups(servers).values()))
        return max(REQUESTS_MIN, math.ceil(seconds / (fastest_s * PROCESSES)))


def cells(args):
    """All cells that the flags ask for, the smaller ones first."""
    return [Cell(size, private) for size, private in itertools.product(args.sizes or SIZES, (True, False))]
