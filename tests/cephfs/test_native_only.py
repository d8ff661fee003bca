"""Native placement on a real CephFS: files and directories get CephFS's layouts, programs run
without stripewise, and the layouts are undone."""

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import testbeds

LAYOUT = "ceph.file.layout"


@pytest.fixture
def cluster_file(on_ceph):
    """A cluster.toml over the pools hdd and ssd, as a file for `plan` and as text for a plan."""
    service = "{ startup_s = 1e-3, per_byte_s = 1e-8 }"
    kinds = "\n".join(f"{op}.{how} = {service}" for op in ["read", "write"] for how in ["random", "sequential"])

    def text(prefix=""):
        classes = "".join(f"[{prefix}class.{name}]\n{kinds}\n" for name in ["hdd", "ssd"])
        tiers = "".join(
            f'[[{prefix}tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "cephfs"\nroot = "{on_ceph}/targets"\n'
            f'pool = "{name}"\ncount = 2\ncapacity_per_server = "1T"\n'
            for name in ["hdd", "ssd"]
        )
        return f"[{prefix}network]\nestablish_s = 0.0\nper_byte_s = 0.0\n{classes}{tiers}"

    return text


@pytest.fixture
def plan(on_ceph, cluster_file):
    """A plan with all files of data in stripes of 64 KiB over two HDD servers."""
    (on_ceph / "data").mkdir()
    path = on_ceph / "plan.toml"
    path.write_text(
        f'version = 1\nscheme = "given"\n[[rule]]\npattern = "{on_ceph}/data/**"\nscheme = "1-DH"\nreason = ""\n'
        f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "hdd/0-1:64K" }}]]\n' + cluster_file("cluster.")
    )
    return path


def layout(path):
    return os.getxattr(path, LAYOUT).decode()


def sums(directory):
    return {path.name: hashlib.blake2b(path.read_bytes()).digest() for path in sorted(directory.glob("*.dat"))}


def test_placed_killed_resumed_and_back(on_ceph, plan, stripewise, bin_dir):
    data = on_ceph / "data"
    for index in range(100):
        (data / f"f{index}.dat").write_bytes(os.urandom(4096 + 600 * index))
    with (data / "long.dat").open("wb") as file:
        file.writelines(os.urandom(1 << 20) for _ in range(100))
    (data / "f0.dat").chmod(0o640)
    os.setxattr(data / "f0.dat", "user.note", b"kept")
    before, first = layout(data / "f0.dat"), sums(data)
    for attempt in range(4):
        testbeds.killed([bin_dir / "stripewise", "place", "--native", "-q", plan], 0.5 + attempt)
        assert sums(data) == first, "whatever was killed, files are whole"
    stripewise("place", "--native", "-q", plan, timeout=300)
    assert sums(data) == first
    wanted = "stripe_unit=65536 stripe_count=2 object_size="
    assert all(layout(path).startswith(wanted) and layout(path).endswith("pool=hdd") for path in data.glob("*.dat"))
    assert (data / "f0.dat").stat().st_mode & 0o7777 == 0o640 and os.getxattr(data / "f0.dat", "user.note") == b"kept"
    left = sorted(path.name for path in data.glob(".stripewise*"))
    assert left == [".stripewise-native.toml"], "nothing is left over"
    (data / "new").write_bytes(b"inherits")
    assert layout(data / "new").startswith(wanted)
    stripewise("place", "--native", "--undo", "-q", plan, timeout=300)
    assert sums(data) == first and layout(data / "f0.dat") == before
    assert not list(data.glob(".stripewise*"))


def test_the_present_layout_is_what_cephfs_says(on_ceph, cluster_file, stripewise, tmp_path):
    data, trace, cluster = on_ceph / "data", tmp_path / "t", tmp_path / "cluster.toml"
    data.mkdir()
    cluster.write_text(cluster_file())
    stripewise("synth", "ior", "--procs", "2", "--transfer", "64K", "--total", "8M", "--file", data / "out", "-o", trace)

    def files():
        words = ["plan", trace, "-c", cluster, "-o", tmp_path / "plan.toml", "--native", "--json"]
        (files,) = stripewise(*words).json()["files"]
        return files

    first = files()["first"]
    os.setxattr(data, "ceph.dir.layout", b"stripe_unit=131072 stripe_count=1 object_size=4194304 pool=hdd")
    name = files()["present"]["name"]
    stripes = re.fullmatch(r"as they are now: (hdd/[01](?:-1)?:4M ?)+(, ...)?", name)
    assert stripes, f"the directory hands it down: {name}"
    with open(first, "wb"):
        os.setxattr(first, LAYOUT, b"stripe_unit=65536 stripe_count=2 object_size=65536 pool=ssd")
    name = files()["present"]["name"]
    assert re.match(r"as they are now: ssd/[01](-1)?:64K ", name), f"the file has another one: {name}"


