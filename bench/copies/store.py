"""The measurements in a JSON file that is rewritten after every run, so that an interrupted
benchmark can continue."""

import json
import os
import sys
import time
from pathlib import Path

from described import command_line, machine_line, now


class Store:
    """Records, each known by its `key`."""

    def __init__(self, path, what, settings):
        self.path = Path(path)
        self.begin_s = time.monotonic()
        self.content = {"version": 1, "what": what, "settings": settings, "machine": machine_line(), "records": []}
        if self.path.exists():
            self.content = json.loads(self.path.read_text())
            found = (self.content.get("what"), self.content.get("settings"))
            if found != (what, json.loads(json.dumps(settings))):
                raise SystemExit(f"{path} is of other settings: {found}; move it away, or give another --results")
        self.content["command"] = command_line()

    @property
    def records(self):
        return self.content["records"]

    def has(self, key):
        """Whether the key was measured. Failed runs are tried again."""
        return any(record["key"] == key and "failed" not in record for record in self.records)

    def add(self, key, **values):
        """Adds a record, replacing an earlier one with the same key, and writes the file."""
        self.content["records"] = [record for record in self.records if record["key"] != key]
        self.records.append({"key": key, "date": now(), "load": os.getloadavg()[0], **values})
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(self.content, indent=1) + "\n")
        temporary.rename(self.path)

    def say(self, message):
        """Prints a progress message."""
        print(f"[{time.monotonic() - self.begin_s:6.1f} s] {message}", file=sys.stderr, flush=True)
