"""Layouts of regions as text of plan.toml, and the bytes that they put on each server."""

from collections import Counter
from dataclasses import dataclass

from layouts import plan_of_rules, rule_text
from sizes import human


@dataclass(frozen=True)
class Region:
    """Stripes of one size over servers (`hdd/0`), up to the byte `end` of the file; None: to its
    end."""

    end: int | None
    servers: tuple
    stripe: int

    def text(self):
        end = "" if self.end is None else f"end = {self.end}, "
        cycle = " ".join(f"{server}:{human(self.stripe)}" for server in self.servers)
        return f'{{ {end}cycle = "{cycle}" }}'

    def bytes(self, length):
        """Bytes on each server of the first `length` bytes of the region."""
        stripes, rest = divmod(length, self.stripe)
        rounds, further = divmod(stripes, len(self.servers))
        used = Counter()
        for number, server in enumerate(self.servers):
            used[server] += self.stripe * (rounds + (number < further)) + (rest if number == further else 0)
        return used


@dataclass(frozen=True)
class Composite:
    """The layout of a file: regions that follow one another."""

    name: str
    regions: tuple

    def text(self):
        return "[" + ", ".join(region.text() for region in self.regions) + "]"

    def bytes(self, size):
        """Bytes on each server of a file of this size."""
        used, start = Counter(), 0
        for region in self.regions:
            end = size if region.end is None else min(size, region.end)
            used += region.bytes(max(0, end - start))
            start = max(start, end)
        return used


def striped(name, servers, stripe):
    """One region: stripes of one size over these servers."""
    return Composite(name, (Region(None, tuple(servers), stripe),))


def plan_text(case, data, chosen, cluster):
    """plan.toml. `chosen` has the layouts of each set of the case by its name: one for all files of
    it, or one for each of them. `cluster` is the plan's cluster section."""
    rules = []
    for files in case.sets:
        texts = [layout.text() for layout in chosen[files.name]]
        rules.append(rule_text(str(data / files.pattern), "given", "[" + ", ".join(texts) + "]", spread=len(texts) > 1))
    return plan_of_rules("given", rules, cluster)


def used(case, chosen):
    """Bytes on each server in this plan."""
    total = Counter()
    for files in case.sets:
        layouts = chosen[files.name]
        for number in range(files.count):
            total += layouts[number % len(layouts)].bytes(files.bytes)
    return total


def fits(case, chosen):
    """Whether no server gets more than its capacity."""
    return all(size <= case.capacity_bytes[server.split("/")[0]] for server, size in used(case, chosen).items())
