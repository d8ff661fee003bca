"""What is measured: applications of real programs, their files, and the servers. Both the mixed job
and the cases of the joint plan are described in this form."""

from dataclasses import dataclass, replace

from commands import Command, ior
from servers import Service, Tier
from sizes import KIB, MIB


@dataclass(frozen=True)
class Files:
    """Files that get their layouts together. A plan's first rule whose `pattern` (in the directory
    of the data) matches counts. `hot` is the part of a file that is used most, (start, end)."""

    name: str
    pattern: str
    bytes: int
    count: int = 1
    hot: tuple = ()


@dataclass(frozen=True)
class Application:
    """Programs that run one after another, recorded in one trace. `sets` are the names of the files
    that they use; it runs `times` times as often as the others. `why`: a sentence for the page."""

    name: str
    commands: tuple
    sets: tuple
    times: int = 1
    why: str = ""


@dataclass(frozen=True)
class Case:
    """`sets` are in the order in which the files come into being. `capacity_bytes` is that of each
    server, by tier."""

    name: str
    title: str
    why: str
    tiers: tuple
    capacity_bytes: dict
    sets: tuple
    applications: tuple

    def servers(self, *tiers):
        """The servers of these tiers, or all: `hdd/0`, ..."""
        return tuple(f"{tier.name}/{number}" for tier in self.tiers if not tiers or tier.name in tiers for number in range(tier.count))

    def bytes(self):
        return sum(files.bytes * files.count for files in self.sets)

    def slowed(self, factor):
        return replace(self, tiers=tuple(tier.slowed(factor) for tier in self.tiers))


def tier(name, count, startup_s, per_byte_s, sequential_startup_s=None):
    """Servers that read as fast as they write."""
    service = Service(startup_s, per_byte_s)
    return Tier(name, count, service, service, startup_s if sequential_startup_s is None else sequential_startup_s)


def hdds(count):
    """A disk: 6 ms for a seek, 0.1 ms in order, 119 MiB/s."""
    return tier("hdd", count, 6e-3, 8e-9, 1e-4)


def ssds(count):
    """A SATA SSD: 0.05 ms, 477 MiB/s."""
    return tier("ssd", count, 5e-5, 2e-9)


PLENTY = 1 << 40


def mixed_job(scale):
    """The job of the comparison with the sites' rules. `scale` divides the sizes of the files."""
    raw, shard, checkpoint, array = 96 * MIB // scale, 12 * MIB // scale, 80 * MIB // scale, 48 * MIB // scale
    sets = (
        Files("raw data", "raw.dat", raw),
        # HDF5 puts 2 KiB before the dataset.
        Files("samples", "samples.<n>.h5", shard + 2 * KIB, 4),
        Files("checkpoint", "checkpoint", 4 * checkpoint),
        Files("array", "array", array),
    )
    each = sum(files.bytes * files.count for files in sets) // 8
    return Case(
        "job",
        "four programs, one after another",
        "Everyday kinds of access in one job.",
        (hdds(6), ssds(2)),
        # A stripe more, so that files striped evenly over all servers fit.
        {"hdd": PLENTY, "ssd": each + MIB},
        sets,
        programs_of_job(raw, shard, checkpoint, array),
    )


