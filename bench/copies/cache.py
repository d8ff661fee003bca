"""S1: random IOR over HServers, with a cache for 30 % of the data on SServers, under each cache
mode."""

from dataclasses import dataclass

import bound
import servers
import sizes
import statistics_of
from layouts import without_copies
from programs import Failed
from workspace import Workspace

STRIPE = 64 << 10
PRINTED, BALANCED = "sla-as-printed", "sla-balanced"
# Plan flags: which data is cached, and whether all of it while there is space.
MODES = {
    "stock": ("off", "as-printed"),
    "off": ("off", "as-printed"),
    "nsca": ("nsca", "as-printed"),
    "sca": ("sca", "as-printed"),
    PRINTED: ("sla", "as-printed"),
    BALANCED: ("sla", "balanced"),
}
# The phases of a run, in order: name, flags of the workload. Data is written in the order of seed
# 1. After the first read, the ranges that it requested are fetched.
PHASES = (
    ("write", ["--op", "write"]),
    ("read, first run", ["--op", "read"]),
    ("read, second run", ["--op", "read"]),
    ("read, another order", ["--op", "read", "--order", "2"]),
    ("overwrite", ["--op", "write", "--seed", "2", "--order", "3"]),
)


@dataclass(frozen=True)
class Setting:
    """The conditions of one table row."""

    size: int  # of a request, bytes
    requests: int  # per rank
    ranks: int
    space: float  # fraction of the data that the cache holds

    @property
    def total(self):
        return self.size * self.requests * self.ranks

    @property
    def words(self):
        block = self.size * self.requests
        return ["--transfer", self.size, "--block", block, "--access", "random"]

    def capacity(self, count):
        """Size of the cache on each of `count` servers in whole pages, bytes."""
        return -(-int(self.total * self.space) // count // 4096) * 4096


def as_given(args):
    """The HServers and the SServers with the speeds of the papers."""
    hdd = servers.hdds(args.hdds, args.hdd_startup)
    return hdd, servers.ssds_by_ratio(args.ssds, hdd) if args.ssd == "ratios" else servers.ssds(args.ssds)


def tiers(args, size):
    """The HServers and the SServers, slowed down so that the requests take the requested time on
    the HServers alone. The bottleneck must be the servers instead of two cores."""
    hdd, ssd = as_given(args)
    this = setting(args, size)
    all_s = bound.costs(hdd, ssd, "write", size, STRIPE).hdd_s * this.requests * this.ranks
    return hdd.slowed(args.seconds / all_s), ssd.slowed(args.seconds / all_s)


def setting(args, size):
    """As many requests as requested, or as the data limit allows."""
    requests = min(args.requests, args.most_data // size // args.ranks)
    return Setting(size, max(4, requests), args.ranks, args.space)


def measure(args, programs, emulation, store):
    """Every size under every mode, repeatedly; cells that were already measured are skipped."""
    steps = [(r, size, mode) for r in range(args.repeats) for size in args.sizes for mode in args.modes]
    for number, (repeat, size, mode) in enumerate(steps, 1):
        key = [size, mode, repeat]
        if store.has(key):
            continue
        name = f"{sizes.human(size)} {mode}, run {repeat + 1}"
        try:
            values = one(args, programs, emulation, setting(args, size), mode)
        except Failed as error:
            store.say(f"{number}/{len(steps)} {name}: {error}")
            store.add(key, size=size, mode=mode, failed=str(error))
            continue
        store.add(key, size=size, mode=mode, **values)
        times = ", ".join(f"{phase} {run['elapsed_s']:.2f}" for phase, run in values["phases"].items())
        store.say(f"{number}/{len(steps)} {name}: {times} s, every byte right")


def one(args, programs, emulation, setting, mode):
    """All phases under one mode, on new servers."""
    hdd, ssd = tiers(args, setting.size)
    capacity = {"hdd": 1 << 40, "ssd": setting.capacity(ssd.count)}
    work = Workspace(args.dir, programs, emulation, (hdd, ssd), capacity)
    plan = plan_for(work, setting, mode, args.durability)
    phases = {}
    seed = []
    for name, words in PHASES:
        if name not in args.phases:
            continue
        if name == "read, second run" and mode != "stock":
            programs.warm(plan, work.file)
        phases[name] = work.measured(setting.ranks, plan, *setting.words, *words)
        if mode != "stock":
            phases[name]["dirty_bytes"] = statistics_of.dirty_bytes(work)
        seed = ["--seed", "2"] if name == "overwrite" else seed
    if mode != "stock":
        programs.command("drain", "-p", plan, work.file)
    verified = work.export_and_check(setting.ranks, [*setting.words, *seed])
    work.remove()
    requests = setting.requests * setting.ranks
    return {"bytes": setting.total, "requests": requests, "phases": phases, "verified_after_export": verified}


def plan_for(work, setting, mode, durability):
    """A plan with the original in stripes over all HServers, with or without a cache."""
    trace = work.directory / "trace"
    synth = ["synth", "ior", "--procs", setting.ranks, "--transfer", setting.size, "--total", setting.total]
    synth += ["--access", "random", "--op", "write", "--shared", "--file", work.file, "-o", trace]
    work.programs.command(*synth)
    present = f"1-DH:{sizes.human(STRIPE)}@hdd"
    cached, admission = MODES[mode]
    title = "cache" if cached == "sla" else f"cache ({cached})"
    words = ["--present", present, "--with", "cache", "--scheme", f"{title} over {present}"]
    plan = work.plan("cache", trace, *words, "--cache-mode", cached, "--cache-admission", admission, "--durability", durability)
    if mode == "stock":
        plan.write_text(without_copies(plan.read_text()))
    return plan
