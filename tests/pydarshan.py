"""Everything in a Darshan log as PyDarshan's library reads it, in the form that the reader's example
`dump` prints: the records as they are in memory, without what PyDarshan makes of them.

Darshan's library prints errors and may abort on damaged logs, so it runs in a process of its own:

    python tests/pydarshan.py LOG
"""

import json
import struct
import sys

from darshan.backend.cffi_backend import ffi, libdutil, log_open

JOB = "uid start_time_sec start_time_nsec end_time_sec end_time_nsec nprocs jobid".split()
COUNTERS = {
    "POSIX": ("struct darshan_posix_file *", 69, 17),
    "MPI-IO": ("struct darshan_mpiio_file *", 51, 17),
    "STDIO": ("struct darshan_stdio_file *", 14, 15),
    "H5F": ("struct darshan_hdf5_file *", 3, 5),
    "H5D": ("struct darshan_hdf5_dataset *", 94, 17),
}


def text(characters):
    return ffi.string(characters).decode(errors="replace")


def modules(handle):
    """{name: its number} and a line for each module."""
    infos, count = ffi.new("struct darshan_mod_info **"), ffi.new("int *")
    libdutil.darshan_log_get_modules(handle, infos, count)
    for info in (infos[0][i] for i in range(count[0])):
        name = text(info.name) if info.name != ffi.NULL else f"number {info.idx}"
        yield info.idx, {"module": name, "version": info.ver, "partial": info.partial_flag != 0}


def job(handle):
    record, command = ffi.new("struct darshan_job *"), ffi.new("char[]", 4096)
    if libdutil.darshan_log_get_job(handle, record) != 0:
        return {"error": "job"}
    libdutil.darshan_log_get_exe(handle, command)
    mounts, count = ffi.new("struct darshan_mnt_info **"), ffi.new("int *")
    libdutil.darshan_log_get_mounts(handle, mounts, count)
    return {
        "job": [getattr(record, name) for name in JOB],
        "metadata": text(record.metadata),
        "command": text(command),
        "mounts": [[text(m.mnt_type), text(m.mnt_path)] for m in (mounts[0][i] for i in range(count[0]))],
    }


def names(handle):
    records, count = ffi.new("struct darshan_name_record **"), ffi.new("int *")
    libdutil.darshan_log_get_name_records(handle, records, count)
    for record in (records[0][i] for i in range(count[0])):
        yield {"name": record.id, "is": text(record.name)}


def records(handle, number):
    buffer = ffi.new("void **")
    while libdutil.darshan_log_get_record(handle, number, buffer) == 1:
        yield buffer[0]
        libdutil.darshan_free(buffer[0])
        buffer[0] = ffi.NULL


def counted(name, record):
    kind, integers, floats = COUNTERS[name]
    record = ffi.cast(kind, record)
    numbers = struct.unpack(f"<{floats}Q", ffi.buffer(record.fcounters)[:])
    file_id = record.file_rec_id if name == "H5D" else 0
    ids = [record.base_rec.id, record.base_rec.rank, file_id]
    return {"of": name, "ids": ids, "n": [record.counters[i] for i in range(integers)], "f": list(numbers)}


def lustre(record):
    record = ffi.cast("struct darshan_lustre_record *", record)
    components = [record.comps[i] for i in range(record.num_comps)]
    return {
        "lustre": [record.base_rec.id, record.base_rec.rank],
        "components": [[[c.counters[i] for i in range(7)], text(c.pool_name)] for c in components],
        "osts": [record.ost_ids[i] for i in range(record.num_stripes)],
    }


def dxt(name, record):
    head = ffi.cast("struct dxt_file_record *", record)
    count, start = head.write_count + head.read_count, ffi.sizeof("struct dxt_file_record")
    # PyDarshan 3.5.0 is older than the thread at the end of a segment.
    data = ffi.buffer(record, start + 32 * count)[start:]
    ids = [head.base_rec.id, head.base_rec.rank, head.shared_record, head.write_count, head.read_count]
    segments = [[*segment, 0] for segment in struct.iter_unpack("<qqQQ", data)]
    return {"dxt": name, "ids": ids, "host": text(head.hostname), "segments": segments}


def everything(path):
    handle = log_open(str(path))["handle"]
    if handle == ffi.NULL:
        raise SystemExit("no log")
    found = list(modules(handle))
    yield from (line for _, line in found)
    yield job(handle)
    yield from names(handle)
    for number, line in found:
        name = line["module"]
        if name in COUNTERS:
            yield from (counted(name, record) for record in records(handle, number))
        elif name == "LUSTRE":
            yield from (lustre(record) for record in records(handle, number))
        elif name in ("DXT_POSIX", "DXT_MPIIO"):
            yield from (dxt(name, record) for record in records(handle, number))


if __name__ == "__main__":
    for line in everything(sys.argv[1]):
        print(json.dumps(line))
