"""The commands on files with several copies: replicas and caches."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import HANGS_S, Tier, wait_until
from copies import (
    CONTENT,
    KINDS,
    OVERWRITE,
    batches,
    cat,
    objects,
    copied,
    dirty,
    hold,
    journal_of,
    kind,
    make_copied,
    remove_objects,
    status,
    write_plan,
)

# --------------------------------------------------------------------------------- the chain


# Sixteen processes read a file together, then one alone. The two phases favor different stripes.
TWO_PHASES = """
import os, sys, time
f = os.open(sys.argv[1], os.O_RDONLY)
for rank in range(16):
    if os.fork() == 0:
        for n in range(8):
            os.pread(f, 1 << 20, (rank * 8 + n) * 7919 % 16 << 20)
        os._exit(0)
while True:
    try: os.wait()
    except ChildProcessError: break
time.sleep(0.6)
for n in range(512):
    os.pread(f, 1 << 20, n * 7919 % 16 << 20)
"""


@pytest.fixture
def planned_copies(stripewise, make_cluster, cluster, trace, python):
    """planned_copies(scheme) -> a cluster with a plan of that scheme for `cluster.data / "f"`."""

    def make(scheme):
        if scheme == "cache":
            stripewise("plan", trace, "-c", cluster.toml, "--scheme", "cache", "--min-gain", "none", "-o", cluster.plan)
            return cluster
        slow = make_cluster((Tier("hdd", 8, startup_s=5e-3, per_byte_s=1e-8),), name="slow")
        (slow.data / "f").write_bytes(b"")
        os.truncate(slow.data / "f", 16 << 20)
        recorded = slow.root / "two.trace"
        stripewise("trace", "-o", recorded, "--", python, "-c", TWO_PHASES, slow.data / "f")
        only = ["--only", f"{slow.data}/*"]
        stripewise("plan", recorded, "-c", slow.toml, "--scheme", "replicas", "--min-gain", "none", *only, "-o", slow.plan)
        (slow.data / "f").unlink()
        return slow

    return make


@pytest.mark.parametrize("scheme", KINDS)
def test_chain(stripewise, planned_copies, scheme, cat, python):
    """plan --scheme ... -> run -> status -> drain -> fsck -> export."""
    cluster = planned_copies(scheme)
    path, source = cluster.data / "f", cluster.root / "source"
    source.write_bytes(CONTENT * 4)
    run = ["run", "-p", cluster.plan, "--", python, "-c"]
    stripewise(*run, "import sys, shutil; shutil.copyfile(*sys.argv[1:])", source, path)
    expected = bytearray(CONTENT * 4)
    for offset in (0, 70000, 3 << 20):
        stripewise(*run, OVERWRITE, path, str(offset))
        expected[offset : offset + 3000] = b"new" * 1000
    found = status(stripewise, path)
    assert found["kind"] == scheme and found["size_bytes"] == len(expected)
    assert found["copies"][0]["name"] == "original" and len(found["copies"]) >= 2
    stripewise("drain", path)
    assert dirty(stripewise, path) == 0
    stripewise("fsck", "-p", cluster.plan, path)
    assert cat(path) == expected
    stripewise("export", path)
    assert path.read_bytes() == expected
    assert not any(objects(cluster, "", manifest_too=True)), "nothing is left on the targets"


# ------------------------------------------------------------------------------- drain, warm


def test_drain_completes_the_original(stripewise, copied, kind, cat):
    before = status(stripewise, copied.path)
    assert before["lease"]["state"] == "closed" and before["statistics"] is None
    original = before["by_name"]["original"]
    if kind == "cache":
        assert original["stale_bytes"] == len(CONTENT) == dirty(stripewise, copied.path)
        assert before["mode"] == "nsca" and before["capacity_per_server"] == 1 << 30
    drained = stripewise("drain", "--json", copied.path).json()["files"][0]
    assert drained["left_bytes"] == 0
    after = status(stripewise, copied.path)
    whole = after["copies"] if kind == "replicas" else after["copies"][:1]
    assert all(copy["stale_bytes"] == 0 and copy["valid_bytes"] == len(CONTENT) for copy in whole), after
    assert stripewise("drain", "--json", copied.path).json()["files"][0]["bytes"] == 0
    remove_objects(copied, "ssd")
    assert cat(copied.path) == CONTENT, "the original is complete"


def test_drain_takes_directories_and_leaves_plain_files_alone(stripewise, copied):
    plain = copied.data / "plain"
    plain.write_bytes(b"x")
    done = stripewise("drain", "--json", "-p", copied.plan, copied.data)
    assert [file["path"] for file in done.json()["files"]] == [str(copied.path)]
    assert "one copy" in stripewise("drain", plain).err
    missing = stripewise("drain", copied.data / "none", ok=False)
    assert missing.code == 1 and "none" in missing.err and "panicked" not in missing.err


def slow_plan(cluster):
    """The cluster's plan with servers so slow that every 4 MiB piece of copying takes seconds."""
    paced = cluster.root / "paced.toml"
    paced.write_text(cluster.plan.read_text().replace("emulate = false", "emulate = true").replace("7.95e-12", "2e-6"))
    return paced


