"""The results as Markdown tables."""

import subprocess
import tomllib
from statistics import median

import choice
import grid
from bed import ROOT
from choices import cases, errors, fastest, judged, repeats
from described import command_line, machine_line, now
from markdown import table

# A layout counts as equally good if it is worse than the best by at most this fraction.
NEAR = 0.05
MODELS = {"elapsed_s": "planner", "simulated_s": "simulator", "cost_s": "general cost model"}

HEAD = """# Layouts, PSA, the cache and replicas on CephFS

## Testbed

A CephFS on one machine (`testbed/cephfs`). The monitor, the manager, the metadata server,
{servers} + {servers} OSDs and the mount (ceph-fuse) are real ones of Ceph 16.2, with one copy of everything,
no checksums, and the OSDs' databases and logs in memory.

Only the OSDs' disks are emulated. bluestore is on images that take the time of a disk: one
arm each, FIFO, `T = startup + bytes / rate` (`testbed/disks`). HDDs: {hdd}, SSDs: {ssd}
(us random : us sequential : MiB/s). These disks are slow enough that the two cores, which run everything and the
programs, do not limit the measurement.

The client takes requests of 1 MiB (`testbed/cephfs/widefuse.c`) and has no cache, and the programs
bypass the kernel's (`--api direct`). So every request of a program is one request to each disk that
its layout touches.

## Conditions

Programs: `ior` of workloads/, MPICH, {processes} processes, through the preload library. Requests are at
random places. Files are overwritten in place and read in full; every byte read is checked. The
models know the disks by `stripewise calibrate --quick` alone.

{date}, {machine}. Commit {commit}. Command: `{command}`. {runs}. {note}
"""


def page(records, args):
    """The whole page, in the form of bench/results.d/."""
    known = {"processes": grid.PROCESSES, "date": now(), "machine": machine_line(), "commit": commit(), "command": command_line()}
    head = HEAD.format(**vars(args), **known, runs=runs(records))
    sections = (calibration(args), layouts(records), schemes(records), cache(records), replicas(records), pools(records))
    return "\n\n".join([head.rstrip(), *(section for section in sections if section)])


def runs(records):
    """Number of measured phases, their dates, and whether all bytes were verified."""
    found = records.by_key.values()
    dates = sorted(date for record in found for date in record["dates"])
    wrong = sum(not record["verified"] for record in found)
    checked = f"{wrong} of them not checked in full" if wrong else "all bytes correct"
    return f"{sum(len(record['seconds']) for record in found)} phases, {dates[0]} to {dates[-1]}, {checked}" if dates else "No dates"


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def calibration(args):
    """The parameters found by `stripewise calibrate`."""
    profile = args.records.with_suffix(".profile.toml")
    if not profile.exists():
        return ""
    rows = []
    for class_, kinds in tomllib.loads(profile.read_text())["class"].items():
        for op in grid.OPS:
            for access in ("random", "sequential"):
                of = kinds[op][access]
                rate = 1 / of["per_byte_s"] / grid.MIB
                rows.append([f"{class_}, {op}, {access}", f"{of['startup_s'] * 1e3:.2f}", f"{rate:.2f}", f"{of['residual_relative']:.1%}"])
    return "## Calibration: one OSD of each class, no caches\n\n" + table(["", "startup, ms", "MiB/s", "residual"], rows)


def layouts(records):
    """1-DH, 2-D and 1-DV. Each OSD is a server."""
    found = cases(records, choice.EXPERIMENT, but=[choice.FREE])
    if not found:
        return ""
    parts = ["## Each OSD a server: does the planner choose the best of 1-DH, 2-D and 1-DV?"]
    parts += [f"On the HDDs, MiB/s written / read, medians; repeats: {repeats(found)}{widest(found)}."]
    parts += [throughput(found)]
    parts += [f"A choice counts as good if it is the best measured, or at most {NEAR:.0%} slower."]
    parts += [table(["model", "cells", "good", "mean regret", "worst regret"], list(judgements(found)))]
    parts += [f"Predicted minus measured elapsed time: {errors(found)}."]
    parts += [table(["cell", "best", "planner's choice", "regret", "expected s", "measured s", "spread"], list(each(found)), numbers=3)]
    parts += [free(records, found)]
    return "\n\n".join(parts)


def mib_per_s(record):
    return record["bytes"] / median(record["seconds"]) / grid.MIB


def spread(record):
    """The largest deviation of a repeat from the median."""
    middle = median(record["seconds"])
    return max(abs(seconds / middle - 1) for seconds in record["seconds"])


def spread_text(record):
    return f"{spread(record):.1%}" if len(record["seconds"]) > 1 else "one run"


def widest(found):
    """The largest spread as text; empty if nothing was repeated."""
    most = max(spread(record) for case in found.values() for record in case.values())
    return f"; the farthest from its median by {most:.1%}" if most else ""


