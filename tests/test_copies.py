"""The commands on files with several copies: replicas and caches. What they do, and what they say when something is wrong."""

import json
import os
import re
import shutil
import signal
import subprocess
import zlib
from pathlib import Path

import pytest

from bad_input import Unchanged
from conftest import HANGS_S, Tier, wait_until
from copies import KINDS, append_opened, batches, components, journal_of, status, write_plan

CONTENT = os.urandom(1 << 20)
OVERWRITE = "import sys; f = open(sys.argv[1], 'r+b'); f.seek(int(sys.argv[2])); f.write(b'new' * 1000); f.close()"
READ = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
HOLD = "import sys; f = open(sys.argv[1], 'r+b'); f.write(b'x' * 5000); f.flush(); print(); sys.stdout.flush(); input()"


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make_copied(stripewise, cluster):
    """make_copied(kind, ...) -> the cluster, with a file `cluster.path` of CONTENT that has copies; see write_plan.

    Without options, all of it is in the cache alone."""

    def make(kind, content=CONTENT, **options):
        write_plan(cluster, kind, **options)
        source = cluster.root / "source"
        source.write_bytes(content)
        cluster.path = cluster.data / "f"
        for _ in range(20):
            cluster.run("cp", source, cluster.path)
            assert cluster.path.read_bytes().startswith(b"stripewise file, format 2\n")
            # On a busy machine the background work may have been faster than cp's end.
            if kind == "replicas" or len(options) > 0 or dirty(stripewise, cluster.path) == len(content):
                return cluster
        pytest.fail("no data stay dirty")

    return make


@pytest.fixture
def copied(make_copied, kind):
    """A file with copies whose newest bytes are not in the original: in the cache, or in the replica that was written."""
    return make_copied(kind, **({"lazy": True} if kind == "replicas" else {}))



@pytest.fixture
def cat(bin_dir):
    """cat(path) -> bytes, of `stripewise cat`."""

    def run(path):
        return subprocess.run([bin_dir / "stripewise", "cat", path], capture_output=True, check=True).stdout

    return run


def kinds_of(result):
    """The kinds of the problems that fsck --json found, unless they were repaired."""
    return [f["kind"] for f in result.json()["findings"] if f["problem"] and not f["repaired"]]


def dirty(stripewise, path):
    return sum(copy["dirty_bytes"] for copy in status(stripewise, path)["copies"])


# ---------------------------------------------------------------------------------------------------------------- the chain


# Sixteen processes read a file together, then one alone: for the first it should lie in other pieces than for the last.
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
    assert not any(components(cluster, "", manifest_too=True)), "nothing is left on the targets"


# ------------------------------------------------------------------------------------------------------------ drain, warm


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
    for component in components(copied, "ssd"):
        component.unlink()
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
    """The cluster's plan, with servers so slow that each of the 4 MiB that are copied at once take
    seconds."""
    paced = cluster.root / "paced.toml"
    paced.write_text(cluster.plan.read_text().replace("emulate = false", "emulate = true").replace("7.95e-12", "2e-6"))
    return paced


def wait_for_the_second_step(cluster, process):
    """Until a drain has copied 4 MiB, and begun with the next ones. No command is asked: it may
    take longer than the rest."""
    wait_until(lambda: sum(it.stat().st_blocks * 512 for it in components(cluster, "hdd")) > 5 << 20, process)


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
    """Ctrl-Z in the middle of it: others cut the file and map it."""
    cluster = make_copied("cache", content=CONTENT * 24)
    paced = slow_plan(cluster)
    command = [bin_dir / "stripewise", "drain", "-p", paced, cluster.path]
    # A process group of its own: where no shell looks after it, Ctrl-Z does nothing.
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
    # What is mapped is not copied, and need not be.
    assert process.returncode == 0 and "drained" in said, said


def test_warm_fetches_what_the_last_run_wanted(stripewise, make_copied, python):
    cluster = make_copied("cache", mode="sla")
    stripewise("drain", cluster.path)
    for component in components(cluster, "ssd"):
        component.unlink()
    stripewise("fsck", "--repair", cluster.path, ok=False)
    program = "import sys, os; f = os.open(sys.argv[1], os.O_RDWR)\nfor i in range(64): os.pread(f, 4096, i * 28672 % 1048576)"
    cluster.run(python, "-c", program, cluster.path)
    warmed = stripewise("warm", "--json", cluster.path).json()["files"][0]
    found = status(stripewise, cluster.path)
    cached = sum(copy["valid_bytes"] for copy in found["copies"][1:])
    assert cached > 0 and dirty(stripewise, cluster.path) == 0, (warmed, found)
    assert cluster.run("cmp", cluster.root / "source", cluster.path).code == 0


