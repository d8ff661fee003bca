"""What was found, as tables in Markdown."""

from statistics import median

from markdown import table
from records import command_line, machine, now

# What a choice is made by: the details of a record with a prediction, of which the least is picked.
MODELS = {"cil_s": "CIL's formula", "cost_s": "general cost model", "elapsed_s": "planner", "simulated_s": "simulator"}
# What the planner holds for equal; then it goes by cost (docs/decisions/0002).
EQUAL = 0.005


HEAD = """# C1 and PSA's rows on slowed real disks

Disks are loop devices with {file_system} on images that take the time of a disk: T = startup + bytes / rate, one arm each, first
come, first served (`testbed/disks`). HDDs: {hdd} (us at random : us in order : MiB/s), SSDs: {ssd}. So the time of a request is
given here, too; what is not is everything between the program and the disk: the file system and where it puts the data, the kernel's cutting and queueing,
and that an arm which several processes share is at the right place for none of them.

The programs are real ones (`ior`, Open MPI, through the preload library), past the page cache, on files that are overwritten in place; every
byte is checked. The models know the disks by `stripewise calibrate --quick` alone.

{date}, {machine}. Command: `{command}`
"""


def page(records, args):
    """Everything, as bench/results.d/ has it."""
    of = machine()
    where = f"{of['cores']} x {of['cpu']}, {of['system']}"
    parts = [HEAD.format(**vars(args), date=now(), machine=where, command=command_line())]
    if records.all("C1"):
        parts += ["## C1: does a model pick the best of 1-DH, 2-D (groups of two) and 1-DV on 8 HDDs?\n", c1(records), ""]
    if records.all("P1"):
        parts += ["## P1: a shared file on 4 HDDs and 4 SSDs that hold a quarter of it, 16 processes, 512K\n", psa(records)]
    return "\n".join(parts)


def cases(records, experiment):
    """{labels: {scheme: record}}, of those that are complete."""
    by_labels = {}
    for record in records.all(experiment):
        by_labels.setdefault(tuple(sorted(record["labels"].items())), {})[record["scheme"]] = record
    schemes = max(map(len, by_labels.values()), default=0)
    return {labels: case for labels, case in by_labels.items() if len(case) == schemes}


def fastest(case):
    return min(case, key=lambda scheme: median(case[scheme]["seconds"]))


def judged(case, model):
    """(what is picked, whether it is the best or not to be told from it, regret: the part of the best's time that is lost)"""
    best = fastest(case)
    predicted = {scheme: record["details"] for scheme, record in case.items()}
    most = min(details[model] for details in predicted.values()) * (1 + (EQUAL if model == "elapsed_s" else 0))
    equal = [scheme for scheme in case if predicted[scheme][model] <= most]
    picked = min(equal, key=lambda scheme: predicted[scheme]["cost_s"])
    regret = median(case[picked]["seconds"]) / median(case[best]["seconds"]) - 1
    alike = min(case[picked]["seconds"]) <= max(case[best]["seconds"])
    return picked, alike, regret


def c1(records):
    """The choices of each model, and where they were worst."""
    found = cases(records, "C1")
    parts = [f"{len(found)} cases, {sum(len(case) for case in found.values())} runs with {repeats(found)} repeats", ""]
    parts += ["Alike: the fastest repeat under what was picked is not slower than the slowest one under what is best.", ""]
    parts += [table(["model", "cases", "best or alike", "mean regret", "worst regret"], rows(found)), ""]
    parts += [f"Requests that the disks counted, beside those that the layouts explain: {unexpected(found)}."]
    parts += [f"Predicted elapsed time less measured: {errors(found)}.", "", "Worst choices:", ""]
    return "\n".join([*parts, table(["model", "case", "picked", "best", "regret"], worst(found))])


def repeats(found):
    counts = [len(record["seconds"]) for case in found.values() for record in case.values()]
    least, most = min(counts, default=0), max(counts, default=0)
    return str(most) if least == most else f"{least} to {most}"


def rows(found):
    groups = {"all": found}
    for labels in found:
        values = dict(labels)
        groups.setdefault(f"{values['access']} {values['op']}", {})[labels] = found[labels]
    for model, name in MODELS.items():
        for group, of_group in groups.items():
            results = [judged(case, model) for case in of_group.values()]
            share = sum(alike for _, alike, _ in results) / max(1, len(results))
            regrets = [regret for *_, regret in results] or [0]
            yield [name, f"{group}: {len(results)}", f"{share:.1%}", f"{sum(regrets) / len(regrets):.2%}", f"{max(regrets):.1%}"]


def unexpected(found):
    """Part of all requests to disks that a layout does not explain."""
    details = [record["details"] for case in found.values() for record in case.values()]
    expected = sum(each["requests_expected"] for each in details)
    return f"{sum(each['requests'] for each in details) / max(1, expected) - 1:+.2%}"


def errors(found):
    """How far the planner's expected times are off."""
    records = [record for case in found.values() for record in case.values()]
    off = sorted(record["details"]["elapsed_s"] / median(record["seconds"]) - 1 for record in records)
    if not off:
        return "nothing"
    at = [off[round(share * (len(off) - 1))] for share in (0, 0.1, 0.5, 0.9, 1)]
    return "least {:+.1%}, 10 % below {:+.1%}, median {:+.1%}, 10 % above {:+.1%}, most {:+.1%}".format(*at)


def worst(found, count=8):
    for model, name in MODELS.items():
        choices = [(judged(case, model), labels, case) for labels, case in found.items()]
        choices = sorted(choices, key=lambda choice: -choice[0][2])[:count]
        for (picked, alike, regret), labels, case in choices:
            if regret > 0:
                yield [name, " ".join(value for _, value in labels), picked, fastest(case), f"{regret:.1%}{' (alike)' * alike}"]


def psa(records):
    """Seconds under each scheme."""
    found = cases(records, "P1")
    schemes = sorted({scheme for case in found.values() for scheme in case})
    parts = []
    for labels, case in found.items():
        values = [f"{median(case[scheme]['seconds']):.2f} s ({case[scheme]['layout']})" for scheme in schemes]
        parts.append([" ".join(value for _, value in labels), *values])
    return table(["case", *schemes], parts)
