"""What it costs a program on one node to open and close a file with replicas, with and without sessions.

    python3 testbed/nodes up --nodes 1 --on cephfs --no-slurm --base /tmp/nodes -- --hdd 8000:8000:2 --ssd 3000:3000:6
    python3 bench/opens.py --base /tmp/nodes [--bin a/build another/build]

Each program opens its file, reads or writes its first 4 KiB, and closes it, again and again. No other
program has the file open. The builds, and sessions or not, take turns. Prints the median time of an
open and a close with what is between them, for each.
"""

import argparse
import sys
from pathlib import Path
from statistics import median

import nodes

PROGRAM = """
import os, sys, time
path, writes, count = sys.argv[1], sys.argv[2] == "write", int(sys.argv[3])
for _ in range(count):
    begin = time.monotonic()
    fd = os.open(path, os.O_RDWR if writes else os.O_RDONLY)
    os.pwrite(fd, bytes(4096), 0) if writes else os.pread(fd, 4096, 0)
    os.close(fd)
    print("took", time.monotonic() - begin)
"""
SESSIONS = "sessions = true\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="of a testbed with a CephFS")
    parser.add_argument("--repeats", type=int, default=3, help="[default: %(default)s]")
    parser.add_argument("--count", type=int, default=20, help="opens of one program [default: %(default)s]")
    parser.add_argument("--bin", type=Path, nargs="+", default=[nodes.ROOT / "target" / "release"], help="builds [default: target/release]")
    return parser.parse_args()


class Site(nodes.Site):
    """The testbed with a file that has sessions, or none."""

    def __init__(self, args, build, sessions):
        args.bin = build
        super().__init__(args)
        name = "with-sessions" if sessions else "without"
        self.sessions, self.file, self.plan = sessions, self.mount / "data" / name, self.mount / f"{name}.toml"
        self.prepare("replicas")

    def took(self, what):
        """The times of the opens of a program, s."""
        for marker in self.mount.glob("targets/*/stripewise-target.toml"):
            text = marker.read_text().replace(SESSIONS, "")
            marker.write_text(text + SESSIONS * self.sessions)
        if not self.file.exists():
            self.on_node(self.stripewise, "run", "-p", self.plan, "--", "dd", "if=/dev/urandom", f"of={self.file}", "bs=1M", "count=16", "status=none")
            self.on_node(self.stripewise, "drain", self.file)
        out = self.on_node(self.stripewise, "run", "-p", self.plan, "--", "python3", "-c", PROGRAM, self.file, what, self.args.count)
        return [float(line.split()[1]) for line in out.splitlines() if line.startswith("took ")]


def main():
    args = arguments()
    builds, found = args.bin, {}
    for repeat in range(args.repeats):
        for build in builds:
            for sessions in (False, True):
                site = Site(args, build, sessions)
                for what in ("read", "write"):
                    times = site.took(what)
                    print(repeat, build, sessions, what, f"{1e3 * median(times):.0f} ms", file=sys.stderr, flush=True)
                    found.setdefault((build, what, sessions), []).extend(times)
    print("| build | between open and close | without sessions, ms | with, ms |")
    print("|---|---|---|---|")
    for build in builds:
        for what in ("read", "write"):
            without, with_ = (1e3 * median(found[build, what, sessions]) for sessions in (False, True))
            print(f"| {build} | {what} | {without:.0f} | {with_:.0f} |")


if __name__ == "__main__":
    main()
