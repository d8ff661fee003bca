"""What testbeds of real file systems share: their processes, which are found by their command
lines, the directory that holds everything, and the commands.

A testbed that was killed leaves processes and mounts. They are found by their command lines, too,
and the next `up` or `down` ends them.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from farm import Problem, attempt, run, wait_for

SECONDS_TO_END = 10


@dataclass(frozen=True)
class Process:
    """A running process of a testbed."""

    pid: int
    words: tuple  # its command line

    @property
    def program(self):
        return Path(self.words[0]).name

    @property
    def name(self):
        """What people call the process."""
        return self.program

    def resident_mib(self):
        """Resident memory in MiB; 0 if the process has just ended."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except FileNotFoundError:
            return 0
        return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS")), 0)

    def is_alive(self):
        """Whether the process still runs; a zombie or a reused number does not count."""
        return command_line(self.pid) == self.words

    def send(self, with_signal):
        if self.is_alive():
            try:
                os.kill(self.pid, with_signal)
            except ProcessLookupError:
                pass


def command_line(pid):
    """The words of a process's command line; empty if it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(word.decode(errors="replace") for word in words[:-1])


def processes(kind, is_one):
    """The running processes, as values of `kind`, of which `is_one` holds."""
    found = (kind(int(path.name), command_line(path.name)) for path in Path("/proc").glob("[0-9]*"))
    return [process for process in found if process.words and is_one(process)]


def end(alive, with_signal=signal.SIGTERM):
    """Ends processes, with SIGKILL if they do not react in time."""
    for process in alive:
        process.send(with_signal)
    for process in alive:
        end_s = time.monotonic() + SECONDS_TO_END
        while process.is_alive() and time.monotonic() < end_s:
            time.sleep(0.02)
        process.send(signal.SIGKILL)
        if not wait_for(lambda process=process: not process.is_alive()):
            raise Problem(f"{process.name} (process {process.pid}) does not end")


class Directory:
    """The directory of a testbed, which holds everything, and how testbeds come and go."""

    own = ""  # the file in it by which a testbed is known

    def __init__(self, base):
        self.base = Path(base).resolve()
        self.begun_s = time.monotonic()

    def say(self, what):
        print(f"{time.monotonic() - self.begun_s:6.2f} s  {what}", file=sys.stderr)

    def up_by(self, is_complete, make):
        """Makes the testbed, or keeps one that is complete; returns whether it was made.

        Removes the remains of an earlier one; on failure, removes everything created so far.
        """
        if is_complete:
            self.say(f"the bed in {self.base} is up already")
            return False
        if self.base.exists():
            self.say(f"removing what is left in {self.base}")
            self.down()
        try:
            make()
        except BaseException:
            self.down()
            raise
        return True

    def running(self):
        """The processes of this testbed."""
        raise NotImplementedError

    def require(self):
        """Its processes, sorted by name; a Problem if there are none."""
        alive = sorted(self.running(), key=lambda process: process.name)
        if not alive:
            raise self.no_bed()
        return alive

    def no_bed(self):
        return Problem(f"there is no bed in {self.base}; remedy: `up`")

    def remove(self):
        """Removes the directory; refuses if something is mounted in it, or if it is no testbed's."""
        if not self.base.exists():
            return
        if not (self.base / self.own).exists() and any(self.base.iterdir()):
            raise Problem(f"{self.base} is no bed: it has no {self.own}, and is not empty")
        inside = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[1].startswith(f"{self.base}/")]
        if inside:
            raise Problem(f"{inside[0]} is still mounted; end what uses it, then `down` again")
        shutil.rmtree(self.base)
        self.say("removed")


def process_lines(alive):
    """A line about each process, for people."""
    return [f"{process.name}: process {process.pid}, {process.resident_mib()} MiB" for process in alive]


def unmount(directory):
    """Unmounts a directory; a mount in use ends after its last use."""
    if attempt("umount", directory) != 0:
        run("umount", "--lazy", directory)


def commands(text, base):
    """The parser of a testbed's commands, and the function that adds a command. `text` describes
    them all; `base` is the default of their flag --base."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)

    def command(name, text):
        one = what.add_parser(name, help=text)
        one.add_argument("--base", type=Path, default=base, help="everything is here [default: %(default)s]")
        return one

    return parser, command


def run_main(name, main):
    """Runs a testbed's program; a Problem ends it with one line."""
    try:
        main()
    except Problem as problem:
        sys.exit(f"{name}: {problem}")
