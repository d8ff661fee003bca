"""One cell, simulated and measured."""

import json
import shutil

import servers
from cells import HDDS, MIB, TIERS, layouts
from layouts import grouped, plan_text
from servers import Emulation, Watch

# Factor of the first simulation, without slowing the servers; it determines by how much to slow
# them.
UNSLOWED = 1.0
# Files larger than this are written once before the measurement, bytes.
MADE_BEFORE = 32 << 20


class Bench:
    """A directory with servers, and the programs."""

    def __init__(self, args, programs):
        self.args, self.programs = args, programs
        self.directory = args.dir.resolve()
        self.emulation = Emulation()
        self.traces = {}
        self.remove()
        (self.directory / "traces").mkdir(parents=True)

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def file(self):
        return self.directory / "data" / "file"

    def trace(self, cell, op):
        """The synthetic trace of one phase; created once."""
        key = json.dumps([str(word) for word in cell.synth(op)])
        if key not in self.traces:
            path = self.directory / "traces" / f"{len(self.traces)}.trace"
            self.programs.command(*cell.synth(op), "--file", self.file, "-o", path)
            self.traces[key] = path
        return self.traces[key]

    def clean(self):
        """Makes servers and files new."""
        for own in ("servers", "data"):
            shutil.rmtree(self.directory / own, ignore_errors=True)
        (self.directory / "data").mkdir()

    def plan(self, cell, factor):
        """The cluster, slower by this factor, and the plan of a cell on it."""
        self.tiers = tuple(tier.slowed(factor) for tier in TIERS)
        capacity = {tier.name: 1 << 40 for tier in TIERS}
        cluster = servers.write_cluster(self.directory, self.tiers, capacity)
        path = self.directory / "plan.toml"
        path.write_text(plan_of(cell, self.file, in_plan(cluster.read_text())))
        return path

    def simulate(self, cell, op, plan, *words):
        """The simulator's runs for a phase."""
        said = self.programs.command("sim", self.trace(cell, op), "-p", plan, "--json", "--quiet", *words)
        return json.loads(said)["plans"][0]["runs"]

    def measure(self, cell, op, plan):
        """The program's report about its phases, and the servers' work in all of them."""
        watch = Watch(self.emulation, self.directory, self.tiers)
        words = [*cell.words(), "--op", op, "--api", "posix"]
        result = self.programs.run_ior(cell.ranks, self.file, *words, plan=plan)
        usage = watch.usage().values()
        used = {"requests": sum(tier.requests for tier in usage), "bytes": sum(tier.bytes for tier in usage)}
        return {phase["op"]: phase["elapsed_s"] for phase in result["phases"]}, used

    def factor(self, cell):
        """The factor by which to slow down the servers."""
        factor = UNSLOWED
        for _ in range(2 if cell.kind != "striped" else 1):
            factor *= self.args.seconds / self.simulate(cell, "write", self.plan(cell, factor))[0]["elapsed_s"]
        return factor

    def cell(self, cell):
        """Both phases, measured and simulated, and the servers' work in both."""
        factor = self.factor(cell)
        self.clean()
        if cell.kind == "striped" and cell.block * cell.ranks > MADE_BEFORE:
            # Unthrottled servers allocate the memory behind large files before the measurement.
            self.measure(cell, "write", self.plan(cell, 1e-6))
        plan = self.plan(cell, factor)
        simulated = {op: self.simulate_copies(cell, op, plan) for op in ("write", "read")}
        if cell.kind == "striped":
            measured, used = self.measure(cell, "both", plan)
        else:
            measured, used = self.measure(cell, "write", plan)
            self.programs.command("drain", "-p", plan, self.directory / "data")
            read, _ = self.measure(cell, "read", plan)
            measured |= read
        uses = [use for outcome in simulated.values() for use in outcome["servers"]]
        return {
            "factor": factor,
            "measured": used,
            "simulated": {key: sum(use[key] for use in uses) for key in ("requests", "bytes")},
            "phases": [
                {"op": op, "measured_s": measured[op], "simulated_s": simulated[op]["elapsed_s"]} for op in ("write", "read")
            ],
        }

    def simulate_copies(self, cell, op, plan):
        """Drained replicas are read like ones that were never written. A cache still has the
        written data."""
        simulated = self.simulate(cell, op, plan)[0]
        if cell.kind == "cache" and op == "read":
            both, written = self.simulate(cell, "both", plan)[0], self.simulate(cell, "write", plan)[0]
            simulated["elapsed_s"] = both["elapsed_s"] - written["elapsed_s"]
        return simulated


def in_plan(text):
    """A cluster file as the cluster section of a plan."""
    return text.replace("[network]", "[cluster.network]").replace("[class.", "[cluster.class.").replace("[[tier]]", "[[cluster.tier]]")


def plan_of(cell, file, cluster):
    pattern = f"{file}.<n>" if cell.private else str(file)
    if cell.kind == "striped":
        return plan_text(pattern, [layouts(cell)[cell.layout]], cell.ranks, cluster)
    if cell.kind == "replicas":
        groups = [grouped(HDDS, name, count, 64 << 10) for name, count in (("1-DH", 4), ("2-D", 2), ("1-DV", 1))]
        return plan_text(pattern, groups, cell.ranks, cluster)
    return cache_text(cell, pattern, cluster)


def cache_text(cell, pattern, cluster):
    """A plan with files on the HDDs, of which the SSDs may hold 30 %."""
    space = max(cell.block * cell.ranks * 3 // 10 // 4, MIB)
    copies = [("1-DH", "ssd/0-3:64K", 1), ("2-D", "ssd/0-3:512K", 2), ("1-DV", "ssd/0-3:4M", 4)]
    parts = [f'version = 1\nscheme = "cache"\n\n[[rule]]\npattern = "{pattern}"\nscheme = "cache"\nreason = "given"']
    parts += ["predicted_s = 0.0\nelapsed_s = 0.0", 'layouts = [[{ cycle = "hdd/0-3:64K" }]]']
    for name, cycle, groups in copies:
        parts += [f'\n[[rule.copy]]\nkind = "cache"\nname = "{name}"\ngroups = {groups}\nlayouts = [[{{ cycle = "{cycle}" }}]]']
    parts += [f"\n[rule.overlay]\nmode = \"{cell.layout}\"\ncapacity_per_server = {space}"]
    parts += [f"procs = {cell.ranks}\nprocs_per_node = {cell.ranks}"]
    return "\n".join(parts) + "\n\n" + cluster
