"""The cache: a shared file striped over the OSDs of one class, parts of it cached on those of the
other; throughput, and the bytes of each OSD."""

import grid
import statistics_of
from bed import difference
from layouts import without_copies
from sizes import KIB, human

EXPERIMENT = "cache"
SIZES = [64 * KIB, 256 * KIB]
# The fraction of the data that the cache holds.
SPACE = 0.3
ORIGINAL = "1-DH:64K@hdd"
# Limit per second. The amount of background copying depends on timing and is not measured here.
BACKGROUND = "4K"
# Factor by which runs are longer than others. Which requests find the cache full depends on their
# order, so one request should be a small fraction of an OSD's bytes.
LONGER = 3
# Mode -> which critical writes the cache admits.
MODES = {"no cache": "balanced", "as printed": "as-printed", "balanced": "balanced"}


def measure(run, args):
    """Every mode with requests of every size, repeated as often as the flags say."""
    for repeat in range(args.repeats):
        for size in SIZES:
            for mode in MODES:
                if any(run.records.repeats(EXPERIMENT, mode, labels(size, op)) <= repeat for op in grid.OPS):
                    one(run, mode, size, repeat)


def labels(size, op):
    return {"size": human(size), "op": op}


def one(run, mode, size, repeat):
    """Writes and reads a new file under one mode."""
    bed, args = run.bed, run.args
    block_bytes = size * grid.Cell(size, private=False).requests(args.hdd, args.servers, args.seconds * LONGER)
    space_bytes = int(block_bytes * grid.PROCESSES * SPACE / args.servers) // 4096 * 4096
    bed.write_cluster({"hdd": bed.capacity_bytes(), "ssd": space_bytes})
    seed = repeat + 1
    # This comes first, because the plan takes an existing file's layout for the present one,
    # whatever the flags say.
    bed.remove_files()
    plan, expected = plan_and_expected(bed, mode, size, block_bytes, seed)
    bed.farm.delay(True)
    words = ["--transfer", size, "--block", block_bytes, "--access", "random", "--seed", seed]
    counts = bed.directory / "statistics.jsonl"
    times = []
    before = bed.counted()
    for op in grid.OPS:
        counts.unlink(missing_ok=True)
        env = {"STRIPEWISE_STATISTICS": str(counts)}
        values = bed.measured(grid.PROCESSES, plan, False, *words, op=op, env=env)[op]
        after = bed.counted()
        details = {f"bytes_counted_{direction}": difference(before, after, direction) for direction in grid.OPS}
        details |= {"simulated_s": expected[op]["elapsed_s"], "bytes_expected": expected[op]["bytes"]}
        details |= {"statistics": statistics_of.counted(counts)}
        run.records.add(EXPERIMENT, mode, labels(size, op), values, details)
        times.append(f"{op} {values['seconds']:.2f} s ({expected[op]['elapsed_s']:.2f} s)")
        before = after
    bed.check_exported(grid.PROCESSES, *words)
    run.say(f"cache, run {repeat + 1}, {human(size)} {mode}: {', '.join(times)}")


def plan_and_expected(bed, mode, size, block_bytes, seed):
    """A plan for writing and then reading everything, with the original in stripes over all HDDs,
    with or without a cache; and the simulator's results for both, {op: {"elapsed_s", "bytes"}}."""
    traces = {op: bed.trace(grid.PROCESSES, size, block_bytes, "random", op, private=False, seed=seed) for op in ("write", "both")}
    words = ["--present", ORIGINAL, "--with", "cache", "--cache-admission", MODES[mode], "--background", BACKGROUND]
    plan, _ = bed.plan(traces["both"], f"cache over {ORIGINAL}", *words)
    if mode == "no cache":
        plan.write_text(without_copies(plan.read_text()))
    written, both = (bed.simulated(traces[op], plan) for op in ("write", "both"))
    read = {server: both["bytes"][server] - written["bytes"][server] for server in both["bytes"]}
    return plan, {"write": written, "read": {"elapsed_s": both["elapsed_s"] - written["elapsed_s"], "bytes": read}}
