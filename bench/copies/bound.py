"""The upper bound of a cache's gain, from the cache's space and the servers' service times alone.

Requests of one size access random places, every byte once. The SServers serve a fraction x of them,
the HServers the rest, concurrently, with all servers of a kind equally busy. The run takes at least
as long as either kind is busy:

    T(x) = max((1 - x) * h, x * s)

with h, s: seconds that a request costs all HServers, all SServers together.

At most the fraction `space` of the data can be in the cache, so x <= space, and the best split is
x = min(space, h / (h + s)). Without a cache T = h. Caching parts of requests changes nothing: a
byte in the cache saves the HServers the same amount.

Write-back during the run frees space, but costs the HServers as much as writing there directly,
unless neighbors can be written back together. At random places there are few neighbors:
`written_back` counts them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Seconds that a request keeps each tier busy, with its servers taken together and evenly
    loaded."""

    hdd_s: float
    ssd_s: float


def costs(hdd, ssd, op, size, stripe):
    """Originals in stripes over all HServers. The cache has the layout that costs its servers
    least, 1-DV: one server per request."""
    touched = min(hdd.count, -(-size // stripe))
    slow, fast = hdd.service(op), ssd.service(op)
    return Costs(
        (touched * slow.startup_s + size * slow.per_byte_s) / hdd.count,
        (fast.startup_s + size * fast.per_byte_s) / ssd.count,
    )


def best_split(cost, space):
    """The fraction of the requests that the SServers serve in the best case."""
    return min(space, cost.hdd_s / (cost.hdd_s + cost.ssd_s))


def speed_up(cost, space):
    """The best speed-up by a cache that holds the fraction `space`: 1.4 is 40 % faster."""
    x = best_split(cost, space)
    return cost.hdd_s / max((1 - x) * cost.hdd_s, x * cost.ssd_s)


def first_come(cost, space):
    """The same if the first requests fill the cache and the others follow: the tiers work one after
    the other."""
    return cost.hdd_s / (space * cost.ssd_s + (1 - space) * cost.hdd_s)


def space_needed(cost, claimed):
    """The fraction of the data that would have to be in the cache for a speed-up; none if the
    SServers are too slow."""
    share = 1 - 1 / claimed
    return share if share * cost.ssd_s <= cost.hdd_s / claimed else None


def written_back(hdd, cost, size, stripe, space):
    """The speed-up of writing if the SServers free space during the run by write-back, with
    neighbors within a stripe as one request."""
    slots = max(1, stripe // size)
    # Each of `slots` neighbors is in the cache with this probability: expected number of runs per
    # cached neighbor.
    runs = (1 + (slots - 1) * (1 - space)) / slots
    touched = min(hdd.count, -(-size // stripe))
    slow = hdd.write
    back_s = (runs * touched * slow.startup_s + size * slow.per_byte_s) / hdd.count
    # A fraction x is written to the SServers; x - space of it is read there again and written back.

    def seconds(x):
        hdd_s = (1 - x) * cost.hdd_s + (x - space) * back_s
        return max(hdd_s, (2 * x - space) * cost.ssd_s)

    return cost.hdd_s / min(seconds(space + (1 - space) * step / 1000) for step in range(1001))
