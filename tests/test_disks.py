"""Throttled real disks (testbed/disks): they take the configured time, a request of a program is
one request of a disk, and nothing is left behind."""

import json
import mmap
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from conftest import BUILD, HANGS_S, ROOT

DISKS, RANDOM_US, SEQUENTIAL_US, MIB_PER_S = 2, 2000.0, 500.0, 10.0
PROGRAM = [sys.executable, ROOT / "testbed" / "disks"]
THROTTLED_DISK = BUILD / "throttled-disk"


def disks(*words, ok=True):
    """python3 testbed/disks WORDS... -> (exit code, stdout, stderr)"""
    done = subprocess.run([str(word) for word in [*PROGRAM, *words]], capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert not ok or done.returncode == 0, done.stderr
    return done.returncode, done.stdout, done.stderr


def why_not():
    """Why throttled disks are not possible here; None if they are."""
    if os.geteuid() != 0:
        return "needs root"
    for path, remedy in ((THROTTLED_DISK, "make throttled-disk"), ("/dev/fuse", "a kernel with FUSE"), ("/dev/loop-control", "loop devices")):
        if not os.path.exists(path):
            return f"needs {path} ({remedy})"
    return None


def up(count):
    """Creates disks. Returns (directory, {name: mount point}); only `down` removes them."""
    if reason := why_not():
        pytest.skip(f"throttled disks: {reason}")
    directory = Path(tempfile.mkdtemp(prefix="stripewise-disks-"))
    speed = f"{RANDOM_US}:{SEQUENTIAL_US}:{MIB_PER_S}"
    words = ["--dir", directory, "--hdds", count, "--ssds", 0, "--hdd", speed, "--size-mib", 128, "--throttled-disk", THROTTLED_DISK]
    code, out, err = disks("up", *words, ok=False)
    if code != 0 and ("Operation not permitted" in err or "losetup" in err):
        directory.rmdir()
        pytest.skip(f"throttled disks: not permitted here: {err.strip()}")
    assert code == 0, err
    return directory, json.loads(out)


def down(directory):
    """Removes disks; nothing of them is left."""
    devices = json.loads((directory / "made.json").read_text())["loops"].values()
    disks("down", "--dir", directory)
    assert not directory.exists() and str(directory) not in Path("/proc/mounts").read_text()
    for device in devices:
        assert not (Path("/sys/block") / Path(device).name / "loop" / "backing_file").exists()


@pytest.fixture(scope="module")
def bed():
    """{name: mount point} of two disks."""
    made = up(DISKS)
    yield made
    down(made[0])


def counts(bed):
    """The counters of all disks, summed up."""
    lines = [json.loads(line) for line in disks("status", "--dir", bed[0])[1].splitlines()]
    assert len(lines) == DISKS
    return {key: sum(line[key] for line in lines) for key in lines[0] if key != "disk"}


def changes(bed, action):
    """The change of the counters caused by the action."""
    before = counts(bed)
    action()
    return {key: value - before[key] for key, value in counts(bed).items()}


def prepared(bed, size):
    """A file on the first disk, written back, and opened for direct I/O."""
    path = Path(bed[1]["hdd0"]) / "file"
    path.write_bytes(os.urandom(size))
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    # Syncs the whole file system. Otherwise the kernel's later write-back would be counted, too.
    subprocess.run(["sync", "--file-system", path], check=True, timeout=HANGS_S)
    return fd


@pytest.mark.parametrize("size", [4 << 10, 64 << 10, 1 << 20])
@pytest.mark.parametrize("op", ["read", "write"])
def test_a_request_takes_startup_and_transfer(bed, size, op):
    memory = mmap.mmap(-1, size)
    slots = 8 if size == 1 << 20 else 64
    fd = prepared(bed, slots * size)
    order = list(range(0, slots, 2))
    random.Random(1).shuffle(order)

    def access():
        for slot in order:
            call = os.preadv if op == "read" else os.pwritev
            assert call(fd, [memory], slot * size) == size

    done = changes(bed, access)
    os.close(fd)
    expected_s = len(order) * (RANDOM_US / 1e6 + size / (MIB_PER_S * (1 << 20)))
    assert done[f"{op}s"] == pytest.approx(len(order), abs=2), done
    assert done["busy_ns"] / 1e9 == pytest.approx(expected_s, rel=0.1), done


def test_in_order_it_takes_less(bed):
    size, slots = 16 << 10, 64
    memory = mmap.mmap(-1, size)
    fd = prepared(bed, slots * size)
    done = changes(bed, lambda: [os.preadv(fd, [memory], slot * size) for slot in range(slots)])
    os.close(fd)
    assert done["sequential"] >= 0.9 * slots, done
    expected_s = slots * (SEQUENTIAL_US / 1e6 + size / (MIB_PER_S * (1 << 20)))
    assert done["busy_ns"] / 1e9 == pytest.approx(expected_s, rel=0.1), done


def test_what_the_kernel_cuts_is_one_request(bed):
    size = 4 << 20
    memory = mmap.mmap(-1, size)
    fd = prepared(bed, size)
    # A disk that has served all its requests cannot tell a cut request from separate ones: on a
    # busy machine the next piece may come too late.
    for _ in range(100):
        done = changes(bed, lambda: os.preadv(fd, [memory], 0))
        if done["reads"] == 1:
            break
    os.close(fd)
    assert (done["read_bytes"], done["reads"]) == (size, 1), done
    assert done["continued"] >= 3, done
    assert done["busy_ns"] / 1e9 == pytest.approx(RANDOM_US / 1e6 + size / (MIB_PER_S * (1 << 20)), rel=0.01)


def test_requests_side_by_side_are_not_taken_for_one_that_was_cut(bed):
    size, slots = 16 << 10, 24
    fd = prepared(bed, slots * size)
    memories = [mmap.mmap(-1, size) for _ in range(slots)]

    def write_all():
        threads = [threading.Thread(target=os.pwritev, args=(fd, [memories[slot]], slot * size)) for slot in range(slots)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    done = changes(bed, write_all)
    os.close(fd)
    assert (done["writes"], done["continued"]) == (pytest.approx(slots, abs=2), 0), done


def test_a_program_over_layouts_on_them(bed, stripewise, bin_dir, workloads, execute, tmp_path):
    targets = [f"{mount}/target" for mount in bed[1].values()]
    for target in targets:
        Path(target).mkdir()
    service = "{ startup_s = 2e-3, per_byte_s = 9.5e-8 }"
    keys = [f"{op}.{access} = {service}" for op in ("read", "write") for access in ("random", "sequential")]
    tier = f'[[tier]]\nname = "hdd"\nclass = "hdd"\ndriver = "dirs"\nservers = {json.dumps(targets)}\ncapacity_per_server = "64M"'
    (tmp_path / "cluster.toml").write_text("\n".join(["[class.hdd]", *keys, tier]) + "\n")
    plan, file = tmp_path / "plan.toml", tmp_path / "data"
    shape = ["--transfer", "64K", "--block", "1M", "--access", "random"]
    synth = ["synth", "ior", *shape, "--procs", 2, "--op", "write", "--shared", "--file", file, "-o", tmp_path / "trace"]
    stripewise(*synth)
    stripewise("plan", tmp_path / "trace", "-c", tmp_path / "cluster.toml", "--scheme", "1-DH", "--min-gain", "none", "-o", plan)

    def ior(*words):
        command = ["mpirun.openmpi", "-n", 2, workloads / "openmpi" / "ior", "--file", file, *shape, "--json", *words]
        return execute(bin_dir / "stripewise", "run", "-p", plan, "--", *command).json()

    ior("--op", "write", "--seed", 7)
    os.sync()
    results = []
    done = changes(bed, lambda: results.append(ior("--api", "direct", "--op", "both", "--verify")))
    assert (results[0]["verified_bytes"], results[0]["wrong_bytes"]) == (2 << 20, 0)
    # Each disk gets half of each of the 32 requests, in one piece; the halves of the two processes
    # may be adjacent. A few more requests are for directories and inodes.
    assert 2 * 64 <= done["reads"] + done["writes"] + done["continued"] <= 2 * 64 + 16, done
    assert (done["written_bytes"], done["read_bytes"]) == (pytest.approx(2 << 20, rel=0.05), pytest.approx(2 << 20, rel=0.05))
    stripewise("rm", file)


def test_what_it_cannot_do_is_said(bed):
    code, _, err = disks("up", "--dir", bed[0], "--throttled-disk", THROTTLED_DISK, ok=False)
    assert code == 1 and "down" in err and err.count("\n") == 1
    elsewhere = ["--dir", f"{bed[0]}-other", "--throttled-disk", "/nowhere/throttled-disk"]
    code, _, err = disks("up", *elsewhere, ok=False)
    assert code == 1 and "make throttled-disk" in err and not os.path.exists(f"{bed[0]}-other")


def test_down_removes_disks_whose_server_was_killed():
    directory, mounts = up(1)
    (Path(mounts["hdd0"]) / "file").write_bytes(b"lost with its disk")
    assert subprocess.run(["pkill", "--signal", "KILL", "--full", f"{THROTTLED_DISK} {directory}/fuse"], check=False).returncode == 0
    assert disks("status", "--dir", directory)[1] == "no disks\n"
    down(directory)
