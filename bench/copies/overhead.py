"""S7: the cost of the cache for writes that gain nothing from it, because they all miss and nothing
is admitted."""

from statistics import median

import cache
import sizes
from programs import Failed
from workspace import Workspace

SIZES = (8 << 10, 16 << 10, 32 << 10)
# stock: no cache. off: nothing is admitted. full: sla, and the cache holds one page of each server.
MODES = ("stock", "off", "full")
KINDS = ("emulated", "bare")
PAGES_OF_FULL = 64 << 10


def measure(args, programs, emulation, store):
    """On emulated servers: the visible overhead. Without emulation, with one process: the pure
    cost."""
    repeats = range(args.repeats)
    steps = [(r, kind, size, mode) for r in repeats for kind in KINDS for size in SIZES for mode in MODES]
    for number, (repeat, kind, size, mode) in enumerate(steps, 1):
        key = [kind, size, mode, repeat]
        if store.has(key):
            continue
        name = f"{number}/{len(steps)} {kind}, {sizes.human(size)}, {mode}, run {repeat + 1}"
        try:
            run = emulated if kind == "emulated" else bare
            values = run(args, programs, emulation, size, mode)
        except Failed as error:
            store.say(f"{name}: {error}")
            store.add(key, kind=kind, size=size, mode=mode, failed=str(error))
            continue
        store.add(key, kind=kind, size=size, mode=mode, **values)
        store.say(f"{name}: {values['seconds']:.3f} s for {values['requests']} requests")


def emulated(args, programs, emulation, size, mode):
    """All ranks on emulated servers."""
    return writes(args, programs, emulation, cache.setting(args, size), mode, emulate=True, passes=1)


def bare(args, programs, emulation, size, mode):
    """One process on the machine's own files, where the time of a request is the
    processor's work."""
    requests = 16384 if args.quick else 65536
    return writes(args, programs, emulation, cache.Setting(size, requests, 1, args.space), mode, emulate=False, passes=5)


def writes(args, programs, emulation, setting, mode, emulate, passes):
    """Seconds of a pass over an existing file: the median, or the least disturbed one if only the
    processor counts."""
    hdd, ssd = cache.tiers(args, setting.size)
    capacity = {"hdd": 1 << 40, "ssd": PAGES_OF_FULL if mode == "full" else setting.capacity(ssd.count)}
    work = Workspace(args.dir, programs, emulation, (hdd, ssd), capacity, emulate)
    plan = cache.plan_for(work, setting, cache.BALANCED if mode == "full" else mode, args.durability)
    words = [*setting.words, "--op", "write", "--order"]
    runs = [work.measured(setting.ranks, plan, *words, order) for order in range(passes + 1)]
    seconds = (median if emulate else min)(run["elapsed_s"] for run in runs[1:])
    work.measured(setting.ranks, plan, *setting.words, "--op", "read")
    work.remove()
    return {"seconds": seconds, "requests": setting.requests * setting.ranks}
