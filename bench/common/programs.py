"""The programs to run: stripewise, and the workload under an MPI; and their failures."""

import json
import os
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The directory of the stripewise program and its library; set by `stripewise-bench`.
BINARIES = Path(os.environ.get("STRIPEWISE_BIN_DIR", ROOT / "target" / "release"))

# With more ranks than cores, Open MPI's waiting ranks must yield. As root it needs permission to
# run.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
# Timeout, seconds. No command measured here takes longer.
SECONDS_MAX = 600


class Failed(Exception):
    """A command failed or timed out."""


class Programs:
    """Paths of the binary with its library, and of the workloads of `make workloads` for one MPI
    (openmpi or mpich)."""

    def __init__(self, binaries, workloads, mpi="openmpi"):
        self.stripewise = Path(binaries).resolve() / "stripewise"
        self.workloads = Path(workloads).resolve()
        self.mpi = mpi
        for path in (self.stripewise, self.ior):
            if not path.exists():
                raise SystemExit(f"{path} is not there; remedy: make build")

    @property
    def ior(self):
        return self.workloads / self.mpi / "ior"

    def run(self, *words, env=None):
        """Runs a command to its end and returns what it printed."""
        command = [str(word) for word in words]
        environment = {**os.environ, **ENVIRONMENT, "STRIPEWISE_MPI_LIB": str(self.workloads), **(env or {})}
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=SECONDS_MAX)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"`{' '.join(command)}` did not end in {SECONDS_MAX} s") from None
            raise
        if process.returncode != 0:
            said = (err.strip() or out.strip()).splitlines()[-12:]
            raise Failed(f"`{' '.join(command)}` ended with {process.returncode}: " + " | ".join(said))
        return out

    def command(self, *words):
        """`stripewise WORDS...`"""
        return self.run(self.stripewise, *words)

    def warm(self, plan, path):
        """Fetches the hinted ranges as far as there is space. It is no failure if some
        do not fit."""
        try:
            self.command("warm", "-p", plan, path)
        except Failed as error:
            if "no space in the cache" not in str(error):
                raise

    def run_ior(self, ranks, path, *words, plan=None, env=None):
        """Runs the workload on `path`, over the layouts of a plan if given. Returns its JSON
        output."""
        launch = [self.stripewise, "run", "-p", plan, "--"] if plan else []
        launch += [f"mpirun.{self.mpi}", "-n", ranks, self.ior, "--file", path, *words, "--json"]
        return json.loads(self.run(*launch, env=env))
