"""Native placement: `place --native` on a fake of Lustre's tools (tests/fakes), killed and undone;
the output of `plan --native`."""

import json
import os
import subprocess
import time

import pytest
from conftest import BIN, ROOT, run_command

FAKES = ROOT / "tests" / "fakes"
SERVICE = "{ startup_s = 1e-3, per_byte_s = 1e-8 }"
KINDS = "\n".join(f"{op}.{how} = {SERVICE}" for op in ["read", "write"] for how in ["random", "sequential"])


class Site:
    """A directory that the fake treats as a Lustre with OSTs 0 to 3 (pool hdd) and 4 to 7 (ssd),
    and plans for it."""

    def __init__(self, root):
        self.mount = root / "mount"
        self.data = self.mount / "data"
        self.data.mkdir(parents=True)
        state = root / "state"
        state.mkdir()
        osts = "".join(f"ost {i} 1000000000\n" for i in range(8))
        (state / "fake.conf").write_text(f"mount {self.mount}\nfsname fake\n{osts}pool hdd 0 1 2 3\npool ssd 4 5 6 7\n")
        self.environment = {"STRIPEWISE_FAKE": str(state), "STRIPEWISE_LFS": str(FAKES / "lfs")}
        self.cluster = root / "cluster.toml"
        self.cluster.write_text(self.cluster_text(""))
        self.plan = root / "plan.toml"

    def cluster_text(self, prefix):
        tiers = "".join(
            f'[[{prefix}tier]]\nname = "{tier}"\nclass = "{tier}"\ndriver = "lustre"\nroot = "{self.mount}/targets"\n'
            f'pool = "{tier}"\ncount = 4\ncapacity_per_server = "1T"\n'
            for tier in ["hdd", "ssd"]
        )
        classes = "".join(f"[{prefix}class.{tier}]\n{KINDS}\n" for tier in ["hdd", "ssd"])
        return f"[{prefix}network]\nestablish_s = 0.0\nper_byte_s = 0.0\n{classes}{tiers}"

    def write_plan(self, *rules):
        """Writes a plan with these rules: (pattern below data, cycle)."""
        text = 'version = 1\nscheme = "auto"\n'
        for pattern, cycle in rules:
            text += (
                f'[[rule]]\npattern = "{self.data}/{pattern}"\nscheme = "given"\nreason = ""\npredicted_s = 1.0\n'
                f'elapsed_s = 1.0\nlayouts = [[{{ cycle = "{cycle}" }}]]\n'
            )
        self.plan.write_text(text + self.cluster_text("cluster."))

    def place(self, *words, **options):
        return run_command(BIN / "stripewise", "place", "--native", self.plan, *words, env=self.environment, **options)

    def lfs(self, path):
        """The file system's description of a path."""
        words = [FAKES / "lfs", "getstripe", "-d", "--yaml", path]
        if os.path.isfile(path):
            words.remove("-d")
        return run_command(*words, env=self.environment).out

    def names(self):
        return sorted(path.name for path in self.data.iterdir())


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_files_and_directories_get_their_layout_and_come_back(site):
    contents = {name: os.urandom(size) for name, size in [("a.dat", 0), ("b.dat", 100), ("c.dat", 3_000_000)]}
    for name, data in contents.items():
        (site.data / name).write_bytes(data)
    (site.data / "b.dat").chmod(0o640)
    (site.data / "other").write_bytes(b"not of the plan")
    before = site.lfs(site.data / "c.dat")
    inodes = {name: (site.data / name).stat().st_ino for name in contents}
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    shown = site.place("--dry-run").out
    assert "would get 1M x 4 in pool hdd" in shown and "other" not in shown
    assert site.names() == ["a.dat", "b.dat", "c.dat", "other"], "a dry run changes nothing"
    placed = site.place("--json").json()
    assert [file["placed"] for file in placed["files"]] == [True] * 3
    assert [entry["prepared"] for entry in placed["directories"]] == [True]
    assert all((site.data / name).read_bytes() == data for name, data in contents.items())
    assert (site.data / "b.dat").stat().st_mode & 0o7777 == 0o640
    assert {name: (site.data / name).stat().st_ino for name in contents} == inodes, "so they keep their projects"
    assert "hdd" in site.lfs(site.data / "c.dat") and "hdd" not in site.lfs(site.data / "other")
    (site.data / "new").touch()
    assert "hdd" in site.lfs(site.data / "new"), "new files inherit it"
    assert not any(file["placed"] for file in site.place("--json").json()["files"]), "a second time there is nothing to do"
    back = site.place("--undo", "--json").json()
    assert [file["restored"] for file in back["files"]] == [True] * 3
    assert all((site.data / name).read_bytes() == data for name, data in contents.items())
    assert "hdd" not in site.lfs(site.data / "c.dat") and "hdd" in before + site.lfs(site.data / "new")
    assert site.names() == ["a.dat", "b.dat", "c.dat", "new", "other"], "nothing is left over"


