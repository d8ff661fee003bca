"""The page of what was measured, as Markdown."""

import itertools
import textwrap
from statistics import median

import cases
import on_cephfs
import site_rules
from described import machine_line, now
from markdown import spread, table

# Experiments of the records, and the scheme of the joint plan in all of them.
RULES, CASES, CEPHFS = "rules", "cases", "cephfs"
JOINT = "joint plan"
# The program of the mixed job that favors fine planning most.
STRIDED = "output"


def text(records, args):
    """The whole page, of the parts that were measured."""
    parts = [wrapped(part) for part in (head(records, args), rules(records, args), by_hand(records, args), cephfs(records, args)) if part]
    return "\n\n".join(itertools.chain(*parts))


def wrapped(parts):
    """Wraps paragraphs at 100 columns, and leaves tables, lists and headings alone."""
    return [part if part.startswith(("|", "- ", "#")) else fill(part) for part in parts]


def fill(words, **indents):
    return textwrap.fill(" ".join(words.split()), 100, break_long_words=False, break_on_hyphens=False, **indents)


def item(words):
    return fill(words, initial_indent="- ", subsequent_indent="  ")


def head(records, args):
    everything = [record for name in (RULES, CASES, CEPHFS) for record in records.all(name)]
    loads = [run["load"] for record in everything for run in record["details"]["runs"]]
    dates = sorted(date for record in everything for date in record["dates"])
    when = f"{dates[0]} to {dates[-1]}" if dates else f"{now()}, nothing measured"
    load = f", load average before a run {min(loads):.1f} to {max(loads):.1f} (median {median(loads):.1f})" if loads else ""
    return [
        "# The joint plan with real programs",
        """The joint plan ([joint-plan.md](../../docs/joint-plan.md)) beside what sites recommend, and
        beside plans made by hand. The programs are real and unaware of stripewise, and each plan
        takes the whole way: `trace`, `plan` with its default options, `place`, `run`. All bytes that
        a program reads are checked in the run. All bytes that it writes are checked after `export`,
        without the library. *All bytes of all runs on this page were right*, and no emulated server
        stored more than its capacity.""",
        f"""**The servers are emulated**, except in the last section. Each takes startup + bytes / rate
        for a request, one request at a time, whatever the page cache has. It has no cache of its own
        that joins neighboring requests or reads ahead. So the numbers test the planner and the data
        path; the model of the servers is right by construction. All emulated servers are slower than
        given below by a factor of {args.slow:g}, so that they are the bottleneck, rather than two
        cores.""",
        """Seconds are those that the programs report for their reads and writes (fio in whole
        milliseconds), without the start of processes. They are medians of the runs; *spread* is the
        largest deviation of a run from the median. *Simulated* is `stripewise sim` on the recorded
        trace.""",
        f"""{when}, {machine_line()}{load}. Commands: `stripewise-bench mix all` and, for the last section,
        `stripewise-bench mix cephfs`. {args.note}""",
    ]


def seconds(record):
    return median(record["seconds"])


def by_scheme(records, experiment, case):
    return {record["scheme"]: record for record in records.all(experiment) if record["labels"]["case"] == case}


# --- the mixed job


def rules(records, args):
    case = cases.mixed_job(args.scale)
    found = by_scheme(records, RULES, case.name)
    if JOINT not in found:
        return []
    others = {name: record for name, record in found.items() if name != JOINT}
    parts = ["## A mixed job beside what sites recommend", servers_of(case)]
    parts.append(
        """The programs run one after another. Their kinds of access and their sizes were chosen before
        the first measured run. (Samples were first meant to have 32 KiB. HDF5 reads 64 KiB for each,
        so they have 64 KiB.)"""
    )
    parts.append(table(["application", "program", "why", "MiB"], programs(case), numbers=3))
    header = ["plan", "s", "spread", "simulated s", *(app.name for app in case.applications), "times the joint plan"]
    parts.append(table(header, list(rule_rows(case, found))))
    parts += verdict(case, found[JOINT], others)
    parts.append(f"The joint plan: {found[JOINT]['layout']}.")
    parts.append("### The rules")
    parts.append(
        """Each rule is a plan file of stripewise, so all plans use the same data path. The format
        expresses all of them. Where Lustre chooses the OSTs, the plans take the next servers in turn
        that have room, with SSDs and HDDs spread evenly over the turn."""
    )
    parts.append("\n".join(item(f"**{rule.name}**: {rule.source} Scaled: {rule.scaled}") for rule in site_rules.RULES))
    return parts


