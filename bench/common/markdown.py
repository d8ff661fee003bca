"""Tables in markdown, and what goes into their cells."""

from collections import defaultdict
from statistics import median


def table(header, rows, numbers=1):
    """A table whose columns from `numbers` on are numbers."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if column < numbers else "---:" for column in range(len(header))) + "|")
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def gain(factor):
    """1.4 -> +40 %."""
    return f"{100 * (factor - 1):+.0f} %"


def spread(*samples):
    """How far the values of a sample are from their median at most; of several, of the one where that is most."""
    farthest = [max(abs(value / median(values) - 1) for value in values) for values in samples if len(values) > 1]
    return f"{100 * max(farthest):.1f} %" if farthest else ""


def by(records, *names):
    """Records that did not fail, by the values of these keys."""
    groups = defaultdict(list)
    for record in records:
        if "failed" not in record:
            groups[tuple(record[name] for name in names)].append(record)
    return groups
