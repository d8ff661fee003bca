"""What the tests on real file systems share: calls of testbed/NAME, and what a testbed leaves."""

import os
import random
import shutil
import signal
import socket
import string
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from conftest import ROOT, run_command


def call(name, command, base, *words, **options):
    """Runs testbed/NAME COMMAND for the testbed in the directory `base`."""
    return run_command(sys.executable, ROOT / "testbed" / name, command, "--base", base, *words, **options)


@dataclass(frozen=True)
class Bed:
    """The running testbed `name`."""

    name: ClassVar[str]
    base: Path
    mount: Path

    def __call__(self, command, *words, **options):
        """Runs testbed/NAME COMMAND WORDS..."""
        return call(self.name, command, self.base, *words, **options)


def new_name():
    """An unused name without digits (tests/conftest.py says why)."""
    return "test-" + "".join(random.choices(string.ascii_lowercase, k=12))


def killed(command, seconds):
    """Runs a command and kills it after so many seconds."""
    process = subprocess.Popen(command)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


@contextmanager
def directory_of(path):
    """A new directory on the mount. It is removed afterwards, except with STRIPEWISE_KEEP=1."""
    path.mkdir()
    yield path
    if os.environ.get("STRIPEWISE_KEEP") != "1":
        shutil.rmtree(path, ignore_errors=True)


def assert_takes_no_foreign_directory(name, tmp_path):
    """A directory without a testbed has no status and is not removed."""
    nowhere = call(name, "status", tmp_path / "no", ok=False)
    assert nowhere.code == 1 and "there is no bed" in nowhere.err
    (tmp_path / "mine").write_text("a user's")
    foreign = call(name, "down", tmp_path, ok=False)
    assert foreign.code == 1 and "is no bed" in foreign.err and (tmp_path / "mine").exists()


def free_port():
    """A free port whose successor is free, too."""
    for port in range(28100, 32700, 10):
        with socket.socket() as one, socket.socket() as next_one:
            try:
                one.bind(("127.0.0.1", port))
                next_one.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


def processes(base):
    """The processes that name a directory in their command line, and that line, by number."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(path.name) != os.getpid() and f"{base}/" in line:
            found[int(path.name)] = line
    return found


def mounts(base):
    """The lines of the mount table for directories in `base`."""
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if f" {base}/" in line]
