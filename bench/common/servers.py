"""The emulated servers: their parameters, the cluster file, and their counters."""

import fcntl
import json
import mmap
import os
import re
import struct
from dataclasses import dataclass, replace

MIB = 1 << 20


@dataclass(frozen=True)
class Service:
    """The service time of a request: startup_s + bytes * per_byte_s."""

    startup_s: float
    per_byte_s: float

    def busy_s(self, size):
        return self.startup_s + size * self.per_byte_s


@dataclass(frozen=True)
class Tier:
    """Servers of one kind."""

    name: str
    count: int
    read: Service
    write: Service
    sequential_startup_s: float

    def service(self, op):
        return self.read if op == "read" else self.write

    def slowed(self, factor):
        """The same tier, slower by this factor."""

        def slow(service):
            return Service(service.startup_s * factor, service.per_byte_s * factor)

        sequential_s = self.sequential_startup_s * factor
        return replace(self, read=slow(self.read), write=slow(self.write), sequential_startup_s=sequential_s)


def hdds(count, startup_s=3e-4):
    """The published values (CIL): 0.3 ms random, 0.1 ms sequential, 120 MB/s."""
    service = Service(startup_s, 1 / (120 * MIB))
    return Tier("hdd", count, service, service, startup_s / 3)


def ssds(count, startup_s=5e-5):
    """Values that the papers leave open, as chosen everywhere in stripewise: 0.05 ms, 400 MB/s."""
    service = Service(startup_s, 1 / (400 * MIB))
    return Tier("ssd", count, service, service, startup_s)


def ssds_by_ratio(count, hdd):
    """SSDs that are as much faster than `hdd` as SLA's: 4 KiB random 14.5 times (read) and 27.2
    times (write), 256 KiB sequential 2.2 and 1.9 times."""

    def solve(small_ratio, large_ratio):
        small_s = hdd.read.busy_s(4096) / small_ratio
        large_s = (hdd.sequential_startup_s + 262144 * hdd.read.per_byte_s) / large_ratio
        per_byte_s = (large_s - small_s) / (262144 - 4096)
        startup_s = small_s - 4096 * per_byte_s
        if startup_s < 0:
            raise SystemExit("SLA's ratios need a larger --hdd-startup than this: 1 ms, say")
        return Service(startup_s, per_byte_s)

    read, write = solve(14.5, 2.2), solve(27.2, 1.9)
    return Tier("ssd", count, read, write, min(read.startup_s, write.startup_s))


def write_cluster(directory, tiers, capacity_bytes, emulate=True):
    """Writes cluster.toml and creates the servers' directories below `directory`. `capacity_bytes`
    is the capacity of each server, by tier. Without emulation the servers are as fast as their
    disk."""
    parts = ["[network]\nestablish_s = 0.0\nper_byte_s = 0.0\n"]
    for tier in tiers:
        parts.append(f"[class.{tier.name}]")
        for op in ("read", "write"):
            random = tier.service(op)
            for access, startup_s in (("random", random.startup_s), ("sequential", tier.sequential_startup_s)):
                parts.append(f"{op}.{access} = {{ startup_s = {startup_s:e}, per_byte_s = {random.per_byte_s:e} }}")
    for tier in tiers:
        servers = server_dirs(directory, tier)
        for server in servers:
            server.mkdir(parents=True, exist_ok=True)
        parts += [f'[[tier]]\nname = "{tier.name}"\nclass = "{tier.name}"\ndriver = "dirs"']
        parts += [f"servers = {json.dumps([str(server) for server in servers])}"]
        parts += [f"capacity_per_server = {capacity_bytes[tier.name]}\nemulate = {str(emulate).lower()}"]
    path = directory / "cluster.toml"
    path.write_text("\n".join(parts) + "\n")
    return path


def server_dirs(directory, tier):
    """The directory of each server."""
    return [directory / "servers" / f"{tier.name}{number}" for number in range(tier.count)]


@dataclass(frozen=True)
class Usage:
    """The work of a tier's servers: all requests and bytes, and the busy time of the busiest
    server."""

    requests: int
    bytes: int
    busy_s: float


class Emulation:
    """The state that all emulated servers of a user share (`crates/target/src/emulate/state.rs`).
    This object stays attached while it exists, so that no process clears the state."""

    SLOTS, SLOT_WORDS, HEADER_WORDS = 1 << 14, 8, 8
    MAGIC = b"swemul01"
    BYTES = 8 * (HEADER_WORDS + SLOTS * SLOT_WORDS)

    def __init__(self):
        path = f"/dev/shm/stripewise-emulation-{os.getuid()}"
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if self._lock(fcntl.F_OFD_SETLK, fcntl.F_WRLCK):
            os.ftruncate(self.fd, 0)
            os.ftruncate(self.fd, self.BYTES)
            os.pwrite(self.fd, self.MAGIC, 0)
        self._lock(fcntl.F_OFD_SETLKW, fcntl.F_RDLCK)
        if os.pread(self.fd, 8, 0) != self.MAGIC:
            raise SystemExit(f"{path} is of another version of stripewise that is running now; wait until it ends")
        self.words = mmap.mmap(self.fd, self.BYTES, prot=mmap.PROT_READ)

    def _lock(self, command, kind):
        try:
            fcntl.fcntl(self.fd, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 1, 0))
        except BlockingIOError:
            return False
        return True

    def counts(self, directory, tier):
        """Per server of a tier: (requests, bytes, busy ns) so far."""
        return [self._slot(marker_id(server)) for server in server_dirs(directory, tier)]

    def _slot(self, name):
        key = 0xCBF29CE484222325
        for byte in (name or "").encode():
            key = (key ^ byte) * 0x100000001B3 % (1 << 64)
        for probe in range(self.SLOTS if name else 0):
            offset = 8 * (self.HEADER_WORDS + (key + probe) % self.SLOTS * self.SLOT_WORDS)
            taken, _, requests, size, busy_ns = struct.unpack_from("5Q", self.words, offset)
            if taken == 0:
                break
            if taken == max(key, 1):
                return requests, size, busy_ns
        return 0, 0, 0


def marker_id(server):
    """The id of a target; None before its first use."""
    try:
        return re.search(r'^id = "(.*)"', (server / "stripewise-target.toml").read_text(), re.M)[1]
    except FileNotFoundError:
        return None


class Watch:
    """The servers' work from now on."""

    def __init__(self, emulation, directory, tiers):
        self.emulation, self.directory, self.tiers = emulation, directory, tiers
        self.before = self._counts()

    def _counts(self):
        return {tier.name: self.emulation.counts(self.directory, tier) for tier in self.tiers}

    def usage(self):
        """The work since this object was created, by tier."""
        now = self._counts()

        def of(tier):
            both = zip(self.before[tier.name], now[tier.name], strict=True)
            changes = [[after - before for before, after in zip(*pair, strict=True)] for pair in both]
            requests, size, busy_ns = zip(*changes, strict=True)
            return Usage(sum(requests), sum(size), max(busy_ns) / 1e9)

        return {tier.name: of(tier) for tier in self.tiers}
