"""A plain program that writes until it is killed: writer.py DATA NOTES WRITER WRITERS SEED.

It knows nothing of stripewise. It notes the begin and the end of each operation with one write(2)
each to a file of its own.
"""

import os
import random
import sys

SLOT = 70_000  # covers two or three stripes
SLOTS = 12
RECORD = 900


def content(seed, size):
    """Bytes that are all nonzero."""
    return bytes(random.Random(seed).choices(range(1, 256), k=97)) * (size // 97 + 1)


def slot_bytes(seed):
    """The bytes of a slot of the shared file."""
    return content(seed, SLOT)[:SLOT]


def saved_bytes(seed):
    """The bytes of a saved file."""
    return content(seed, 300_000)[: 1000 + seed * 7919 % 290_000]


def record(seed):
    """A record of the log, filled with its own number."""
    return (b"<%016x>" % seed * RECORD)[:RECORD]


def write_all(fd, data):
    """Calls write(2) until everything is written."""
    while data:
        data = data[os.write(fd, data) :]


def pwrite_all(fd, data, offset):
    """Calls pwrite(2) until everything is written."""
    while data:
        count = os.pwrite(fd, data, offset)
        data, offset = data[count:], offset + count


def save(path, data):
    """Saves as editors do: writes and syncs the file under another name, then renames it."""
    fd = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    write_all(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(path + ".tmp", path)


def main():
    """Writes until the process is killed."""
    data, notes = sys.argv[1:3]
    writer, writers, seed = map(int, sys.argv[3:])
    rng = random.Random(seed * 1000 + writer)
    notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    shared = os.open(f"{data}/shared", os.O_RDWR | os.O_CREAT, 0o644)
    log = os.open(f"{data}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    number = 0
    while True:
        number += 1
        mark = (number * writers + writer) * 1000 + seed % 1000
        kind = rng.choice(["slot", "slot", "slot", "log", "log", "save", "sync"])
        slot = rng.randrange(SLOTS) * writers + writer
        os.write(notes, f"begin {kind} {mark} {slot}\n".encode())
        if kind == "slot":
            pwrite_all(shared, slot_bytes(mark), slot * SLOT)
        elif kind == "log":
            write_all(log, record(mark))
        elif kind == "save":
            save(f"{data}/own{writer}", saved_bytes(mark))
        else:
            os.fsync(shared)
        os.write(notes, b"end\n")


if __name__ == "__main__":
    main()
