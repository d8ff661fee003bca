"""Programs on CephFS, without the library and over its layouts: the same results, the same bytes.
"""

import hashlib
from dataclasses import dataclass

import copies
import pytest
from conftest import LONG, Mpi

IOR = ["--transfer", "64K", "--block", "512K"]
HPIO = ["--regions", 9, "--region-size", 5000, "--spacing", 700]
TILE = ["--tiles-x", 2, "--tiles-y", 2, "--elements-x", 20, "--elements-y", 30, "--element-size", 500, "--overlap-x", 1]
BTIO = ["--grid", 18, "--steps", 10]

H5PY = """
import os, sys, numpy as np, h5py
os.chdir(sys.argv[1])
with h5py.File("f", "w") as f:
    f["x"] = np.arange(100000.0)
    f.create_dataset("chunked", (300, 300), chunks=(50, 50), dtype="i4")[...] = np.arange(90000).reshape(300, 300)
    f.create_dataset("grows", (0, 10), maxshape=(None, 10), chunks=(100, 10))
with h5py.File("f", "r+") as f:
    for i in range(20):
        g = f["grows"]; g.resize(g.shape[0] + 37, 0); g[-37:] = i
    f["chunked"][10:20, 5:250] = -1
with h5py.File("f", "r") as f: print(sorted(f), f["grows"][...].sum(), f["chunked"][...].sum(), f["x"][777])
"""
PYTHON = """
import mmap, os, sys
os.chdir(sys.argv[1])
with open("f.tmp", "wb") as f: f.write(bytes(range(256)) * 3000); f.seek(100); f.write(b"seek"); f.truncate(600000); f.seek(0, 2); f.write(b"end")
os.rename("f.tmp", "f")
with open("f", "ab") as f: f.write(b"appended"); print(f.tell())
with open("f", "r+b") as f:
    with mmap.mmap(f.fileno(), 0) as m: print(len(m), m[100:104], m.find(b"appended")); m[4096:4101] = b"mmap!"; m.flush()
    f.seek(4096); print(f.read(8))
fd = os.open("f", os.O_RDWR)
print(os.pread(fd, 5, 100), os.pwrite(fd, b"xyz", 70000), os.preadv(fd, [bytearray(3)], 70000), os.lseek(fd, 0, os.SEEK_END))
os.fsync(fd); print(os.fstat(fd).st_size, os.stat("f").st_size); os.close(fd)
"""


@dataclass(frozen=True)
class Program:
    """Creates the file "f" in a directory, and fails if it reads other bytes there than it wrote.
    """

    kind: str
    words: list

    def command(self, mpi, directory, python):
        file = directory / "f"
        if self.kind == "python":
            return [python, "-c", *self.words, directory]
        if self.kind == "fio":
            common = ["fio", "--name=job", f"--filename={file}", "--size=4m", "--verify=crc32c", "--randseed=7", "--verify_fatal=1"]
            return [*common, "--verify_state_save=0", *self.words]
        return mpi.command(4, self.kind, "--file", file, *self.words, "--verify")


MPI_PROGRAMS = {
    "ior": Program("ior", [*IOR, "--access", "random"]),
    "ior collective": Program("ior", [*IOR, "--access", "strided", "--call", "all", "--fsync"]),
    "ior posix": Program("ior", [*IOR, "--api", "direct", "--access", "strided"]),
    "hpio": Program("hpio", [*HPIO, "--interleaved", "--collective"]),
    "tile": Program("tile", TILE),
    "btio": Program("btio", BTIO),
}
OTHERS = {
    "h5py": Program("python", [H5PY]),
    "python": Program("python", [PYTHON]),
    "fio": Program("fio", ["--ioengine=psync", "--rw=randrw", "--bsrange=4k-256k"]),
    "fio libaio": Program("fio", ["--ioengine=libaio", "--iodepth=16", "--direct=1", "--rw=randwrite", "--bs=64k"]),
    "fio mmap": Program("fio", ["--ioengine=mmap", "--rw=write", "--bs=64k"]),
}
PROGRAMS = [(name, mpi) for name in MPI_PROGRAMS for mpi in ("mpich", "openmpi")] + [(name, "") for name in OTHERS]
WITH_COPIES = [("ior", "mpich"), ("ior collective", "openmpi"), ("btio", "mpich"), ("h5py", ""), ("python", ""), ("fio", "")]
# Once files are placed it makes no difference what placed them, so only a few programs run with the
# driver.
PLACED = ("btio", "h5py")