# Until its input ends.
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


# ------------------------------------------------------------------------------------------------------------------ status


def test_status_while_a_program_has_the_file_open_and_after_it_was_killed(stripewise, copied, python, cat):
    command = [python, "-c", HOLD, copied.path]
    environment = {**os.environ, **copied.environment()}
    holder = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
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


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "os._exit(0)", "os.execv('/bin/true', ['true'])", "f = m"])
def test_a_program_that_ends_without_closing_leaves_nothing_behind(stripewise, copied, python, cat, end):
    """As if it had closed: the journal knows everything, and a machine that is booted anew finds it."""
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


# -------------------------------------------------------------------------------------------------- the other commands


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
    assert not left, "components and journals go with the file"


def test_export_needs_no_drain(stripewise, copied):
    stripewise("export", copied.path)
    assert copied.path.read_bytes() == CONTENT and not components(copied, "")


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
    """Never mixes: the manifest's copies count, whatever another program's plan says."""
    manifest = copied.path.read_bytes()[:700]
    other = write_plan(copied, "replicas", name="other.toml", original="8K")
    copied.run(python, "-c", OVERWRITE, copied.path, "1000", plan=other)
    assert copied.path.read_bytes()[:700] == manifest
    assert cat(copied.path) == CONTENT[:1000] + b"new" * 1000 + CONTENT[4000:]
    stripewise("drain", "-p", other, copied.path)
    stripewise("fsck", "-p", copied.plan, copied.path)


# -------------------------------------------------------------------------------------------------------- faults: copies


