"""Plans for clusters of thousands of servers: memory and output are bounded, and the plan is usable."""

import os
import subprocess
from dataclasses import dataclass

import pytest
from conftest import LONG, run_command

SERVERS = 10_000 if LONG else 3_000
MIB = 1 << 20
# Startup (random; sequential is a quarter) and seconds per byte of each class.
CLASSES = {"hdd": (3e-3, 8e-9), "ssd": (1e-4, 2.4e-9)}


@dataclass
class Measured:
    out: str
    memory: int


def cluster_text(root):
    """Half of the servers are slow, half are fast; none of them exists."""
    text = "[network]\nestablish_s = 2e-5\nper_byte_s = 8e-10\n"
    for name, (startup_s, per_byte_s) in CLASSES.items():
        service = "{{ startup_s = {}, per_byte_s = {} }}"
        random, sequential = service.format(startup_s, per_byte_s), service.format(startup_s / 4, per_byte_s)
        by_access = f"{{ random = {random}, sequential = {sequential} }}"
        servers = ", ".join(f'"{root}/{name}{index}"' for index in range(SERVERS // 2))
        text += f"[class.{name}]\nread = {by_access}\nwrite = {by_access}\n"
        text += f'[[tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "dirs"\nservers = [{servers}]\n'
        text += 'capacity_per_server = "10T"\n'
    return text


@pytest.fixture
def measure(tmp_path, bin_dir):
    """Plans the requests that `stripewise synth ior` makes from some arguments, and measures that."""
    cluster, trace, plan = tmp_path / "cluster.toml", tmp_path / "t.trace", tmp_path / "plan.toml"
    cluster.write_text(cluster_text(tmp_path))

    def measure(synth, *options):
        run_command(bin_dir / "stripewise", "synth", "ior", *synth, "--file", "/data/f", "-o", trace)
        command = [bin_dir / "stripewise", "plan", trace, "-c", cluster, "-o", plan, *options]
        with open(tmp_path / "out", "w+") as out:
            process = subprocess.Popen([str(word) for word in command], stdout=out)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            out.seek(0)
            return Measured(out.read(), usage.ru_maxrss * 1024)

    return measure


SHARED = ["--procs", 32, "--transfer", "1M", "--total", "1G", "--access", "random", "--shared"]
PRIVATE = ["--procs", 64, "--transfer", "1M", "--total", "1G"]


@pytest.mark.parametrize("synth", [SHARED, PRIVATE], ids=["shared", "private"])
def test_memory_and_output_do_not_grow_with_the_square_of_the_servers(measure, synth):
    found = measure(synth)
    assert found.memory < 400 * MIB, f"{found.memory / MIB:.0f} MiB"
    assert len(found.out.splitlines()) <= 24
    assert "planned layout" in found.out


def test_all_candidates_as_json_are_small(measure):
    found = measure(SHARED, "--json", "--candidates")
    assert len(found.out) < 32 * MIB
    assert found.memory < 800 * MIB, f"{found.memory / MIB:.0f} MiB"
    assert f'"hdd/0-{SERVERS // 2 - 1}"' in found.out, "neighbors in a long cycle are joined"


def test_a_cache_over_many_servers(measure):
    found = measure(SHARED, "--scheme", "cache", "--min-gain", "none")
    assert found.memory < 800 * MIB, f"{found.memory / MIB:.0f} MiB"
    assert "cache over" in found.out