def test_every_object_is_on_the_osd_that_ceph_maps_it_to(bed, on_ceph, stripewise, tmp_path):
    """The cluster names the OSDs one by one, and the file is in a pool over all of them."""
    data, trace, cluster = on_ceph / "data", tmp_path / "t", tmp_path / "cluster.toml"
    data.mkdir()
    service = "{ startup_s = 1e-3, per_byte_s = 1e-8 }"
    kinds = "\n".join(f"{op}.{how} = {service}" for op in ["read", "write"] for how in ["random", "sequential"])
    acting = lambda pool, name: bed.ceph("osd", "map", pool, name)["acting_primary"]
    osds = [name for name in bed.ceph("osd", "pool", "ls") if re.fullmatch(r"hdd\d+", name)]
    cluster.write_text(
        f'[network]\nestablish_s = 0.0\nper_byte_s = 0.0\n[class.hdd]\n{kinds}\n[[tier]]\nname = "hdd"\n'
        f'class = "hdd"\ndriver = "cephfs"\nroot = "{on_ceph}/targets"\nservers = {json.dumps(osds)}\n'
        'capacity_per_server = "1T"\n'
    )
    os.setxattr(data, "ceph.dir.layout", b"stripe_unit=1048576 stripe_count=1 object_size=1048576 pool=hdd")
    stripewise("synth", "ior", "--procs", "1", "--transfer", "1M", "--total", "15M", "--file", data / "out", "-o", trace)

    def files():
        words = ["plan", trace, "-c", cluster, "-o", tmp_path / "plan.toml", "--json"]
        (files,) = stripewise(*words).json()["files"]
        return files

    file = Path(files()["first"])
    file.write_bytes(bytes(15 << 20))
    inode = file.stat().st_ino
    alone = {acting(name, "any"): index for index, name in enumerate(osds)}
    expected = [alone[acting("hdd", f"{inode:x}.{index:08x}")] for index in range(15)]
    words = files()["present"]["name"].removeprefix("as they are now: ").removesuffix(", ...").split()
    got = []
    for word in words:
        first, last = re.fullmatch(r"hdd/(\d+)(?:-(\d+))?:1M", word).groups()
        got += range(int(first), int(last or first) + 1)
    assert got == expected and len(set(got)) > 1


def test_a_long_file_goes_on_where_it_was_killed_and_that_is_said(on_ceph, plan, stripewise, bin_dir):
    data = on_ceph / "data"
    with (data / "long.dat").open("wb") as file:
        file.writelines(os.urandom(1 << 20) for _ in range(400))
    first = sums(data)
    process = subprocess.Popen([bin_dir / "stripewise", "place", "--native", "-q", plan])
    # The journal has a line for each chunk of 64 MiB.
    noted = lambda: any("chunk 0" in path.read_text() or "chunk 1" in path.read_text() for path in data.glob("*.journal"))
    while process.poll() is None and not noted():
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert noted(), "it was over before it was killed"
    said = stripewise("place", "--native", plan, timeout=300).err
    assert "long.dat: goes on where an earlier run was, at " in said and " of 400" in said, said
    assert sums(data) == first and not list(data.glob("*.journal"))


def test_undo_gives_back_lengths_of_objects_too(on_ceph, plan, stripewise):
    """A directory and a file in it with layouts of their own, and a file that inherits."""
    data = on_ceph / "data"
    own, other = (f"stripe_unit=65536 stripe_count=2 object_size={size} pool=hdd" for size in [4 << 20, 8 << 20])
    os.setxattr(data, "ceph.dir.layout", own.encode())
    (data / "other.dat").touch()
    os.setxattr(data / "other.dat", LAYOUT, other.encode())
    (data / "deeper").mkdir()
    names = ["first.dat", "other.dat", "deeper/third.dat"]
    for name in names:
        (data / name).write_bytes(os.urandom(100_000))
    before, first = {name: layout(data / name) for name in names}, {name: (data / name).read_bytes() for name in names}
    assert before == {"first.dat": own, "other.dat": other, "deeper/third.dat": own}
    # The plan's layout except for the object size of other.dat, which alone is rewritten.
    inode = os.stat(data / "first.dat").st_ino
    stripewise("place", "--native", "-q", plan)
    assert {name: layout(data / name) for name in names} == dict.fromkeys(names, own)
    assert os.stat(data / "first.dat").st_ino == inode
    stripewise("place", "--native", "--undo", "-q", plan)
    assert {name: layout(data / name) for name in names} == before
    # A stripe that none of them has.
    plan.write_text(plan.read_text().replace("hdd/0-1:64K", "hdd/0-1:128K"))
    stripewise("place", "--native", "-q", plan)
    assert all("stripe_unit=131072" in layout(data / name) for name in names)
    stripewise("place", "--native", "--undo", "-q", plan)
    assert {name: layout(data / name) for name in names} == before
    assert {name: (data / name).read_bytes() for name in names} == first
    assert os.getxattr(data, "ceph.dir.layout").decode() == own
    with pytest.raises(OSError):
        os.getxattr(data / "deeper", "ceph.dir.layout")
    assert not list(data.rglob(".stripewise*"))


def test_a_program_without_stripewise_before_and_after(on_ceph, cluster_file, stripewise):
    """trace, plan --native, place --native, trace, report: the whole workflow without
    preloading."""
    data, cluster = on_ceph / "data", on_ceph / "cluster.toml"
    data.mkdir()
    cluster.write_text(cluster_file())
    program = ["dd", f"if={data}/input", f"of={data}/output", "bs=1M", "status=none", "conv=fsync"]
    (data / "input").write_bytes(os.urandom(16 << 20))
    traces = [on_ceph / "before.trace", on_ceph / "after.trace"]
    stripewise("trace", "-o", traces[0], "--", *program)
    plan = on_ceph / "plan.toml"
    stripewise("plan", traces[0], "-c", cluster, "--native", "--min-gain", "none", "-o", plan)
    stripewise("place", "--native", "-q", plan)
    stripewise("trace", "-o", traces[1], "--", *program)
    assert (data / "output").read_bytes() == (data / "input").read_bytes()
    page = on_ceph / "report.html"
    said = stripewise("report", "--before", traces[0], "-t", traces[1], "-p", plan, "-o", page, "--json").json()
    assert said["compared"]["before_s"] > 0 and len(said["compared"]["phases"]) >= 2
    assert "Before and after" in page.read_text()
