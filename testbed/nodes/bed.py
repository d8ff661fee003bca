"""Creates and removes a testbed of nodes. Its files are in its base directory, which its processes
name."""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import beds
import slurm
from farm import ROOT, Problem, attempt, run, wait_for

HERE = Path(__file__).resolve().parent
HEAD = "head"
FINALIZE = ROOT / "build" / "finalize.so"
NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")
PROGRAMS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "dropbear": "dropbear-bin", "dbclient": "dropbear-bin"}
# ceph-fuse does not keep the kernel's page cache coherent between clients.
COHERENT = "--fuse_disable_pagecache=true"
NETWORKS = range(256)  # 10.213.N.0/24
OF_THE_MACHINE = 254  # its own address in the network
OF_THE_HEAD = 200
NODES_MAX = 100
WAITS_MAX = 12  # of farm.SECONDS_MAX each, for a node to boot


class Init(beds.Process):
    """The first process of a node, as this machine sees it."""

    @property
    def name(self):
        return self.words[3]


class Bed(beds.Directory):
    """The testbed in a base directory."""

    own = "nodes.json"

    def __init__(self, base):
        super().__init__(base)
        self.shape = self.base / self.own
        self.ready = self.base / "ready"  # once the testbed is complete
        self.shared = self.base / "shared"
        self.ssh = self.base / "ssh"
        self.slurm = self.base / "slurm"
        self.ceph = self.base / "ceph"

    # --- up

    def up(self, nodes, on, flags_of_cephfs, with_slurm):
        """Creates the testbed, or keeps one that is complete."""
        if not 1 <= nodes <= NODES_MAX:
            raise Problem(f"{nodes} nodes: there can be 1 to {NODES_MAX}")
        for program, package in PROGRAMS.items():
            if not shutil.which(program):
                raise Problem(f"{program} of the package {package} is not there; remedy: tools/setup.sh nodes")
        with_slurm = with_slurm and slurm.is_installed()
        if self.up_by(self.is_complete(), lambda: self._make(nodes, on, flags_of_cephfs, with_slurm)):
            self.ready.touch()
            self.say("ready")

    def running(self):
        init = str(HERE / "init.py")
        return beds.processes(Init, lambda one: one.words[1:3] == (init, str(self.base)))

    def is_complete(self):
        return self.ready.exists() and {one.name for one in self.running()} == set(self.addresses())

    def _make(self, nodes, on, flags_of_cephfs, with_slurm):
        self.base.mkdir(parents=True)
        names = [*([HEAD] if with_slurm else []), *(f"node{i + 1}" for i in range(nodes))]
        self.shape.write_text(json.dumps({"network": None, "names": names, "on": on, "slurm": with_slurm}))
        self.shape.write_text(json.dumps({**self.of_shape(), "network": make_network()}))
        self.shared.mkdir()
        self._make_keys()
        self._write_hosts()
        if with_slurm:
            slurm.prepare(self.slurm, HEAD, self.addresses())
        if on == "cephfs":
            self._make_cephfs(flags_of_cephfs)
        for name in names:
            self._boot(name)
        for name in names:
            self._wait_for(name)
        if with_slurm and not wait_for(self._slurm_is_up):
            raise Problem(f"Slurm's nodes do not come up; its logs are in {self.slurm}")

    def _make_keys(self):
        """Keys for SSH between the nodes, and the program that MPIs start as `ssh`."""
        self.ssh.mkdir()
        home = self.ssh / "home"
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        for name, kind in (("host_key", "known_hosts"), ("user_key", "authorized_keys")):
            run("dropbearkey", "-t", "ed25519", "-f", self.ssh / name)
            lines = run("dropbearkey", "-y", "-f", self.ssh / name).splitlines()
            public = next(" ".join(line.split()[:2]) for line in lines if line.startswith("ssh-"))
            prefixes = [f"{node} " for node in self.addresses()] if kind == "known_hosts" else [""]
            (home / ".ssh" / kind).write_text("".join(f"{prefix}{public}\n" for prefix in prefixes))
        # MPICH asks for no X11 (-x), which dbclient never offers.
        self.agent.write_text(f'#!/bin/sh\n[ "$1" = -x ] && shift\nexport HOME={home}\nexec dbclient -i {self.ssh}/user_key "$@"\n')
        self.agent.chmod(0o755)

    @property
    def agent(self):
        """The program that runs a command on a node, as ssh does."""
        return self.ssh / "agent"

    def _write_hosts(self):
        """The nodes by name: for all programs, for MPICH and for Open MPI."""
        lines = [f"{address} {name}" for name, address in self.addresses().items()]
        (self.base / "hosts").write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")
        nodes = [name for name in self.addresses() if name != HEAD]
        (self.base / "hosts.mpich").write_text("\n".join(nodes) + "\n")
        (self.base / "hosts.openmpi").write_text("".join(f"{name} slots=64\n" for name in nodes))

    def _make_cephfs(self, flags):
        """A CephFS that the nodes reach, and a mount of it on this machine as the nodes have it."""
        address = self.address(OF_THE_MACHINE)
        self._call_cephfs("up", "--address", address, *flags)
        self._call_cephfs("mount", self.shared, "--", COHERENT)

    def _call_cephfs(self, command, *words):
        done = subprocess.run([sys.executable, ROOT / "testbed" / "cephfs", command, "--base", self.ceph, *words], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Problem(f"testbed/cephfs {command} failed: see above")

    # --- nodes

    def of_shape(self):
        """What `up` was asked for, and which network it found."""
        if not self.shape.exists():
            raise self.no_bed()
        return json.loads(self.shape.read_text())

    def address(self, number):
        return f"10.213.{self.of_shape()['network']}.{number}"

    def addresses(self):
        """The addresses of all nodes, by name."""
        return {name: self.address(self._number(name)) for name in self.of_shape()["names"]}

    def _number(self, name):
        """The number of a node in the network."""
        if name not in self.of_shape()["names"]:
            raise Problem(f"there is no {name} in {self.base}; there are {', '.join(self.of_shape()['names'])}")
        return OF_THE_HEAD if name == HEAD else int(name.removeprefix("node"))

    def _link(self, name):
        """This machine's end of a node's network cable."""
        return f"swn{self.of_shape()['network']}.{self._number(name)}"

    def _init(self, name, must_run=True):
        """A node's first process."""
        self._number(name)
        found = [one for one in self.running() if one.name == name]
        if must_run and not found:
            raise Problem(f"{name} does not run; remedy: `start {name}`")
        return found[0] if found else None

    def _boot(self, name):
        """Starts a node. Its machine id and network card are those of its last boot."""
        own = self.base / name
        own.mkdir(exist_ok=True)
        (own / "ready").unlink(missing_ok=True)
        if not (own / "machine-id").exists():
            (own / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
        (own / "boot_id").write_text(f"{uuid.uuid4()}\n")
        shutil.copy(self.base / "hosts", own / "hosts")
        (own / "passwd").write_text(passwd(self.ssh / "home"))
        commands = self._commands(name)
        (own / "commands").write_text(json.dumps([[str(word) for word in words] for words in commands]))
        with open(own / "log", "ab") as log:
            words = ["unshare", *NAMESPACES, "--fork", sys.executable, HERE / "init.py", self.base, name]
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment_of_a_boot())
        self._connect_first(name)

    def _commands(self, name):
        """What a node runs."""
        commands = [["dropbear", "-E", "-s", "-r", self.ssh / "host_key", "-p", "22", "-P", "/run/dropbear.pid"]]
        if self.of_shape()["on"] == "cephfs":
            mount = ["ceph-fuse", "-c", self.ceph / "ceph.conf", "--id", "admin", self.shared, COHERENT]
            # The node was born with this machine's mount.
            commands += [["umount", "--lazy", self.shared], ["env", f"LD_PRELOAD={ROOT}/build/widefuse.so", *mount]]
        if self.of_shape()["slurm"]:
            commands += slurm.commands(self.slurm, name, name == HEAD)
        return commands

    def _connect_first(self, name):
        """Plugs a node that has just been started into the network."""
        if not wait_for(lambda: self._init(name, must_run=False)):
            raise Problem(f"{name} does not start: {self._log(name)}")
        pid, link, network, number = self._init(name).pid, self._link(name), self.of_shape()["network"], self._number(name)
        attempt("ip", "link", "del", link)  # of the former boot, which the kernel removes later
        card = ("name", "eth0", "address", f"02:73:77:00:{network:02x}:{number:02x}", "netns", pid)
        run("ip", "link", "add", link, "type", "veth", "peer", *card)
        run("ip", "link", "set", link, "master", bridge(network), "up")
        inside = ("nsenter", "--target", pid, "--net", "ip")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")

    def _wait_for(self, name):
        ready = self.base / name / "ready"
        for _ in range(WAITS_MAX):
            if wait_for(lambda: ready.exists() or not self._init(name, must_run=False)):
                break
            self.say(f"{name} is not ready yet")
        if not ready.exists():
            raise Problem(f"{name} does not start: {self._log(name)}")

    def _log(self, name):
        """The last lines that a node's daemons wrote."""
        return "\n".join((self.base / name / "log").read_text(errors="replace").splitlines()[-5:])

    def _slurm_is_up(self):
        done = subprocess.run([*self._inside(HEAD), "sinfo", "--noheader", "-o", "%T %n"], capture_output=True, text=True)
        return done.stdout.count("idle") == len(self.of_shape()["names"]) - 1

    # --- in use

    def settings(self):
        """The environment in which both MPIs start jobs over all nodes, by SSH."""
        settings = {
            "STRIPEWISE_NODES_SHARED": self.shared,
            "LD_PRELOAD": FINALIZE,
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": self.agent,
            "HYDRA_HOST_FILE": self.base / "hosts.mpich",
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": "eth0",
            "OMPI_ALLOW_RUN_AS_ROOT": 1,
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1,
            "OMPI_MCA_plm_rsh_agent": self.agent,
            "OMPI_MCA_orte_default_hostfile": self.base / "hosts.openmpi",
            "OMPI_MCA_rmaps_base_mapping_policy": "node",
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl": "self,vader,tcp",
            "OMPI_MCA_btl_tcp_if_include": "eth0",
            "OMPI_MCA_oob_tcp_if_include": "eth0",
        }
        return settings | ({"SLURM_CONF": slurm.conf(self.slurm)} if self.of_shape()["slurm"] else {})

    def environment(self):
        """Shell commands that set the environment."""
        return "\n".join(f"export {name}={value}" for name, value in self.settings().items())

    def _inside(self, name):
        """The command line that begins one for a node."""
        settings = [f"{key}={value}" for key, value in {"TMPDIR": "/run/tmp", **self.settings()}.items()]
        return ["nsenter", "--target", str(self._init(name).pid), *NAMESPACES, "env", f"--chdir={os.getcwd()}", *settings]

    def execute(self, name, words):
        """Becomes a command on a node."""
        words = [*self._inside(name), *words]
        os.execvp(words[0], words)

    def kill(self, name):
        """Kills a node like a power failure: the kernel kills all processes of its PID namespace."""
        beds.end([self._init(name)], signal.SIGKILL)

    def start(self, name):
        """Boots a node that was killed."""
        if self._init(name, must_run=False):
            raise Problem(f"{name} runs already")
        self._boot(name)
        self._wait_for(name)

    def connect(self, name, is_connected):
        """Cuts or heals a node's network."""
        self._init(name)
        run("ip", "link", "set", self._link(name), "up" if is_connected else "down")

    def evict(self, name):
        """The file system gives up the clients of a node."""
        self._call_cephfs("evict", name)

    def status(self):
        """The nodes and what runs on them, as text for people."""
        alive = {one.name: one for one in self.require()}
        lines = []
        for name, address in self.addresses().items():
            if name in alive:
                programs = run("nsenter", "--target", alive[name].pid, *NAMESPACES, "ps", "-e", "-o", "comm=").split()
                lines.append(f"{name}: {address}, {self._connection(name)}, runs {' '.join(sorted(set(programs) - {'ps'}))}")
            else:
                lines.append(f"{name}: {address}, does not run")
        return "\n".join([*lines, f"shared: {self.shared}, {self.of_shape()['on']}"])

    def _connection(self, name):
        return "connected" if "LOWER_UP" in run("ip", "link", "show", self._link(name)) else "cut off"

    # --- down

    def down(self):
        """Removes every part of the testbed that exists."""
        beds.end(self.running(), signal.SIGKILL)
        if self.ceph.exists():
            self._call_cephfs("down")
        if self.shape.exists() and (network := self.of_shape()["network"]) is not None:
            attempt("ip", "link", "del", bridge(network))
        self.remove()


def bridge(network):
    """The name of a network's switch."""
    return f"swn{network}"


def make_network():
    """Takes the first network that no testbed has; making the switch is what takes it."""
    for network in NETWORKS:
        if attempt("ip", "link", "add", bridge(network), "type", "bridge") == 0:
            run("ip", "addr", "add", f"10.213.{network}.{OF_THE_MACHINE}/24", "dev", bridge(network))
            run("ip", "link", "set", bridge(network), "up")
            return network
    raise Problem("no network can be made: `ip link add ... type bridge` fails, which needs root and a kernel with bridges")


def passwd(home):
    """/etc/passwd with another home directory of root, where dropbear looks for keys."""
    lines = Path("/etc/passwd").read_text().splitlines()
    return "".join(":".join([*fields[:5], str(home), *fields[6:]]) + "\n" if (fields := line.split(":"))[0] == "root" else line + "\n" for line in lines)


def environment_of_a_boot():
    """What a node's daemons inherit: nothing of the libraries and settings of who calls `up`."""
    return {"PATH": os.environ["PATH"], "HOME": "/root"}
