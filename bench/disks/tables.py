"""The results as Markdown tables."""

from statistics import median

from choices import MODELS, cases, errors, fastest, judged, repeats
from described import command_line, machine_line, now
from markdown import table

HEAD = """# C1 and PSA's rows on throttled real disks

The disks are loop devices with {file_system} on images that take the time of a disk: one
arm each, FIFO, `T = startup + bytes / rate` (`testbed/disks`). HDDs: {hdd}, SSDs: {ssd}
(us random : us sequential : MiB/s). So the time of a request is given here, too. Everything between the program
and the disk is real: the file system and its placement of data, the kernel's splitting and
queueing, and a disk arm that is never in the right place when several processes share it.

The programs are real (`ior`, Open MPI, through the preload library). They bypass the page cache and
overwrite files in place; every byte is checked. The models know the disks by
`stripewise calibrate --quick` alone.

{date}, {machine}. Command: `{command}`
"""


def page(records, args):
    """The whole page, in the form of bench/results.d/."""
    parts = [HEAD.format(**vars(args), date=now(), machine=machine_line(), command=command_line())]
    if records.all("C1"):
        parts += ["## C1: does a model pick the best of 1-DH, 2-D (groups of two) and 1-DV on 8 HDDs?\n", c1(records), ""]
    if records.all("P1"):
        parts += ["## P1: a shared file on 4 HDDs and 4 SSDs that hold a quarter of it, 16 processes, 512K\n", psa(records)]
    return "\n".join(parts)


def c1(records):
    """The choices of each model, and its worst cases."""
    found = cases(records, "C1")
    parts = [f"{len(found)} cases, {sum(len(case) for case in found.values())} runs with {repeats(found)} repeats.", ""]
    parts += ["A pick is *alike* if its fastest repeat is not slower than the slowest repeat of the best layout.", ""]
    parts += [table(["model", "cases", "best or alike", "mean regret", "worst regret"], rows(found)), ""]
    parts += [f"Requests counted by the disks, compared with those that the layouts explain: {unexpected(found)}."]
    parts += [f"Predicted minus measured elapsed time: {errors(found)}.", "", "Worst choices:", ""]
    return "\n".join([*parts, table(["model", "case", "picked", "best", "regret"], worst(found))])


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
    """The fraction of all requests to disks that the layouts do not explain."""
    details = [record["details"] for case in found.values() for record in case.values()]
    expected = sum(each["requests_expected"] for each in details)
    return f"{sum(each['requests'] for each in details) / max(1, expected) - 1:+.2%}"


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
