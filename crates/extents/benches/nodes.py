"""How fast nodes append to a log that they share: a file of a parallel file system under a lock, as
in docs/formats/nodes.md, beside a stream of Redis and keys of etcd.

    python3 testbed/nodes up --nodes 10 --on cephfs --no-slurm --base /tmp/nodes -- --no-limits
    python3 crates/extents/benches/nodes.py --base /tmp/nodes    # a CephFS that each node mounts
    python3 crates/extents/benches/nodes.py --dir /tmp           # this machine's disk, Redis and etcd

Each client is a process. On the testbed they are spread over the nodes. Every client appends
records one after the other and waits for each until it is durable. Redis syncs with
`appendfsync always`; etcd is one member. Their programs are Debian's packages redis-server and
etcd-server; what is not installed is left out. Prints the table of bench/results.d/nodes.md.
"""

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[3]
CLIENTS = Path(__file__).with_name("appends.py")
HEAD = "| log | clients | appends/s | median ms | 95 % ms | all have appended once, s |"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="of a testbed of nodes with a CephFS")
    parser.add_argument("--dir", type=Path, help="a directory of this machine, for a log there and for the servers' data")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 10, 100], help="[default: %(default)s]")
    parser.add_argument("--appends", type=int, default=600, help="by all clients together, and at least 3 by each [default: %(default)s]")
    # A commit of one range has 40 bytes in the format of docs/formats/nodes.md.
    parser.add_argument("--bytes", type=int, default=40, help="of a record [default: %(default)s]")
    args = parser.parse_args()
    if not (args.base or args.dir):
        parser.error("name a testbed (--base) or a directory (--dir)")
    return args


def measure(args, name, engine, place, clients, command_of):
    """A row of the table; `command_of(client)` is put before the command of a client."""
    each = max(3, args.appends // clients)
    words = [[*command_of(client), sys.executable, CLIENTS, engine, place, f"c{client}", each, args.bytes] for client in range(clients)]
    running = [subprocess.Popen([str(word) for word in line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for line in words]
    for process in running:
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"{name}: a client has ended")
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [json.loads(process.communicate()[0]) for process in running]
    seconds = [value for client in done for value in client["seconds"]]
    took = max(client["end"] for client in done) - min(client["begin"] for client in done)
    first = max(client["begin"] + client["seconds"][0] for client in done) - min(client["begin"] for client in done)
    ms = [1e3 * value for value in seconds]
    print(f"| {name} | {clients} | {len(ms) / took:.0f} | {median(ms):.1f} | {quantiles(ms, n=20)[-1]:.1f} | {first:.2f} |", flush=True)
    if clients == 1 and done[0]["parts"]:
        parts = ", ".join(f"{part} {1e3 * median(values):.2f}" for part, values in done[0]["parts"].items())
        print(f"| of one append, ms: {parts} | | | | | |", flush=True)


def on_nodes(args):
    """The log on the testbed's shared file system."""
    bed = [sys.executable, ROOT / "testbed" / "nodes"]
    facts = json.loads((args.base / "nodes.json").read_text())
    nodes = facts["names"]
    command = lambda client: [*bed, "exec", nodes[client % len(nodes)], "--base", args.base, "--"]  # noqa: E731
    for clients in args.clients:
        with tempfile.TemporaryDirectory(dir=args.base / "shared") as place:
            measure(args, f"file on {facts['on']}, {len(nodes)} nodes", "file", Path(place) / "log", clients, command)


@contextlib.contextmanager
def server(*words):
    """A server that listens on a free port while the block runs: `words(port)`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([str(word).replace("PORT", str(port)) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            if process.poll() is not None:
                raise SystemExit(f"{words[0]} has ended with {process.returncode}")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def on_this_machine(args):
    """The log on a file of this machine, and the two servers."""
    for clients in args.clients:
        with tempfile.TemporaryDirectory(dir=args.dir) as place:
            measure(args, "file on this machine", "file", Path(place) / "log", clients, lambda _: [])
    redis = ["redis-server", "--port", "PORT", "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--dir"]
    etcd = ["etcd", "--listen-client-urls", "http://127.0.0.1:PORT", "--advertise-client-urls", "http://127.0.0.1:PORT"]
    etcd += ["--listen-peer-urls", "http://127.0.0.1:0", "--data-dir"]
    for name, engine, words in (("Redis", "redis", redis), ("Redis, E1", "redis-e1", redis), ("etcd", "etcd", etcd)):
        if not shutil.which(words[0]):
            print(f"{words[0]} is not installed: left out", file=sys.stderr)
            continue
        for clients in args.clients:
            with tempfile.TemporaryDirectory(dir=args.dir) as place, server(*words, place) as port:
                measure(args, name, engine, port, clients, lambda _: [])


def main():
    args = arguments()
    print(f"{HEAD}\n|---|---|---|---|---|---|", flush=True)
    if args.base:
        on_nodes(args)
    if args.dir:
        on_this_machine(args)


if __name__ == "__main__":
    main()
