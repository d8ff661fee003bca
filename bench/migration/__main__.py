"""Migration on a CephFS: many short files and a long one, by `place --native` and by `place`,
compared with `cp -a`; killed, resumed, verified.

    python3 testbed/cephfs up --base /tmp/cephfs --no-limits
    stripewise-bench migration --base /tmp/cephfs

The testbed's disks hold every file and its copy at once. With --compress its pools compress, and
the long file is compressible, so that 10 GiB and their copy fit on a small machine; compression is
then part of the measurement. Prints the table of bench/results.d/migration.md.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "common"))

# pylint: disable=wrong-import-position
from programs import BINARIES

BLOCK = 64 << 10
MODES = ["native", "managed"]


def arguments():
    parser = argparse.ArgumentParser(prog="stripewise-bench migration", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="of the bed")
    parser.add_argument("--binaries", type=Path, default=BINARIES, help="with stripewise and its library [default: %(default)s]")
    parser.add_argument("--files", type=int, default=10_000, help="short files, of 4 to 64 KiB each")
    parser.add_argument("--long-gib", type=float, default=10, help="the long file")
    parser.add_argument("--kills", type=int, default=5, help="times that each placing is killed")
    parser.add_argument("--compress", action="store_true", help="let the pools compress")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--parts", nargs="+", choices=["short", "long"], default=["short", "long"])
    return parser.parse_args()


class Bed:
    """A mounted testbed, and plans for it."""

    def __init__(self, args):
        self.base, self.stripewise = args.base, args.binaries / "stripewise"
        self.mount = args.base / "mnt"
        self.pools = json.loads(self.ceph("osd", "pool", "ls", "--format", "json"))
        self.servers = sum(pool.startswith("hdd") and pool != "hdd" for pool in self.pools)
        (self.mount / "targets").mkdir(exist_ok=True)
        for pool in self.pools:
            if pool.startswith(("hdd", "ssd")):
                self.ceph("osd", "pool", "set", pool, "compression_algorithm", "lz4")
                # A read decompresses everything that was compressed together.
                self.ceph("osd", "pool", "set", pool, "compression_max_blob_size", str(128 << 10))
                self.ceph("osd", "pool", "set", pool, "compression_mode", "force" if args.compress else "none")

    def ceph(self, *words):
        return subprocess.run(["ceph", "-c", self.base / "ceph.conf", *words], check=True, capture_output=True, text=True).stdout

    def plan(self, mode, directory):
        """A plan with all files of a directory in stripes of 1 MiB over all HDD servers."""
        names = json.dumps([f"hdd{i}" for i in range(self.servers)])
        members = f'pool = "hdd"\ncount = {self.servers}' if mode == "native" else f"servers = {names}"
        service = "{ startup_s = 1e-3, per_byte_s = 1e-8 }"
        kinds = "\n".join(f"{op}.{how} = {service}" for op in ["read", "write"] for how in ["random", "sequential"])
        path = self.base / f"{mode}.toml"
        path.write_text(
            f'version = 1\nscheme = "given"\n[[rule]]\npattern = "{directory}/**"\nscheme = "1-DH"\nreason = ""\n'
            f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "hdd/0-{self.servers - 1}:1M" }}]]\n'
            f"[cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n[cluster.class.hdd]\n{kinds}\n"
            f'[[cluster.tier]]\nname = "hdd"\nclass = "hdd"\ndriver = "cephfs"\nroot = "{self.mount}/targets"\n{members}\n'
            'capacity_per_server = "1T"\n'
        )
        return path

    def place(self, mode, plan, log):
        """Starts the command."""
        native = ["--native"] if mode == "native" else []
        return subprocess.Popen([self.stripewise, "place", *native, plan], stdout=log, stderr=log)

    def back(self, mode, plan, directory):
        words = ["place", "--native", "--undo", plan] if mode == "native" else ["export", directory]
        subprocess.run([self.stripewise, *words, "-q"], check=True, stdout=subprocess.DEVNULL)


def sums(directory):
    """{file: checksum of its bytes}"""
    found = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            found[path.name] = digest(file)
    return found


def digest(file):
    digest = hashlib.blake2b(digest_size=16)
    while data := file.read(8 << 20):
        digest.update(data)
    return digest.hexdigest()


def seconds(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def make_short(directory, files):
    """Creates the files; returns their total size, bytes."""
    directory.mkdir(parents=True)
    numbers, total = random.Random(1), 0
    for index in range(files):
        data = numbers.randbytes(numbers.randrange(4 << 10, (64 << 10) + 1))
        (directory / f"f{index}").write_bytes(data)
        total += len(data)
    return total


def make_long(directory, gib):
    """Writes distinct blocks of 64 KiB, each of which repeats 4 KiB."""
    directory.mkdir(parents=True)
    numbers, total = random.Random(2), int(gib * (1 << 30)) // BLOCK * BLOCK
    with (directory / "long.dat").open("wb", buffering=0) as file:
        for start in range(0, total, 128 * BLOCK):
            blocks = min(128, (total - start) // BLOCK)
            file.write(b"".join(numbers.randbytes(4 << 10) * (BLOCK >> 12) for _ in range(blocks)))
    return total


def copied_by_cp(directory):
    """Seconds of `cp -a` alone, and including a sync, as in `place`."""
    copy = directory.with_name("copy")
    bare = seconds(lambda: subprocess.run(["cp", "-a", directory, copy], check=True))
    flushed = seconds(lambda: subprocess.run(["sync", "-f", copy], check=True))
    shutil.rmtree(copy)
    return bare, bare + flushed


def finish(process):
    if process.wait() != 0:
        sys.exit(f"place failed with {process.returncode}: see the log")


def killed_and_resumed(bed, mode, plan, log, waits):
    """Total seconds of all runs: those killed after the given seconds, and the last one."""
    start = time.monotonic()
    kills = 0
    for wait in waits:
        process = bed.place(mode, plan, log)
        try:
            process.wait(timeout=wait)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    finish(bed.place(mode, plan, log))
    return time.monotonic() - start, kills


def leftovers(directory):
    return [path.name for path in directory.rglob(".stripewise-*") if path.name != ".stripewise-native.toml"]


def run(bed, mode, kind, args, log):
    """One row of the table."""
    top = bed.mount / "migration"
    directory = top / kind
    print(f"{mode} {kind}: making files", file=sys.stderr, flush=True)
    total = make_short(directory, args.files) if kind == "short" else make_long(directory, args.long_gib)
    plan, expected = bed.plan(mode, directory), sums(directory)
    print(f"{mode} {kind}: cp -a", file=sys.stderr, flush=True)
    cp_s, cp_durable_s = copied_by_cp(directory)
    print(f"{mode} {kind}: place", file=sys.stderr, flush=True)
    place_s = seconds(lambda: finish(bed.place(mode, plan, log)))
    # The way back reads every placed byte and restores the original state.
    bed.back(mode, plan, directory)
    right = sums(directory) == expected
    print(f"{mode} {kind}: place, killed", file=sys.stderr, flush=True)
    waits = [place_s / (args.kills + 1)] * args.kills
    killed_s, killed = killed_and_resumed(bed, mode, plan, log, waits)
    right = right and not leftovers(directory)
    bed.back(mode, plan, directory)
    right = right and sums(directory) == expected
    shutil.rmtree(top)
    rate = lambda s: f"{total / s / (1 << 20):.1f}"
    return [mode, kind, f"{total / (1 << 20):.0f}", f"{cp_s:.1f}", f"{cp_durable_s:.1f}", f"{place_s:.1f}", rate(cp_durable_s), rate(place_s), f"{place_s / cp_durable_s:.2f}", str(killed), f"{killed_s:.1f}", "yes" if right else "NO"]


def main():
    args = arguments()
    bed = Bed(args)
    header = ["placed", "files", "MiB", "cp -a s", "and sync s", "place s", "cp MiB/s", "place MiB/s", "place / cp", "kills", "killed and resumed s", "checksums right, nothing left over"]
    print("| " + " | ".join(header) + " |\n|" + "|".join(["---"] * 2 + ["---:"] * 9 + ["---"]) + "|", flush=True)
    right = True
    with (bed.base / "migration.log").open("w") as log:
        for kind in args.parts:
            for mode in args.modes:
                row = run(bed, mode, kind, args, log)
                right = right and row[-1] == "yes"
                print("| " + " | ".join(row) + " |", flush=True)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    os.environ["CEPH_CONF"] = str(arguments().base / "ceph.conf")
    main()
