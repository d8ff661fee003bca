"""Does the planner choose the best of 1-DH, 2-D and 1-DV on one class of OSDs?"""

import grid

EXPERIMENT = "layouts"
# The planner's choice among all its layouts; measured if it is none of the three.
FREE = "free choice"


def measure(run, args):
    """Every cell on every layout. Each OSD is a server."""
    run.bed.write_cluster({"hdd": run.bed.capacity_bytes()})
    all_cells(run, EXPERIMENT, grid.cells(args))


def all_cells(run, experiment, cells):
    """Every cell, repeatedly. Each repeat goes through all cells, so that other load of the machine
    affects all of them."""
    for repeat in range(run.args.repeats):
        for number, cell in enumerate(cells, 1):
            if behind(run, experiment, cell, repeat, grid.groups(run.args.servers)):
                run.say(f"{experiment}, run {repeat + 1}, {number}/{len(cells)}: {cell.name}")
                one_cell(run, experiment, cell, repeat)


def behind(run, experiment, cell, repeat, schemes):
    """The schemes with fewer repeats so far."""
    times = {scheme: [run.records.repeats(experiment, scheme, cell.labels(op)) for op in grid.OPS] for scheme in schemes}
    return [scheme for scheme, counts in times.items() if min(counts) <= repeat]


def one_cell(run, experiment, cell, repeat):
    """One repeat of a cell: every layout, written and read."""
    args = run.args
    block_bytes = cell.size * cell.requests(args.hdd, args.servers, args.seconds)
    traces = {op: run.bed.trace(grid.PROCESSES, cell.size, block_bytes, "random", op, cell.private) for op in grid.OPS}
    schemes = {scheme: grid.candidate(scheme, args.servers) for scheme in grid.groups(args.servers)}
    made = {scheme: run.bed.plan(traces["write"], name) for scheme, name in schemes.items()}
    predicted = {op: predict(run.bed, trace, schemes, made) for op, trace in traces.items()}
    for scheme in behind(run, experiment, cell, repeat, schemes):
        plan, said = made[scheme]
        one(run, experiment, cell, repeat, scheme, plan, block_bytes, {op: predicted[op][scheme] for op in grid.OPS}, text(said))
    layouts = [said["regions"] for _, said in made.values()]
    for op, trace in traces.items():
        plan, said = run.bed.plan(trace, "overall")
        behind_here = run.records.repeats(experiment, FREE, cell.labels(op)) <= repeat
        if behind_here and said["name"] not in schemes.values() and said["regions"] not in layouts:
            details = {"elapsed_s": said["elapsed_s"], "cost_s": said["predicted_s"]}
            one(run, experiment, cell, repeat, FREE, plan, block_bytes, {op: details}, f"{said['name']} {text(said)}")


def one(run, experiment, cell, repeat, scheme, plan, block_bytes, predicted, layout):
    """Both directions under one layout. Those with a prediction are recorded."""
    run.bed.prepare(grid.PROCESSES, plan, block_bytes, cell.private)
    words = ["--transfer", cell.size, "--block", block_bytes, "--access", "random", "--seed", repeat + 1]
    measured = run.bed.measured(grid.PROCESSES, plan, cell.private, *words)
    for op, expected in predicted.items():
        details = {**expected, "requests": measured[op]["requests"], "cpu": measured[op]["cpu"]}
        run.records.add(experiment, scheme, cell.labels(op), measured[op], details, layout)
    times = ", ".join(f"{op} {of['seconds']:.2f} s" for op, of in measured.items())
    expected = ", ".join(f"{op} {of['elapsed_s']:.2f} s" for op, of in predicted.items())
    run.say(f"    {scheme}: {times}; expected {expected}; processors busy {measured['read']['cpu']:.0%}")


def predict(bed, trace, schemes, made):
    """{scheme: {"elapsed_s", "cost_s": the planner's predictions, "simulated_s"}}"""
    _, said = bed.plan(trace, "overall", "--candidates")
    of = {candidate["name"]: candidate for candidate in said["candidates"]}
    return {
        scheme: {
            "elapsed_s": of[schemes[scheme]]["elapsed_s"],
            "cost_s": of[schemes[scheme]]["predicted_s"],
            "simulated_s": bed.simulated(trace, plan)["elapsed_s"],
        }
        for scheme, (plan, _) in made.items()
    }


def text(said):
    """A layout for humans: `<8K>`, the stripes on the servers of each tier, region by region."""
    return " ".join("<" + ",".join(map(grid.human, region["stripes"].values())) + ">" for region in said["regions"])
