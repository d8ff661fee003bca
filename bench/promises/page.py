"""The page of what was promised and measured, as Markdown."""

import textwrap
from dataclasses import dataclass

import applications
from described import machine_line, now
from markdown import table
from set_ups import SETUPS

EXPERIMENT = "promises"
# The heading of the section that people write, at the end.
CAUSES = "\n## Causes\n"
# A promise may be off by this fraction of the promised time.
OFF_MAX = 0.25
# A layout that is kept may be slower than the one before by this fraction.
SLOWER_MAX = 0.02
HEADER = ["program", "planned layout", "promised", "measured", "decision", "promise off by", "s before: model, measured", "s after: promised, measured", "load, processors busy"]


@dataclass(frozen=True)
class Promise:
    """Seconds of I/O according to the model, now and planned, and those of the traced run."""

    now_s: float
    planned_s: float
    traced_s: float
    # Whether the planned time is promised. Plans of earlier versions promise it always.
    is_made: bool

    @staticmethod
    def of(details):
        plan = details["plan"]
        files, joint, traced = plan["files"], plan.get("joint"), plan.get("traced", [])
        now_s = joint["now_s"] if joint else sum(each["present"]["elapsed_s"] for each in files)
        planned_s = joint["planned_s"] if joint else sum(each["elapsed_s"] for each in files)
        is_made = plan.get("promise") is None or plan["promise"]["saves"] is not None
        return Promise(now_s, planned_s, sum(trace["busiest"]["planned_ns"] for trace in traced) / 1e9, is_made)


def result(details):
    """How the try ended: kept, undone, unchanged; None if it failed."""
    return details["try"]["result"] if "try" in details else None


def measured(details, what):
    """The times of the I/O or of the whole command ("io", "wall"); None if no layout was tried."""
    return (details.get("try", {}).get("measured") or {}).get(what)


def seconds_after(details):
    """The I/O time in the planned layout; 0 if none was tried."""
    io = measured(details, "io")
    return io["after"]["mean_s"] if io else 0.0


def off(details):
    """How much longer the I/O takes in the planned layout than promised, as a fraction; None if
    nothing was promised."""
    if not measured(details, "io") or not Promise.of(details).is_made:
        return None
    return seconds_after(details) / Promise.of(details).planned_s - 1


def slower(details):
    """How much longer the I/O or the whole command takes in a layout that was kept, as a fraction:
    the larger of both; None if none was kept."""
    if result(details) != "kept":
        return None
    times = [measured(details, what) for what in ("io", "wall")]
    return max(each["after"]["mean_s"] / each["before"]["mean_s"] - 1 for each in times)


def present_off(details):
    """How much longer the I/O takes in the present layout than in the model, as a fraction; None if
    no layout was tried."""
    io = measured(details, "io")
    return io["before"]["mean_s"] / Promise.of(details).now_s - 1 if io else None


def row(program, details):
    load = f"{details['load']:.1f}, {details['busy']:.0%}"
    if "failed" in details:
        return [program, "", "", "", "failed", "", "", "", load]
    promise, io = Promise.of(details), measured(details, "io")
    if not io:
        return [program, "as it is", "keeps", "", "nothing changed", "", f"{promise.now_s:.2f}, {promise.traced_s:.2f}", "", load]
    before_s, difference = io["before"]["mean_s"], io["difference"]
    return [
        program,
        ", ".join(dict.fromkeys(each["name"] for each in details["plan"]["files"] if not each["keep"])),
        f"{1 - promise.planned_s / promise.now_s:.0%}" if promise.is_made else "no promise",
        f"{difference['saved']:.0%} ± {difference['spread_s'] / before_s:.0%}",
        result(details),
        f"{off(details):+.0%}" if promise.is_made else "",
        f"{promise.now_s:.2f}, {before_s:.2f}",
        f"{promise.planned_s:.2f}, {seconds_after(details):.2f}",
        load,
    ]


def fill(words, **indents):
    return textwrap.fill(" ".join(words.split()), 100, break_long_words=False, break_on_hyphens=False, **indents)


def item(words):
    return fill(words, initial_indent="- ", subsequent_indent="  ")


def text(records, args):
    """The whole page, of the parts that were measured."""
    found = records.all(EXPERIMENT)
    parts = ["# What plans promise, and what is measured", head(found, args)]
    parts += ["\n".join(criteria(found))]
    parts += [fill("""*Load* is the load average before a try, and then the fraction of the two processors that
        was busy during the try, with any work.""")]
    for name, kind in SETUPS.items():
        of_set_up = {record["labels"]["program"]: record["details"] for record in found if record["scheme"] == name}
        rows = [row(program, of_set_up[program]) for program in applications.NAMES if program in of_set_up]
        if rows:
            scale = f"Files and steps are {kind.scale} times those below." if kind.scale > 1 else ""
            parts += [f"## {name}", fill(f"{kind.described.format(args=args)} {scale}"), table(HEADER, rows, numbers=5)]
    commands = applications.commands(1).items()
    return "\n\n".join([*parts, "## Programs", "\n".join(item(f"{name}: `{command.shown()}`") for name, command in commands)])


def head(found, args):
    dates = sorted(date for record in found for date in record["dates"]) or [now()]
    words = f"""`stripewise try` runs a program in the present layout of its files, plans from the trace
    of the first run, places the files, and runs it again. *Promised* is the fraction of the I/O time
    that the plan saves according to the model; there is no promise if the model of the present
    layout is off by more than 25% of its time from the first run, or the planned layout as quick as memory. *Measured* is what is saved of the time that the
    busiest process spends in calls on these files, ± the spread of the runs. *Off by* is the
    measured time after the change, compared with the promised one. The models know the servers by
    `stripewise calibrate --quick` alone. Command: `sudo stripewise-bench promises --records
    promises.jsonl --page bench/results.d/promises.md`. {dates[0]} to {dates[-1]}, {machine_line()}.
    {args.note}"""
    return fill(words)


def criteria(found):
    """A line for each criterion, and one for the present layouts, on which the promised gain also
    depends: the worst case, and how many fail it."""
    lines = [
        ("Worst promise", off, abs, OFF_MAX, "promises", "off by more than"),
        ("Worst kept layout, I/O or whole command compared with before", slower, float, SLOWER_MAX, "kept layouts", "slower by more than"),
        ("Worst model of a present layout", present_off, abs, OFF_MAX, "present layouts", "off by more than"),
    ]
    for name, of, badness, limit, what, beyond in lines:
        judged = [(of(record["details"]), record) for record in found]
        judged = [(value, record) for value, record in judged if value is not None]
        if judged:
            value, record = max(judged, key=lambda each, badness=badness: badness(each[0]))
            count = sum(badness(each) > limit for each, _ in judged)
            where = f"{record['scheme']}, {record['labels']['program']}"
            yield item(f"**{name}**: {value:+.1%} ({where}). {count} of {len(judged)} {what} are {beyond} {limit:.0%}.")
    tried = [record["details"] for record in found if measured(record["details"], "io")]
    refused = sum(not Promise.of(details).is_made for details in tried)
    yield item(f"**No promise**: {refused} of {len(tried)} tries.")
