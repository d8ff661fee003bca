"""C1: does the planner choose the best of 1-DH, 2-D and 1-DV? One file per process, as in the CIL
paper."""

import json
from dataclasses import dataclass

import grid
from farm import Speed
from sizes import human

EXPERIMENT = "C1"


@dataclass
class Run:
    """The context in which all cells are measured."""

    bed: object
    records: object
    speed: Speed
    seconds: float
    say: object


def disks(args):
    return [(f"hdd{number}", args.hdd) for number in range(grid.DISKS)]


def measure(run, args):
    """Every cell on every layout, repeatedly. Each repeat goes through the whole grid, so that
    other load of the machine affects all of it."""
    bed = run.bed
    bed.calibrated({"hdd": ([name for name, _ in disks(bed.args)], bed.capacity_bytes())})
    cells = grid.cells(args)
    for repeat in range(args.repeats):
        for number, cell in enumerate(cells, 1):
            missing = [scheme for scheme in grid.GROUPS if behind(run.records, cell, scheme, repeat)]
            if missing:
                times = one_cell(run, cell, missing, repeat)
                run.say(f"C1 run {repeat + 1}, {number}/{len(cells)}: {human(cell.size)} x {cell.processes}: {times}")


def behind(records, cell, scheme, repeat):
    labels = [cell.labels(access, op) for access in grid.ACCESSES for op in grid.OPS]
    return any(records.repeats(EXPERIMENT, scheme, each) <= repeat for each in labels)


def one_cell(run, cell, schemes, repeat):
    """One repeat of a cell: all four kinds of access."""
    bed, processes = run.bed, cell.processes
    block_bytes = cell.size * cell.requests(run.speed, run.seconds)
    trace = bed.trace(processes, cell.size, block_bytes, "random", "read", private=True)
    plans = {scheme: bed.plan(trace, grid.CANDIDATES[scheme]) for scheme in grid.GROUPS}
    predicted = {access: predict(bed, cell, block_bytes, access, plans) for access in grid.ACCESSES}
    times = []
    for scheme in schemes:
        plan, said = plans[scheme]
        bed.prepare(processes, plan, block_bytes, private=True)
        for access in grid.ACCESSES:
            words = ["--transfer", cell.size, "--block", block_bytes, "--access", access, "--seed", repeat + 1]
            for op, measured in bed.measured(processes, plan, True, *words).items():
                details = {**predicted[access][op][scheme], "requests": measured["requests"]}
                details["requests_expected"] = expected_requests(cell, scheme, measured["bytes"])
                run.records.add(EXPERIMENT, scheme, cell.labels(access, op), measured, details, layout_text(said))
                times.append(f"{measured['seconds']:.2f}")
    return " ".join(times)


def expected_requests(cell, scheme, all_bytes):
    """Expected requests to disks: one to each disk that a request of the program touches."""
    return all_bytes // cell.size * cell.disks_touched(grid.GROUPS[scheme])


def predict(bed, cell, block_bytes, access, plans):
    """{op: {scheme: {"cil_s": cost by CIL's formula, "elapsed_s", "cost_s": the planner's
    predictions, "simulated_s"}}}"""
    predictions = {}
    for op in grid.OPS:
        trace = bed.trace(cell.processes, cell.size, block_bytes, access, op, private=True)
        _, said = bed.plan(trace, "overall", "--candidates")
        of = {candidate["name"]: candidate for candidate in said["candidates"]}
        words = [word for plan, _ in plans.values() for word in ("-p", plan)]
        simulated = json.loads(bed.programs.command("sim", trace, *words, "--json", "--quiet"))["plans"]
        predictions[op] = {
            scheme: {
                "cil_s": cil_cost_s(bed, cell, groups, access, op),
                "elapsed_s": of[grid.CANDIDATES[scheme]]["elapsed_s"],
                "cost_s": of[grid.CANDIDATES[scheme]]["predicted_s"],
                "simulated_s": found["runs"][0]["elapsed_s"],
            }
            for (scheme, groups), found in zip(grid.GROUPS.items(), simulated, strict=True)
        }
    return predictions


def cil_cost_s(bed, cell, groups, access, op):
    """Cost of one request by CIL's formula, seconds."""
    layout = {1: ["1-DH"], grid.DISKS: ["1-DV"]}.get(groups, ["2-D", "--groups", groups])
    words = ["--model", "cil", "--layout", *layout, "--servers", grid.DISKS, "--class", "hdd", "-c", bed.cluster]
    words += ["--procs", cell.processes, "--procs-per-node", cell.processes, "--size", human(cell.size)]
    return json.loads(bed.programs.command("cost", *words, "--op", op, "--access", access, "--json"))["total_s"]


def layout_text(said):
    """A layout for humans: `<8K>`, the stripes on the disks of each tier."""
    return "<" + ",".join(human(bytes_) for bytes_ in said["stripes"].values()) + ">"
