#!/usr/bin/env python3
"""MPI-IO on a file striped over emulated servers, with and without hints: the tables of bench/results.d/mpi.md.

    mpi/benches/hints.py independent|collective target/release/libstripewise_posix.so [DIR]

4 HDDs and 4 SSDs with the papers' parameters, four times slower, so that the servers and not the
processors are the bottleneck. Prints Markdown; every value is the minimum of 5 runs, in seconds,
because other work on the machine only adds time.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SLOWDOWN, RUNS, MIB = 4, 5, 1 << 20
CLASSES = {"hdd": (3e-4, 1e-4, 1 / (120 * MIB)), "ssd": (5e-5, 5e-5, 1 / (400 * MIB))}  # random, sequential startup; per byte
STACKS = {
    "MPICH": ("mpich", ["mpirun.mpich"]),
    "ROMIO of Open MPI": ("openmpi", ["mpirun.openmpi", "--mca", "io", "romio321"]),
    "OMPIO": ("openmpi", ["mpirun.openmpi", "--mca", "io", "ompio"]),
}
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                   "OMPI_MCA_mpi_yield_when_idle": "1"}  # fmt: skip


def write_plan(directory, cycle):
    """Writes a plan that stripes all files in directory/data with this cycle."""
    text = (
        f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = "{directory}/data/**"\nscheme = "DEF"\nreason = "a benchmark"\n'
        f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "{cycle}" }}]]\n'
        "[cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n"
    )
    for name, (random_s, sequential_s, per_byte_s) in CLASSES.items():
        text += f"[cluster.class.{name}]\n"
        for op in ("read", "write"):
            for access, startup_s in (("random", random_s), ("sequential", sequential_s)):
                text += f"{op}.{access} = {{ startup_s = {startup_s * SLOWDOWN!r}, per_byte_s = {per_byte_s * SLOWDOWN!r} }}\n"
        servers = [str(directory / "servers" / f"{name}{number}") for number in range(4)]
        for server in servers:
            Path(server).mkdir(parents=True, exist_ok=True)
        text += f'[[cluster.tier]]\nname = "{name}"\nclass = "{name}"\ndriver = "dirs"\nservers = {json.dumps(servers)}\n'
        text += 'capacity_per_server = "1T"\nemulate = true\n'
    (directory / "plan.toml").write_text(text)


def seconds(directory, library, stack, ranks, args, op, hints):
    """The time of one run of ior. Hints are KEY=VALUE; "shim" lets the MPI library set them."""
    mpi, launcher = STACKS[stack]
    shim = BUILD / mpi / "libstripewise_mpi.so"
    env = {
        **os.environ,
        **MPI_ENVIRONMENT,
        "LD_PRELOAD": f"{library}:{shim}",
        "STRIPEWISE_PLAN": str(directory / "plan.toml"),
        "STRIPEWISE_MPI_HINTS": "on" if hints == ["shim"] else "off",
    }
    file = directory / "data" / "f"
    if op == "write" and file.exists():
        subprocess.run(["rm", file], env=env, check=True)
    flags = [flag for hint in hints if hint != "shim" for flag in ("--hint", hint)]
    command = [*launcher, "-n", ranks, BUILD / mpi / "ior", "-o", file, "--json", "--access", "strided", "--op", op, *args, *flags]
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout)["phases"][0]["elapsed_s"]


def measure(*case, args, hints):
    """The minimum times of writing and of reading, as text."""
    runs = [(seconds(*case, args, "write", hints), seconds(*case, args, "read", hints)) for _ in range(RUNS)]
    return " / ".join(f"{min(run):.3f}" for run in zip(*runs))


def table(directory, library, cases, total, call, columns):
    """Prints a row per case (stack, ranks, transfer) with a column per set of hints."""
    print(f"| | ranks | pieces | {' | '.join(columns)} |\n|---|---|---|{'---|' * len(columns)}")
    for stack, ranks, transfer in cases:
        args = ["-t", transfer, "-b", total // ranks, "--call", call]
        cells = [measure(directory, library, stack, ranks, args=args, hints=hints) for hints in columns.values()]
        print(f"| {stack} | {ranks} | {transfer} | {' | '.join(cells)} |", flush=True)


def independent(directory, library):
    """One independent call per rank over a view of interleaved pieces."""
    columns = {
        "data sieving": ["romio_ds_read=enable", "romio_ds_write=enable"],
        "pieces": ["romio_ds_read=disable", "romio_ds_write=disable"],
        "by cost": ["shim"],
    }
    cases = [("MPICH", ranks, size) for ranks in (2, 8, 16) for size in ("1K", "4K", "16K", "64K", "256K")]
    table(directory, library, cases, 8 * MIB, "view", columns)
    print()
    table(directory, library, [("OMPIO", ranks, size) for ranks in (2, 8) for size in ("4K", "64K")], 8 * MIB, "view", {"as it is": []})


def collective(directory, library):
    """One collective call over the same views."""
    several = ["cb_nodes=4", "cb_config_list=*:*"]
    columns = {
        "none": [],
        "striping_unit, striping_factor": ["striping_unit=65536", "striping_factor=8"],
        "cb_nodes=4": several,
        "cb_nodes=4, aligned": [*several, "romio_cb_fr_types=aar", "romio_cb_fr_alignment=524288"],
        "cb_buffer_size=4M": ["cb_buffer_size=4194304"],
    }
    cases = [(stack, ranks, size) for stack, ranks in (("MPICH", 2), ("ROMIO of Open MPI", 4), ("OMPIO", 4)) for size in ("4K", "64K")]
    table(directory, library, cases, 128 * MIB, "view-all", columns)


def main():
    """Runs the benchmark; see the module's docstring."""
    what, library = {"independent": independent, "collective": collective}[sys.argv[1]], Path(sys.argv[2]).resolve()
    directory = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="stripewise-hints-"))
    (directory / "data").mkdir(parents=True, exist_ok=True)
    try:
        write_plan(directory, "hdd/0-3:64K ssd/0-3:64K")
        what(directory, library)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