def throughput(found):
    """A row per size, with a column per layout for own files and for a shared one."""
    schemes = list(next(iter(found.values())))
    by = {(dict(labels)["size"], dict(labels)["file"], dict(labels)["op"]): case for labels, case in found.items()}
    sizes = list(dict.fromkeys(size for size, *_ in by))
    rows = []
    for size in sizes:
        row = [size]
        for kind in ("own", "shared"):
            pair = [by.get((size, kind, op)) for op in grid.OPS]
            row += [" / ".join(f"{mib_per_s(case[scheme]):.2f}" if case else "" for case in pair) for scheme in schemes]
        rows.append(row)
    header = ["request", *(f"{name}{scheme}" for name in ("own files: ", "shared: ") for scheme in schemes)]
    return table(header, rows)


def judgements(found):
    for model, name in MODELS.items():
        groups = {"all": found}
        for labels, case in found.items():
            groups.setdefault(dict(labels)["op"], {})[labels] = case
        for group, of_group in groups.items():
            regrets = [judged(case, model)[2] for case in of_group.values()]
            good = sum(regret <= NEAR for regret in regrets) / len(regrets)
            yield [name, f"{group}: {len(regrets)}", f"{good:.1%}", f"{sum(regrets) / len(regrets):.2%}", f"{max(regrets):.1%}"]


def each(found):
    for labels, case in found.items():
        picked, _, regret = judged(case, "elapsed_s")
        record = case[picked]
        values = [f"{record['details']['elapsed_s']:.2f}", f"{median(record['seconds']):.2f}", spread_text(record)]
        yield [title(labels), fastest(case), picked, f"{regret:.1%}", *values]


def title(labels):
    """`64K own write`"""
    of = dict(labels)
    return " ".join(of[key] for key in ("size", "file", "op") if key in of)


def free(records, found):
    """The planner's choice among all layouts."""
    rows = []
    for record in records.all(choice.EXPERIMENT):
        labels = tuple(sorted(record["labels"].items()))
        if record["scheme"] == choice.FREE and labels in found:
            case = found[labels]
            best = fastest(case)
            gain = median(case[best]["seconds"]) / median(record["seconds"]) - 1
            rows.append([title(labels), record["layout"], f"{mib_per_s(record):.2f}", f"{best}: {mib_per_s(case[best]):.2f}", f"{gain:+.1%}"])
    if not rows:
        return ""
    text = "Cells where the planner, free to choose any layout, takes none of the three:\n\n"
    return text + table(["cell", "layout", "MiB/s", "best of the three", "faster by"], rows, numbers=2)


def of_experiment(records, experiment):
    """{labels: {scheme: record}} of all measured records."""
    by = {}
    for record in records.all(experiment):
        by.setdefault(tuple(sorted(record["labels"].items())), {})[record["scheme"]] = record
    return by


def worst_bytes(expected, counted):
    """The largest deviation of a server's bytes from the expected ones, as a fraction of the
    average server's bytes in its class."""
    mean = {name: total / sum(server.startswith(f"{name}/") for server in expected) for name, total in classes(expected).items()}
    parts = [(abs(counted[server] - size), mean[server.split("/")[0]]) for server, size in expected.items()]
    return max((difference / usual for difference, usual in parts if usual), default=0.0)


def schemes(records):
    rows = []
    for labels, case in of_experiment(records, "schemes").items():
        for scheme, record in case.items():
            of = record["details"]
            most = worst_bytes(of["bytes_expected"], of["bytes_counted"])
            rows.append(
                [title(labels), scheme, record["layout"], f"{mib_per_s(record):.2f}", spread_text(record)]
                + [f"{record['bytes'] / of['simulated_s'] / grid.MIB:.2f}"]
                + [mib(classes(of["bytes_expected"])), mib(classes(of["bytes_counted"])), f"{most:.2%}"]
            )
    if not rows:
        return ""
    text = """## A shared file on HDDs and SSDs that hold a quarter of it

Bytes are MiB on the HDDs + MiB on the SSDs, as planned and as `rados df` counts them (one pool per
OSD). *Off* is the largest deviation of an OSD, relative to its class's average.\n\n"""
    header = ["requests", "scheme", "layout", "MiB/s", "spread", "simulated", "MiB expected", "MiB counted", "off"]
    return text + table(header, rows, numbers=3)