def wait_for_the_second_step(cluster, process):
    """Waits until a drain has copied 4 MiB and begun with the next piece. It runs no command,
    because that might take longer than the remaining copying."""
    wait_until(lambda: sum(it.stat().st_blocks * 512 for it in objects(cluster, "hdd")) > 5 << 20, process)


def test_drain_can_be_interrupted_and_goes_on(stripewise, make_cluster, make_copied, bin_dir, cat):
    cluster = make_copied("cache", content=CONTENT * 24)
    paced = slow_plan(cluster)
    command = [bin_dir / "stripewise", "drain", "-p", paced, cluster.path]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for_the_second_step(cluster, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 1 and "goes on" in said, said
    left = status(stripewise, cluster.path)
    assert left["lease"]["state"] == "closed" and 0 < dirty(stripewise, cluster.path) < len(CONTENT) * 24
    stripewise("drain", cluster.path)
    assert dirty(stripewise, cluster.path) == 0 and cat(cluster.path) == CONTENT * 24


MAPS = """
import mmap, os, sys
f = os.open(sys.argv[1], os.O_RDWR)
os.ftruncate(f, os.fstat(f).st_size - 4096)
with mmap.mmap(f, 4096) as memory:
    memory[:3] = b"abc"
"""


def test_a_drain_that_is_stopped_holds_nothing(stripewise, make_copied, bin_dir, python):
    """Ctrl-Z in the middle of a drain: other processes can truncate the file and map it."""
    cluster = make_copied("cache", content=CONTENT * 24)
    paced = slow_plan(cluster)
    command = [bin_dir / "stripewise", "drain", "-p", paced, cluster.path]
    # A process group of its own. Ctrl-Z has no effect in a group without a shell.
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0)
    try:
        wait_for_the_second_step(cluster, process)
        process.send_signal(signal.SIGTSTP)
        state = Path(f"/proc/{process.pid}/stat")
        wait_until(lambda: state.read_text().rsplit(")", 1)[1].split()[0] == "T", process)
        cluster.run(python, "-c", MAPS, cluster.path)
    finally:
        process.send_signal(signal.SIGCONT)
    said = process.communicate(timeout=HANGS_S)[1]
    # A mapped file is not copied, and need not be.
    assert process.returncode == 0 and "drained" in said, said


def test_warm_fetches_what_the_last_run_wanted(stripewise, make_copied, python):
    cluster = make_copied("cache", mode="sla")
    stripewise("drain", cluster.path)
    remove_objects(cluster, "ssd")
    stripewise("fsck", "--repair", cluster.path, ok=False)
    program = "import sys, os; f = os.open(sys.argv[1], os.O_RDWR)\nfor i in range(64): os.pread(f, 4096, i * 28672 % 1048576)"
    cluster.run(python, "-c", program, cluster.path)
    warmed = stripewise("warm", "--json", cluster.path).json()["files"][0]
    found = status(stripewise, cluster.path)
    cached = sum(copy["valid_bytes"] for copy in found["copies"][1:])
    assert cached > 0 and dirty(stripewise, cluster.path) == 0, (warmed, found)
    assert cluster.run("cmp", cluster.root / "source", cluster.path).code == 0


