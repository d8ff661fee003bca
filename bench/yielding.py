"""How much background copying by one node slows down a program on another one.

    python3 testbed/nodes up --nodes 2 --on cephfs --no-slurm --base /tmp/nodes
    python3 bench/yielding.py --base /tmp/nodes [--bin a/build another/build]

A program on node1 writes a file with replicas on the HDDs and the SSDs, and keeps it open: its
background thread copies to the HDDs what was written to the SSDs, first while nothing else happens.
Then a program on node2 reads 1 MiB at a time, at random, from a striped file on the same HDDs.
Prints what the reader gets without and with the copier, and what the copier copies, for each build.
"""

import argparse
import json
import re
import subprocess
import time
from pathlib import Path
from statistics import median

import nodes

SECONDS = 20
# Of the copier alone.
SECONDS_ALONE = 8
WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for number in range(int(sys.argv[2])):
    os.pwrite(fd, os.urandom(1 << 20), number << 20)
os.fsync(fd)
print("written", flush=True)
sys.stdin.read()
"""
READER = """
import os, random, sys, time
fd, seconds = os.open(sys.argv[1], os.O_RDONLY), float(sys.argv[2])
mib, done, begin = os.fstat(fd).st_size >> 20, 0, time.monotonic()
while time.monotonic() < begin + seconds:
    done += len(os.pread(fd, 1 << 20, random.randrange(mib) << 20))
print("read", done / (time.monotonic() - begin))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="of a testbed of two nodes with a CephFS")
    parser.add_argument("--repeats", type=int, default=3, help="[default: %(default)s]")
    parser.add_argument("--mib", type=int, default=256, help="that are written and copied [default: %(default)s]")
    parser.add_argument("--bin", type=Path, nargs="+", default=[nodes.ROOT / "target" / "release"], help="builds [default: target/release]")
    return parser.parse_args()


class Site(nodes.Site):
    """The testbed with a file that programs use."""

    def __init__(self, args, build, name, kind):
        args.bin = build
        super().__init__(args)
        self.file, self.plan = self.mount / "data" / name, self.mount / f"{name}.toml"
        self.prepare(kind)
        if self.file.exists():
            self.on_node(self.stripewise, "rm", self.file)

    def start(self, node, program, number):
        words = [nodes.ROOT / "testbed" / "nodes", "exec", node, "--base", self.args.base, "--", self.stripewise, "run", "-p", self.plan, "--"]
        words += ["python3", "-c", program, self.file, number]
        return subprocess.Popen(["python3", *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def valid(self):
        """The valid bytes of all copies."""
        (file,) = json.loads(self.on_node(self.stripewise, "status", "--json", self.file))["files"]
        return sum(copy["valid_bytes"] for copy in file["copies"])


def last_line(process, word):
    for line in process.stdout:
        if match := re.match(rf"{word} ?(\S*)", line):
            return match[1]
    raise SystemExit(f"a program ended without saying {word!r}")


def measure(args, build):
    """Bytes per second of the reader alone and beside the copier, and of the copier alone and beside the
    reader."""
    shared, striped = Site(args, build, "f", "replicas"), Site(args, build, "g", "striped")
    first = striped.start("node2", WRITER, 64)
    last_line(first, "written")
    first.communicate()
    alone = float(last_line(striped.start("node2", READER, SECONDS), "read"))
    writer = shared.start("node1", WRITER, args.mib)
    last_line(writer, "written")
    begin = shared.valid()
    time.sleep(SECONDS_ALONE)
    before = shared.valid()
    beside = float(last_line(striped.start("node2", READER, SECONDS), "read"))
    copied = shared.valid() - before
    writer.kill()
    return alone, beside, (before - begin) / SECONDS_ALONE, copied / SECONDS


def main():
    args = arguments()
    builds, found = args.bin, {}
    for _ in range(args.repeats):
        for build in builds:
            found.setdefault(build, []).append(measure(args, build))
            print(build, found[build][-1], flush=True)
    print("| build | reader alone, MB/s | beside the copier | of that alone | copier alone, MB/s | beside the reader |")
    print("|---|---|---|---|---|---|")
    for build, runs in found.items():
        alone, beside, copied, copied_beside = (median(values) / 1e6 for values in zip(*runs, strict=True))
        print(f"| {build} | {alone:.1f} | {beside:.1f} | {100 * beside / alone:.0f} % | {copied:.1f} | {copied_beside:.1f} |")


if __name__ == "__main__":
    main()
