"""A parallel h5py program: all ranks write one file through MPI-IO, with collective and independent
calls, and check what the others wrote.

    mpirun -n 4 /usr/bin/python3 parallel_h5.py FILE
"""

import sys

import h5py
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 90, 37
comm = MPI.COMM_WORLD


def values(key):
    """The content of a dataset."""
    return np.arange(ROWS * COLUMNS, dtype="<i8").reshape(ROWS, COLUMNS) * 31 + key


def rows(rank):
    """The rows of a rank, in one piece; the last rank has the rest."""
    each = ROWS // comm.size
    return slice(rank * each, ROWS if rank == comm.size - 1 else (rank + 1) * each)


def columns(rank):
    """Every n-th column: many small pieces of the file."""
    return slice(rank, COLUMNS, comm.size)


def write(path):
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        file.attrs["ranks"] = comm.size
        collective = file.create_dataset("collective", (ROWS, COLUMNS), "<i8")
        independent = file.create_dataset("independent", (ROWS, COLUMNS), "<i8")
        chunked = file.create_dataset("group/chunked", (ROWS, COLUMNS), "<i8", chunks=(20, 16))
        with collective.collective:
            collective[:, columns(comm.rank)] = values(1)[:, columns(comm.rank)]
        for row in range(*rows(comm.rank).indices(ROWS)):
            independent[row] = values(2)[row]
        with chunked.collective:
            chunked[rows(comm.rank)] = values(3)[rows(comm.rank)]
    comm.Barrier()


def overwrite(path):
    """Opens the file again and changes a part that crosses the ranks' borders."""
    with h5py.File(path, "r+", driver="mpio", comm=comm) as file:
        with file["group/chunked"].collective:
            file["group/chunked"][:, columns(comm.rank)] = values(4)[:, columns(comm.rank)]
    comm.Barrier()


def is_right(path):
    """Whether this rank reads what the next one wrote."""
    other = (comm.rank + 1) % comm.size
    with h5py.File(path, "r", driver="mpio", comm=comm) as file:
        with file["collective"].collective:
            first = file["collective"][rows(other)]
        second = file["independent"][:, columns(other)]
        third = file["group/chunked"][rows(other)]
        expected = [values(1)[rows(other)], values(2)[:, columns(other)], values(4)[rows(other)]]
        return file.attrs["ranks"] == comm.size and all(map(np.array_equal, [first, second, third], expected))


def main():
    path = sys.argv[1]
    write(path)
    overwrite(path)
    wrong = comm.allreduce(not is_right(path))
    if comm.rank == 0:
        print(f"{comm.size} ranks, wrong: {wrong}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
