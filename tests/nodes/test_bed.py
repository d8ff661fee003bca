"""The nodes are separate machines, as far as programs can tell, and share one directory."""

import testbeds

from .conftest import ALL_NODES

IDENTITY = "hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id /sys/class/net/eth0/address"


def identity(bed, node):
    """Host name, machine id, boot id and network card."""
    return bed.on(node, "sh", "-c", IDENTITY).out.split()


def test_each_node_is_a_machine_of_its_own(bed):
    found = [identity(bed, node) for node in ALL_NODES]
    assert [one[0] for one in found] == ALL_NODES
    for values in zip(*found, strict=True):
        assert len(set(values)) == len(ALL_NODES), values


def test_memory_is_private_and_the_directory_is_shared(bed, place):
    bed.on("node1", "sh", "-c", f"echo private > /dev/shm/file; echo shared > {place}/file")
    assert bed.on("node2", "cat", "/dev/shm/file", ok=False).code != 0
    assert bed.on("node2", "cat", place / "file").out == "shared\n"


def test_a_killed_node_has_no_process_and_boots_anew(bed):
    before = identity(bed, "node3")
    bed.on("node3", "sh", "-c", "sleep 1000 </dev/null >/dev/null 2>&1 &")
    bed("kill", "node3")
    assert "node3: 10." in bed("status").out and "does not run" in bed("status").out
    assert bed.on("node3", "true", ok=False).code == 1
    bed("start", "node3")
    after = identity(bed, "node3")
    assert "sleep" not in bed.on("node3", "ps", "-e", "-o", "comm=").out
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, False, True], "only the boot is new"


def test_a_node_that_is_cut_off_is_reached_again_when_healed(bed):
    over_ssh = (bed.base / "ssh" / "agent", "node2", "hostname")
    assert bed.on("node1", *over_ssh).out == "node2\n"
    bed("cut", "node2")
    assert "node2: " in bed("status").out and "cut off" in bed("status").out
    assert bed.on("node1", "timeout", "2", *over_ssh, ok=False).code != 0
    assert bed.on("node2", "hostname").out == "node2\n", "it runs, and is not reached"
    bed("heal", "node2")
    assert bed.on("node1", *over_ssh).out == "node2\n"


def test_wrong_names_and_foreign_directories_are_refused(bed, tmp_path):
    unknown = bed("kill", "node99", ok=False)
    assert unknown.code == 1 and "there is no node99" in unknown.err and "node1" in unknown.err
    assert "runs already" in bed("start", "node1", ok=False).err
    testbeds.assert_takes_no_foreign_directory("nodes", tmp_path)