def test_one_directory_has_one_layout(site):
    for name in ["a.dat", "b.out"]:
        (site.data / name).write_bytes(os.urandom(1000))
    site.write_plan(("*.dat", "hdd/0-3:1M"), ("*.out", "ssd/0-3:64K"))
    result = site.place(ok=False)
    assert result.code == 1 and "one layout for all new files" in result.err, result
    assert "hdd" in site.lfs(site.data / "a.dat") and "ssd" in site.lfs(site.data / "b.out"), "file by file it works"
    (site.data / "c.dat").touch()
    assert "hdd" not in site.lfs(site.data / "c.dat")


def test_what_the_file_system_refuses_is_said_and_nothing_is_lost(site):
    (site.data / "a.dat").write_bytes(b"bytes")
    site.write_plan(("*.dat", "hdd/0-3:100K"))
    result = site.place(ok=False)
    assert result.code == 1 and "64K" in result.err and "a.dat" in result.err, result
    assert (site.data / "a.dat").read_bytes() == b"bytes" and site.names() == ["a.dat"]


def test_a_file_that_cannot_be_changed_in_place_is_copied(site):
    with open(site.environment["STRIPEWISE_FAKE"] + "/fake.conf", "a") as conf:
        conf.write("busy\n")
    (site.data / "a.dat").write_bytes(b"bytes")
    inode = (site.data / "a.dat").stat().st_ino
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    result = site.place()
    assert "a.dat: is copied, because" in result.err and "cannot get lease" in result.err, result
    assert (site.data / "a.dat").read_bytes() == b"bytes" and (site.data / "a.dat").stat().st_ino != inode
    assert "hdd" in site.lfs(site.data / "a.dat")


def test_a_file_that_the_command_itself_has_open_is_copied_before_2_15(site):
    with open(site.environment["STRIPEWISE_FAKE"] + "/fake.conf", "a") as conf:
        conf.write("version 2.14.0\n")
    (site.data / "a.dat").write_bytes(b"bytes")
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    assert "a.dat: is copied, because" in site.place().err
    assert (site.data / "a.dat").read_bytes() == b"bytes" and "hdd" in site.lfs(site.data / "a.dat")


def test_a_file_whose_layout_cannot_be_read_does_not_stop_the_rest(site):
    strange = os.fsencode(site.data) + b"/\xff.dat"
    for path in [strange, site.data / "a.dat"]:
        with open(path, "wb") as file:
            file.write(b"bytes")
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    result = site.place(ok=False)
    assert result.code == 1 and "stays as it is" in result.err and "not UTF-8" in result.err, result
    assert "hdd" in site.lfs(site.data / "a.dat")
    with open(strange, "rb") as file:
        assert file.read() == b"bytes"


def test_files_come_back_to_the_server_that_their_directory_names(site):
    run_command(FAKES / "lfs", "setstripe", "-c", "1", "-i", "3", site.data, env=site.environment)
    names = [f"{i}.dat" for i in range(4)]
    for name in names:
        (site.data / name).write_bytes(b"bytes")
    site.write_plan(("<n>.dat", "ssd/0-3:1M"))
    site.place()
    site.place("--undo")
    for name in names:
        assert "- l_ost_idx: 3\n" in site.lfs(site.data / name), site.lfs(site.data / name)
        assert (site.data / name).read_bytes() == b"bytes"


def test_what_a_killed_driver_left_is_removed(site):
    trial = site.data / ".stripewise-trial-0"
    trial.mkdir()
    (trial / "x.dat").touch()
    (site.data / "a.dat").write_bytes(b"bytes")
    site.write_plan(("**", "hdd/0-3:1M"))
    site.place()
    assert site.names() == [".stripewise-native.toml", "a.dat"]


def test_contents_that_change_with_the_layout_are_an_error(site):
    with open(site.environment["STRIPEWISE_FAKE"] + "/fake.conf", "a") as conf:
        conf.write("unsafe\n")
    (site.data / "a.dat").write_bytes(b"bytes")
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    result = site.place(ok=False)
    assert result.code == 1 and "a.dat: its contents differ" in result.err, result


