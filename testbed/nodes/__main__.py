"""Several nodes on one machine, for tests and measurements of jobs on a cluster.

A node has mount, UTS, IPC, network and PID namespaces of its own: its own host name, machine id,
boot id, network card, /dev/shm and /run, and an SSH server. All nodes see one shared directory at
the same path: a plain directory of this machine, or a CephFS that every node mounts by itself.

    sudo python3 testbed/nodes up --base /tmp/nodes            # node1 to node3; prints output of `env`
    sudo python3 testbed/nodes up --on cephfs --base /tmp/nodes
    sudo python3 testbed/nodes exec node2 --base /tmp/nodes -- hostname
    eval "$(python3 testbed/nodes env --base /tmp/nodes)"      # STRIPEWISE_NODES_SHARED (the directory);
                                                               # mpirun starts jobs over all nodes
    sudo python3 testbed/nodes exec node1 --base /tmp/nodes -- mpirun.mpich -n 6 hostname
    sudo python3 testbed/nodes exec node1 --base /tmp/nodes -- srun -N 3 hostname
    sudo python3 testbed/nodes kill node2 --base /tmp/nodes    # all its processes and its mount, at once
    sudo python3 testbed/nodes start node2 --base /tmp/nodes   # it boots again
    sudo python3 testbed/nodes cut node3 --base /tmp/nodes     # no packet arrives or leaves
    sudo python3 testbed/nodes evict node3 --base /tmp/nodes   # CephFS: its client's time-out is over
    sudo python3 testbed/nodes heal node3 --base /tmp/nodes
    sudo python3 testbed/nodes down --base /tmp/nodes

With Slurm's programs (`tools/setup.sh nodes`), `up` also starts slurmctld on one more node, `head`,
and a slurmd on each node. The testbed uses only --base and one network of 10.213.N.0/24, the first
that is free, so several testbeds can run at the same time. `up` removes the remains of a testbed
that was killed. Needs root, namespaces, and the packages that `tools/setup.sh nodes` installs.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "testbed" / name) for name in ("disks", "shared")]

import beds  # noqa: E402  (needs the path above)
from bed import Bed  # noqa: E402


def flags():
    parser, command = beds.commands(__doc__, "/tmp/stripewise-nodes")
    up = command("up", "make the bed; one that is complete already stays as it is")
    up.add_argument("--nodes", type=int, default=3, help="[default: %(default)s]")
    up.add_argument("--on", choices=("directory", "cephfs"), default="directory", help="what the shared directory is [default: %(default)s]")
    up.add_argument("--no-slurm", action="store_true", help="without Slurm, even if it is installed")
    up.add_argument("cephfs", nargs="*", help="flags of testbed/cephfs up, after --, e.g. -- --no-limits")
    command("down", "remove it, or what is left of it")
    command("status", "its nodes and their processes")
    command("env", "what a shell evaluates to use it")
    execute = command("exec", "run a command on a node")
    execute.add_argument("node")
    execute.add_argument("words", nargs="+", help="the command, after --")
    for name, text in (
        ("kill", "kill a node: all its processes and its mount, at once"),
        ("start", "boot a node that was killed"),
        ("cut", "cut a node's network"),
        ("heal", "connect it again"),
        ("evict", "let the CephFS give up a node that was killed or cut, at once instead of after a time-out"),
    ):
        command(name, text).add_argument("node")
    return parser.parse_args()


def main():
    args = flags()
    bed = Bed(args.base)
    match args.what:
        case "up":
            bed.up(args.nodes, args.on, args.cephfs, not args.no_slurm)
            print(bed.environment())
        case "down":
            bed.down()
        case "status":
            print(bed.status())
        case "env":
            print(bed.environment())
        case "exec":
            bed.execute(args.node, args.words)
        case "kill":
            bed.kill(args.node)
        case "start":
            bed.start(args.node)
        case "cut":
            bed.connect(args.node, False)
        case "heal":
            bed.connect(args.node, True)
        case "evict":
            bed.evict(args.node)


if __name__ == "__main__":
    beds.run_main("nodes", main)
