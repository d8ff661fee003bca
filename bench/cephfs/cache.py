"""The cache: a shared file striped over the OSDs of one class, parts of it on those of the other; throughput, and the bytes of
each OSD."""

import grid
from bed import difference
from layouts import without_copies
from sizes import KIB, human

EXPERIMENT = "cache"
SIZES = [64 * KIB, 256 * KIB]
# Of the data, that the cache holds.
SPACE = 0.3
ORIGINAL = "1-DH:64K@hdd"
# Under each mode: which critical writes the cache admits.
MODES = {"no cache": "balanced", "as printed": "as-printed", "balanced": "balanced"}
# One after the other: name, direction, and the simulated run that it is like. Between the reads what the first one wanted is fetched.
PHASES = (("write", "write", 1), ("read, first run", "read", None), ("read, second run", "read", 2))


def measure(run, args):
    """Every mode with requests of every size, so often."""
    for repeat in range(args.repeats):
        for size in SIZES:
            for mode in MODES:
                if any(run.records.repeats(EXPERIMENT, mode, labels(size, phase)) <= repeat for phase, *_ in PHASES):
                    one(run, mode, size, repeat)


def labels(size, phase):
    return {"size": human(size), "phase": phase}


def one(run, mode, size, repeat):
    """All phases under one mode, on new files."""
    bed, args = run.bed, run.args
    block_bytes = size * grid.Cell(size, private=False).requests(args.hdd, args.servers, args.seconds)
    space_bytes = int(block_bytes * grid.PROCESSES * SPACE / args.servers) // 4096 * 4096
    bed.write_cluster({"hdd": bed.capacity_bytes(), "ssd": space_bytes})
    plans = {op: plan_for(bed, mode, size, block_bytes, op) for op in grid.OPS}
    bed.remove_files()
    bed.farm.delay(True)
    words = ["--transfer", size, "--block", block_bytes, "--access", "random", "--seed", repeat + 1]
    times = []
    before = bed.counted()
    for phase, op, like_run in PHASES:
        plan, trace = plans[op]
        if phase == "read, second run" and mode != "no cache":
            bed.programs.command("drain", "-p", plan, bed.file)
            bed.programs.warm(plan, bed.file)
            before = bed.counted()
        values = bed.measured(grid.PROCESSES, plan, False, *words, op=op)[op]
        after = bed.counted()
        details = {"bytes_counted": {of: difference(before, after, of) for of in grid.OPS}}
        before = after
        if like_run:
            expected = bed.simulated(trace, plan, like_run)
            details |= {"simulated_s": expected["elapsed_s"], "bytes_expected": expected["bytes"]}
        run.records.add(EXPERIMENT, mode, labels(size, phase), values, details)
        times.append(f"{phase} {values['seconds']:.2f} s ({details.get('simulated_s', 0):.2f} s)")
    bed.check_exported(grid.PROCESSES, *words)
    run.say(f"cache, run {repeat + 1}, {human(size)} {mode}: {', '.join(times)}")


def plan_for(bed, mode, size, block_bytes, op):
    """(plan, trace): the original in stripes over all HDDs, with or without a cache."""
    trace = bed.trace(grid.PROCESSES, size, block_bytes, "random", op, private=False)
    words = ["--present", ORIGINAL, "--with", "cache", "--cache-admission", MODES[mode]]
    plan, _ = bed.plan(trace, f"cache over {ORIGINAL}", *words)
    if mode == "no cache":
        plan.write_text(without_copies(plan.read_text()))
    return plan, trace
