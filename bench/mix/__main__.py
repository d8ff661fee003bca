"""Measures the joint plan (docs/joint-plan.md) with real programs: every plan is traced, planned,
placed and run, and every byte is checked.

    stripewise-bench mix all --records mix.jsonl --page bench/results.d/mix.md
    stripewise-bench mix rules --quick --records quick.jsonl
    sudo stripewise-bench mix cephfs --records mix.jsonl
    stripewise-bench mix all --only-print --records mix.jsonl

rules: a mixed job of four programs under the joint plan and under what sites recommend, on emulated
    servers.
cases: the cases of the joint plan under it and under plans made by hand, on emulated servers; is
    the order of the times that of the simulator?
cephfs: two of these cases on a CephFS with throttled disks, as root.
all: the first two.

An interrupted run continues where it was; more --repeats are added to the existing records. The
tables go to standard output.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "bench" / "common"), str(ROOT / "testbed" / "disks")]

# pylint: disable=wrong-import-position
import by_hand
import cases
import farm
import on_cephfs
import page
import site_rules
from emulated import Emulated
from measure import Measure
from programs import BINARIES, Failed, Programs
from records import Records
from servers import Emulation
from sizes import KIB


def flags():
    parser = argparse.ArgumentParser(prog="stripewise-bench mix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("what", choices=["rules", "cases", "cephfs", "all"])
    add("--records", type=Path, default=Path("mix.jsonl"), help="JSON lines; what it has is not measured again")
    add("--page", type=Path, help="write the tables there, too, as bench/results.d/ has them")
    add("--note", default="", help="a sentence for the page: what else the machine did")
    add("--dir", type=Path, default=Path("/dev/shm/stripewise-mix"), help="for servers, files, traces and plans; emptied")
    add("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    add("--workloads", type=Path, default=ROOT / "build", help="of `make workloads`")
    add("--slow", type=float, default=4, help="the emulated servers are slower by this factor, so that two cores keep up [default: %(default)s]")
    add("--scale", type=int, default=1, choices=[1, 2, 4], help="divides the sizes of the files [default: %(default)s]")
    add("--repeats", type=int, default=3)
    add("--only", nargs="+", help="names of cases")
    add("--slowest", type=float, default=5, help="no plan made by hand that is more times slower than the fastest [default: %(default)s]")
    add("--quick", action="store_true", help="small files on fast servers, once: to see whether all works")
    add("--only-print", action="store_true", help="print the tables of what was measured")
    on_cephfs.flags(parser)
    args = parser.parse_args()
    if args.quick:
        args.scale, args.slow, args.repeats = 4, 1, 1
    return args


class Bench:
    """What all measurements share."""

    def __init__(self, args, records):
        self.args, self.records = args, records
        self.programs = Programs(args.binaries, args.workloads)
        # As long as this object exists, no process clears the state of the emulated servers.
        self.emulation = Emulation()
        self.begin_s = time.monotonic()

    def say(self, message):
        print(f"[{time.monotonic() - self.begin_s:6.1f} s] {message}", file=sys.stderr, flush=True)

    def compare(self, experiment, measure, others):
        """Measures a case under the joint plan and `others`, {name: path}, in turn, as often as is
        missing."""
        case = measure.case
        plans, labels = {page.JOINT: measure.joint, **others}, {"case": case.name}
        expected = {name: measure.simulated_all(path) for name, path in plans.items()}
        for repeat in range(self.args.repeats):
            for name, path in plans.items():
                if self.records.repeats(experiment, name, labels) > repeat:
                    continue
                measured, run = measure.measured(path)
                details = {"simulated_s": expected[name], "runs": [*self.before(experiment, name, labels), run]}
                details |= {"joint": measure.said} if name == page.JOINT else {}
                layout = measure.described() if name == page.JOINT else ""
                self.records.add(experiment, name, labels, measured, details, layout)
                self.say(f"{case.name}, run {repeat + 1}, {name}: {measured['seconds']:.2f} s, simulated {expected[name]:.2f} s, every byte right")

    def before(self, experiment, scheme, labels):
        """The details of earlier runs."""
        for record in self.records.all(experiment):
            if record["scheme"] == scheme and record["labels"] == labels:
                return record["details"]["runs"]
        return []

    def rules(self):
        """The mixed job under the joint plan and what sites recommend."""
        case = cases.mixed_job(self.args.scale).slowed(self.args.slow)
        measure = self.emulated(case)
        rest = [app for app in case.applications if app.name != page.STRIDED]
        measure.said["rest"] = measure.plan("rest", rest)[1]
        plans = {rule.name: measure.given(f"rule-{number}", rule.plan(case)) for number, rule in enumerate(site_rules.RULES)}
        self.compare(page.RULES, measure, plans)
        measure.system.remove()

    def cases(self):
        """Each case under the joint plan and a few of those made by hand."""
        for case in cases.all_cases(self.args.scale):
            if not self.args.only or case.name in self.args.only:
                measure = self.emulated(case.slowed(self.args.slow))
                self.by_hand(page.CASES, measure, by_hand.STRIPES)
                measure.system.remove()

    def by_hand(self, experiment, measure, stripes):
        ranked = by_hand.ranked(measure, stripes)
        selected = by_hand.selected(ranked, self.args.slowest)
        plans = {plan.name: measure.given(f"by-hand-{number}", plan.chosen) for number, plan in enumerate(selected)}
        self.say(f"{measure.case.name}: {len(ranked)} plans made by hand, the fastest {ranked[0].simulated_s:.2f} s in the simulator")
        self.compare(experiment, measure, plans)

    def emulated(self, case):
        return Measure(Emulated(self.args.dir, self.programs, case), case)

    def cephfs(self):
        """Two of the cases on a CephFS."""
        with on_cephfs.Bed(self.args, self.programs) as bed:
            self.say("the bed is up")
            bed.calibrated(self.args.records.with_suffix(".profile.toml"))
            self.say("calibrated")
            for case in on_cephfs.cases(self.args, bed.capacity_bytes()):
                if not self.args.only or case.name in self.args.only:
                    self.by_hand(page.CEPHFS, Measure(on_cephfs.System(bed, case), case), [64 * KIB, *by_hand.STRIPES[2:]])


def main():
    args = flags()
    # SIGTERM removes the testbed, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mix: ended by SIGTERM"))
    records = Records(args.records, where="cephfs" if args.what == "cephfs" else "emulated")
    if not args.only_print:
        bench = Bench(args, records)
        try:
            for what in ["rules", "cases"] if args.what == "all" else [args.what]:
                getattr(bench, what)()
        except (farm.Problem, Failed) as problem:
            sys.exit(f"mix: {problem}")
    text = page.text(records, args)
    print(text)
    if args.page:
        args.page.write_text(text + "\n")


main()