# Runs until its input ends.
SCRIBBLE = """
import os, random, select, sys
f, source = os.open(sys.argv[1], os.O_RDWR), random.Random(1)
image = bytearray(open(sys.argv[2], "rb").read())
while not select.select([0], [], [], 0)[0]:
    at, data = source.randrange(len(image) - 9000), source.randbytes(source.randrange(1, 9000))
    os.pwrite(f, data, at)
    image[at : at + len(data)] = data
    if source.random() < 0.05:
        assert os.pread(f, len(image), 0) == image, "read what was not written"
open(sys.argv[3], "wb").write(image)
"""


def test_drain_beside_a_program_that_writes(stripewise, copied, python, cat):
    expected = copied.root / "expected"
    command = [python, "-c", SCRIBBLE, copied.path, copied.root / "source", expected]
    program = subprocess.Popen(command, env={**os.environ, **copied.environment()}, stdin=subprocess.PIPE)
    for _ in range(20):
        drained = stripewise("drain", copied.path, ok=False)
        assert drained.code == 0 or "programs write there" in drained.err or "in use" in drained.err, str(drained)
    program.communicate(timeout=HANGS_S)
    assert program.returncode == 0
    stripewise("drain", copied.path)
    stripewise("fsck", "--compare", copied.path)
    assert dirty(stripewise, copied.path) == 0 and cat(copied.path) == expected.read_bytes()


# ------------------------------------------------------------------------------------ status


def test_status_while_a_program_has_the_file_open_and_after_it_was_killed(stripewise, copied, python, cat):
    holder = hold(copied, python)
    try:
        found = status(stripewise, copied.path)
        assert found["lease"]["state"] == "here" and found["lease"]["node"] and found["processes"] == 1
        statistics = found["statistics"]
        assert statistics["requests"] >= 1 and [c["name"] for c in statistics["copies"]] == list(found["by_name"])
        assert sum(copy["written_bytes"] for copy in statistics["copies"]) == 5000
        assert "1 process" in stripewise("status", copied.path).out
    finally:
        holder.kill()
        holder.wait()
    assert "killed" in stripewise("status", copied.path).out or status(stripewise, copied.path)["lease"]["state"] == "closed"
    checked = stripewise("fsck", "--repair", copied.path)
    assert "0 problems" in checked.out
    assert status(stripewise, copied.path)["lease"]["state"] == "closed"
    assert cat(copied.path) == b"x" * 5000 + CONTENT[5000:], "what was acknowledged survives the kill"


def test_status_says_that_this_node_has_the_file_open(stripewise, copied, python):
    """Files have sessions where the site says so; of others, the lease tells."""
    assert status(stripewise, copied.path)["nodes"] == []
    for target in copied.targets:
        marker = target / "stripewise-target.toml"
        marker.write_text(marker.read_text() + "sessions = true\n")
    holder = hold(copied, python)
    try:
        found = status(stripewise, copied.path)
        assert found["nodes"] == [{"name": found["lease"]["node"], "alive": True, "alone": True}]
        assert (found["lease"]["state"], found["processes"]) == ("here", 1)
        assert "has the file open, alone\n" in stripewise("status", copied.path).out
    finally:
        holder.kill()
        holder.wait()
    assert "died; the next open recovers it\n" in stripewise("status", copied.path).out
    assert status(stripewise, copied.path)["nodes"] == [], "to look at it, status has opened it"


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "os._exit(0)", "os.execv('/bin/true', ['true'])", "f = m"])
def test_a_program_that_ends_without_closing_leaves_nothing_behind(stripewise, copied, python, cat, end):
    """The same as after a close: the journal is complete, so the map survives a reboot."""
    program = "import mmap, os, sys; f = os.open(sys.argv[1], os.O_RDWR); os.pwrite(f, b'y' * 70000, 1000)\n"
    program += "m = open(sys.argv[1], 'r+b'); n = mmap.mmap(f, 4096); n[:5] = b'yyyyy'\n" if end == "f = m" else ""
    copied.run(python, "-c", program + end, copied.path, ok=False)
    expected = CONTENT[:1000] + b"y" * 70000 + CONTENT[71000:]
    expected = b"yyyyy" + expected[5:] if end == "f = m" else expected
    if end != "f = m":
        assert status(stripewise, copied.path)["lease"]["state"] == "closed"
        assert batches(journal_of(copied))[0][-1][0] == 3, "clean"
    run_dir = Path(f"/dev/shm/stripewise-{os.geteuid()}") / journal_of(copied).name.removesuffix(".extents")
    shutil.rmtree(run_dir, ignore_errors=True)
    if end == "f = m":
        stripewise("fsck", "--repair", copied.path)
    assert cat(copied.path) == expected


