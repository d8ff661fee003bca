"""Measurements of ideal programs: processes that make one request after the other, on servers with
one queue each.

The bound assumes that all servers of a tier are equally busy. In a run, requests at random places
meet on some servers while others idle. The simulation includes this effect.
"""

import heapq
import random
from dataclasses import dataclass


@dataclass
class FirstCome:
    """Algorithm 1: requests go to the cache until it is full."""

    space: int  # requests

    def to_cache(self, process):
        del process
        self.space -= 1
        return self.space >= 0


@dataclass
class AtRandom:
    """Like reads that find a fraction of the data in the cache."""

    share: float

    def __post_init__(self):
        self.chance = random.Random(2)

    def to_cache(self, process):
        del process
        return self.chance.random() < self.share


class Balanced:
    """The balancing of writes in crates/policy/src/balance.rs while there is space."""

    def __init__(self, space, cost):
        self.space, self.cost, self.lead_s = space, cost, {}

    def to_cache(self, process):
        lead_s = self.lead_s.get(process, 0.0)
        taken = self.space > 0 and lead_s + self.cost.ssd_s <= self.cost.hdd_s - lead_s
        self.space -= taken
        self.lead_s[process] = (lead_s + (self.cost.ssd_s if taken else -self.cost.hdd_s)) * (1 - 1 / 64)
        return taken


def run(tiers, op, setting, stripe, policy):
    """Seconds until all requests are done; each process makes equally many. `policy` decides which
    go to the SServers. `tiers`: HServers with stripes over all, SServers with one server per
    request."""
    hdd, ssd = tiers
    chance = random.Random(1)
    free_at = {tier.name: [0.0] * tier.count for tier in tiers}
    cuts = parts(setting.size, stripe, hdd.count)
    slow = [hdd.service(op).busy_s(part) for part in cuts]
    fast = [ssd.service(op).busy_s(setting.size)]
    ready = [(0.0, process, setting.requests) for process in range(setting.ranks)]
    end_s = 0.0
    while ready:
        now_s, process, left = heapq.heappop(ready)
        if left == 0:
            end_s = max(end_s, now_s)
            continue
        queue, services = (free_at["ssd"], fast) if policy.to_cache(process) else (free_at["hdd"], slow)
        first = chance.randrange(len(queue))
        latest_s = now_s
        for index, service_s in enumerate(services):
            server = (first + index) % len(queue)
            queue[server] = max(queue[server], now_s) + service_s
            latest_s = max(latest_s, queue[server])
        heapq.heappush(ready, (latest_s, process, left - 1))
    return end_s


def parts(size, stripe, count):
    """Bytes that each server gets of an aligned request."""
    stripes = [min(stripe, size - start) for start in range(0, size, stripe)]
    return [sum(stripes[server::count]) for server in range(min(count, len(stripes)))]
