"""Counters of the runtime itself: the lines that processes write to STRIPEWISE_STATISTICS, and
`stripewise status`."""

import json
from collections import Counter


def counted(path):
    """The sums over all processes (docs/formats/statistics.md) by name; those of copy N are named
    `NAME.N`."""
    if not path.exists():
        return {}
    total = Counter()
    for line in path.read_text().splitlines():
        of_process = json.loads(line)
        total.update(numbers(of_process, ""))
        for number, copy in enumerate(of_process["copies"]):
            total.update(numbers(copy, f".{number}"))
    return dict(total)


def numbers(values, suffix):
    return {f"{name}{suffix}": value for name, value in values.items() if isinstance(value, int) and name != "pid" and name != "rank"}


def dirty_bytes(work):
    """Bytes of the file whose newest value is only in the cache, according to `status`."""
    answer = json.loads(work.programs.command("status", "--json", work.file))
    return sum(copy.get("dirty_bytes") or 0 for copy in find_copies(answer))


def find_copies(answer):
    """The "copies" of the first file in the output of `status`."""
    if isinstance(answer, dict):
        if "copies" in answer and isinstance(answer["copies"], list):
            return answer["copies"]
        answer = list(answer.values())
    for value in answer if isinstance(answer, list) else []:
        if found := find_copies(value):
            return found
    return []