def with_drivers(*parameters):
    """The parameters with each driver; the last two are (name, MPI)."""
    return [("dirs", *row) for row in parameters] + [("cephfs", *row) for row in parameters if LONG or row[-2] in PLACED]


# Two regions, as PSA makes them. The stripes are no multiples of CephFS's.
TWO_PARTS = '[{ end = "600K", cycle = "hdd/0-3:4K ssd/0-3:12K" }, { cycle = "hdd/0-3:16K" }]'


def plan_of(cluster, kind):
    """A plan for all files in cluster.data: striped, with replicas, or cached."""
    if kind != "striped":
        copies.write_plan(cluster, kind, capacity="256K")
        return
    rule = f'pattern = "{cluster.data}/**"\nscheme = "PSA"\nreason = ""\npredicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [{TWO_PARTS}]\n'
    tables = cluster.text().replace("[network]", "[cluster.network]").replace("[class.", "[cluster.class.")
    cluster.plan.write_text(f'version = 1\nscheme = "psa"\n[[rule]]\n{rule}' + tables.replace("[[tier]]", "[[cluster.tier]]"))


def digest(path):
    """A digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_both(cluster, stripewise, program, mpi, python, execute):
    """Runs the program in a plain directory of the CephFS and over the plan: same output, same
    bytes. Returns the file's digest."""
    plain = cluster.root / "plain"
    plain.mkdir()
    without = execute(*program.command(mpi, plain, python))
    over = cluster.run(*program.command(mpi, cluster.data, python))
    if program.kind == "python":
        assert over.out == without.out and without.out
    copy = cluster.root / "copy"
    stripewise("cp", cluster.data / "f", copy)
    # fio's verification headers contain the time, which differs between runs.
    assert digest(copy) == digest(plain / "f") or program.kind == "fio"
    assert copy.stat().st_size == (plain / "f").stat().st_size
    assert (cluster.data / "f").read_bytes().startswith(b"stripewise file"), "not managed"
    assert stripewise("fsck", "-p", cluster.plan, cluster.data, "--json").json()["findings"] == []
    return digest(copy)


@pytest.mark.parametrize(("cluster", "name", "mpi"), with_drivers(*PROGRAMS), indirect=["cluster"])
def test_striped(cluster, stripewise, workloads, python, execute, name, mpi):
    plan_of(cluster, "striped")
    stripewise("place", cluster.plan)
    run_both(cluster, stripewise, {**MPI_PROGRAMS, **OTHERS}[name], Mpi(mpi, workloads), python, execute)
    holding = {target["name"][:3] for target in copies.status(stripewise, cluster.data / "f")["targets"] if target["bytes"]}
    assert holding == {"hdd", "ssd"}


ALL_COPIES = [(kind, *row) for kind in copies.KINDS for row in WITH_COPIES]


@pytest.mark.parametrize(("cluster", "kind", "name", "mpi"), with_drivers(*ALL_COPIES), indirect=["cluster"])
def test_with_copies(cluster, stripewise, workloads, python, execute, kind, name, mpi):
    """The original in the pools of the HDDs, copies of another layout in those of the SSDs."""
    plan_of(cluster, kind)
    stripewise("place", cluster.plan)
    written = run_both(cluster, stripewise, {**MPI_PROGRAMS, **OTHERS}[name], Mpi(mpi, workloads), python, execute)
    assert any(copy["valid_bytes"] for copy in copies.status(stripewise, cluster.data / "f")["copies"][1:])
    stripewise("drain", cluster.data / "f")
    stripewise("export", cluster.data / "f")
    assert digest(cluster.data / "f") == written