def test_a_lost_clean_cache_is_forgotten_and_made_anew(stripewise, make_copied, cat):
    cluster = make_copied("cache")
    stripewise("drain", cluster.path)
    for component in components(cluster, "ssd"):
        component.unlink()
    with Unchanged(cluster.root):
        found = stripewise("fsck", "--json", cluster.path, ok=False)
    assert found.code == 1 and "lost-copy" in kinds_of(found), str(found)
    stripewise("fsck", "--repair", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["1-DH"]["valid_bytes"] == 0
    stripewise("fsck", "-p", cluster.plan, cluster.path)
    assert components(cluster, "ssd") and cat(cluster.path) == CONTENT
    cluster.run("cp", cluster.root / "source", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["1-DH"]["valid_bytes"] > 0, "it caches again"


def test_dirty_bytes_of_a_lost_cache_are_named_and_never_dropped_unasked(stripewise, make_copied, python):
    cluster = make_copied("cache")
    for component in components(cluster, "ssd"):
        component.unlink()
    program = cluster.run(python, "-c", READ, cluster.path, ok=False)
    assert program.code == 1 and "Errno 5" in program.err, "an error, never zeros"
    for command in (["cat"], ["export"], ["drain"], ["fsck"], ["fsck", "--repair"]):
        result = stripewise(*command, cluster.path, ok=False)
        assert result.code == 1 and "panicked" not in result.err, str(result)
    assert f"{len(CONTENT)} bytes" in result.out and "--drop-dirty" in result.out, result.out
    dropped = stripewise("fsck", "--repair", "--drop-dirty", cluster.path)
    assert f"{len(CONTENT)} bytes (0 to {len(CONTENT)})" in dropped.out, "what is given up is named"
    stripewise("fsck", "-p", cluster.plan, cluster.path)
    assert stripewise("cat", cluster.path).out == "\0" * (len(CONTENT)), "the original has never had them"


def test_run_says_that_a_server_of_a_copy_is_missing(stripewise, make_copied, kind):
    cluster = make_copied(kind)
    cluster.targets[-1].rename(cluster.root / "away")
    refused = stripewise("run", "-p", cluster.plan, "--", "true", ok=False)
    assert refused.code == 1 and "ssd/3" in refused.err, str(refused)


def test_a_server_that_is_away_and_comes_back(stripewise, make_copied, cat):
    cluster = make_copied("cache")
    server = cluster.targets[-1]
    server.rename(cluster.root / "away")
    drained = stripewise("drain", cluster.path, ok=False)
    assert drained.code == 1 and "only in copy 1-DH" in drained.err and server.name in drained.err, str(drained)
    shown = stripewise("status", cluster.path, ok=False)
    assert shown.code == 1 and "lost" in shown.out
    (cluster.root / "away").rename(server)
    stripewise("drain", cluster.path)
    assert cat(cluster.path) == CONTENT


def test_old_content_that_comes_back_is_not_believed(stripewise, make_copied, python, cat):
    cluster = make_copied("cache")
    stripewise("drain", cluster.path)
    servers = [target for target in cluster.targets if target.name.startswith("ssd")]
    for server in servers:
        server.rename(cluster.root / server.name)
    cluster.run(python, "-c", OVERWRITE, cluster.path, "4096")
    for server in servers:
        (cluster.root / server.name).rename(server)
    expected = CONTENT[:4096] + b"new" * 1000 + CONTENT[7096:]
    assert cat(cluster.path) == expected and cluster.run(python, "-c", READ, cluster.path).code == 0
    stripewise("drain", cluster.path)
    stripewise("fsck", "--compare", cluster.path)


def test_a_replica_that_is_lost_is_missed_by_drain_and_made_anew_by_fsck(stripewise, make_copied, cat):
    cluster = make_copied("replicas")
    for component in components(cluster, "ssd"):
        component.unlink()
    assert cat(cluster.path) == CONTENT, "the others have everything"
    drained = stripewise("drain", cluster.path, ok=False)
    assert drained.code == 1 and "copy wide is not in sync" in drained.err, str(drained)
    stripewise("fsck", "--repair", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["wide"]["stale_bytes"] == len(CONTENT)
    stripewise("drain", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["wide"]["stale_bytes"] == 0 and cat(cluster.path) == CONTENT


def test_space_of_the_cache_that_holds_nothing_is_given_back(stripewise, make_copied, cat):
    """What a killed process had written before it could say so; here, what a stranger wrote into a hole."""
    cluster = make_copied("cache", mode="off")
    copy_id = re.search(rb'name = "1-DH"\nid = "(\w+)"', cluster.path.read_bytes())[1].decode()
    component = next(path for path in components(cluster, "ssd") if path.name == f"{copy_id}.3")
    with component.open("r+b") as file:
        file.write(os.urandom(256 << 10))
    noted = stripewise("fsck", cluster.path)
    assert "note" in noted.out and "[space]" in noted.out, noted.out
    stripewise("fsck", "--repair", cluster.path)
    assert component.stat().st_blocks * 512 < 64 << 10
    assert "[space]" not in stripewise("fsck", cluster.path).out and cat(cluster.path) == CONTENT


def test_a_cache_that_was_lost_does_not_count_as_full(stripewise, make_copied):
    cluster = make_copied("cache", capacity="128K")
    stripewise("drain", cluster.path)
    for component in components(cluster, "ssd"):
        component.unlink()
    stripewise("fsck", "--repair", cluster.path)
    cluster.run("cp", cluster.root / "source", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["1-DH"]["valid_bytes"] == 512 << 10


def test_an_original_that_was_changed_behind_our_back(stripewise, copied, cat):
    stripewise("drain", copied.path)
    stripewise("fsck", "--compare", copied.path)
    component = next(path for path in components(copied, "hdd") if copied.targets[0] in path.parents and path.stat().st_size)
    before = component.stat()
    with component.open("r+b") as file:
        file.seek(5000)
        file.write(b"from a stranger")
    found = stripewise("fsck", "--compare", "--json", copied.path, ok=False)
    assert found.code == 1 and set(kinds_of(found)) == {"differs"}
    assert "(5000 to 5015)" in found.out and "original" in found.out, "the bytes are named"
    os.truncate(component, before.st_size // 2)
    assert "differs" in kinds_of(stripewise("fsck", "--compare", "--json", copied.path, ok=False))
    component.unlink()
    lost = stripewise("fsck", "--json", copied.path, ok=False)
    assert "component" in kinds_of(lost), str(lost)
    assert stripewise("cat", copied.path, ok=False).code == 1, "never zeros for what is lost"


def test_orphans_of_all_copies_are_removed_with_their_journal(stripewise, copied):
    copied.path.unlink()
    found = stripewise("fsck", "-p", copied.plan, "--orphan-age", "0", copied.data, ok=False)
    assert found.code == 1 and "[orphan]" in found.out, str(found)
    stripewise("fsck", "-p", copied.plan, "--orphan-age", "0", "--remove-orphans", copied.data)
    assert not [path for target in copied.targets for path in target.glob("stripewise/*/*")]


def test_an_anchor_that_was_overwritten(stripewise, copied, cat):
    copied.path.write_bytes(b"a program without the library\n")
    found = stripewise("fsck", "-p", copied.plan, "--orphan-age", "0", copied.data, ok=False)
    assert found.code == 1 and "[destroyed]" in found.out, str(found)
    stripewise("fsck", "-p", copied.plan, "--orphan-age", "0", "--repair", copied.data)
    assert cat(copied.path) == CONTENT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_cache_server_without_space(stripewise, cluster, execute, cat):
    """The disk is smaller than the limit says: what does not fit goes to the original, and that is said once."""
    server = cluster.targets[-1]
    mounted = execute("mount", "-t", "tmpfs", "-o", "size=400k", "none", server, ok=False)
    if mounted.code != 0:
        pytest.skip(f"cannot mount here: {mounted.err.strip()}")
    try:
        source, path = cluster.root / "source", cluster.data / "f"
        source.write_bytes(CONTENT * 4)
        write_plan(cluster, "cache")
        copied = cluster.run("cp", source, path)
        assert copied.err.count("stripewise:") <= 1, copied.err
        assert cat(path) == CONTENT * 4
        stripewise("drain", path)
        stripewise("fsck", "--compare", "-p", cluster.plan, path)
        stripewise("rm", path)
    finally:
        execute("umount", server)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_read_only_cache_server(stripewise, make_copied, execute, python, cat):
    cluster = make_copied("cache")
    stripewise("drain", cluster.path)
    servers = [target for target in cluster.targets if target.name.startswith("ssd")]
    mounted = []
    try:
        for server in servers:
            done = execute("mount", "--bind", server, server, ok=False)
            if done.code != 0:
                pytest.skip(f"cannot mount here: {done.err.strip()}")
            mounted.append(server)
            execute("mount", "-o", "remount,bind,ro", server)
        assert cat(cluster.path) == CONTENT
    finally:
        for server in mounted:
            execute("umount", server)
    cluster.run(python, "-c", OVERWRITE, cluster.path, "5")
    assert cat(cluster.path) == CONTENT[:5] + b"new" * 1000 + CONTENT[3005:]


# ------------------------------------------------------------------------------------------------ faults: journal and lease


def test_a_journal_that_is_gone_or_damaged(stripewise, make_copied, python, cat, kind):
    cluster = make_copied(kind)
    stripewise("drain", cluster.path)
    journal = journal_of(cluster)
    for damage in (journal.unlink, lambda: journal.write_bytes(b"\0" * 64), lambda: os.truncate(journal, 10)):
        damage()
        program = cluster.run(python, "-c", READ, cluster.path, ok=False)
        assert program.code == 1 and "Errno 5" in program.err and str(journal) in program.err, str(program)
        refused = stripewise("fsck", "--repair", cluster.path, ok=False)
        assert refused.code == 1 and "--drop-dirty" in refused.out, "only the journal knew whether anything was dirty"
        stripewise("fsck", "--repair", "--drop-dirty", cluster.path)
        assert cat(cluster.path) == CONTENT, "it was drained, so the original has everything"
        stripewise("fsck", "-p", cluster.plan, cluster.path)
        cluster.run("cp", cluster.root / "source", cluster.path)
        stripewise("drain", cluster.path)


def test_a_journal_of_another_version_is_refused(stripewise, copied, python):
    journal = journal_of(copied)
    data = bytearray(journal.read_bytes())
    data[8] = 99
    data[60:64] = zlib.crc32(bytes(data[:60])).to_bytes(4, "little")
    journal.write_bytes(data)
    with Unchanged(copied.root):
        program = copied.run(python, "-c", READ, copied.path, ok=False)
        results = [stripewise(*command, copied.path, ok=False) for command in (["status"], ["drain"], ["fsck", "--repair"])]
    assert "Errno 5" in program.err
    for result in results:
        assert result.code == 1 and "version 99" in result.out + result.err, str(result)


def test_a_torn_batch_is_cut_off(stripewise, copied, cat):
    journal = journal_of(copied)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"swb\x01 torn")
    noted = stripewise("fsck", copied.path)
    assert "note" in noted.out and "never finished" in noted.out
    stripewise("fsck", "--repair", copied.path)
    assert batches(journal)[1] == journal.stat().st_size
    assert cat(copied.path) == CONTENT


def test_another_node_is_refused_until_it_is_taken_over(stripewise, copied, python, cat):
    append_opened(journal_of(copied), "node-that-is-gone")
    with Unchanged(copied.root):
        program = copied.run(python, "-c", OVERWRITE, copied.path, "0", ok=False)
        drained = stripewise("drain", copied.path, ok=False)
        checked = stripewise("fsck", "--repair", copied.path, ok=False)
    assert program.code == 1 and "Errno 16" in program.err and "node-that-is-gone" in program.err, str(program)
    assert drained.code == 1 and "node-that-is-gone" in drained.err
    assert checked.code == 1 and "--take-over" in checked.out
    assert status(stripewise, copied.path)["lease"] == {"state": "elsewhere", "node": "node-that-is-gone"}
    stripewise("fsck", "--take-over", copied.path)
    assert cat(copied.path) == CONTENT
    copied.run(python, "-c", OVERWRITE, copied.path, "0")
    stripewise("fsck", "-p", copied.plan, copied.path)


def test_a_machine_that_went_down_while_the_file_was_written(stripewise, copied, cat):
    """The boot id in the journal is another one: only what was synced counts, and that is all there is here."""
    name = next(path for path in (Path("/etc/machine-id"), Path("/proc/sys/kernel/hostname")) if path.exists())
    append_opened(journal_of(copied), name.read_text().strip())
    assert status(stripewise, copied.path)["lease"]["state"] == "earlier-boot"
    assert "went down" in stripewise("status", copied.path).out
    noted = stripewise("fsck", copied.path)
    assert "[interrupted]" in noted.out
    stripewise("fsck", "--repair", copied.path)
    assert status(stripewise, copied.path)["lease"]["state"] == "closed" and cat(copied.path) == CONTENT


def test_export_refuses_a_file_that_a_program_has_open(stripewise, copied, python, cat):
    environment = {**os.environ, **copied.environment()}
    holder = subprocess.Popen([python, "-c", HOLD, copied.path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        refused = stripewise("export", copied.path, ok=False)
        assert refused.code == 1 and "is open in another program" in refused.err, str(refused)
    finally:
        holder.communicate(b"\n")
    assert holder.returncode == 0
    stripewise("export", copied.path)
    assert copied.path.read_bytes() == b"x" * 5000 + CONTENT[5000:]


def test_nothing_is_repaired_under_a_running_program(stripewise, copied, python, cat):
    environment = {**os.environ, **copied.environment()}
    holder = subprocess.Popen([python, "-c", HOLD, copied.path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        assert "0 problems" in stripewise("fsck", "--compare", copied.path).out
        assert "0 problems" in stripewise("fsck", "--repair", "--take-over", copied.path).out
        for component in components(copied, "ssd"):
            component.unlink()
        refused = stripewise("fsck", "--repair", "--drop-dirty", copied.path, ok=False)
        assert refused.code == 1 and "repair failed" in refused.out and "open" in refused.out, str(refused)
    finally:
        holder.communicate(b"\n")
    assert holder.returncode == 0


@pytest.mark.parametrize("loss", ["removed", "damaged"])
def test_a_map_that_is_lost_while_the_file_is_open(stripewise, copied, python, loss):
    environment = {**os.environ, **copied.environment()}
    holder = subprocess.Popen([python, "-c", HOLD, copied.path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    holder.kill()
    holder.wait()
    run_dir = Path(f"/dev/shm/stripewise-{os.geteuid()}") / journal_of(copied).name.removesuffix(".extents")
    if loss == "removed":
        shutil.rmtree(run_dir)
    else:
        (run_dir / "data.mdb").write_bytes(b"U" * 32768)
    shown = stripewise("status", copied.path, ok=False)
    assert shown.code == 1 and "map was lost" in shown.out, str(shown)
    refused = stripewise("fsck", copied.path, ok=False)
    assert refused.code == 1 and "was lost while" in refused.out, str(refused)
    assert stripewise("cat", copied.path, ok=False).code == 1
    stripewise("fsck", "--repair", copied.path)
    stripewise("fsck", "-p", copied.plan, copied.path)
    assert stripewise("cat", "--offset", "5000", "--length", "1", copied.path).code == 0
