"""C3, C4: mixed workloads on files with three replicas, compared with each of the replicas' layouts
alone."""

from dataclasses import dataclass

import servers
import sizes
from layouts import grouped, plan_text, striped
from programs import Failed
from workspace import Workspace

KIB, MIB = 1 << 10, 1 << 20
DYNAMIC = "replicas"


@dataclass(frozen=True)
class Experiment:
    """One kind of files, the layouts of their replicas, and the workload on them."""

    name: str
    private: bool  # one file per process, or one shared file
    layouts: tuple
    sizes: tuple
    processes: tuple


@dataclass(frozen=True)
class Cell:
    """One run of the mix."""

    processes: int
    size: int
    requests: int  # per process
    private: bool

    @property
    def words(self):
        block = self.size * self.requests
        shared = ["--file-per-process"] if self.private else []
        return ["--transfer", self.size, "--block", block, "--access", "random", *shared]


def experiments(hdd):
    """C4's stripes of a shared file; C3's layouts of files that one process uses each, with CIL's
    groups of two."""
    sizes, processes = (16 * KIB, 256 * KIB, 4 * MIB), (1, 8, 32)
    shared = tuple(striped(hdd, stripe) for stripe in (16 * KIB, 256 * KIB, 4 * MIB))
    stripe = 64 * KIB
    groups = (("1-DH", hdd.count), ("2-D", 2), ("1-DV", 1))
    private = tuple(grouped(hdd, name, per_group, stripe) for name, per_group in groups)
    of_all = Experiment("shared", False, shared, sizes, processes)
    return (of_all, Experiment("private", True, private, sizes, processes))


def tier(args):
    return servers.hdds(args.hdds, args.hdd_startup)


def cell(args, experiment, processes, size):
    """As many requests as requested, or as the data limit allows. The servers are slowed down so
    that the fastest layout takes the requested time: servers or processes are always busy."""
    hdd = tier(args)
    requests = args.requests * (1 if processes > 8 else 2)
    requests = max(4, min(requests, args.most_data // size // processes))

    def each_s(layout):
        touched = layout.touched(size)
        by_servers_s = (touched * hdd.read.startup_s + size * hdd.read.per_byte_s) / hdd.count
        return max(by_servers_s, hdd.read.busy_s(size / touched) / processes)

    fastest_s = min(each_s(layout) for layout in experiment.layouts)
    slowed = hdd.slowed(args.seconds / (fastest_s * requests * processes))
    return Cell(processes, size, requests, experiment.private), slowed


def measure(args, programs, emulation, store):
    """Every cell of both mixes, on every layout alone and with all as replicas."""
    hdd = tier(args)
    steps = [
        (repeat, experiment, layout, processes)
        for repeat in range(args.repeats)
        for experiment in experiments(hdd)
        if experiment.name in args.only
        for processes in experiment.processes
        for layout in [*(each.name for each in experiment.layouts), DYNAMIC]
    ]
    for number, (repeat, experiment, layout, processes) in enumerate(steps, 1):
        key = [experiment.name, layout, processes, repeat]
        if store.has(key):
            continue
        known = {"experiment": experiment.name, "layout": layout, "processes": processes}
        name = f"{number}/{len(steps)} {experiment.name} {layout}, {processes} processes, run {repeat + 1}"
        try:
            cells = one(args, programs, emulation, experiment, layout, processes)
        except Failed as error:
            store.say(f"{name}: {error}")
            store.add(key, **known, failed=str(error))
            continue
        store.add(key, **known, cells=cells)
        pair = "{} {:.2f} + {:.2f}"
        of = [pair.format(size, runs["write"]["elapsed_s"], runs["read"]["elapsed_s"]) for size, runs in cells.items()]
        store.say(f"{name}: {', '.join(of)} s, every byte right")


def one(args, programs, emulation, experiment, layout, processes):
    """All cells of one number of processes on one layout, or with all as replicas; each on new
    servers."""
    chosen = [each for each in experiment.layouts if layout in (each.name, DYNAMIC)]
    cells = {}
    for seed, size in enumerate(experiment.sizes, 1):
        this, hdd = cell(args, experiment, processes, size)
        work = Workspace(args.dir, programs, emulation, (hdd,), {"hdd": 1 << 40})
        pattern = f"{work.file}.<n>" if experiment.private else f"{work.file}"
        plan = work.directory / "plan.toml"
        plan.write_text(plan_text(pattern, chosen, processes, work.cluster_of_plans()))
        cells[sizes.human(size)] = one_cell(work, plan, this, seed, copies=len(chosen))
        work.remove()
    return cells


def one_cell(work, plan, cell, seed, copies):
    """Writes new data and reads it before and after the copies are synchronized. Each byte must be
    the newest."""
    words = [*cell.words, "--seed", seed]
    measured = {}

    def run(name, *more):
        measured[name] = work.measured(cell.processes, plan, *words, *more)

    run("write", "--op", "write")
    if copies > 1:
        run("read at once", "--op", "read", "--order", 7)
        work.programs.command("drain", "-p", plan, work.directory / "data")
    run("read", "--op", "read", "--order", 7)
    work.programs.command("export", work.directory / "data")
    work.programs.run_ior(cell.processes, work.file, *words, "--op", "read", "--verify")
    return measured
