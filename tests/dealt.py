"""Where a plan puts the bytes of files, counted stripe by stripe."""

import re
import tomllib

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size_of(text):
    """Bytes of a size like 64K."""
    number, unit = re.fullmatch(r"(\d+)([KMGT]?)", text).groups()
    return int(number) * UNITS[unit]


def stripes_of(cycle, names):
    """[(name, bytes)] of "hdd/0-3:64K ssd/64Kx4:256K". `names` gives the names of the servers of
    "hdd/0-3"."""
    runs = [run.rsplit(":", 1) for run in cycle.split()]
    return [(name, size_of(width)) for targets, width in runs for name in names(targets)]


def dealt_out(layout, size, names):
    """{name: bytes} of a file without holes."""
    found, at = {}, 0
    for region in layout:
        end = min(size, size_of(region["end"]) if "end" in region else size)
        stripes, number = stripes_of(region["cycle"], names), 0
        while at < end:
            name, width = stripes[number % len(stripes)]
            found[name] = found.get(name, 0) + min(width, end - at)
            at += min(width, end - at)
            number += 1
    return found


def expected(plan, files, size, names):
    """{name: bytes} of all files of the plan's only rule."""
    (rule,) = tomllib.loads(plan.read_text())["rule"]
    layouts, stride = rule["layouts"], rule.get("spread", {}).get("stride", 1)
    sums = {}
    for number in range(files):
        for name, count in dealt_out(layouts[number // stride % len(layouts)], size // files, names).items():
            sums[name] = sums.get(name, 0) + count
    return sums
