"""Native placement on a real OrangeFS: files and directories get its distributions, every server
holds the bytes that the plan says, programs run without stripewise, and the layouts are undone."""

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest
import testbeds
from conftest import run_command
from dealt import expected

from .conftest import hints, layout_of, set_hints

RANKS, SIZE = 4, 16 << 20
# Scheme: the distribution that it becomes.
SCHEMES = {"1-DH": "simple_stripe", "1-DV": "simple_stripe", "2-D g=2": "simple_stripe", "pa": "varstrip_dist"}
# Two rounds over one group of servers, then over the other; no planner makes such a cycle.
GROUPS = "hdd/0-3:64K hdd/0-3:64K ssd/0-3:64K ssd/0-3:64K"


def digest(path):
    return hashlib.blake2b(path.read_bytes()).hexdigest()


def sums(directory):
    return {path.name: digest(path) for path in sorted(directory.glob("*.dat"))}


@pytest.mark.parametrize(("scheme", "cycle"), [*((scheme, None) for scheme in SCHEMES), ("1-DH", GROUPS)])
def test_every_byte_is_where_the_plan_puts_it(bed, top, cluster, stripewise, tmp_path, scheme, cycle):
    """An existing file is placed, and a program without stripewise writes another: each server has
    its bytes of both from the plan."""
    toml, plan, source = (tmp_path / name for name in ("cluster.toml", "plan.toml", "source"))
    file, new = top / "data" / "out.1", top / "data" / "out.2"
    toml.write_text(cluster())
    source.write_bytes(os.urandom(SIZE))
    shape = ["--procs", RANKS, "--transfer", "256K", "--block", SIZE // RANKS, "--access", "sequential", "--op", "write", "--shared"]
    stripewise("synth", "ior", *shape, "--file", file, "-o", tmp_path / "trace")
    stripewise("plan", tmp_path / "trace", "-c", toml, "--native", "--scheme", scheme, "--min-gain", "none", "-o", plan)
    if cycle:
        plan.write_text(re.sub(r'cycle = ".*"', f'cycle = "{cycle}"', plan.read_text()))

    def servers(targets):
        tier, first, last = re.fullmatch(r"(\w+)/(\d+)(?:-(\d+))?", targets).groups()
        return cluster.halves[tier][int(first) : int(last or first) + 1]

    planned = expected(plan, 1, SIZE, servers)
    assert sum(planned.values()) == SIZE and len(planned) > 1
    shutil.copyfile(source, file)
    stripewise("place", "--native", "-q", plan)
    shutil.copyfile(source, new)
    assert bed.bytes(file) == bed.bytes(new) == planned
    assert layout_of(file)[0] == ("twod_stripe" if cycle else SCHEMES[scheme])
    assert digest(file) == digest(new) == digest(source)
    assert layout_of(new) == layout_of(file)


@pytest.fixture
def plan(top, cluster):
    """A plan with all files of data in stripes of different widths over four servers."""
    path = top / "plan.toml"
    path.write_text(
        f'version = 1\nscheme = "given"\n[[rule]]\npattern = "{top}/data/**"\nscheme = "PA"\nreason = ""\n'
        f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "hdd/0-1:28K ssd/0-1:172K" }}]]\n' + cluster("cluster.")
    )
    return path


STRIPS = "0:28K;1:28K;2:172K;3:172K"


def wanted(cluster):
    return ("varstrip_dist", STRIPS, cluster.halves["hdd"][:2] + cluster.halves["ssd"][:2])


def test_placed_killed_resumed_and_back(top, cluster, plan, stripewise, bin_dir):
    data = top / "data"
    for index in range(40):
        (data / f"f{index}.dat").write_bytes(os.urandom(4096 + 6000 * index))
    with (data / "long.dat").open("wb") as file:
        file.writelines(os.urandom(1 << 20) for _ in range(64))
    (data / "f0.dat").chmod(0o640)
    first = sums(data)
    for attempt in range(4):
        testbeds.killed([bin_dir / "stripewise", "place", "--native", "-q", plan], 0.1 + 0.3 * attempt)
        assert sums(data) == first, "whatever was killed, files are whole"
    stripewise("place", "--native", "-q", plan, timeout=300)
    assert sums(data) == first
    assert {str(layout_of(path)) for path in data.glob("*.dat")} == {str(wanted(cluster))}
    assert (data / "f0.dat").stat().st_mode & 0o7777 == 0o640
    left = sorted(path.name for path in data.glob(".stripewise*"))
    assert left == [".stripewise-native.toml"], "nothing is left over"
    (data / "new").write_bytes(b"inherits")
    assert layout_of(data / "new") == wanted(cluster)
    stripewise("place", "--native", "--undo", "-q", plan, timeout=300)
    assert sums(data) == first and hints(data) == {}
    assert {layout_of(path)[:2] for path in data.glob("*.dat")} == {("simple_stripe", "strip_size:65536")}
    assert not list(data.glob(".stripewise*"))


@pytest.mark.parametrize("number", [None, "3"], ids=["a layout", "a number of datafiles"])
def test_undo_gives_back_former_hints(bed, top, plan, stripewise, number):
    data, servers = top / "data", bed.servers()[5:8]
    former = {
        "dist_name": "simple_stripe",
        "dist_params": "strip_size:131072",
        "server_list": f"{len(servers):05} {' '.join(servers)}",
        "layout": "00004",
    }
    former = {"layout": "00003", "num_dfiles": number} if number else former
    set_hints(data, **former)
    data.stat()
    (data / "f.dat").write_bytes(os.urandom(1 << 20))
    before, first = layout_of(data / "f.dat"), sums(data)
    assert len(before[2]) == 3 and (number or before == ("simple_stripe", "strip_size:131072", servers))
    stripewise("place", "--native", "-q", plan)
    assert layout_of(data / "f.dat") != before and sums(data) == first
    stripewise("place", "--native", "--undo", "-q", plan)
    assert hints(data) == former
    after = layout_of(data / "f.dat")
    assert (after[:2], len(after[2])) == (before[:2], 3) and (number or after == before)
    assert sums(data) == first


