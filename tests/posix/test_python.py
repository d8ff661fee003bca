"""CPython, NumPy and h5py."""

import pytest
from worlds import CYCLES, Worlds

IO = r"""
import io, mmap, os, shutil, sys
os.chdir(sys.argv[1])
with open("a", "wb") as f:
    f.write(bytes(range(256)) * 1000); f.seek(100); f.write(b"seek"); f.truncate(200000); f.seek(0, 2); f.write(b"end")
with open("a", "r+b", buffering=0) as f:
    print(f.read(10), f.seek(-3, 2), f.read(), os.fstat(f.fileno()).st_size)
with open("a", "ab") as f:
    f.write(b"appended"); print(f.tell())
print(os.path.getsize("a"), os.stat("a").st_size, os.lstat("a").st_size, os.path.isfile("a"))
shutil.copyfile("a", "b"); shutil.copy2("b", "c"); shutil.move("b", "d"); os.replace("c", "e")
print(open("a", "rb").read() == open("d", "rb").read() == open("e", "rb").read(), os.path.exists("b"))
with open("a", "r+b") as f:
    with mmap.mmap(f.fileno(), 0) as m:
        print(len(m), m[100:104], m.find(b"appended")); m[0:5] = b"mmap!"; m.flush()
    f.seek(0); print(f.read(8))
    with mmap.mmap(f.fileno(), 8192, access=mmap.ACCESS_COPY) as m: m[0:4] = b"copy"
    f.seek(0); print(f.read(4))
with open("text", "w") as f:
    for i in range(5000): print(i, "text", file=f)
with open("text") as f: print(sum(len(l) for l in f), f.tell())
fd = os.open("a", os.O_RDWR)
print(os.pread(fd, 5, 100), os.pwrite(fd, b"xyz", 7), os.preadv(fd, [bytearray(3)], 7), os.lseek(fd, 0, os.SEEK_END))
g = os.fdopen(os.dup(fd), "rb"); g.seek(5); print(g.read(6)); g.close(); os.ftruncate(fd, 50); print(os.fstat(fd).st_size)
os.posix_fallocate(fd, 0, 5000); print(os.fstat(fd).st_size); os.fsync(fd); os.fdatasync(fd); os.close(fd)
import subprocess
with open("sub", "wb") as f: subprocess.run(["sh", "-c", "echo out; echo err >&2"], stdout=f, stderr=f)
print(open("sub").read().split(), subprocess.check_output(["wc", "-c"], stdin=open("text")).strip())
import tempfile, pickle
with tempfile.NamedTemporaryFile(dir=".") as f: pickle.dump(list(range(10000)), f); f.flush(); print(len(pickle.load(open(f.name, "rb"))))
print(sorted(os.listdir(".")), [e.name for e in os.scandir(".") if e.stat().st_size > 100000] and "scanned")
os.remove("d"); os.utime("a", (1, 2)); print(os.stat("a").st_mtime); os.chmod("a", 0o600); print(oct(os.stat("a").st_mode))
"""

NUMPY = r"""
import sys, os, numpy as np
os.chdir(sys.argv[1])
a = np.arange(300000, dtype=np.float64).reshape(3000, 100)
a.tofile("raw"); np.save("a.npy", a); np.savez("a.npz", a=a, b=a[:7]); np.savetxt("a.txt", a[:50])
print((np.fromfile("raw", count=300000) == a.ravel()).all(), (np.load("a.npy") == a).all(), (np.load("a.npz")["b"] == a[:7]).all())
with open("raw", "rb") as f: f.seek(800); print(np.fromfile(f, count=3), f.tell())
with open("two", "wb") as f: a[:5].tofile(f); f.write(b"between"); a[5:9].tofile(f)
print(np.allclose(np.loadtxt("a.txt"), a[:50]), os.path.getsize("two"))
m = np.memmap("raw", dtype=np.float64, mode="r+", shape=(3000, 100)); m[7] = -1; m.flush(); del m
print(np.fromfile("raw")[700:702], np.load("a.npy", mmap_mode="r")[2999, 99])
n = np.memmap("new", dtype=np.int32, mode="w+", shape=(100000,)); n[:] = np.arange(100000); n.flush(); del n
print(np.fromfile("new", dtype=np.int32).sum())
"""