def test_status_of_servers_shows_caches_beside_their_limit(stripewise, make_copied):
    cluster = make_copied("cache", capacity="128K")
    targets = json.loads(stripewise("status", "-p", cluster.plan, "--json").out)["targets"]
    ssds = [target for target in targets if target["name"].startswith("ssd")]
    assert all(target["cache_limit_bytes"] == 128 << 10 for target in ssds)
    assert all(0 < target["cached_bytes"] <= 128 << 10 for target in ssds), ssds
    assert all(target["cached_bytes"] == 0 for target in targets if target["name"].startswith("hdd"))
    assert cluster.run("cmp", cluster.root / "source", cluster.path).code == 0, "what does not fit is in the original"


# ------------------------------------------------------------------------ the other commands


def test_files_are_moved_copied_and_removed_with_their_copies(stripewise, copied, cat):
    path, plain, moved = copied.path, copied.root / "plain", copied.data / "moved"
    assert cat(path) == CONTENT
    stripewise("cp", path, plain)
    assert plain.read_bytes() == CONTENT
    copied.run("mv", path, moved)
    assert cat(moved) == CONTENT and not path.exists()
    stripewise("cp", "-p", copied.plan, plain, path)
    found = status(stripewise, path)
    assert len(found["copies"]) == 3 and found["by_name"]["original"]["stale_bytes"] == 0, "a copy is complete at once"
    stripewise("cp", plain, path)
    assert len(status(stripewise, path)["copies"]) == 3 and cat(path) == CONTENT, "it replaces a file by one of the same kind"
    stripewise("rm", path, moved)
    left = [p for target in copied.targets for p in target.glob("stripewise/*/*")]
    assert not left, "objects and journals go with the file"


def test_export_needs_no_drain(stripewise, copied):
    stripewise("export", copied.path)
    assert copied.path.read_bytes() == CONTENT and not objects(copied, "")


def test_place_gives_copies_and_another_plan_takes_them(stripewise, make_copied, kind, cat):
    cluster = make_copied(kind, lazy=True)
    other = "cache" if kind == "replicas" else "replicas"
    other_plan = write_plan(cluster, other, name="other.toml", original="32K")
    placed = stripewise("place", other_plan, cluster.path)
    assert "placed: 1" in placed.out
    found = status(stripewise, cluster.path)
    assert found["kind"] == other and dirty(stripewise, cluster.path) == 0
    whole = found["copies"] if other == "replicas" else found["copies"][:1]
    assert all(copy["stale_bytes"] == 0 for copy in whole), "placed: every copy has what it is to have"
    assert cat(cluster.path) == CONTENT
    assert "in their layout already: 1" in stripewise("place", other_plan, cluster.path).out
    stripewise("fsck", "-p", cluster.plan, cluster.path)


def test_a_second_plan_joins_the_file_as_it_is(stripewise, copied, python, cat):
    """The manifest's copies apply, whatever another program's plan says; the two are never mixed.
    """
    manifest = copied.path.read_bytes()[:700]
    other = write_plan(copied, "replicas", name="other.toml", original="8K")
    copied.run(python, "-c", OVERWRITE, copied.path, "1000", plan=other)
    assert copied.path.read_bytes()[:700] == manifest
    assert cat(copied.path) == CONTENT[:1000] + b"new" * 1000 + CONTENT[4000:]
    stripewise("drain", "-p", other, copied.path)
    stripewise("fsck", "-p", copied.plan, copied.path)
