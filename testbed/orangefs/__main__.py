"""An OrangeFS on one machine, for tests: its real servers as plain processes, and pvfs2fuse.

    sudo python3 testbed/orangefs up SOURCE --base /tmp/orangefs   # prints output of `env`
    eval "$(python3 testbed/orangefs env --base /tmp/orangefs)"    # PATH, PVFS2TAB_FILE for tools,
                                                                   # STRIPEWISE_ORANGEFS (mount)
    python3 testbed/orangefs bytes FILE --base /tmp/orangefs       # of its contents, by server
    sudo python3 testbed/orangefs down --base /tmp/orangefs

SOURCE is a directory where OrangeFS is installed (`make install`), or its source tree: then `up`
builds it first, with its Berkeley DB backend (some minutes), and installs it in build/orangefs of
this checkout, where later calls find it.

The testbed uses only --base and --servers ports from --port on of 127.0.0.1, so several testbeds
with different values can run at the same time. `up` removes the remains of a testbed that was
killed. Needs root, FUSE, and the packages that `tools/setup.sh orangefs` installs.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "testbed" / name) for name in ("disks", "shared")]

import beds  # noqa: E402  (needs the path above)
from bed import Bed  # noqa: E402
from install import installed  # noqa: E402


def flags():
    parser, command = beds.commands(__doc__, "/tmp/stripewise-orangefs")
    up = command("up", "make the bed; one that is complete already stays as it is")
    up.add_argument("source", type=Path, help="where OrangeFS is installed, or its source tree")
    up.add_argument("--port", type=int, default=23300, help="of the first server, and the next ones; ports above 32767 may be taken by clients [default: %(default)s]")
    up.add_argument("--servers", type=int, default=8, help="of metadata and contents [default: %(default)s]")
    up.add_argument("--spec", action="store_true", help="mount it with -o fs_spec=..., not by PVFS2TAB_FILE: its client then keeps attributes")
    command("down", "remove it, or what is left of it")
    command("status", "its processes")
    command("env", "what a shell evaluates to use it")
    command("bytes", "of file contents that each server has, by address, as JSON").add_argument("file", nargs="?", help="count only this file's")
    return parser.parse_args()


def main():
    args = flags()
    bed = Bed(args.base)
    match args.what:
        case "up":
            bed.up(lambda: installed(args.source), args.port, args.servers, args.spec)
            print(bed.environment())
        case "down":
            bed.down()
        case "status":
            print("\n".join(beds.process_lines(bed.require())))
        case "env":
            print(bed.environment())
        case "bytes":
            print(json.dumps(bed.bytes_of_servers(args.file)))


if __name__ == "__main__":
    beds.run_main("orangefs", main)