def test_defaults_that_no_plan_expresses_come_back(site):
    for options in ["-S 1M -c -1", "-E 1M -L mdt -E 1G -S 1M -c 2 -z 64M -E -1 -S 1M -c -1",
                    "-N -E -1 -S 1M -c 1 -p hdd -N -E -1 -S 1M -c 1 -p ssd"]:
        run_command(FAKES / "lfs", "setstripe", *options.split(), site.data, env=site.environment)
        (site.data / "a.dat").write_bytes(b"bytes")
        before = site.lfs(site.data)
        site.write_plan(("*.dat", "hdd/0-3:1M"))
        site.place()
        assert site.lfs(site.data) != before
        site.place("--undo")
        assert site.lfs(site.data) == before and (site.data / "a.dat").read_bytes() == b"bytes"
        (site.data / "new").touch()
        described = [site.lfs(site.data / name).split() for name in ["a.dat", "new"]]
        keys = [[word for word in words if word.endswith(":")] for words in described]
        assert keys[0] == keys[1], described
        assert site.names() == ["a.dat", "new"]
        (site.data / "a.dat").unlink()
        (site.data / "new").unlink()


def test_killed_again_and_again(site):
    contents = {f"{i}.dat": os.urandom(20_000) for i in range(8)}
    for name, data in contents.items():
        (site.data / name).write_bytes(data)
    site.write_plan(("<n>.dat", "hdd/0-3:1M"))
    words = [BIN / "stripewise", "place", "--native", "-q", "--jobs", "2", site.plan]
    for attempt in range(6):
        environment = {**os.environ, **site.environment}
        process = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
        time.sleep(0.15 + 0.1 * attempt)
        # The kernel kills the tools that would go on to change files.
        process.kill()
        process.wait()
        assert all((site.data / name).read_bytes() == data for name, data in contents.items())
    site.place("-q")
    assert all((site.data / name).read_bytes() == data for name, data in contents.items())
    assert all("hdd" in site.lfs(site.data / name) for name in contents)
    assert site.names() == sorted([*contents, ".stripewise-native.toml"]), "nothing is left over"


def test_plans_that_stripewise_must_be_there_for_are_refused(site):
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    text = site.plan.read_text()
    dirs = '\ndriver = "dirs"\nservers = ["/a", "/b", "/c", "/d"]\n'
    native = f'\ndriver = "lustre"\nroot = "{site.mount}/targets"\npool = "hdd"\ncount = 4\n'
    assert native in text
    site.plan.write_text(text.replace(native, dirs))
    result = site.place(ok=False)
    assert result.code == 1 and "stripewise init" in result.err, result


def test_plan_native_leaves_out_what_the_file_system_has_not(site, stripewise, tmp_path):
    trace = tmp_path / "job.trace"
    stripewise("synth", "ior", "--procs", "4", "--transfer", "1M", "--total", "64M", "--file", site.data / "out", "-o", trace)
    words = ["plan", trace, "-c", site.cluster, "-o", site.plan, "--min-gain", "none"]
    text = stripewise(*words, "--native", "--candidates").out
    assert "Not considered:" in text and "Lustre has no such layout" in text
    assert "several copies" in stripewise(*words, "--native", "--scheme", "cache", ok=False).err
    result = site.place("--dry-run", "--json").json()
    assert [entry.get("error") for entry in result["directories"]] == [None], json.dumps(result)


def test_plan_asks_the_file_system_for_the_present_layout(site, stripewise, tmp_path):
    trace = tmp_path / "job.trace"
    stripewise("synth", "ior", "--procs", "4", "--transfer", "1M", "--total", "64M", "--file", site.data / "out", "-o", trace)

    def plan(*words, **options):
        words = ["plan", trace, "-c", site.cluster, "-o", site.plan, "--native", "--json", *words]
        return run_command(BIN / "stripewise", *words, env=site.environment, **options)

    def present(*words):
        (files,) = plan(*words).json()["files"]
        return files["present"]["name"], files["keep"], files["first"]

    plain = present()
    assert plain[:2] == ("plain files on hdd/0 (assumed)", False), "there is neither a file nor a default"
    site.place()
    name, keeps, first = present()
    assert keeps and name == "as they are now: hdd/0:1M, ...", "new files get what was planned"
    assert present("--present", "plain") == plain, "who says it is believed"
    run_command(FAKES / "lfs", "setstripe", "-c", "2", "-S", "64K", "-p", "ssd", first, env=site.environment)
    assert present()[0] == "as they are now: ssd/0-1:64K, ...", "the first file has another one"
    broken = tmp_path / "lfs"
    broken.write_text(f'#!/bin/sh\n[ "$1" != getstripe ] || {{ echo "no answer" >&2; exit 5; }}\nexec {FAKES}/lfs "$@"\n')
    broken.chmod(0o755)
    site.environment["STRIPEWISE_LFS"] = str(broken)
    result = plan(ok=False)
    assert result.code != 0 and "no answer" in result.err and "--present" in result.err, "an error is no answer"
    assert present("--present", "plain") == plain