def cache(records):
    rows = []
    for labels, case in of_experiment(records, "cache").items():
        for mode, record in case.items():
            of = record["details"]
            expected = classes(of["bytes_expected"])
            of_osds = {server: sum(of[f"bytes_counted_{op}"][server] for op in grid.OPS) for server in of["bytes_expected"]}
            both = classes(of_osds)
            row = [title(labels), mode, f"{mib_per_s(record):.2f}", spread_text(record)]
            row += [f"{mib_per_s(record) / mib_per_s(case['no cache']) - 1:+.0%}" if "no cache" in case else ""]
            row += [f"{record['bytes'] / of['simulated_s'] / grid.MIB:.2f}", mib(expected), mib(both), off(expected, both)]
            row += [f"{worst_bytes(of['bytes_expected'], of_osds):.1%}"]
            row += [mib(classes(of[f"bytes_counted_{dict(labels)['op']}"]))]
            own = own_count(of["statistics"])
            rows.append([*row, *([mib(own), off(own, both)] if own else ["", ""])])
    if not rows:
        return ""
    text = """## A shared file striped over the HDDs, with a cache for 30 % of it on the SSDs

The file is written through the cache, then read. Bytes are MiB written and read on the HDDs + on the
SSDs, including background copying: expected by the simulator, counted by `rados df`, and counted by
the library itself (STRIPEWISE_STATISTICS).

- *Off*: the largest deviation of a class, relative to all bytes.
- *Off, OSD*: the largest deviation of an OSD, relative to its class's average.
- *Of these in its direction*: without what copying reads while the program writes, and writes while
  the program reads.

The amount copied during a phase depends on timing. It is limited to 4 KiB per second (`plan --background`).\n\n"""
    header = ["requests", "cache", "MiB/s", "spread", "gain", "simulated", "MiB expected", "MiB counted", "off", "off, OSD"]
    header += ["of these in its direction", "the library's count", "off"]
    return text + table(header, rows, numbers=2)


def classes(sizes):
    """Bytes of each class of servers: {"hdd": ..., "ssd": ...}."""
    sums = {}
    for server, size in sizes.items():
        name = server.split("/")[0]
        sums[name] = sums.get(name, 0) + size
    return sums


def mib(sums):
    """`6.00 + 2.00`"""
    return " + ".join(f"{size / grid.MIB:.2f}" for size in sums.values())


def off(expected, counted):
    """The largest deviation of a class from the expected bytes, as a fraction of all bytes."""
    return f"{max(abs(counted[name] - size) for name, size in expected.items()) / sum(expected.values()):.1%}"


def own_count(statistics):
    """The bytes of each class by the library's count: copy 0 is on the HDDs, the others are on the
    SSDs. Bytes copied to one class are read from the other."""
    if not statistics:
        return None

    def total(name, originals):
        wanted = [value for key, value in statistics.items() if key.startswith(f"{name}.") and (key == f"{name}.0") == originals]
        return sum(wanted)

    copied = total("copied_bytes", True) + total("copied_bytes", False)
    used = {originals: total("read_bytes", originals) + total("written_bytes", originals) + copied for originals in (True, False)}
    return {"hdd": used[True], "ssd": used[False]}


def replicas(records):
    rows = []
    for labels, case in of_experiment(records, "replicas").items():
        for scheme, record in case.items():
            of, op = record["details"], dict(labels)["op"]
            counted = of["bytes_counted"][op]
            copies = 2 if op == "write" and scheme == "replicas" else 1
            rows.append(
                [title(labels), scheme, f"{mib_per_s(record):.2f}", spread_text(record)]
                + [f"{record['bytes'] / of['simulated_s'] / grid.MIB:.2f}"]
                + [f"{copies * record['bytes'] / grid.MIB:.2f}", mib(classes({server: counted[server] for server in of["bytes_expected"]}))]
            )
    if not rows:
        return ""
    text = """## A shared file with two replicas of different layouts on the HDDs

Requests of 8 processes or of one, in a file of 32 MiB, compared with each of the layouts alone. Bytes
written to one replica are copied to the other in the background (lazy close), by `drain` at the
latest; the bytes counted for a write are those of both.\n\n"""
    return text + table(["requests", "layout", "MiB/s", "spread", "simulated", "MiB expected", "MiB counted"], rows, numbers=2)


def pools(records):
    rows = []
    alone = of_experiment(records, choice.EXPERIMENT)
    for labels, case in of_experiment(records, "pools").items():
        for scheme, record in case.items():
            of = record["details"]
            server = alone.get(labels, {}).get(scheme)
            row = [title(labels), scheme, f"{record['bytes'] / of['elapsed_s'] / grid.MIB:.2f}", f"{mib_per_s(record):.2f}"]
            row += [spread_text(record), f"{of['elapsed_s'] / median(record['seconds']) - 1:+.0%}"]
            rows.append([*row, f"{mib_per_s(server):.2f}" if server else ""])
    if not rows:
        return ""
    text = """## One pool over all HDDs: the file system stripes

CephFS places the RADOS objects of a file on OSDs by the hash of their names. A stripe cycle over four
"servers" may therefore have two stripes on one OSD, and files on one OSD each may meet there. The
plan assumes that they do not; the table shows the cost of that assumption. Every run creates new
files, and so is one draw of several possible placements. The more 4M objects a file has, the less
the placement matters.\n\n"""
    header = ["cell", "layout", "expected MiB/s", "MiB/s", "spread", "error of the expected time", "each OSD a server, MiB/s"]
    return text + table(header, rows, numbers=2)
