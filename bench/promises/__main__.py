r"""Compares what plans promise with what is measured: `stripewise try` with six real programs on four
set-ups, as root.

    sudo stripewise-bench promises --records promises.jsonl --page bench/results.d/promises.md
    sudo stripewise-bench promises --set-ups throttled --programs h5py --records one.jsonl
    stripewise-bench promises --only-print --records promises.jsonl

cached: files in the page cache; the machine's disk and a tmpfs as servers.
two-disks: the machine's disk and a loop device in memory, both as fast as they are.
throttled: loop devices on throttled disks (testbed/disks), HDDs and SSDs.
cephfs: a CephFS with throttled OSDs (testbed/cephfs), HDDs and SSDs.

Each set-up is made, measured with `stripewise calibrate`, and removed. Each program first writes its
files, unthrottled; then `stripewise try` runs it in their present layout and in the planned one. An
interrupted run continues where it was. --dir keeps the profiles, and the traces and plans of all tries.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / name) for name in ("testbed/disks", "bench/common", "bench/mix")]

# pylint: disable=wrong-import-position
import applications
import farm
import page
from programs import BINARIES, Failed, Programs
from records import Records
from set_ups import SETUPS, in_memory
from throttled import cpu_s


def flags():
    parser = argparse.ArgumentParser(prog="stripewise-bench promises", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--set-ups", nargs="+", choices=SETUPS, default=list(SETUPS), metavar="SETUP", help="[default: all]")
    add("--programs", nargs="+", choices=applications.NAMES, default=applications.NAMES, metavar="PROGRAM", help=", ".join(applications.NAMES))
    add("--records", type=Path, default=Path("promises.jsonl"), help="JSON lines; what it has is not measured again")
    add("--page", type=Path, help="write the tables there, too, and keep its section of causes")
    add("--note", default="", help="a sentence for the page: what else the machine did")
    add("--dir", type=Path, default=Path("/tmp/stripewise-promises"), help="for set-ups, files and tries; on the machine's disk")
    add("--port", type=int, default=41500, help="of the CephFS's monitor, and the next one")
    add("--until", metavar="HH:MM", help="begin no try after this time of the day")
    add("--runs", type=int, default=3, help="of a program in each layout, at least [default: %(default)s]")
    add("--at-most", type=int, default=8, help="[default: %(default)s]")
    add("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    add("--workloads", type=Path, default=ROOT / "build", help="of `make workloads`")
    add("--throttled-disk", type=Path, default=ROOT / "build" / "throttled-disk", help="of `make throttled-disk`")
    speed = "random access in us, in order in us, MiB/s [default: %(default)s]"
    for name, default in (("--hdd", "3000:1000:12"), ("--ssd", "500:500:40"), ("--osd-hdd", "8000:8000:4"), ("--osd-ssd", "3000:3000:12")):
        add(name, type=farm.Speed.parse, default=default, metavar="SPEED", help=speed)
    add("--only-print", action="store_true", help="print the tables of what was measured")
    return parser.parse_args()


class Bench:
    """Measures what the records lack."""

    def __init__(self, args, records):
        self.args, self.records = args, records
        self.programs = Programs(args.binaries, args.workloads, "mpich")
        self.begin_s = time.monotonic()

    def say(self, message):
        print(f"[{time.monotonic() - self.begin_s:6.1f} s] {message}", file=sys.stderr, flush=True)

    def measure(self):
        for name in self.args.set_ups:
            missing = [program for program in self.args.programs if not self.records.repeats(page.EXPERIMENT, name, {"program": program})]
            if missing:
                with in_memory(self.args.dir / "memory") as memory, SETUPS[name](self.args, self.programs, memory) as set_up:
                    self.say(f"{name}: is there")
                    set_up.calibrate()
                    shutil.copy(set_up.directory / "profile.toml", self.args.dir / f"{name}.profile.toml")
                    self.say(f"{name}: calibrated")
                    for program in missing:
                        self.one(set_up, program)

    def one(self, set_up, program):
        """Tries a program, and records what was promised and what was measured."""
        if self.args.until and time.strftime("%H:%M") >= self.args.until:
            sys.exit(f"promises: it is {self.args.until}; the same command continues")
        command = applications.commands(set_up.scale)[program]
        words = command.words(self.programs, set_up.data, direct=False)
        set_up.farm.delay(False)
        for making in (command.maker().words(self.programs, set_up.data, direct=False), words):
            self.programs.run(*making)
        os.sync()
        set_up.farm.delay(True)
        where = self.args.dir / "tries" / f"{set_up.name}-{program.replace(' ', '-')}"
        details = {"load": os.getloadavg()[0], "command": command.shown(), "bytes": sum(file.stat().st_size for file in set_up.data.iterdir())}
        busy_s, begun_s = cpu_s(), time.monotonic()
        details |= self.tried(set_up, where, words)
        details["busy"] = (cpu_s() - busy_s) / (time.monotonic() - begun_s) / os.cpu_count()
        measured = {"seconds": page.seconds_after(details), "bytes": details["bytes"], "verified": "failed" not in details}
        self.records.add(page.EXPERIMENT, set_up.name, {"program": program}, measured, details)
        self.say(" | ".join([set_up.name, *page.row(program, details)]))
        set_up.farm.delay(False)
        if page.result(details) == "kept":
            self.programs.command("try", "--undo", "-d", where, "--quiet")
        set_up.remove_files()
        set_up.farm.delay(True)

    def tried(self, set_up, where, words):
        """What `try` says, and the plan. A failure does not end the run."""
        shutil.rmtree(where, ignore_errors=True)
        where.parent.mkdir(exist_ok=True)
        flags = [*["--cold"] * set_up.cold, "--runs", self.args.runs, "--at-most", self.args.at_most, "--quiet", "--yes", "--json"]
        try:
            result = json.loads(self.programs.command("try", "-c", set_up.cluster, "-d", where, *flags, "--", *words))
        except Failed as failure:
            return {"failed": str(failure)}
        return {"try": result, "plan": json.loads((where / "plan.json").read_text())}


def main():
    args = flags()
    args.dir = args.dir.resolve()
    # SIGTERM removes the set-up, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("promises: ended by SIGTERM"))
    records = Records(args.records, where="try")
    if not args.only_print:
        try:
            Bench(args, records).measure()
        except (farm.Problem, Failed) as problem:
            before = f"; before that: {problem.__context__}" if problem.__context__ else ""
            sys.exit(f"promises: {problem}{before}")
    text = page.text(records, args)
    print(text)
    if args.page:
        _, mark, causes = (args.page.read_text() if args.page.exists() else "").partition(page.CAUSES)
        args.page.write_text(text + "\n" + mark + causes)


main()
