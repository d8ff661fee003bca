"""The first process of a node: makes the namespaces that it was started in a machine of its own,
starts what a node runs, and reaps processes.

    unshare --mount --uts --ipc --net --pid --fork python3 init.py BASE NAME

BASE/NAME has the node's files: what programs read of the machine (OWN_FILES), and `commands`, the
command lines of what it runs, as JSON. `ready` is written when the node can be used.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

# What programs read of a machine, and the file of the node that they read instead.
OWN_FILES = {
    "machine-id": "/etc/machine-id",
    "hosts": "/etc/hosts",
    "passwd": "/etc/passwd",
    "boot_id": "/proc/sys/kernel/random/boot_id",
}
# As `ip` prints it: the testbed gives eth0 its address last.
ADDRESS = "inet 10.213."


def run(*words):
    subprocess.run(words, check=True)


def has_address():
    return ADDRESS in subprocess.run(["ip", "-4", "addr"], check=True, capture_output=True, text=True).stdout


def become_a_machine(own):
    """Gives the namespaces their own names, memory file systems and process table."""
    run("mount", "--make-rprivate", "/")
    socket.sethostname(own.name)
    for kind, directory in (("proc", "/proc"), ("sysfs", "/sys")):  # of these namespaces
        run("mount", "-t", kind, kind, directory)
    for directory in ("/dev/shm", "/run"):
        run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", directory)
    for name, path in OWN_FILES.items():
        if os.path.exists(path):
            run("mount", "--bind", own / name, path)
    os.mkdir("/run/tmp")
    os.chmod("/run/tmp", 0o1777)


def main():
    own = Path(sys.argv[1]) / sys.argv[2]
    become_a_machine(own)
    while not has_address():
        time.sleep(0.01)
    for words in json.loads((own / "commands").read_text()):
        run(*words)
    (own / "ready").touch()
    while True:
        os.wait()  # one of the daemons always runs


if __name__ == "__main__":
    main()
