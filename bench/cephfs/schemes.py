"""One shared file over both classes of OSDs under DEF, PA, PSA and the planner's choice:
throughput, and the bytes of each OSD."""

import grid
from bed import difference
from choice import text
from sizes import KIB, human

EXPERIMENT = "schemes"
SIZES = [128 * KIB, 512 * KIB]
# All HDDs alone, for comparison; the papers' schemes; the planner's choice.
SCHEMES = ["1-DH on hdd", "DEF", "PA", "PSA", "auto"]
# The fraction of the file that fits on all SSDs together.
SPACE = 1 / 4


def measure(run, args):
    """Every scheme with requests of every size, repeatedly."""
    for repeat in range(args.repeats):
        for size in SIZES:
            for scheme in SCHEMES:
                labels = {op: {"size": human(size), "op": op} for op in grid.OPS}
                if any(run.records.repeats(EXPERIMENT, scheme, labels[op]) <= repeat for op in grid.OPS):
                    one(run, scheme, size, repeat, labels)


def one(run, scheme, size, repeat, labels):
    """One scheme: the file gets the plan for writing, and is then written and read."""
    bed, args = run.bed, run.args
    block_bytes = size * grid.Cell(size, private=False).requests(args.hdd, args.servers, args.seconds)
    space_bytes = int(SPACE * block_bytes * grid.PROCESSES / args.servers)
    bed.write_cluster({"hdd": bed.capacity_bytes(), "ssd": space_bytes})
    traces = {op: bed.trace(grid.PROCESSES, size, block_bytes, "random", op, private=False) for op in grid.OPS}
    plan, said = bed.plan(traces["write"], scheme.lower() if scheme in ("DEF", "PA", "PSA") else scheme)
    expected = {op: bed.simulated(trace, plan) for op, trace in traces.items()}
    bed.prepare(grid.PROCESSES, plan, block_bytes, private=False)
    before = bed.counted()
    words = ["--transfer", size, "--block", block_bytes, "--access", "random", "--seed", repeat + 1]
    measured = bed.measured(grid.PROCESSES, plan, False, *words)
    after = bed.counted()
    for op, values in measured.items():
        details = {
            "simulated_s": expected[op]["elapsed_s"],
            "bytes_expected": expected[op]["bytes"],
            "bytes_counted": difference(before, after, op),
            "cpu": values["cpu"],
        }
        run.records.add(EXPERIMENT, scheme, labels[op], values, details, f"{said['name']} {text(said)}")
    times = ", ".join(f"{op} {of['seconds']:.2f} s ({expected[op]['elapsed_s']:.2f} s)" for op, of in measured.items())
    run.say(f"schemes, run {repeat + 1}, {human(size)} {scheme}: {times}")
