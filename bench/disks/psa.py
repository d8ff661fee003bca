"""P1: one shared file on HDDs and SSDs that hold a quarter of it, under DEF, PA, PSA, whole
requests, and the planner's choice."""

import grid
from sizes import human

EXPERIMENT = "P1"
HDDS = SSDS = 4
PROCESSES = 16
TRANSFER = 512 * grid.KIB
SCHEMES = ["DEF", "PA", "PSA", "whole requests", "auto"]
# The fraction of the file that fits on all SSDs together.
SPACE = 1 / 4


def disks(args):
    return [(f"hdd{number}", args.hdd) for number in range(HDDS)] + [(f"ssd{number}", args.ssd) for number in range(SSDS)]


def measure(run, args):
    """Every scheme in both orders and directions, repeatedly."""
    bed = run.bed
    block_bytes = TRANSFER * (8 if args.quick else 16)
    space_bytes = int(SPACE * block_bytes * PROCESSES / SSDS)
    names = [name for name, _ in disks(bed.args)]
    bed.calibrated({"hdd": (names[:HDDS], bed.capacity_bytes()), "ssd": (names[HDDS:], space_bytes)})
    for repeat in range(args.repeats):
        for access in grid.ACCESSES:
            for scheme in SCHEMES:
                labels = {op: {"access": access, "op": op} for op in grid.OPS}
                if any(run.records.repeats(EXPERIMENT, scheme, labels[op]) <= repeat for op in grid.OPS):
                    times = one(run, scheme, access, block_bytes, space_bytes, repeat, labels)
                    run.say(f"P1 run {repeat + 1}, {access}, {scheme}: {times}")


def one(run, scheme, access, block_bytes, space_bytes, repeat, labels):
    """One scheme: the file gets the plan for writing, and is then written and read."""
    bed = run.bed
    trace = bed.trace(PROCESSES, TRANSFER, block_bytes, access, "write", private=False)
    if scheme == "whole requests":
        plan, layout, details = whole_requests(bed, trace, space_bytes)
    else:
        plan, said = bed.plan(trace, scheme.lower())
        layout = " ".join("<" + ",".join(map(human, region["stripes"].values())) + ">" for region in said["regions"])
        details = {"elapsed_s": said["elapsed_s"], "cost_s": said["predicted_s"]}
    bed.prepare(PROCESSES, plan, block_bytes, private=False)
    words = ["--transfer", TRANSFER, "--block", block_bytes, "--access", access, "--seed", repeat + 1]
    measured = bed.measured(PROCESSES, plan, False, *words)
    for op, values in measured.items():
        run.records.add(EXPERIMENT, scheme, labels[op], values, {**details, "requests": values["requests"]}, layout)
    return ", ".join(f"{op} {values['seconds']:.2f} s" for op, values in measured.items())


def whole_requests(bed, trace, space_bytes):
    """As many whole requests as fit are each on one SSD; the others are on all HDDs."""
    plan, _ = bed.plan(trace, "1-DH")
    text = plan.read_text()
    start, end = text.index("layouts = ["), text.index("# The cluster")
    first = space_bytes // TRANSFER * TRANSFER * SSDS
    of_hdds = f"hdd/0-{HDDS - 1}:{human(TRANSFER // HDDS)}"
    regions = f'{{ end = {first}, cycle = "ssd/0-{SSDS - 1}:{human(TRANSFER)}" }}, {{ cycle = "{of_hdds}" }}'
    plan.write_text(f"{text[:start]}layouts = [[{regions}]]\n\n{text[end:]}")
    return plan, f"{human(TRANSFER)} on an SSD, then {human(TRANSFER // HDDS)} on all HDDs", {}
