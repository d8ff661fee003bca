"""The layouts of replicas as text of plan.toml, and plans made from them."""

from dataclasses import dataclass

import sizes


# A file gets the layout with its number.
SPREAD = "spread = { field = 0, stride = 1 }"


@dataclass(frozen=True)
class Layout:
    """One copy of a file. `cycles` has one layout, or several of which a file gets one by its
    number."""

    name: str
    cycles: tuple
    touched: object  # function: bytes of an aligned request -> servers that it is on

    def text(self):
        return "[\n" + "".join(f'  [{{ cycle = "{cycle}" }}],\n' for cycle in self.cycles) + "]"


def striped(tier, stripe):
    """Stripes of this size over all servers: the layout of a shared file."""
    cycle = f"{tier.name}/0-{tier.count - 1}:{sizes.human(stripe)}"
    return Layout(f"stripe {sizes.human(stripe)}", (cycle,), lambda size: min(tier.count, -(-size // stripe)))


def grouped(tier, name, per_group, stripe):
    """Files that one process uses each, on a group of servers each: 1-DV (groups of one), 2-D, 1-DH
    (one group of all)."""

    def cycle(first):
        last = first + per_group - 1
        return f"{tier.name}/{first}-{last}:{sizes.human(stripe)}" if last > first else f"{tier.name}/{first}:1G"

    cycles = tuple(cycle(first) for first in range(0, tier.count, per_group))
    return Layout(name, cycles, lambda size: min(per_group, -(-size // stripe)))


def plan_text(pattern, layouts, processes, cluster):
    """plan.toml: the first layout is the original's, the others are replicas. `cluster` is the
    plan's cluster section."""
    original, *replicas = layouts
    parts = [rule_text(pattern, "replicas", original.text(), spread=len(original.cycles) > 1)]
    for replica in replicas:
        parts += [f'\n[[rule.copy]]\nkind = "replica"\nname = "{replica.name}"']
        parts += [SPREAD] * (len(replica.cycles) > 1)
        parts += [f"layouts = {replica.text()}"]
    if replicas:
        parts += [f"\n[rule.overlay]\nlazy_close = true\nprocs = {processes}\nprocs_per_node = {processes}"]
    return plan_of_rules("replicas", ["\n".join(parts)], cluster)


def plan_of_rules(scheme, rules, cluster):
    """plan.toml of these rules; the first one that matches a file counts."""
    return "\n\n".join([f'version = 1\nscheme = "{scheme}"', *rules, cluster])


def rule_text(pattern, scheme, layouts, spread):
    """A rule for files with one copy. `layouts` is the text of a list; `spread`: a file gets one of
    them by its number."""
    parts = [f'[[rule]]\npattern = "{pattern}"\nscheme = "{scheme}"']
    parts += ['reason = "given"\npredicted_s = 0.0\nelapsed_s = 0.0']
    parts += [SPREAD] * spread
    return "\n".join([*parts, f"layouts = {layouts}"])


def without_copies(plan):
    """The text of a plan of one rule with the original alone."""
    rule, _, rest = plan.partition("[[rule.copy]]")
    return rule + rest[rest.index("\n# The cluster") :]
