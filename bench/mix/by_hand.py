"""Plans made by hand for a case: each set of files on one tier or on all servers, in stripes of one
size, or its hot part on the fastest tier. As `crates/plan/src/tests/by_hand.rs` does, all
combinations that fit are simulated."""

import itertools
from dataclasses import dataclass

from composite import Composite, Region, fits, striped
from sizes import KIB, MIB, human

STRIPES = [4 * KIB, 64 * KIB, MIB, 16 * MIB]


@dataclass(frozen=True)
class ByHand:
    """Layouts by set, and the simulated seconds of the case under this plan."""

    chosen: dict
    simulated_s: float

    @property
    def name(self):
        return ", ".join(f"{name}: {layouts[0].name}" for name, layouts in self.chosen.items())


def layouts(case, files, stripes):
    """The layouts that a set may get."""
    tiers = [tier.name for tier in case.tiers]
    places = [(name, case.servers(name)) for name in tiers] + [("all servers", case.servers())]
    found = [striped(f"{where} {human(stripe)}", servers, stripe) for where, servers in places for stripe in stripes]
    if files.hot:
        slow, fast = case.servers(tiers[0]), case.servers(tiers[-1])
        for cold, hot in itertools.product(stripes, stripes):
            regions = (Region(files.hot[0], slow, cold), Region(files.hot[1], fast, hot), Region(None, slow, cold))
            found.append(Composite(f"hot part on {tiers[-1]} {human(hot)}, rest on {tiers[0]} {human(cold)}", regions))
    return found


def ranked(measure, stripes):
    """All plans made by hand that fit, the fastest in the simulator first."""
    case = measure.case
    choices = {files.name: layouts(case, files, stripes) for files in case.sets}
    seconds = {app.name: simulate(measure, app, choices) for app in case.applications}

    def total_s(numbers):
        return sum(app.times * seconds[app.name][tuple(numbers[name] for name in app.sets)] for app in case.applications)

    plans = []
    for combination in itertools.product(*(range(len(of)) for of in choices.values())):
        numbers = dict(zip(choices, combination, strict=True))
        chosen = {name: [choices[name][number]] for name, number in numbers.items()}
        if fits(case, chosen):
            plans.append(ByHand(chosen, total_s(numbers)))
    return sorted(plans, key=lambda plan: plan.simulated_s)


def simulate(measure, app, choices):
    """{numbers of the layouts of the application's sets: its simulated seconds}"""
    combinations = list(itertools.product(*(range(len(choices[name])) for name in app.sets)))
    paths = []
    for index, combination in enumerate(combinations):
        numbers = dict(zip(app.sets, combination, strict=True))
        chosen = {name: [of[numbers.get(name, 0)]] for name, of in choices.items()}
        paths.append(measure.given(f"tried-{index}", chosen))
    return dict(zip(combinations, measure.simulated(app, paths), strict=True))


def selected(plans, slowest):
    """A few of them: the two fastest, two from the middle, and the two slowest, of those that take
    at most `slowest` times as long as the fastest. Plans with equal simulated times count once."""
    different = []
    for plan in plans:
        if plan.simulated_s <= slowest * plans[0].simulated_s and (not different or plan.simulated_s > 1.0001 * different[-1].simulated_s):
            different.append(plan)
    count = len(different)
    return [different[index] for index in sorted({0, 1, count // 3, 2 * count // 3, count - 2, count - 1} & set(range(count)))]
