"""The measurements: one JSON object per line, as `stripewise-bench evaluate` reads it. The last line
with a key wins, so a record can be rewritten with more repeats."""

import json
from pathlib import Path

from described import machine, now


def key(record):
    """The key that identifies a record."""
    return (record["experiment"], record["scheme"], *sorted(record["labels"].items()))


def parsed(line):
    """Parses a record; None for an incomplete line, which a killed run may leave."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


class Records:
    """The records of a file. New ones are written at once, so that an interrupted run can continue.
    `where` names the system under test."""

    def __init__(self, path, where):
        self.path, self.where = Path(path), where
        text = self.path.read_text() if self.path.exists() else ""
        lines = text.splitlines()
        # New records begin on a line of their own, also after an incomplete line.
        self.begin = "" if text.endswith("\n") or not text else "\n"
        self.by_key = {key(record): record for record in map(parsed, lines) if record}

    def all(self, experiment):
        """The records of an experiment."""
        return [record for record in self.by_key.values() if record["experiment"] == experiment]

    def repeats(self, experiment, scheme, labels):
        """Number of repeats measured so far."""
        record = self.by_key.get(key({"experiment": experiment, "scheme": scheme, "labels": labels}))
        return len(record["seconds"]) if record else 0

    def add(self, experiment, scheme, labels, measured, details, layout=""):
        """Adds one repeat. `measured` has seconds, bytes, and whether all bytes were right."""
        record = {
            "experiment": experiment,
            "where": self.where,
            "labels": labels,
            "scheme": scheme,
            "seconds": [],
            "dates": [],
            "bytes": measured["bytes"],
            "verified": True,
            "layout": layout,
        }
        record = self.by_key.get(key(record), record)
        record["seconds"].append(measured["seconds"])
        record.setdefault("dates", []).append(now())
        record["verified"] = record["verified"] and measured["verified"]
        record["details"] = details
        self.by_key[key(record)] = record
        with open(self.path, "a") as file:
            file.write(f"{self.begin}{json.dumps(record)}\n")
        self.begin = ""

    def document(self, command):
        """All records in the form of docs/formats/evaluation.md: a line for each cell."""
        head = {"version": 2, "date": now(), "command": command, "machine": machine()}
        head = json.dumps(head, indent=2).removesuffix("\n}")
        lines = ",\n".join(map(json.dumps, cells(self.by_key.values())))
        return f'{head},\n  "cells": [\n{lines}\n]\n}}\n'


def cells(records):
    """The records by cell: the keys that all its runs share, and `runs` with the other keys of each."""
    by_cell = {}
    for record in records:
        by_cell.setdefault(key({**record, "scheme": None}), []).append(record)
    return [runs[0] if len(runs) == 1 else {**common(runs), "runs": list(map(own(common(runs)), runs))} for runs in by_cell.values()]


def common(runs):
    """What all have in common. Objects that differ are compared key by key."""
    shared = {}
    for name, value in runs[0].items():
        values = [run.get(name) for run in runs]
        if all(other == value for other in values):
            shared[name] = value
        elif all(isinstance(other, dict) for other in values):
            shared[name] = common(values)
    return shared


def own(shared):
    """Takes out of a run what is shared."""

    def rest(run):
        inner = {name: own(shared[name])(run[name]) for name in run if name in shared and run[name] != shared[name]}
        return {**{name: value for name, value in run.items() if name not in shared}, **inner}

    return rest
