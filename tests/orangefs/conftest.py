"""A mounted OrangeFS, and clusters on it. `make test-orangefs` sets the environment:
STRIPEWISE_ORANGEFS is the mount, and the variables of `testbed/orangefs env` lead to its tools.
Without it these tests are skipped."""

import os
import subprocess
from pathlib import Path

import pytest
import testbeds
from conftest import run_command

MOUNT = os.environ.get("STRIPEWISE_ORANGEFS")
HINTS = ("dist_name", "dist_params", "layout", "server_list", "num_dfiles")
# Seconds of a request: of a slow class and of one that is three times as fast.
CLASSES = {"hdd": "startup_s = 3e-4, per_byte_s = 8e-8", "ssd": "startup_s = 1e-4, per_byte_s = 2e-8"}


class Bed(testbeds.Bed):
    """The running testbed."""

    name = "orangefs"

    def bytes(self, file):
        """The bytes of a file's contents on each server that has some, by address."""
        return {server: count for server, count in self("bytes", file).json().items() if count}

    def servers(self):
        """The servers' addresses."""
        return list(self("bytes").json())


@pytest.fixture(scope="session")
def bed():
    if not MOUNT:
        pytest.skip("no OrangeFS: `make test-orangefs ORANGEFS=DIR` brings one up")
    return Bed(Path(MOUNT).parent, Path(MOUNT))


@pytest.fixture
def top(bed, tmp_path):
    """A directory on the mount."""
    with testbeds.directory_of(bed.mount / tmp_path.name) as directory:
        yield directory


@pytest.fixture
def cluster(bed, top):
    """A cluster.toml with half of the servers in each class, and an empty directory `data`. Returns
    the text for a file (no prefix) or for a plan (`cluster.`)."""
    (top / "data").mkdir()
    servers = bed.servers()
    halves = {"hdd": servers[: len(servers) // 2], "ssd": servers[len(servers) // 2 :]}
    kinds = [f"{op}.{how}" for op in ("read", "write") for how in ("random", "sequential")]

    def text(prefix=""):
        lines = [f"[{prefix}network]\nestablish_s = 0.0\nper_byte_s = 0.0"]
        for name, service in CLASSES.items():
            lines += [f"[{prefix}class.{name}]", *(f"{kind} = {{ {service} }}" for kind in kinds)]
        for name, addresses in halves.items():
            listed = ", ".join(f'"{address}"' for address in addresses)
            lines.append(
                f'[[{prefix}tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "orangefs"\nroot = "{top}/targets"\n'
                f'servers = [{listed}]\ncapacity_per_server = "1T"'
            )
        return "\n".join(lines) + "\n"

    text.halves = halves
    return text


def tool(*words):
    """The output of a tool of OrangeFS; None where it fails."""
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def hints(directory):
    """The hints on a directory that are not empty."""
    said = {hint: tool("pvfs2-xattr", "-t", "-k", f"user.pvfs2.{hint}", directory) for hint in HINTS}
    values = {hint: text.split('Value : "')[1].rstrip('"\n') for hint, text in said.items() if text}
    return {hint: value for hint, value in values.items() if value}


def set_hints(directory, **values):
    for hint, value in values.items():
        run_command("pvfs2-xattr", "-s", "-k", f"user.pvfs2.{hint}", "-v", value, directory)


def layout_of(file):
    """(distribution, its parameters, the servers) of a file."""
    lines = tool("pvfs2-viewdist", "-f", file).splitlines()
    servers = [line.split(" - ")[1].split(",")[0] for line in lines if line.startswith("Datafile")]
    return lines[0].removeprefix("dist_name = "), lines[2], servers
