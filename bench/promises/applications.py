"""The six programs. Each can be repeated: it reads files that exist, or writes its files anew."""

import sys
from dataclasses import dataclass, replace

from commands import Command, ior
from sizes import KIB, MIB, human

# Reads two tables by several threads, and writes the means of their rows to a third one.
PARQUET = """
import sys, numpy, pyarrow, pyarrow.parquet as parquet
op, path, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = [f"{path}.{number}.parquet" for number in range(2)]
columns = [f"c{number}" for number in range(8)]
if op == "write":
    for number, name in enumerate(names):
        values = numpy.random.default_rng(number).random((8, rows))
        parquet.write_table(pyarrow.table(dict(zip(columns, values))), name, compression="none", row_group_size=rows // 4)
else:
    means = [numpy.mean([table[column] for column in columns], axis=0) for table in map(parquet.read_table, names)]
    assert all(abs(mean.mean() - 0.5) < 0.01 for mean in means)
    parquet.write_table(pyarrow.table({"mean": numpy.concatenate(means)}), f"{path}.means.parquet")
"""
ROW_BYTES = 64


@dataclass(frozen=True)
class Parquet:
    """A Python program with pyarrow, and the number of rows of its tables."""

    rows: int
    op: str = "read"

    def words(self, _, data, direct):
        assert not direct
        return [sys.executable, "-c", PARQUET, self.op, data / "table", self.rows]

    def maker(self):
        return replace(self, op="write")

    def shown(self):
        return f"python -c ... (reads 2 tables of {human(ROW_BYTES * self.rows)}, writes the means of their rows)"


def commands(scale):
    """The programs by name, with `scale` times the data of the smallest files."""
    shared = ("--api", "posix", "--access", "random")
    own = ("--api", "posix", "--file-per-process", "--fsync")
    fio = ("--rw=randread", "--bs=16k", f"--size={16 * scale}m", f"--io_size={2 * scale}m")
    return {
        "IOR shared": ior("ior", "read", 64 * KIB, 4 * MIB * scale, *shared),
        "IOR own files": ior("own", "write", MIB, 8 * MIB * scale, *own),
        "BT-IO": Command("btio", "btio", "both", ("--class", "A", "--steps", str(10 * scale), "--fsync")),
        "h5py": Command("h5", "d.h5", "read", ("--total", human(4 * MIB * scale), "--block", "256K", "--access", "random")),
        "fio": Command("fio", "fio", "read", fio),
        "Parquet": Parquet(rows=8 * MIB // ROW_BYTES * scale),
    }


NAMES = list(commands(1))
