"""The tables of the cache on emulated servers: its bounds and its measured gain."""

from statistics import median

import bound
import cache
import sizes
import simulate
from markdown import by, gain, spread, table

# SLA's figures (Fig. 8): the gain of SCA over the stock system, by request size. For reads the
# paper states only the largest.
PAPER = {
    "write": {8 << 10: "+92 %", 64 << 10: "+83 %", 512 << 10: "+25 %", 4 << 20: "0 %"},
    "read, second run": {8 << 10: "+179 %"},
}


def seconds(records, phase):
    return median(record["phases"][phase]["elapsed_s"] for record in records)


def middle(records, phase):
    """The run of median length."""
    runs = sorted((record["phases"][phase] for record in records), key=lambda run: run["elapsed_s"])
    return runs[(len(runs) - 1) // 2]


def tables(args, records):
    """One table per phase, with every size and mode."""
    groups = by(records, "size", "mode")
    parts = [bounds(args)]
    for phase in args.phases:
        rows = [row for size in args.sizes for row in cache_rows(args, groups, size, phase)]
        header = ["request", "mode", "s", "spread", "MB/s", "speed-up", "of the bound", "HDD busy", "SSD busy", "MB on SSD"]
        header += ["hits", "written back", "evicted", "left for drain", "because"]
        parts.append(f"## {phase}\n\n" + table(header, rows, numbers=2))
    return "\n\n".join(parts)


def bounds(args):
    """The bounds from space and service times, and the paper's values."""
    rows = []
    for op, phase in (("write", "write"), ("read", "read, second run")):
        for size in args.sizes:
            setting, (hdd, ssd) = cache.setting(args, size), cache.tiers(args, size)
            cost = bound.costs(hdd, ssd, op, size, cache.STRIPE)
            given = bound.costs(*cache.as_given(args), op, size, cache.STRIPE)
            claimed = PAPER[phase].get(size, "")
            needed = bound.space_needed(cost, 1 + float(claimed.strip("%+ ")) / 100) if claimed else None
            stock_s, mixed_s, first_s, balanced_s = simulated(args, setting, (hdd, ssd), op, cost)
            rows.append(
                [
                    op,
                    sizes.human(size),
                    f"{given.hdd_s * 1e3:.3f}",
                    f"{given.ssd_s * 1e3:.3f}",
                    f"{100 * bound.best_split(cost, args.space):.0f} %",
                    gain(bound.speed_up(cost, args.space)),
                    gain(stock_s / mixed_s),
                    gain(bound.first_come(cost, args.space)),
                    gain(stock_s / first_s),
                    gain(stock_s / balanced_s) if op == "write" else "",
                    gain(bound.written_back(hdd, cost, size, cache.STRIPE, args.space)) if op == "write" else "",
                    claimed,
                    "" if not claimed else "not possible" if needed is None else f"{100 * needed:.0f} %",
                ]
            )
    header = ["", "request", "h, ms", "s, ms", "best share", "bound", "hits at random, simulated", "first come"]
    header += ["first come, simulated", "balanced, simulated"]
    header += ["written back in the run", "paper", "would need in the cache"]
    return "## What the space and the service times allow\n\n" + table(header, rows, numbers=2)


def simulated(args, setting, tiers, op, cost):
    """Ideal programs: without a cache, with hits throughout the run, with hits first, balanced."""
    cached = round(args.space * setting.requests * setting.ranks)
    policies = [simulate.FirstCome(0), simulate.AtRandom(args.space), simulate.FirstCome(cached)]
    policies += [simulate.Balanced(cached, cost)]
    return [simulate.run(tiers, op, setting, cache.STRIPE, policy) for policy in policies]


def cache_rows(args, groups, size, phase):
    stock = groups.get((size, "stock"))
    hdd, ssd = cache.tiers(args, size)
    op = "write" if "write" in phase else "read"
    best = bound.speed_up(bound.costs(hdd, ssd, op, size, cache.STRIPE), args.space)
    for mode in args.modes:
        records = groups.get((size, mode))
        if not records:
            continue
        run = middle(records, phase)
        elapsed_s = seconds(records, phase)
        factor = seconds(stock, phase) / elapsed_s if stock else None
        times = [record["phases"][phase]["elapsed_s"] for record in records]
        cells = [sizes.human(size), mode, f"{elapsed_s:.3f}", spread(times), f"{run['bytes'] / 1e6 / elapsed_s:.1f}"]
        cells += [gain(factor), f"{100 * factor / best:.0f} %"] if factor else ["", ""]
        busy = {name: tier["busy_s"] / run["elapsed_s"] for name, tier in run["servers"].items()}
        cells += [f"{100 * busy[name]:.0f} %" for name in ("hdd", "ssd")]
        cells += [f"{run['servers']['ssd']['bytes'] / 1e6:.0f}"]
        yield cells + statistics_cells(run) + [because(mode, run, busy)]


def statistics_cells(run):
    """Hits, bytes written back and evicted, from the runtime's counters."""
    counted = run["statistics"]
    if not counted:
        return ["", "", "", ""]
    hits = counted.get("hits", 0) / max(1, counted.get("requests", 0))
    back, evicted = (counted.get(name, 0) / 1e6 for name in ("copied_bytes.0", "evicted_bytes"))
    return [f"{100 * hits:.0f} %", f"{back:.0f}", f"{evicted:.0f}", f"{run.get('dirty_bytes', 0) / 1e6:.0f}"]


def because(mode, run, busy):
    """The cause of the run time, from the servers' counters."""
    share = run["servers"]["ssd"]["bytes"] / max(1, sum(tier["bytes"] for tier in run["servers"].values()))
    if share == 0:
        return "all on the HServers" if mode == "stock" else "nothing admitted"
    both = sum(busy.values())
    if max(busy.values()) > 0.8:
        slow = "HServers" if busy["hdd"] > busy["ssd"] else "SServers"
        return f"{100 * share:.0f} % of the bytes on SServers, in parallel with the HServers; the {slow} are the bottleneck"
    if both < 1.2:
        return f"{100 * share:.0f} % of the bytes on SServers, one tier after the other"
    return f"{100 * share:.0f} % of the bytes on SServers; neither tier works all the time"
