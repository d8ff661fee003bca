"""The batch script of docs/clusters.md runs as it stands, as a job of a real Slurm."""

import os
import re

import pytest
from conftest import BIN, BUILD, MPIS, ROOT
from test_guide import HURRY

from .test_jobs import OF_SLURM

SCRIPT = re.search(r"^```sh\n(#!/bin/bash\n.*?)^```", (ROOT / "docs" / "clusters.md").read_text(), re.DOTALL | re.MULTILINE)[1]


@pytest.mark.parametrize("mpi", MPIS)
def test_the_batch_script(bed, place, mpi):
    if not bed.has_slurm:
        pytest.skip("no Slurm: tools/setup.sh nodes")
    script, out, files = place / "tune.sh", place / "out.txt", place / "files"
    # Beside the shared directory, the nodes share this machine's disk.
    spool = bed.base / place.name if bed.is_ceph else place / "spool"
    script.write_text(SCRIPT)
    files.mkdir()
    environment = {
        **HURRY,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "TUNE": place / "tune",
        "SPOOL": spool,
        "APP": f"{BUILD / mpi / 'ior'} -o {files}/field -t 64K -b 1M --call all --access strided --verify",
        "LAUNCH": f"srun --mpi={OF_SLURM[mpi]}",
        "FILES": files,
        "SERVERS": " ".join(str(place / "servers" / f"s{number}") for number in range(4)),
    }
    submit = ["sbatch", "--wait", "--export=ALL", "-o", out, script]
    done = bed.on("node1", *submit, env=environment, ok=False)
    said = out.read_text()
    assert done.code == 0, said
    assert said.count("verified 6291456 bytes, 0 wrong") == 2, said
    assert "on 3 node(s)" in said and (place / "tune" / "report.html").stat().st_size > 0
    assert "establish_s" in (place / "tune" / "profile.toml").read_text()
    again = bed.on("node1", *submit, env=environment, ok=False)
    assert again.code == 0 and out.read_text().count("verified 6291456 bytes, 0 wrong") == 1, "only the last step is repeated"