def servers_of(case):
    def rate(tier):
        service, order_s = tier.read, tier.sequential_startup_s
        in_order = "" if order_s == service.startup_s else f" ({1e3 * order_s:g} ms in order)"
        return f"{tier.count} {tier.name.upper()} ({1e3 * service.startup_s:g} ms{in_order} + bytes / {1 / service.per_byte_s / 2**20:.0f} MiB/s)"

    fast = [tier for tier in case.tiers if case.capacity_bytes[tier.name] < cases.PLENTY]
    space = ", ".join(f"{tier.name.upper()} {tier.count * case.capacity_bytes[tier.name] / 2**20:.4g} MiB" for tier in fast)
    data = f"Data: {case.bytes() / 2**20:.4g} MiB. Space: {space}; the HDDs have plenty."
    return f"{case.why} Servers: {', '.join(map(rate, case.tiers))}. {data}"


def programs(case):
    size = {files.name: files.bytes * files.count for files in case.sets}
    for app in case.applications:
        shown = [command.shown() for command in app.commands]
        several = f" (and {len(shown) - 2} more like it), then `{shown[-1]}`" if len(shown) > 2 else ""
        mib = sum(size[name] for name in app.sets) / 2**20
        yield [app.name, f"`{shown[0]}`{several}", app.why, f"{mib:.4g}"]


def app_s(record, name):
    """Median seconds of an application."""
    return median(run["applications"][name] for run in record["details"]["runs"])


def rule_rows(case, found):
    joint_s = seconds(found[JOINT])
    for name in [JOINT, *(rule.name for rule in site_rules.RULES if rule.name in found)]:
        record = found[name]
        of_apps = [f"{app_s(record, app.name):.2f}" for app in case.applications]
        times = [f"{seconds(record):.2f}", spread(record["seconds"]), f"{record['details']['simulated_s']:.2f}"]
        yield [name, *times, *of_apps, f"{seconds(record) / joint_s:.1f}"]


def verdict(case, joint, others):
    """The factor over the best rule, what it consists of, and the bound."""
    best = min(others, key=lambda name: seconds(others[name]))
    said, joint_s = joint["details"]["joint"], seconds(joint)
    factor, worst = seconds(others[best]) / joint_s, max(map(seconds, others.values())) / joint_s
    rest = [app.name for app in case.applications if app.name != STRIDED]

    def rest_s(record):
        return sum(app_s(record, name) for name in rest)

    best_rest, rest_bound_s = min(others, key=lambda name: rest_s(others[name])), said["rest"]["bound_s"]
    return [
        f"""**The joint plan is {factor:.1f} times as fast as the best rule ({best}), and {worst:.1f} times
        as fast as the slowest.** `plan` expects {said['planned_s']:.2f} s, and proves that no choice of
        its layouts takes less than {said['bound_s']:.2f} s.""",
        f"""Most of the difference is the strided output. In stripes of 1 MiB or more, small pieces of
        several ranks meet on the same disk, and on servers without a cache each of them costs a seek.
        A disk array with a write-back cache would join some of them. The other three programs alone
        take {rest_s(joint):.2f} s under this plan and {rest_s(others[best_rest]):.2f} s under the best
        rule for them ({best_rest}), {rest_s(others[best_rest]) / rest_s(joint):.1f} times as long. For
        their traces `plan` proves a bound of {rest_bound_s:.2f} s. So no choice of its layouts could be
        more than {rest_s(others[best_rest]) / rest_bound_s:.1f} times as fast as that rule.""",
    ]


# --- plans made by hand


