"""Markdown tables, and formatting of their cells."""

from collections import defaultdict
from statistics import median


def table(header, rows, numbers=1):
    """A table. Columns from index `numbers` on are numbers."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if column < numbers else "---:" for column in range(len(header))) + "|")
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def gain(factor):
    """1.4 -> +40 %."""
    return f"{100 * (factor - 1):+.0f} %"


def spread(*samples):
    """The largest deviation of a sample's values from their median; of several samples, the largest
    one."""
    farthest = [max(abs(value / median(values) - 1) for value in values) for values in samples if len(values) > 1]
    return f"{100 * max(farthest):.1f} %" if farthest else ""


def by(records, *names):
    """Records that did not fail, grouped by the values of these keys."""
    groups = defaultdict(list)
    for record in records:
        if "failed" not in record:
            groups[tuple(record[name] for name in names)].append(record)
    return groups
