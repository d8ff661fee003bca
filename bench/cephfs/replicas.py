"""A shared file on one class of OSDs with two replicas of different layouts, compared with each of
the layouts alone."""

from dataclasses import dataclass

import grid
from bed import difference
from layouts import plan_text, striped
from sizes import KIB, MIB, human

EXPERIMENT = "replicas"
# Many processes with small requests, which are best served by one OSD each, and one process with
# large requests, which need all OSDs. There is one layout for each.
CASES = [(grid.PROCESSES, 64 * KIB), (1, 4 * MIB)]
STRIPES = [16 * KIB, 4 * MIB]
FILE_BYTES = 32 * MIB
BOTH = "replicas"


@dataclass(frozen=True)
class Servers:
    """The servers of a class, as layouts name them."""

    name: str
    count: int


def measure(run, args):
    """Both cases on each of the layouts alone and with both as replicas, repeatedly."""
    layouts = [striped(Servers("hdd", args.servers), stripe) for stripe in STRIPES]
    for repeat in range(args.repeats):
        for ranks, size in CASES:
            for name, chosen in [*((layout.name, [layout]) for layout in layouts), (BOTH, layouts)]:
                labels = {op: {"size": f"{ranks} x {human(size)}", "op": op} for op in grid.OPS}
                if any(run.records.repeats(EXPERIMENT, name, labels[op]) <= repeat for op in grid.OPS):
                    one(run, name, chosen, (ranks, size), repeat, labels)


def one(run, name, layouts, case, repeat, labels):
    """New data is written, drained, and read."""
    bed, args = run.bed, run.args
    bed.write_cluster({"hdd": bed.capacity_bytes()})
    (ranks, size), seed = case, repeat + 1
    block_bytes = (FILE_BYTES // 4 if args.quick else FILE_BYTES) // ranks
    traces = {op: bed.trace(ranks, size, block_bytes, "random", op, private=False, seed=seed) for op in grid.OPS}
    text = bed.plan(traces["write"], "1-DH")[0].read_text()
    plan = bed.directory / "replicas.plan.toml"
    bed.remove_files()
    bed.farm.delay(True)
    words = ["--transfer", size, "--block", block_bytes, "--access", "random", "--seed", seed]
    times = []
    for op, trace in traces.items():
        plan.write_text(plan_text(str(bed.file), layouts, ranks, text[text.index("# The cluster") :]))
        # The simulated end of a run includes the synchronization that a write leaves to be done.
        expected = bed.simulated(trace, plan)
        before = bed.counted()
        values = bed.measured(ranks, plan, False, *words, op=op)[op]
        if len(layouts) > 1:
            bed.programs.command("drain", "-p", plan, bed.file)
        details = {"bytes_counted": {of: difference(before, bed.counted(), of) for of in grid.OPS}}
        details |= {"simulated_s": expected["elapsed_s"], "bytes_expected": expected["bytes"]}
        run.records.add(EXPERIMENT, name, labels[op], values, details)
        times.append(f"{op} {values['seconds']:.2f} s ({expected['elapsed_s']:.2f} s)")
    bed.check_exported(ranks, *words)
    run.say(f"replicas, run {repeat + 1}, {ranks} x {human(size)} {name}: {', '.join(times)}")
