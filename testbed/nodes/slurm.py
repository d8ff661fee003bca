"""Slurm on the nodes of a testbed: slurmctld on one node, a slurmd on each of the others."""

import os
import shutil

PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")

# Nodes have as many CPUs as a test wants, and no cgroups: they are namespaces of one machine.
TEMPLATE = """\
ClusterName=stripewise
SlurmctldHost={head}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
StateSaveLocation={directory}/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=20
KillWait=2
{nodes}
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:64 MaxTime=INFINITE State=UP
"""


def is_installed():
    """Whether all of Slurm's programs are there."""
    return all(shutil.which(program) for program in PROGRAMS)


def conf(directory):
    """The path of slurm.conf of a testbed, which its programs find in SLURM_CONF."""
    return directory / "slurm.conf"


def prepare(directory, head, addresses):
    """Writes the configuration. `addresses` has those of all nodes, by name."""
    (directory / "state").mkdir(parents=True)
    nodes = [f"NodeName={name} NodeAddr={address} CPUs=64 State=UNKNOWN" for name, address in addresses.items() if name != head]
    text = TEMPLATE.format(head=head, address=addresses[head], directory=directory, nodes="\n".join(nodes))
    conf(directory).write_text(text)
    # The default, /tmp, is one directory for all nodes here.
    # With the tree of Slurm 22.05, a rank can leave the fence of MPI_Init while ranks of other
    # nodes still wait in it. Its first message makes Open MPI 4.1.4 crash there.
    (directory / "mpi.conf").write_text("PMIxCliTmpDirBase=/run/tmp\nPMIxCollFence=ring\n")
    (directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    with open(directory / "munge.key", "wb", opener=lambda path, flags: os.open(path, flags, 0o400)) as key:
        key.write(os.urandom(128))


def commands(directory, name, is_head):
    """The command lines of a node's daemons."""
    munge = ["--key-file", directory / "munge.key", "--log-file", directory / f"munged.{name}.log", "--seed-file", "/run/munge/seed"]
    slurm = ["slurmctld"] if is_head else ["slurmd", "-N", name]
    return [
        ["mkdir", "-m", "755", "/run/munge"],
        ["munged", "--force", "--socket", "/run/munge/munge.socket.2", "--pid-file", "/run/munge/munged.pid", *munge],
        [*slurm, "-f", conf(directory)],
    ]
