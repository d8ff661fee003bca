"""A program on one node that does what a test asks, one call at a time: a line of JSON each way.

    {"call": "pwrite", "args": [3, {"bytes": "YWJj"}, 0]}  ->  {"value": 3}  or  {"error": 28}

It knows nothing of stripewise. Calls are those of the module `os`, and the functions below.
"""

import base64
import fcntl
import json
import mmap
import os
import struct
import sys

F_OFD_SETLK = 37
maps = {}


def lock(fd, kind, start, length):
    """An OFD lock of F_RDLCK, F_WRLCK or F_UNLCK on a range; fails if somebody else has it."""
    fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))


def posix_lock(fd, kind, start, length):
    """The same with a lock of the process."""
    fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))


def flock(fd, kind, _start, _length):
    """The same for the whole file."""
    kinds = {fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_UNLCK: fcntl.LOCK_UN}
    fcntl.flock(fd, kinds[kind] | fcntl.LOCK_NB)


def size(fd):
    return os.fstat(fd).st_size


def size_at(path):
    return os.stat(path).st_size


def append_all(path, records, length, letter):
    """Appends records of one letter, each with one write, and makes them durable."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    moved = [os.write(fd, letter.encode() * length) for _ in range(records)]
    os.fsync(fd)
    os.close(fd)
    return moved == [length] * records


def write_all(paths, data):
    """Writes the same to each of some files, one after the other."""
    for path in paths:
        with open(path, "wb") as file:
            file.write(data)


def create_all(paths):
    """Creates files that must not exist; which of them it made."""
    made = []
    for path in paths:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            made.append(path)
        except FileExistsError:
            pass
    return made


def map_file(fd, length):
    """Maps the beginning of a file, shared and writable."""
    maps[fd] = mmap.mmap(fd, length)


def store(fd, offset, data):
    maps[fd][offset : offset + len(data)] = data


def load(fd, offset, length):
    return maps[fd][offset : offset + length]


def flush(fd):
    maps[fd].flush()


def decoded(value):
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value


def encoded(value):
    return {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        call = globals().get(asked["call"]) or getattr(os, asked["call"])
        try:
            answer = {"value": encoded(call(*map(decoded, asked["args"])))}
        except OSError as error:
            answer = {"error": error.errno}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
