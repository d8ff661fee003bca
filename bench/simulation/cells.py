"""The cells: files in layouts, and their use by processes."""

from dataclasses import dataclass

import servers
import sizes
from layouts import Layout, grouped

KIB, MIB = 1 << 10, 1 << 20
HDDS, SSDS = servers.hdds(4), servers.ssds(4)
TIERS = (HDDS, SSDS)
COUNT = HDDS.count + SSDS.count
STRIPE = 64 * KIB


@dataclass(frozen=True)
class Cell:
    """One file (or one per process) in one layout, written and read."""

    kind: str  # striped, replicas or cache
    layout: str
    private: bool
    ranks: int
    size: int
    requests: int  # per process
    access: str

    @property
    def name(self):
        files = "private" if self.private else "shared"
        return f"{self.kind} {self.layout} {files} {self.access} {sizes.human(self.size)} x {self.requests} x {self.ranks} ranks"

    @property
    def block(self):
        return self.size * self.requests

    def words(self):
        """The flags of the program."""
        words = ["--transfer", self.size, "--block", self.block, "--access", self.access]
        # With this seed every rank shuffles as in the synthetic trace.
        random = ["--random-within", "block", "--order", 0] if self.access == "random" else []
        return words + random + ["--file-per-process"] * self.private

    def synth(self, op):
        """The command for a synthetic trace with the same requests."""
        words = ["synth", "ior", "--procs", self.ranks, "--transfer", self.size, "--block", self.block, "--op", op]
        random = ["--random-within", "own"] if self.access == "random" and not self.private else []
        return words + ["--access", self.access] + random + ([] if self.private else ["--shared"])


def cycle(hdd, ssd):
    """All servers, with stripes of these sizes (bytes)."""
    return f"hdd/0-{HDDS.count - 1}:{hdd} ssd/0-{SSDS.count - 1}:{ssd}"


def shared_layouts(size):
    """The stripes that make requests of this size 1-DH, 2-D, 1-DV and varied on a shared file."""
    part = size // 32
    stripes = {"1-DH": size // COUNT, "2-D": size // 2, "1-DV": size}
    cycles = {name: cycle(stripe, stripe) for name, stripe in stripes.items()}
    cycles["varied"] = cycle(3 * part, 5 * part)
    return {name: Layout(name, (text,), None) for name, text in cycles.items()}


def private_layouts(_size):
    """The same for files that one process uses each: on all servers, on a group, on one."""
    pair = STRIPE
    twos = [f"hdd/{first}-{first + 1}:{pair}" for first in (0, 2)] + [f"ssd/{first}-{first + 1}:{pair}" for first in (0, 2)]
    ones = list(grouped(HDDS, "", 1, pair).cycles) + list(grouped(SSDS, "", 1, pair).cycles)
    return {
        "1-DH": Layout("1-DH", (cycle(pair, pair),), None),
        "2-D": Layout("2-D", tuple(twos), None),
        "1-DV": Layout("1-DV", tuple(ones), None),
        "varied": Layout("varied", (cycle(24 * KIB, 40 * KIB),), None),
    }


def layouts(cell):
    return (private_layouts if cell.private else shared_layouts)(cell.size)


def requests(size, ranks, most_data):
    """Number of requests per process: enough to reach a steady state, as far as the data limit
    allows."""
    return max(2, min(64, most_data // (size * ranks)))


def grid(args):
    """Files with one copy."""
    return [
        Cell("striped", layout, private, ranks, size, requests(size, ranks, args.most_data), access)
        for ranks in args.ranks
        for size in args.sizes
        for private in (False, True)
        for layout in ("1-DH", "2-D", "1-DV", "varied")
        for access in ("sequential", "random")
    ]


def copies(args):
    """A few cells with several copies."""
    few = [(16, 64 * KIB), (16, MIB)]
    cells = [Cell("replicas", "all", True, ranks, size, requests(size, ranks, args.most_data), "random") for ranks, size in few]
    cells += [Cell("cache", "sla", False, ranks, size, requests(size, ranks, args.most_data), "random") for ranks, size in few]
    return cells
