"""What a cache can give at most: from the cache's space and the servers' service times alone.

Requests of one size at random places, every byte once. A share x of them is served by the SServers, the rest by the
HServers, both at once, all servers of a kind equally busy. The run takes at least as long as either kind is busy:

    T(x) = max((1 - x) * h, x * s)          h, s: seconds that a request costs the HServers, SServers together

More than the share `space` of the data cannot be in the cache, so x <= space, and the best split is
x = min(space, h / (h + s)). Without a cache T = h. Caching parts of requests changes nothing:
what a byte in the cache saves the HServers is the same.

What is written back during the run makes room for more, but costs the HServers as much as if it had been written there
at once, unless neighbours can be written back together. At random places few are there: `written_back` counts them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Seconds that a request keeps each tier busy, its servers taken together and working evenly."""

    hdd_s: float
    ssd_s: float


def costs(hdd, ssd, op, size, stripe):
    """Originals in stripes over all HServers; the cache in the layout that costs its servers least, 1-DV: a server for each
    request."""
    touched = min(hdd.count, -(-size // stripe))
    slow, fast = hdd.service(op), ssd.service(op)
    return Costs(
        (touched * slow.startup_s + size * slow.per_byte_s) / hdd.count,
        (fast.startup_s + size * fast.per_byte_s) / ssd.count,
    )


def best_split(cost, space):
    """The share of the requests that the SServers serve at best."""
    return min(space, cost.hdd_s / (cost.hdd_s + cost.ssd_s))


def speed_up(cost, space):
    """Of a cache that holds the share `space`, at best: 1.4 is 40 % faster."""
    x = best_split(cost, space)
    return cost.hdd_s / max((1 - x) * cost.hdd_s, x * cost.ssd_s)


def first_come(cost, space):
    """The same, when the first requests fill the cache and the others follow: the tiers work one after the other."""
    return cost.hdd_s / (space * cost.ssd_s + (1 - space) * cost.hdd_s)


def space_needed(cost, claimed):
    """The share of the data that would have to be in the cache for a speed-up; none if the SServers are too slow."""
    share = 1 - 1 / claimed
    return share if share * cost.ssd_s <= cost.hdd_s / claimed else None


def written_back(hdd, cost, size, stripe, space):
    """The speed-up of writing when the SServers make room during the run by writing back, neighbours within a stripe as one
    request."""
    slots = max(1, stripe // size)
    # Of `slots` neighbours, each in the cache with this chance: how many runs they form, for each that is there.
    runs = (1 + (slots - 1) * (1 - space)) / slots
    touched = min(hdd.count, -(-size // stripe))
    slow = hdd.write
    back_s = (runs * touched * slow.startup_s + size * slow.per_byte_s) / hdd.count
    # A share x is written to the SServers, x - space of it is read there again and written back.

    def seconds(x):
        hdd_s = (1 - x) * cost.hdd_s + (x - space) * back_s
        return max(hdd_s, (2 * x - space) * cost.ssd_s)

    return cost.hdd_s / min(seconds(space + (1 - space) * step / 1000) for step in range(1001))
