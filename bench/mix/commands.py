"""The real programs that the cases run, and what they report."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from programs import Failed
from sizes import human

# Flags with which fio writes a checksum into every block, checks it in every read, and leaves no
# files of its own.
FIO = ["--ioengine=psync", "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--fallocate=none", "--group_reporting"]


@dataclass(frozen=True)
class Command:
    """One run of a program on one file (of h5.py: on a file for each process). `file` is relative
    to the directory of the data."""

    program: str  # ior, tile, h5 or fio
    file: str
    op: str
    flags: tuple
    processes: int = 4

    def words(self, programs, data, direct):
        """The command line. `direct`: past the page cache, as far as the program can."""
        path = data / self.file
        if self.program == "fio":
            return self._fio(path, direct)
        if self.program == "h5":
            words = [sys.executable, programs.workloads / "h5.py", "--procs", self.processes]
        else:
            words = [f"mpirun.{programs.mpi}", "-n", self.processes, programs.workloads / programs.mpi / self.program]
        words += ["--file", path, *self.flags, "--op", self.op, "--json"]
        words += ["--verify"] * (self.op == "read")
        return words + ["--api", "direct"] * (direct and self.program == "ior")

    def _fio(self, path, direct):
        how = [f"--numjobs={self.processes}", *self.flags] if self.op == "read" else ["--rw=write", "--do_verify=0", *self._shape()]
        return ["fio", "--name=fio", f"--filename={path}", *FIO, *how, f"--direct={int(direct)}", "--output-format=json"]

    def _shape(self):
        """The flags that say how large a file and its blocks are."""
        return [flag for flag in self.flags if flag.startswith(("--size=", "--bs="))]

    def maker(self):
        """The command that writes what this one reads."""
        return replace(self, op="write")

    def checker(self):
        """The command that reads and checks what this one has written."""
        return replace(self, op="read")

    def result(self, out):
        """Seconds of the reads or writes as the program reports them, and their bytes."""
        said = json.loads(out[out.index("{") :])
        if self.program == "fio":
            (job,) = said["jobs"]
            if job["error"]:
                raise Failed(f"fio reports error {job['error']}")
            return {"seconds": job[self.op]["runtime"] / 1e3, "bytes": job[self.op]["io_bytes"]}
        (phase,) = said["phases"]
        if said["wrong_bytes"] or (self.op == "read" and said["verified_bytes"] != phase["bytes"]):
            raise Failed(f"{said['wrong_bytes']} wrong bytes of {phase['bytes']}, {said['verified_bytes']} compared")
        return {"seconds": phase["elapsed_s"], "bytes": phase["bytes"]}

    def shown(self):
        """The command line for a page."""
        return " ".join([{"h5": "h5.py"}.get(self.program, self.program), Path(self.file).name, *map(str, self.flags), self.op])


def ior(file, op, transfer, block, *flags, processes=4):
    """IOR's requests on a shared file, a block of each process."""
    return Command("ior", file, op, ("--transfer", human(transfer), "--block", human(block), *flags), processes)
