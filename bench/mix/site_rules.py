"""What sites recommend, as plans. The page names the sources of each rule (`RULES`) and says how it
is scaled."""

from collections import Counter
from dataclasses import dataclass

from composite import Composite, Region, striped
from sizes import KIB, MIB

# 1 MiB of the job stands for 1 GiB where a rule depends on the size of a file.
GIB = MIB
# The OSTs of NERSC's stripe_large stand for all servers.
NERSC_LARGE = 72


class Allocator:
    """Chooses servers as Lustre does: the next ones in turn, of those that have room. SSDs and HDDs
    alternate as evenly as possible in the turn."""

    def __init__(self, case):
        self.turn = {tiers: in_turn(case, *tiers) for tiers in [(), *((tier.name,) for tier in case.tiers)]}
        self.next = Counter()
        self.free = Counter({server: case.capacity_bytes[server.split("/")[0]] for server in case.servers()})

    def take(self, count, size, *tiers, stripe=MIB):
        """`count` servers for `size` bytes, of these tiers or of all; fewer if fewer have room; none
        if none has."""
        turn, begin = self.turn[tiers], self.next[tiers]
        order = [turn[(begin + step) % len(turn)] for step in range(len(turn))]
        for fewer in range(min(count, len(turn)), 0, -1):
            each = min(size, -(-size // (fewer * stripe)) * stripe)
            chosen = tuple([server for server in order if self.free[server] >= each][:fewer])
            if len(chosen) == fewer:
                last = chosen[(-(-size // stripe) - 1) % fewer]
                self.next[tiers] = turn.index(last) + 1
                self.free.subtract(Region(None, chosen, stripe).bytes(size))
                return chosen
        return ()

    def composite(self, size, components):
        """A layout of components (end, servers, stripe, *tiers) for a file of `size` bytes. One for
        which there is no room is left out, as Lustre does with components that extend themselves."""
        regions, start = [], 0
        for end, count, stripe, *tiers in components:
            last = end is None or end >= size
            if servers := self.take(count, (size if last else end) - start, *tiers, stripe=stripe):
                regions.append(Region(None if last else end, servers, stripe))
                if last:
                    break
                start = end
        return Composite("", tuple(regions))


def in_turn(case, *tiers):
    """The servers of these tiers, each tier spread evenly over the turn."""
    servers = case.servers(*tiers)
    of_tier = Counter(server.split("/")[0] for server in servers)

    def place(server):
        tier, number = server.split("/")
        return (int(number) + 0.5) / of_tier[tier]

    return sorted(servers, key=place)


def each_file(case, layout_of):
    """{set: [layout of each file]}, in the order in which the files come into being."""
    return {files.name: [layout_of(files) for _ in range(files.count)] for files in case.sets}


def nersc(case):
    """stripe_small, stripe_medium and stripe_large by the size of a shared file; one OST for files
    of one process each."""
    allocator, all_servers = Allocator(case), len(case.servers())

    def layout(files):
        osts = 1 if files.count > 1 or files.bytes < GIB else 8 if files.bytes < 10 * GIB else 24 if files.bytes < 100 * GIB else NERSC_LARGE
        return striped("", allocator.take(max(1, round(osts * all_servers / NERSC_LARGE)), files.bytes), MIB)

    return each_file(case, layout)


def olcf(case):
    """Orion's default: 256 KiB on the metadata servers' flash, to 8 MiB on an OST of the
    performance tier, to 128 GiB on one of the capacity tier, and the rest on eight."""
    allocator = Allocator(case)
    components = [(256 * KIB, 1, 256 * KIB, "ssd"), (8 * MIB, 1, MIB, "ssd"), (128 * GIB, 1, MIB, "hdd"), (None, 8, MIB, "hdd")]
    return each_file(case, lambda files: allocator.composite(files.bytes, components))


def progressive(case):
    """The progressive layout of Lustre's manual: one stripe to 4 MiB, four to 64 MiB, then all."""
    allocator = Allocator(case)
    components = [(4 * MIB, 1, 4 * MIB), (64 * MIB, 4, 4 * MIB), (None, len(case.servers()), 4 * MIB)]
    return each_file(case, lambda files: allocator.composite(files.bytes, components))


def wide(case):
    """Every file in stripes of 1 MiB over all servers."""
    allocator, all_servers = Allocator(case), len(case.servers())
    return each_file(case, lambda files: striped("", allocator.take(all_servers, files.bytes), MIB))


def ssd_first(case, order):
    """All on the SSDs until these are full, then over all HDDs. `order`: the sets, in the order in
    which their files come into being."""
    free = sum(case.capacity_bytes["ssd"] // MIB * MIB for _ in case.servers("ssd"))
    ssds, hdds = case.servers("ssd"), case.servers("hdd")
    chosen = {}
    for files in order:
        chosen[files.name] = []
        for _ in range(files.count):
            # Whole rounds of stripes, so that the SSDs are equally full.
            here = min(free, -(-files.bytes // (len(ssds) * MIB)) * len(ssds) * MIB)
            free -= here
            regions = [Region(here if here < files.bytes else None, ssds, MIB)] * (here > 0)
            regions += [Region(None, hdds, MIB)] * (here < files.bytes)
            chosen[files.name].append(Composite("", tuple(regions)))
    return chosen


def inputs_first(case):
    return ssd_first(case, case.sets)


def samples_first(case):
    """The same with the inputs in the other order."""
    raw, samples, *outputs = case.sets
    return ssd_first(case, [samples, raw, *outputs])


@dataclass(frozen=True)
class Rule:
    name: str
    plan: object  # function: case -> the layouts of each set's files
    source: str
    scaled: str


RULES = [
    Rule(
        "NERSC",
        nersc,
        """docs.nersc.gov/performance/io/lustre. Shared files of 1 to 10 GB: `stripe_small` (8 OSTs); to
        100 GB: `stripe_medium` (24); larger: `stripe_large` (72); in stripes of 1 MiB. File per process:
        keep the default of one OST.""",
        """1 MiB stands for 1 GB, and 72 OSTs for all servers, so 24 OSTs are three servers and 8 are
        one.""",
    ),
    Rule(
        "OLCF",
        olcf,
        """docs.olcf.ornl.gov (repository olcf/olcf-user-docs), Orion: "users should refrain from
        attempting to manually control file striping". The default is `lfs setstripe -E 256K -L mdt -E 8M
        -c 1 -S 1M -p performance -z 64M -E 128G -c 1 -S 1M -z 16G -p capacity -E -1 -z 256G -c 8 -S 1M
        -p capacity`.""",
        """128 GB are 128 MiB; the other sizes are as they are. The first 256 KiB are on an SSD, in place of
        the metadata servers' flash. -z changes where bytes are only where space is short.""",
    ),
    Rule(
        "Lustre's PFL",
        progressive,
        """The progressive file layout of the Lustre Operations Manual (19.5.1.1), which CSCS recommends:
        `lfs setstripe -E 4M -c 1 -E 64M -c 4 -E -1 -c -1 -S 4M`.""",
        "The sizes are as they are.",
    ),
    Rule(
        "all servers",
        wide,
        """wiki.lustre.org, Lustre Striping Best Practices: all OSTs for large files of many clients, `lfs
        setstripe -c -1`, with the stripes of 1 MiB that NERSC uses.""",
        "Nothing.",
    ),
    Rule(
        "SSDs first",
        inputs_first,
        """All on the SSDs until these are full, then on the HDDs, in stripes of 1 MiB over all servers of
        the tier. Files count in the order in which they come into being: raw data, samples, checkpoint,
        array.""",
        "Nothing.",
    ),
    Rule("SSDs first, samples before raw data", samples_first, "The same, with the inputs in the other order.", "Nothing."),
]