def by_hand(records, args):
    """The cases on emulated servers."""
    parts = ["## The cases of the joint plan beside plans made by hand"]
    parts.append(
        f"""These are the cases that the planner's tests have in the simulator
        (`crates/plan/src/tests/joint_cases.rs` and `joint.rs`), and one with checkpoints, here with
        real programs. The plans made by hand have every set of files on one tier or on all servers, in
        stripes of 4K, 64K, 1M or 16M, in all combinations that fit. In the second case the hot part
        may also be on the SSDs and the rest on the HDDs, each in one of these stripes. All of them were
        simulated. Those that were run are the two fastest, two from the middle and the two slowest of
        those that take at most {args.slowest:g} times as long as the fastest."""
    )
    return compared(records, CASES, cases.all_cases(args.scale), parts)


def cephfs(records, args):
    """The cases on a CephFS."""
    parts = ["## Two of the cases on a CephFS with throttled disks", on_cephfs.described(args)]
    return compared(records, CEPHFS, on_cephfs.cases(args, cases.PLENTY), parts, order=False)


def compared(records, experiment, all_cases, parts, order=True):
    """The tables of cases under the joint plan and under those made by hand."""
    found = {case.name: by_scheme(records, experiment, case.name) for case in all_cases}
    measured = [case for case in all_cases if JOINT in found[case.name]]
    if not measured:
        return []
    header = ["case", "joint plan s", "best by hand s", "joint / best", "planned s", "bound s"]
    header += ["pairs in the same order", "alike", "reversed", "measured / simulated"]
    parts.append(table(header, [summary(case, found[case.name]) for case in measured]))
    parts.append(
        """*Planned* and *bound* are what `plan` prints. *Pairs* are those of the measured plans, the joint
        one included. A pair is *in the same order* as in the simulator if all runs of one plan are
        faster than all runs of the other. It is *alike* if the ranges of their times overlap, or if the
        simulated times differ by less than the measured ones of a plan do. Otherwise it is
        *reversed*. *Measured / simulated* is the range over the plans."""
    )
    for case in measured:
        parts += [f"### {case.name.capitalize()}", f"{case.title[0].upper()}{case.title[1:]}. {servers_of(case) if order else case.why}"]
        parts.append(table(["application", "program", "MiB"], [[*row[:2], row[3]] for row in programs(case)], numbers=2))
        rows = sorted(found[case.name].values(), key=lambda record: record["details"]["simulated_s"])
        parts.append(table(["plan", "simulated s", "s", "spread"], [plan_row(record) for record in rows]))
        parts.append(f"The joint plan: {found[case.name][JOINT]['layout']}.")
    return parts


def plan_row(record):
    return [record["scheme"], f"{record['details']['simulated_s']:.3f}", f"{seconds(record):.3f}", spread(record["seconds"])]


def summary(case, found):
    joint, others = found[JOINT], [record for name, record in found.items() if name != JOINT]
    best_s, said = min(map(seconds, others)), joint["details"]["joint"]
    kinds = [kind(*pair) for pair in itertools.combinations(found.values(), 2)]
    counts = [kinds.count(name) for name in ("same", "alike", "reversed")]
    times = [f"{value:.2f}" for value in (seconds(joint), best_s, seconds(joint) / best_s, said["planned_s"], said["bound_s"])]
    ratios = sorted(seconds(record) / record["details"]["simulated_s"] for record in found.values())
    return [case.name, *times, *counts, f"{ratios[0]:.2f} to {ratios[-1]:.2f}"]


def kind(one, other):
    """Whether two plans have the same order, measured and simulated."""
    first, second = sorted((one, other), key=lambda record: record["details"]["simulated_s"])
    noise = max(max(record["seconds"]) / min(record["seconds"]) for record in (one, other))
    if max(first["seconds"]) < min(second["seconds"]):
        return "same"
    close = second["details"]["simulated_s"] < noise * first["details"]["simulated_s"]
    overlap = min(first["seconds"]) <= max(second["seconds"])
    return "alike" if close or overlap else "reversed"
