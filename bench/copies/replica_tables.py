"""The tables of the replicas: every cell of the mixes on every layout, and the sums."""

from statistics import median

import replicas
import sizes
from markdown import by, gain, spread, table

OPS = ("read", "write")


def tables(args, records):
    """The cells and their sums, per mix and direction."""
    parts = []
    for experiment in replicas.experiments(replicas.tier(args)):
        if experiment.name not in args.only:
            continue
        of_mix = [record for record in records if record["experiment"] == experiment.name]
        groups = by(of_mix, "layout", "processes")
        for op in OPS:
            parts.append(f"## {experiment.name}, {op}\n\n" + mix(experiment, groups, op))
    return "\n\n".join(parts)


def mix(experiment, groups, op):
    names = [layout.name for layout in experiment.layouts]
    rows, sums = [], dict.fromkeys([*names, replicas.DYNAMIC], 0.0)
    for processes in experiment.processes:
        for size in experiment.sizes:
            runs = {name: seconds(groups[name, processes], size, op) for name in sums}
            if not all(runs.values()):
                continue
            cells = {name: median(times) for name, times in runs.items()}
            best = min(names, key=lambda name: cells[name])
            used = copies_used(groups[replicas.DYNAMIC, processes], names, size, op)
            gained = gain(cells[best] / cells[replicas.DYNAMIC])
            rows.append([processes, sizes.human(size), *(f"{s:.3f}" for s in cells.values()), spread(*runs.values()), best, used, gained])
            for name, cell_s in cells.items():
                sums[name] += cell_s
    if not rows:
        return "Not measured."
    best = min(names, key=lambda name: sums[name])
    ratio = gain(sums[best] / sums[replicas.DYNAMIC])
    rows.append(["all", "", *(f"**{s:.3f}**" for s in sums.values()), "", best, "", f"**{ratio}**"])
    header = ["processes", "request", *sums, "spread", "best alone", "copies used", "gain over it"]
    return table(header, rows, numbers=0) + f"\n\n{sentence(sums, names, op)}"


def sentence(sums, names, op):
    dynamic_s = sums[replicas.DYNAMIC]
    over = ", ".join(f"{gain(sums[name] / dynamic_s)} over {name}" for name in names)
    return f"All {op}s on three replicas, each request on the cheapest: {over}."


def seconds(records, size, op):
    return [record["cells"][sizes.human(size)][op]["elapsed_s"] for record in records]


def copies_used(records, names, size, op):
    """The fraction of the cell that each copy served."""
    counted = records[0]["cells"][sizes.human(size)][op]["statistics"]
    key = "read_bytes" if op == "read" else "written_bytes"
    shares = {name: counted.get(f"{key}.{number}", 0) for number, name in enumerate(names)}
    total = sum(shares.values())
    return ", ".join(f"{name} {100 * part / total:.0f} %" for name, part in shares.items() if part) if total else ""
