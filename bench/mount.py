"""How fast files are through `stripewise mount`, compared with the library.

    python3 bench/mount.py --dir /tmp/bench-mount [--bin target/release] [--repeats 5]

fio reads and writes a file of 256 MiB in order, in requests of several sizes, by pread and pwrite: under the library on the
directory itself, and without it through a mount of the directory. Both take turns. The targets are directories of one file
system. Without --cold its page cache holds everything, so the ratio is that of the ways and not of a disk's. Prints the medians,
and the processor time per MiB of program and serving process together.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
FILE_MIB = 256
SIZES = {"4 KiB": "4k", "64 KiB": "64k", "1 MiB": "1m"}
COPY = '[[rule.copy]]\nkind = "replica"\nname = "replica"\nlayouts = [[{ cycle = "b/0-3:64K" }]]\n'
KINDS = {
    "one server": ('[{ cycle = "a/0:1G" }]', ""),
    "1-DH": ('[{ cycle = "a/0-3:64K b/0-3:64K" }]', ""),
    "replicas": ('[{ cycle = "a/0-3:64K" }]', COPY),
}
SERVICE = "{ startup_s = 1e-6, per_byte_s = 1e-10 }"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="a directory that is made and removed")
    parser.add_argument("--repeats", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--cold", action="store_true", help="empty the page cache before each read, and sync after each write (as root)")
    parser.add_argument("--bin", type=Path, default=ROOT / "target" / "release", help="with stripewise and its library")
    return parser.parse_args()


class Site:
    """A directory with managed files of one kind, and its mount."""

    def __init__(self, args, kind):
        self.args, self.root = args, args.dir / kind.replace(" ", "-")
        self.data, self.view, self.plan = self.root / "data", self.root / "view", self.root / "plan.toml"
        self.data.mkdir(parents=True)
        self.view.mkdir()
        layouts, copies = KINDS[kind]
        self.plan.write_text(
            f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = "{self.data}/**"\nscheme = "DEF"\nreason = "a measurement"\n'
            f"predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [{layouts}]\n{copies}\n"
            "[cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n" + "".join(self.tier(name) for name in "ab")
        )
        self.stripewise("place", self.plan)
        self.stripewise("mount", "-p", self.plan, self.data, self.view)

    def tier(self, name):
        """Four directories as servers."""
        servers = [self.root / "servers" / f"{name}{number}" for number in range(4)]
        for server in servers:
            server.mkdir(parents=True)
        keys = "\n".join(f"{op}.{access} = {SERVICE}" for op in ("read", "write") for access in ("random", "sequential"))
        named = json.dumps([str(server) for server in servers])
        return (
            f"[cluster.class.{name}]\n{keys}\n[[cluster.tier]]\n"
            f'name = "{name}"\nclass = "{name}"\ndriver = "dirs"\nservers = {named}\ncapacity_per_server = "1T"\n'
        )

    def stripewise(self, *words):
        """Runs a command."""
        subprocess.run([self.args.bin / "stripewise", *words], check=True, stdout=subprocess.DEVNULL)

    def serving_s(self):
        """Processor time of the process that serves, s."""
        number = subprocess.run(["pgrep", "-f", f"mount --serve .* {self.view}$"], capture_output=True, text=True, check=True).stdout.strip()
        fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def took(self, way, what, size):
        """MiB/s of fio, and the processor time of a MiB, ms."""
        directory = self.data if way == "library" else self.view
        library = {"LD_PRELOAD": str(self.args.bin.resolve() / "libstripewise_posix.so"), "STRIPEWISE_PLAN": str(self.plan)}
        words = ["fio", "--name=f", f"--filename={directory}/file", "--ioengine=psync", f"--size={FILE_MIB}M", f"--bs={size}"]
        words += [f"--rw={what}", "--invalidate=0", "--fallocate=none", "--output-format=json", "--thread"]
        if self.args.cold:
            words += ["--end_fsync=1"]
            os.sync()
            Path("/proc/sys/vm/drop_caches").write_text("3")
        before_s = self.serving_s()
        done = subprocess.run(words, env={**os.environ, **(library if way == "library" else {})}, capture_output=True, text=True, check=True)
        of = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
        program_s = (of["usr_cpu"] + of["sys_cpu"]) / 100 * of["job_runtime"] / 1000
        serving_s = self.serving_s() - before_s if way == "mount" else 0
        return of[what]["bw_bytes"] / MIB, 1000 * (program_s + serving_s) / FILE_MIB


def main():
    args = arguments()
    print("| file | requests | library, MiB/s | mount, MiB/s | mount of library | CPU ms/MiB: library, mount |")
    print("|---|---|---:|---:|---:|---:|")
    for kind in KINDS:
        site = Site(args, kind)
        try:
            site.took("library", "write", "1m")
            for what in ("read", "write"):
                for shown, size in SIZES.items():
                    found = {"library": [], "mount": []}
                    for _ in range(args.repeats):
                        for way, taken in found.items():
                            taken.append(site.took(way, what, size))
                            print(kind, what, shown, way, *taken[-1], file=sys.stderr, flush=True)
                    (one, one_cpu), (other, other_cpu) = ([median(column) for column in zip(*taken, strict=True)] for taken in found.values())
                    print(f"| {kind} | {what}, {shown} | {one:.0f} | {other:.0f} | {other / one:.0%} | {one_cpu:.2f}, {other_cpu:.2f} |", flush=True)
        finally:
            subprocess.run(["fusermount3", "-u", site.view], check=False)


if __name__ == "__main__":
    main()