def test_former_hints_stay_where_a_server_is_unknown(top, plan, stripewise):
    data = top / "data"
    set_hints(data, num_dfiles="3")
    text = plan.read_text()
    plan.write_text(re.sub(r"tcp://127\.0\.0\.1:\d+", "tcp://127.0.0.1:1", text, count=1))
    refused = stripewise("place", "--native", plan, ok=False)
    assert refused.code == 1 and "tcp://127.0.0.1:1" in refused.err and "it is no server of this OrangeFS" in refused.err
    assert hints(data) == {"num_dfiles": "3"} and [path.name for path in data.iterdir() if "trial" in path.name] == []


@pytest.fixture
def kept_attributes(bed, top, tmp_path, monkeypatch):
    """The directory `data` by a mount whose client keeps attributes for a minute: pvfs2fuse with
    -o fs_spec, which does not turn its cache off (main in pvfs2fuse.c)."""
    mount, table = tmp_path / "mnt", tmp_path / "pvfs2tab"
    mount.mkdir()
    source = (bed.base / "pvfs2tab").read_text().split()[0]
    table.write_text(f"{source} {mount} pvfs2 defaults 0 0\n")
    run_command("pvfs2fuse", mount, "-o", f"fs_spec={source}")
    monkeypatch.setenv("PVFS2TAB_FILE", str(table))
    yield mount / top.relative_to(bed.mount)
    run_command("umount", mount)


def test_a_client_that_keeps_attributes_obeys_new_hints(kept_attributes, cluster, plan, stripewise):
    data = kept_attributes / "data"
    plan.write_text(re.sub(r'pattern = ".*"', f'pattern = "{data}/**"', plan.read_text()))
    (data / "f.dat").write_bytes(os.urandom(1 << 20))
    for width in ("28K", "36K"):
        plan.write_text(re.sub(r"hdd/0-1:\d+K", f"hdd/0-1:{width}", plan.read_text()))
        stripewise("place", "--native", "-q", plan)
        (data / "new").unlink(missing_ok=True)
        (data / "new").write_bytes(b"x")
        strips = STRIPS.replace("28K", width)
        assert layout_of(data / "f.dat")[1] == layout_of(data / "new")[1] == strips
    # Directories hand their hints down.
    (data / "below").mkdir()
    (data / "below" / "file").touch()
    assert layout_of(data / "below" / "file")[1] == strips
    stripewise("place", "--native", "--undo", "-q", plan)
    shutil.rmtree(data / "below")
    assert layout_of(data / "f.dat")[:2] == ("simple_stripe", "strip_size:65536")


def test_what_needs_targets_is_refused_before_anything_is_made(top, plan, stripewise):
    (top / "targets").mkdir()
    (top / "data" / "f.dat").write_bytes(b"x")
    for command in (["place", plan], ["run", "-p", plan, "--", "true"]):
        refused = stripewise(*command, ok=False)
        assert refused.code != 0 and "OrangeFS has no fallocate here" in refused.err, refused
        assert "stripewise place --native" in refused.err
        assert list((top / "targets").iterdir()) == []
    assert (top / "data" / "f.dat").read_bytes() == b"x"


def test_init_and_calibrate(bed, top, stripewise, tmp_path):
    (top / "targets").mkdir()
    toml = tmp_path / "cluster.toml"
    found = stripewise("init", top / "targets", "-o", toml, "--json").json()
    (place,) = found["directories"]
    assert (place["driver"], place["rights"], sorted(place["servers"])) == ("orangefs", [], bed.servers())
    assert any("no fallocate" in note and "--native" in note for note in place["notes"])
    assert list((top / "targets").iterdir()) == []
    quick = ["--quick", "--file-size", "64M", "--seconds-per-point", "0.002"]
    measured = stripewise("calibrate", "-c", toml, *quick, "--json", "-q").json()
    assert measured["servers"] and {server["mode"] for server in measured["servers"]} <= {"direct", "buffered"}


def test_without_its_tools_an_orangefs_is_not_taken_for_a_plain_directory(bed, top, stripewise, tmp_path):
    wrong = tmp_path / "pvfs2tab"
    wrong.write_text((bed.base / "pvfs2tab").read_text().replace(str(bed.mount), "/elsewhere"))
    for environment, what in (
        ({"STRIPEWISE_PVFS2_STATFS": "/nowhere/pvfs2-statfs"}, "cannot be run"),
        ({"PVFS2TAB_FILE": str(wrong)}, "could not find filesystem"),
    ):
        refused = stripewise("init", top, env=environment, ok=False)
        assert refused.code == 1 and what in refused.err and "PVFS2TAB_FILE" in refused.err, refused
    assert 'driver = "dirs"' in stripewise("init", tmp_path, env=environment).out


def test_names_with_blanks(top, cluster, plan, stripewise):
    data = top / "data" / "with a blank"
    data.mkdir()
    (data / "f.dat").write_bytes(b"x" * 100_000)
    stripewise("place", "--native", "-q", plan)
    assert layout_of(data / "f.dat") == wanted(cluster)
    assert Path(data / "f.dat").read_bytes() == b"x" * 100_000