def programs_of_job(raw, shard, checkpoint, array):
    """The four programs. Sizes in bytes: of the raw data, of a file of samples, of a rank's part of
    the checkpoint, of the array."""
    fio = (f"--size={raw}", "--bs=1M", "--rw=read")
    training = ("--total", shard, "--block", "64K", "--access", "random")
    tile = ("--tiles-x", 2, "--tiles-y", 2, "--elements-x", 1, "--elements-y", array // (64 * KIB), "--element-size", "16K")
    return (
        Application(
            "preprocessing",
            (Command("fio", "raw.dat", "read", fio, 1),),
            ("raw data",),
            why="one process reads an instrument's data in order, as filters and converters do",
        ),
        Application(
            "training",
            (Command("h5", "samples.h5", "read", training),),
            ("samples",),
            why="four processes read samples in a shuffled order, each from its own HDF5 file: an epoch of machine learning",
        ),
        Application(
            "simulation",
            (ior("checkpoint", "write", MIB, checkpoint),),
            ("checkpoint",),
            why="four ranks write a checkpoint into a shared file, each its part in order: the largest output of most jobs",
        ),
        Application(
            "output",
            (Command("tile", "array", "write", tile),),
            ("array",),
            why="four ranks write tiles of an array into a shared file in rows of 16 KiB, without collective buffering",
        ),
    )


def small_and_large(scale):
    large, small = 60 * MIB // scale, 4 * MIB // scale
    applications = (
        Application("large", (ior("large", "read", MIB, large),), ("large",)),
        Application("small", (ior("small", "read", 4 * KIB, small, "--access", "random"),), ("small",)),
    )
    return Case(
        "small and large",
        "a small file read at random beside a large one read in order",
        "The SSDs hold a tenth of the data, and more than the small file.",
        (hdds(4), ssds(2)),
        {"hdd": PLENTY, "ssd": 12 * MIB // scale},
        (Files("large", "large", 4 * large), Files("small", "small", 4 * small)),
        applications,
    )


def hot_middle(scale, fewer=None):
    """`fewer` divides the number of reads; default: `scale`."""
    size, reads = 80 * MIB // scale, 256 // (fewer or scale)
    zones = "--random_distribution=zoned:8/48:84/5:8/47"
    flags = (f"--size={size}", "--bs=4K", "--rw=randread", "--norandommap", zones, f"--io_size={4 * KIB * reads}")
    hot = (size * 48 // 100, size * 53 // 100)
    return Case(
        "hot middle",
        "a file of which a twentieth in its middle gets 84 % of the random reads",
        "The SSDs hold that part.",
        (hdds(4), ssds(2)),
        {"hdd": PLENTY, "ssd": 2 * MIB // scale},
        (Files("file", "file", size, hot=tuple(-(-at // (64 * KIB)) * 64 * KIB for at in hot)),),
        (Application("reader", (Command("fio", "file", "read", flags),), ("file",)),),
    )


def three_classes(scale):
    hot, warm, cold = 4 * MIB // scale, 12 * MIB // scale, 100 * MIB // scale
    applications = (
        Application("cold", (ior("cold", "write", MIB, cold),), ("cold",)),
        Application("warm", (ior("warm", "read", 64 * KIB, warm, "--access", "random"),), ("warm",)),
        Application("hot", (ior("hot", "read", 4 * KIB, hot, "--access", "random"),), ("hot",)),
    )
    return Case(
        "three classes",
        "HDDs, SSDs and an NVMe device; a hot, a warm and a cold file",
        "The NVMe device has room for the hot file, the SSDs for the warm one.",
        (tier("hdd", 4, 6e-3, 8e-9), tier("ssd", 2, 2e-4, 2e-9), tier("nvme", 1, 2e-5, 5e-10)),
        {"hdd": PLENTY, "ssd": 25 * MIB // scale, "nvme": 17 * MIB // scale},
        tuple(Files(name, name, 4 * size) for name, size in (("cold", cold), ("warm", warm), ("hot", hot))),
        applications,
    )


def newest_checkpoint(scale):
    each, count = 4 * MIB // scale, 8
    writes = tuple(ior(f"ckpt.{number}", "write", MIB, each) for number in range(count))
    newest = f"ckpt.{count - 1}"
    restart = ior(newest, "read", 16 * KIB, each, "--access", "random")
    return Case(
        "newest checkpoint",
        "eight checkpoint files written in order, of which the newest is read",
        "The restart reads pieces of 16 KiB at random places, as another number of processes may. The SSDs hold one file and a half.",
        (hdds(4), ssds(2)),
        {"hdd": PLENTY, "ssd": 12 * MIB // scale},
        (Files("newest", newest, 4 * each), Files("older", "ckpt.<n>", 4 * each, count - 1)),
        (Application("run and restart", (*writes, restart), ("newest", "older")),),
    )


def two_applications(scale, writer_times=1):
    size = 8 * MIB // scale
    applications = (
        Application("reader", (ior("reader", "read", 64 * KIB, size, "--access", "random"),), ("reader",)),
        Application("writer", (ior("writer", "write", 256 * KIB, size),), ("writer",), writer_times),
    )
    often = f", the second one {writer_times} times as often" if writer_times > 1 else ""
    return Case(
        f"two applications 1:{writer_times}",
        f"one application reads its file at random, another one writes its own in order{often}",
        "The SSDs hold one of the files.",
        (tier("hdd", 4, 6e-3, 8e-9), ssds(2)),
        {"hdd": PLENTY, "ssd": 20 * MIB // scale},
        (Files("reader", "reader", 4 * size), Files("writer", "writer", 4 * size)),
        applications,
    )


def all_cases(scale):
    """The cases of the joint plan, as in `crates/plan/src/tests/joint_cases.rs` and `joint.rs`."""
    return [
        small_and_large(scale),
        hot_middle(scale),
        three_classes(scale),
        newest_checkpoint(scale),
        two_applications(scale),
        two_applications(scale, 30),
    ]
