"""Describes a measurement: its command line, its time, and its machine."""

import datetime
import os
import platform
import sys
from pathlib import Path


def command_line():
    """The command line without directories of this machine."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return " ".join(["stripewise-bench", Path(sys.argv[0]).resolve().name, *words])


def now():
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def machine():
    """This machine, as docs/formats/evaluation.md has it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = f"Linux {platform.release()}"
    return {"host": platform.node(), "cpu": cpu, "cores": os.cpu_count(), "memory_bytes": memory_bytes, "system": system}


def machine_line():
    """This machine in one line."""
    of = machine()
    return f"{of['cores']} x {of['cpu']}, {of['system']}"