H5PY = r"""
import sys, os, numpy as np, h5py
os.chdir(sys.argv[1])
with h5py.File("f.h5", "w") as f:
    f["x"] = np.arange(100000.0)
    d = f.create_dataset("chunked", (1000, 300), chunks=(50, 50), compression="gzip", dtype="i4")
    d[...] = np.arange(300000).reshape(1000, 300)
    f.create_dataset("grows", (0, 10), maxshape=(None, 10), chunks=(100, 10))
    f["x"].attrs["unit"] = "metre"
with h5py.File("f.h5", "r+") as f:
    for i in range(20):
        g = f["grows"]; g.resize(g.shape[0] + 37, 0); g[-37:] = i
    f["chunked"][10:20, 5:250] = -1
    del f["x"]; f["y"] = np.ones((50, 50))
with h5py.File("f.h5", "r") as f:
    print(sorted(f), f["grows"][...].sum(), f["chunked"][...].sum(), f["y"][3, 3], f["grows"].shape)
with h5py.File("core.h5", "w", driver="core") as f: f["z"] = np.arange(1000)
with h5py.File("stdio.h5", "w", driver="stdio") as f: f["z"] = np.arange(100000)
with h5py.File("stdio.h5", "r", driver="stdio") as f: print(f["z"][...].sum())
with h5py.File("core.h5", "r") as f: print(f["z"][...].sum())
"""


SQLITE = r"""
import multiprocessing, os, sqlite3, sys
os.chdir(sys.argv[1])
def work(number):
    db = sqlite3.connect("db", timeout=1800)
    for i in range(20):
        with db: db.execute("insert into t values (?, ?)", (number * 100 + i, "x" * 700))
    db.close()
for mode in ["delete", "truncate"] + ["wal"] * (len(sys.argv) < 3):
    db = sqlite3.connect("db")
    print(db.execute("pragma journal_mode=" + mode).fetchone())
    db.execute("drop table if exists t"); db.execute("create table t (n integer primary key, s text)"); db.commit()
    with multiprocessing.Pool(4) as pool: pool.map(work, range(8))
    print(db.execute("select count(*), sum(n), sum(length(s)) from t").fetchone(), db.execute("pragma integrity_check").fetchone())
    db.execute("delete from t where n % 3 = 0"); db.commit(); db.execute("vacuum"); db.close()
print(sorted(os.listdir(".")))
"""


@pytest.mark.parametrize("name", ["io", "numpy", "h5py", "sqlite"])
def test_python(layouts, python, name):
    script = {"io": IO, "numpy": NUMPY, "h5py": H5PY, "sqlite": SQLITE}[name]
    if layouts.name in ("odd", "regions"):
        # Shared mappings need stripes of whole pages; another test below checks that others are
        # refused.
        script = script.split("with open(\"a\", \"r+b\") as f:\n    with mmap")[0] if name == "io" else script
        script = script.split("m = np.memmap")[0] if name == "numpy" else script
    without_maps = ["without wal"] if layouts.name in ("odd", "regions") else []
    layouts.both(lambda directory: [python, "-c", script, directory, *without_maps])


def test_shared_mappings_of_odd_stripes_are_refused(cluster, python):
    worlds = Worlds(cluster, CYCLES["odd"])
    script = """
import mmap, sys
with open(sys.argv[1], "w+b") as f:
    f.write(b"x" * 100000); f.flush()
    m = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE); print(m[99999:]); m.close()
    try: mmap.mmap(f.fileno(), 0)
    except OSError as error: print(error.strerror)
"""
    result = worlds.with_library(python, "-c", script, worlds.managed / "file")
    assert result.out == "b'x'\nNo such device\n"
