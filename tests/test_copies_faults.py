"""Files with several copies where data is lost, damaged or full, or that another node uses: what
the commands find, report and repair."""

import os
import re
import shutil
import zlib
from pathlib import Path

import pytest

from bad_input import Unchanged
from conftest import small_disk
from copies import (
    CONTENT,
    OVERWRITE,
    READ,
    append_opened,
    batches,
    cat,
    objects,
    copied,
    dirty,
    hold,
    journal_of,
    kind,
    kinds_of,
    make_copied,
    remove_objects,
    status,
    write_plan,
)


def test_a_lost_clean_cache_is_forgotten_and_made_anew(stripewise, make_copied, cat):
    cluster = make_copied("cache")
    stripewise("drain", cluster.path)
    remove_objects(cluster, "ssd")
    with Unchanged(cluster.root):
        found = stripewise("fsck", "--json", cluster.path, ok=False)
    assert found.code == 1 and "lost-copy" in kinds_of(found), str(found)
    stripewise("fsck", "--repair", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["1-DH"]["valid_bytes"] == 0
    stripewise("fsck", "-p", cluster.plan, cluster.path)
    assert objects(cluster, "ssd") and cat(cluster.path) == CONTENT
    cluster.run("cp", cluster.root / "source", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["1-DH"]["valid_bytes"] > 0, "it caches again"


def test_dirty_bytes_of_a_lost_cache_are_named_and_never_dropped_unasked(stripewise, make_copied, python):
    cluster = make_copied("cache")
    remove_objects(cluster, "ssd")
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
    remove_objects(cluster, "ssd")
    assert cat(cluster.path) == CONTENT, "the others have everything"
    drained = stripewise("drain", cluster.path, ok=False)
    assert drained.code == 1 and "copy wide is not in sync" in drained.err, str(drained)
    stripewise("fsck", "--repair", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["wide"]["stale_bytes"] == len(CONTENT)
    stripewise("drain", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["wide"]["stale_bytes"] == 0 and cat(cluster.path) == CONTENT


def test_space_of_the_cache_that_holds_nothing_is_given_back(stripewise, make_copied, cat):
    """Space that a killed process filled before it could record it; here, bytes written into a hole
    directly."""
    cluster = make_copied("cache", mode="off")
    copy_id = re.search(rb'name = "1-DH"\nid = "(\w+)"', cluster.path.read_bytes())[1].decode()
    object = next(path for path in objects(cluster, "ssd") if path.name == f"{copy_id}.3")
    with object.open("r+b") as file:
        file.write(os.urandom(256 << 10))
    noted = stripewise("fsck", cluster.path)
    assert "note" in noted.out and "[space]" in noted.out, noted.out
    stripewise("fsck", "--repair", cluster.path)
    assert object.stat().st_blocks * 512 < 64 << 10
    assert "[space]" not in stripewise("fsck", cluster.path).out and cat(cluster.path) == CONTENT


def test_a_cache_that_was_lost_does_not_count_as_full(stripewise, make_copied):
    cluster = make_copied("cache", capacity="128K")
    stripewise("drain", cluster.path)
    remove_objects(cluster, "ssd")
    stripewise("fsck", "--repair", cluster.path)
    cluster.run("cp", cluster.root / "source", cluster.path)
    assert status(stripewise, cluster.path)["by_name"]["1-DH"]["valid_bytes"] == 512 << 10


def test_an_original_that_was_changed_behind_our_back(stripewise, copied, cat):
    stripewise("drain", copied.path)
    stripewise("fsck", "--compare", copied.path)
    object = next(path for path in objects(copied, "hdd") if copied.targets[0] in path.parents and path.stat().st_size)
    before = object.stat()
    with object.open("r+b") as file:
        file.seek(5000)
        there = file.read(15)
        file.seek(5000)
        file.write(bytes(byte ^ 0xFF for byte in there))  # every byte differs, whatever the contents are
    found = stripewise("fsck", "--compare", "--json", copied.path, ok=False)
    assert found.code == 1 and set(kinds_of(found)) == {"differs"}
    assert "(5000 to 5015)" in found.out and "original" in found.out, "the bytes are named"
    os.truncate(object, before.st_size // 2)
    assert "differs" in kinds_of(stripewise("fsck", "--compare", "--json", copied.path, ok=False))
    object.unlink()
    lost = stripewise("fsck", "--json", copied.path, ok=False)
    assert "object" in kinds_of(lost), str(lost)
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
def test_a_cache_server_without_space(stripewise, cluster, cat):
    """The disk is smaller than the limit says. Data that does not fit goes to the original, which
    is logged once."""
    server = cluster.targets[-1]
    with small_disk(server, "400k"):
        source, path = cluster.root / "source", cluster.data / "f"
        source.write_bytes(CONTENT * 4)
        write_plan(cluster, "cache")
        copied = cluster.run("cp", source, path)
        assert copied.err.count("stripewise:") <= 1, copied.err
        assert cat(path) == CONTENT * 4
        stripewise("drain", path)
        stripewise("fsck", "--compare", "-p", cluster.plan, path)
        stripewise("rm", path)


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


# The journal and the write intent.


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
    """The boot id in the journal is another one, so only synced data counts, which is all of it
    here."""
    name = next(path for path in (Path("/etc/machine-id"), Path("/proc/sys/kernel/hostname")) if path.exists())
    append_opened(journal_of(copied), name.read_text().strip())
    assert status(stripewise, copied.path)["lease"]["state"] == "earlier-boot"
    assert "went down" in stripewise("status", copied.path).out
    noted = stripewise("fsck", copied.path)
    assert "[interrupted]" in noted.out
    stripewise("fsck", "--repair", copied.path)
    assert status(stripewise, copied.path)["lease"]["state"] == "closed" and cat(copied.path) == CONTENT


def test_export_refuses_a_file_that_a_program_has_open(stripewise, copied, python, cat):
    holder = hold(copied, python)
    try:
        refused = stripewise("export", copied.path, ok=False)
        assert refused.code == 1 and "is open in another program" in refused.err, str(refused)
    finally:
        holder.communicate(b"\n")
    assert holder.returncode == 0
    stripewise("export", copied.path)
    assert copied.path.read_bytes() == b"x" * 5000 + CONTENT[5000:]


def test_nothing_is_repaired_under_a_running_program(stripewise, copied, python, cat):
    holder = hold(copied, python)
    try:
        assert "0 problems" in stripewise("fsck", "--compare", copied.path).out
        assert "0 problems" in stripewise("fsck", "--repair", "--take-over", copied.path).out
        remove_objects(copied, "ssd")
        refused = stripewise("fsck", "--repair", "--drop-dirty", copied.path, ok=False)
        assert refused.code == 1 and "repair failed" in refused.out and "open" in refused.out, str(refused)
    finally:
        holder.communicate(b"\n")
    assert holder.returncode == 0


@pytest.mark.parametrize("loss", ["removed", "damaged"])
def test_a_map_that_is_lost_while_the_file_is_open(stripewise, copied, python, loss):
    holder = hold(copied, python)
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
