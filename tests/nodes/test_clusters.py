"""The batch script of docs/clusters.md runs as it stands, as a job of a real Slurm."""

import os
import re

import pytest
from conftest import BIN, BUILD, ROOT, wait_until
from test_guide import HURRY

from .test_jobs import OF_SLURM

SCRIPT = re.search(r"^```sh\n(#!/bin/bash\n.*?)^```", (ROOT / "docs" / "clusters.md").read_text(), re.DOTALL | re.MULTILINE)[1]


@pytest.fixture
def batch(bed, place):
    """batch(script, environment) -> (state, output) of a batch job that has ended. `sbatch --wait`
    asks for the state after 2, 10, 42 and 170 s only."""

    def run(script, environment):
        out = place / "out.txt"
        job = bed.on("node1", "sbatch", "--parsable", "--export=ALL", "-o", out, script, env=environment).out.strip()
        states = []

        def has_ended():
            shown = bed.on("node1", "scontrol", "--oneliner", "show", "job", job).out
            states.append(re.search(r"JobState=(\w+)", shown)[1])
            return states[-1] not in ("PENDING", "RUNNING", "COMPLETING")

        wait_until(has_ended)
        return states[-1], out.read_text()

    return run


@pytest.mark.parametrize(("mpi", "network"), [("mpich", ""), ("openmpi", "1")])
def test_the_batch_script(bed, place, batch, mpi, network):
    if not bed.has_slurm:
        pytest.skip("no Slurm: tools/setup.sh nodes")
    script, files = place / "tune.sh", place / "files"
    # Beside the shared directory, the nodes share this machine's disk.
    spool = bed.base / place.name if bed.is_ceph else place / "spool"
    script.write_text(SCRIPT)
    files.mkdir()
    environment = {
        **HURRY,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "TUNE": place / "tune",
        "SPOOL": spool,
        "NETWORK": network,
        "APP": f"{BUILD / mpi / 'ior'} -o {files}/field -t 64K -b 1M --call all --access strided --verify",
        "LAUNCH": f"srun --mpi={OF_SLURM[mpi]}",
        "FILES": files,
        "SERVERS": " ".join(str(place / "servers" / f"s{number}") for number in range(4)),
    }
    state, said = batch(script, environment)
    assert state == "COMPLETED", said
    assert said.count("verified 6291456 bytes, 0 wrong") == 2, said
    assert "on 3 node(s)" in said and (place / "tune" / "report.html").stat().st_size > 0
    assert ("establish_s" in (place / "tune" / "profile.toml").read_text()) == bool(network)
    state, said = batch(script, environment)
    assert state == "COMPLETED" and said.count("verified 6291456 bytes, 0 wrong") == 1, "only the last step is repeated"
