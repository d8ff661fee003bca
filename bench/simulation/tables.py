"""The errors as Markdown tables."""

from statistics import median

from described import command_line, machine_line, now
from markdown import table


def tables(records):
    good = [record for record in records if "failed" not in record]
    phases = [(record, phase) for record in good for phase in record["phases"]]
    loads = [record["load"] for record in good] or [0]
    parts = [f"Measured {now()} on {machine_line()}, load before a cell {min(loads):.1f} to {max(loads):.1f} (median {median(loads):.1f}), by `{command_line()}`."]
    parts += [f"{len(good)} cells in two phases each, {len(records) - len(good)} failed."]
    parts += [errors(phases), counts(good), worst(phases)]
    return "\n\n".join(parts)


def error(phase):
    """Relative error of the simulated time."""
    return phase["simulated_s"] / phase["measured_s"] - 1


def percent(value):
    return f"{100 * value:.1f} %"


def row(name, phases):
    found = sorted(abs(error(phase)) for _, phase in phases)
    if not found:
        return [name, 0] + ["-"] * 5
    bias = median(error(phase) for _, phase in phases)
    at = [found[min(len(found) - 1, int(part * len(found)))] for part in (0.5, 0.9, 0.99)]
    return [name, len(found), *map(percent, at), percent(found[-1]), f"{100 * bias:+.1f} %"]


def errors(phases):
    """The errors, grouped by kind of cell."""
    rows = [row("all", phases), row("all striped", [item for item in phases if item[0]["kind"] == "striped"])]
    words = [("shared", 2), ("private", 2), ("sequential", 3), ("random", 3)]

    def has(record, word):
        return word in record["cell"].split()

    for word, _ in words:
        rows.append(row(word, [item for item in phases if item[0]["kind"] == "striped" and has(item[0], word)]))
    for op in ("write", "read"):
        rows.append(row(op, [item for item in phases if item[0]["kind"] == "striped" and item[1]["op"] == op]))
    for layout in ("1-DH", "2-D", "1-DV", "varied"):
        rows.append(row(layout, [item for item in phases if item[0]["kind"] == "striped" and has(item[0], layout)]))
    ranks = sorted({int(record["cell"].split()[-2]) for record, _ in phases})
    for count in ranks:
        of_ranks = [item for item in phases if item[0]["kind"] == "striped" and int(item[0]["cell"].split()[-2]) == count]
        rows.append(row(f"{count} ranks", of_ranks))
    for kind in ("replicas", "cache"):
        rows.append(row(kind, [item for item in phases if item[0]["kind"] == kind]))
    return table(["phases", "number", "median error", "90th percentile", "99th", "worst", "median with its sign"], rows)


def counts(records):
    """Comparison of requests and bytes, which must be equal for files with one copy."""
    striped = [record for record in records if record["kind"] == "striped"]
    same = sum(record["measured"] == record["simulated"] for record in striped)
    return f"Requests and bytes on the servers are the same, measured and simulated, in {same} of {len(striped)} cells of files with one copy."


def worst(phases):
    """The largest errors."""
    ordered = sorted(phases, key=lambda item: -abs(error(item[1])))[:8]
    rows = [[record["cell"], phase["op"], f"{phase['measured_s']:.3f}", f"{phase['simulated_s']:.3f}", f"{100 * error(phase):+.1f} %"] for record, phase in ordered]
    others = [item for item in phases if item[0]["kind"] != "striped"]
    rows += [
        [record["cell"], phase["op"], f"{phase['measured_s']:.3f}", f"{phase['simulated_s']:.3f}", f"{100 * error(phase):+.1f} %"]
        for record, phase in others
        if (record, phase) not in ordered
    ]
    return "The largest errors, and all cells with several copies:\n\n" + table(["cell", "phase", "measured s", "simulated s", "error"], rows, numbers=2)
