"""One case on one system: traces, plans, simulations, and measured runs of which every byte is
checked."""

import json
import os
import shlex
import shutil
import time
import tomllib

from composite import plan_text
from programs import Failed

# Space on a server besides the data: the file that marks a target, and what h5py adds.
SLACK_BYTES = 1 << 16


class Measure:
    """A case on a system (emulated.py, on_cephfs.py)."""

    def __init__(self, system, case):
        self.system, self.case, self.programs = system, case, system.programs
        self.directory, self.data = system.directory, system.data
        self.made = self.directory / "made"
        self.make_inputs()
        self.traces = {app.name: self.trace_whole(app) for app in case.applications}
        self.steps = {app.name: self.trace_each(app) for app in case.applications}
        self.joint, self.said = self.plan("joint", case.applications)

    # --- inputs, traces and plans

    def commands(self):
        return [command for app in self.case.applications for command in app.commands]

    def make_inputs(self):
        """Writes what is read before anything writes it, once."""
        self.system.fast(True)
        shutil.rmtree(self.made, ignore_errors=True)
        self.made.mkdir(parents=True)
        written = set()
        for command in self.commands():
            if command.op == "read" and command.file not in written:
                self.run(command.maker(), self.made)
            written.add(command.file)

    def run(self, command, data, plan=None):
        """Runs a program to its end, over the layouts of a plan if given. Returns what it
        reports."""
        launch = [self.programs.stripewise, "run", "-p", plan, "--"] if plan else []
        words = command.words(self.programs, data, direct=bool(plan) and self.system.direct)
        return command.result(self.programs.run(*launch, *words))

    def fresh(self):
        """Empty servers, and the inputs as plain files."""
        self.system.fast(True)
        self.system.empty()
        for path in sorted(self.made.iterdir()):
            shutil.copyfile(path, self.data / path.name)

    def trace_whole(self, app):
        """Records an application on plain files."""
        self.fresh()
        return self.trace(app.name, app.commands)

    def trace_each(self, app):
        """A trace of each of its programs. In one trace the simulator would run them at the same
        time."""
        if len(app.commands) == 1:
            return [self.traces[app.name]]
        self.fresh()
        return [self.trace(f"{app.name} {number}", [command]) for number, command in enumerate(app.commands)]

    def trace(self, name, commands):
        path = self.directory / f"{name.replace(' ', '-')}.trace"
        path.unlink(missing_ok=True)
        lines = [command.words(self.programs, self.data, self.system.direct) for command in commands]
        script = " && ".join(shlex.join(map(str, words)) for words in lines)
        self.programs.command("trace", "--only", f"{self.data}/**", "-o", path, "--", "sh", "-c", script)
        return path

    def plan(self, name, applications):
        """The joint plan of applications: (path, what `plan --json` says about all files
        together)."""
        self.fresh()
        path = self.directory / f"{name}.plan.toml"
        traces = [f"{self.traces[app.name]}={app.times}" if app.times > 1 else self.traces[app.name] for app in applications]
        said = json.loads(self.programs.command("plan", *traces, "-c", self.system.cluster, "--quiet", "--json", "--force", "-o", path))
        return path, {key: said["joint"][key] for key in ("now_s", "planned_s", "bound_s")}

    def given(self, name, chosen):
        """The plan of given layouts (composite.py)."""
        text = self.joint.read_text()
        path = self.directory / f"{name}.plan.toml"
        path.write_text(plan_text(self.case, self.data, chosen, text[text.index("# The cluster") :]))
        return path

    def described(self):
        """The layouts of the joint plan for people."""
        plan = tomllib.loads(self.joint.read_text())

        def layout(regions):
            return ", then ".join(region["cycle"] + (f" to {region['end']}" if "end" in region else "") for region in regions)

        rules = [(rule["pattern"].removeprefix(f"{self.data}/"), rule["layouts"]) for rule in plan["rule"]]
        return "; ".join(f"{pattern}: {' or '.join(map(layout, layouts)) or 'as it is'}" for pattern, layouts in rules)

    def simulated(self, app, plans):
        """Seconds of an application in the simulator, under each plan."""
        words = [word for plan in plans for word in ("-p", plan)]

        def of(trace):
            said = json.loads(self.programs.command("sim", trace, *words, "--json", "--quiet"))
            return [plan["runs"][0]["elapsed_s"] for plan in said["plans"]]

        return [sum(seconds) for seconds in zip(*map(of, self.steps[app.name]), strict=True)]

    def simulated_all(self, plan):
        """Seconds of all applications, each as often as it runs."""
        return sum(app.times * self.simulated(app, [plan])[0] for app in self.case.applications)

    # --- measured runs

    def measured(self, plan):
        """One run of the case under a plan. Returns seconds (as the programs report them, each as
        often as it runs) and bytes, and for each application its seconds."""
        self.fresh()
        self.programs.command("place", plan, self.data, "--quiet")
        self.system.fast(False)
        load, began_s = os.getloadavg()[0], time.monotonic()
        seconds, size = {}, 0
        for app in self.case.applications:
            results = [self.run(command, self.data, plan) for command in app.commands]
            seconds[app.name] = sum(result["seconds"] for result in results)
            size += sum(result["bytes"] for result in results)
        wall_s = time.monotonic() - began_s
        self.system.fast(True)
        self.check_space()
        self.check()
        total_s = sum(app.times * seconds[app.name] for app in self.case.applications)
        details = {"wall_s": wall_s, "load": load, "applications": seconds}
        return {"seconds": total_s, "bytes": size, "verified": True}, details

    def check_space(self):
        """No server has more than its capacity."""
        for server, size in self.system.stored().items():
            most = self.case.capacity_bytes[server.split("/")[0]]
            if size > most + SLACK_BYTES:
                raise Failed(f"{server} has {size} bytes, more than its {most}")

    def check(self):
        """Exports all files and reads what was written without the library. Each program names
        wrong bytes and fails."""
        self.programs.command("export", self.data)
        for command in self.commands():
            if command.op == "write":
                self.run(command.checker(), self.data)
