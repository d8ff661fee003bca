"""The table of S7."""

from statistics import median

import overhead
import sizes
from markdown import by, table


def tables(args, records):
    """The time of a write that misses under each mode, compared with stock."""
    del args
    groups = by(records, "kind", "size", "mode")
    rows = []
    for kind in overhead.KINDS:
        for size in overhead.SIZES:
            stock = groups.get((kind, size, "stock"))
            for mode in overhead.MODES:
                measured = groups.get((kind, size, mode))
                if not measured or not stock:
                    continue
                each_us, stock_us = request_us(kind, measured), request_us(kind, stock)
                more = [f"{each_us - stock_us:+.2f}", f"{100 * (each_us / stock_us - 1):+.1f} %"]
                rows.append([kind, sizes.human(size), mode, f"{each_us:.2f}", *more])
    header = ["servers", "request", "mode", "us per request", "more", "more"]
    return "## Writes that miss\n\n" + table(header, rows, numbers=3)


def request_us(kind, records):
    """Microseconds per request of the median run; if only the processor counts, of the least
    disturbed run."""
    middle = min if kind == "bare" else median
    return 1e6 * middle(record["seconds"] for record in records) / records[0]["requests"]
