"""The measurements in a JSON file that is rewritten after every run, so that an interrupted
benchmark can continue."""

import datetime
import json
import os
import platform
import sys
import time
from pathlib import Path


class Store:
    """Records, each known by its `key`."""

    def __init__(self, path, what, settings):
        self.path = Path(path)
        self.begin_s = time.monotonic()
        self.content = {"version": 1, "what": what, "settings": settings, "machine": machine(), "records": []}
        if self.path.exists():
            self.content = json.loads(self.path.read_text())
            found = (self.content.get("what"), self.content.get("settings"))
            if found != (what, json.loads(json.dumps(settings))):
                raise SystemExit(f"{path} is of other settings: {found}; move it away, or give another --results")
        self.content["command"] = "python3 bench/copies " + " ".join(sys.argv[1:])

    @property
    def records(self):
        return self.content["records"]

    def has(self, key):
        """Whether the key was measured. Failed runs are tried again."""
        return any(record["key"] == key and "failed" not in record for record in self.records)

    def add(self, key, **values):
        """Adds a record, replacing an earlier one with the same key, and writes the file."""
        date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.content["records"] = [record for record in self.records if record["key"] != key]
        self.records.append({"key": key, "date": date, "load": os.getloadavg()[0], **values})
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(self.content, indent=1) + "\n")
        temporary.rename(self.path)

    def say(self, message):
        """Prints a progress message."""
        print(f"[{time.monotonic() - self.begin_s:6.1f} s] {message}", file=sys.stderr, flush=True)


def machine():
    """A description of the machine in one line."""
    text = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), "CPU")
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"
