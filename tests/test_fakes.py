"""The fakes of the file systems' tools (tests/fakes) reject what the tools reject, with their
status and message.

The fakes state the source of each rule. `cargo test -p stripewise-drivers` tests that the drivers
conform to them.
"""

import fcntl
import os
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest
from conftest import ROOT, wait_until

FAKES = ROOT / "tests" / "fakes"
CONFIGURATION = {
    "lfs": "fsname testfs\nost 0 1000\nost 1 1000\nost 5 1000\npool hdd 0 1\npool full 5\npool empty\nfull 5\n",
    "beegfs": "pool 1 Default\npool 2 fast\npool 3 empty\nbuddy 1 Default\ntarget 101 Default 7\ntarget 102 Default 7\ntarget 201 fast 7\n",
    "pvfs2": "server tcp://a:1 7\nserver tcp://b:1 7\nserver tcp://c:1 7\n",
}


class Fake:
    """A fake file system with a directory `d` and a file `f` that was written."""

    def __init__(self, tool, where):
        self.mount, self.state, self.environment = where / "mount", where / "state", {}
        (self.mount / "d").mkdir(parents=True)
        (self.mount / "f").write_text("written")
        self.state.mkdir()
        (self.state / "fake.conf").write_text(f"mount {self.mount}\n{CONFIGURATION[tool.split('-')[0]]}")

    def start(self, line):
        """Starts a command line in the mount. The last word is a path in it unless it begins with a
        slash."""
        program, *words = line.split()
        environment = {**os.environ, "STRIPEWISE_FAKE": str(self.state), **self.environment}
        call = [str(FAKES / program), *(word.replace("~", " ") for word in words)]
        return subprocess.Popen(call, cwd=self.mount, env=environment, stdout=PIPE, stderr=PIPE, text=True)

    def run(self, line):
        call = self.start(line)
        out, error = call.communicate()
        return subprocess.CompletedProcess(line, call.returncode, out, error)

    def works(self, line):
        done = self.run(line)
        assert done.returncode == 0, (line, done)
        return done.stdout


# Words are separated by spaces; ~ stands for a space within a word.
REJECTED = [
    # lfs: status 4 is its usage (CMD_HELP), other statuses are errnos.
    ("lfs setstripe -S 100K new", 4, "invalid stripe size '100K'"),
    ("lfs setstripe -S 28K d", 4, "invalid stripe size '28K'"),
    ("lfs setstripe -S 4G new", 22, "over 4GB limit"),
    ("lfs setstripe -c 2001 new", 4, "invalid stripe count '2001'"),
    ("lfs setstripe -c x new", 4, "invalid stripe count 'x'"),
    ("lfs setstripe -o 0,2 new", 19, "setstripe error for 'new': No such device"),
    ("lfs setstripe -o 2,0 new", 22, "setstripe error for 'new': Invalid argument"),
    ("lfs setstripe -o 1,x new", 4, "invalid OST target(s) '1,x'"),
    ("lfs setstripe -o 0,1 -c 3 new", 4, "stripe_count(3) != nr_tgts(2)"),
    ("lfs setstripe -o " + ",".join(["0"] * 2000) + " new", 4, "Invalid nr_tgts(2000)"),
    ("lfs setstripe -E 1M -S 64K -c 2 -p hdd -E -1 -S 64K -o 1 new", 4, "stripe_count(2) != nr_tgts(1)"),
    ("lfs setstripe -p a_pool_with_a_long_name new", 4, "is too long (max is 15 characters)"),
    ("lfs setstripe -p full new", 28, "No space left on device"),
    ("lfs setstripe -c 1 f", 17, "setstripe error for 'f': stripe already set"),
    ("lfs setstripe -E 100K -c 1 -E -1 new", 4, "invalid component end '100K'"),
    ("lfs setstripe -E 1M -S 64K -E 1M -S 64K new", 4, "invalid layout"),
    ("lfs setstripe -E 1M -S 640K -E -1 -S 64K new", 1, "cannot create composite file"),
    ("lfs setstripe -d -c 1 d", 4, "option -d is mutually exclusive"),
    ("lfs setstripe -Q new", 4, "unrecognized option '-Q'"),
    ("lfs setstripe -c 1", 4, "FILE must be specified"),
    ("lfs setstripe -c 1 missing/new", 2, "No such file or directory"),
    ("lfs setstripe -c 1 /tmp", 19, "is not on a Lustre filesystem"),
    ("lfs getstripe -d missing", 2, "No such file or directory"),
    ("lfs df /tmp", 95, "Not a Lustre filesystem"),
    ("lfs pool_list other", 2, "Lustre filesystem 'other' not found"),
    ("lfs pool_list testfs.tape", 2, "cannot open"),
    ("lfs paint new", 2, "is not a valid command"),
    # beegfs: status 1 for all errors.
    ("beegfs entry set --chunk-size=64K d", 1, "parsed chunksize (64000 bytes) is out of bounds"),
    ("beegfs entry set --chunk-size=64Q d", 1, "did you mean to specify an SI or IEC prefix"),
    ("beegfs entry set --chunk-size=-1 d", 1, "invalid size format"),
    ("beegfs entry set --chunk-size=192Ki d", 1, "chunksize is not a power of 2: 196608"),
    ("beegfs entry set --chunk-size=32Ki d", 1, "is out of bounds"),
    ("beegfs entry set --chunk-size=4Gi d", 1, "is out of bounds"),
    ("beegfs entry set --num-targets=x d", 1, "strconv.ParseUint"),
    ("beegfs entry set --pool=tape d", 1, "storage pool tape: requested entity ID not found in the mapper: tape"),
    ("beegfs entry set --pool=-x d", 1, "invalid alias '-x'"),
    ("beegfs entry set --pool=empty d", 1, "does not contain any targets (use force to override)"),
    ("beegfs entry set --targets=101 d", 1, "unknown flag: --targets"),
    ("beegfs entry set --pattern=RAID0 d", 1, "unsupported stripe pattern"),
    ("beegfs entry set --pattern=mirrored --pool=fast d", 1, "fast[s:2, uid:102] does not contain any buddy groups"),
    ("beegfs entry create file --targets=101 --pattern=mirrored new", 1, "none of the others can be"),
    ("beegfs entry set --num-targets=1", 1, "missing <path> argument"),
    ("beegfs entry set --num-targets=1 /proc", 1, "DefaultNumTargets (1)\nError: the provided path does not appear to be inside"),
    ("beegfs entry set --num-targets=1 /", 1, "unable to initialize file system client from the specified path"),
    ("beegfs entry create file --targets=7 new", 1, "unable to look up specified target"),
    ("beegfs entry create file --targets=101,101 new", 1, "the same target was specified multiple times"),
    ("beegfs entry create file --targets=201 new", 1, "target_201[s:201, uid:1201] is not in the pool Default[s:1"),
    ("beegfs entry create file --pool=empty new", 1, "does not contain any targets for the configured stripe pattern RAID0"),
    ("beegfs entry create file --permissions=9 new", 1, 'strconv.ParseInt: parsing "9": invalid syntax'),
    ("beegfs entry create file --targets=101 --num-targets=2 new", 1, "requested number of targets is greater"),
    ("beegfs entry create file --targets=101 --pool=Default new", 1, "none of the others can be"),
    ("beegfs entry create file --num-targets=1 f", 1, "unable to create one or more entries"),
    ("beegfs entry info --output json --raw missing", 1, "no such file or directory"),
    ("beegfs entry info --output yaml d", 1, "invalid value: "),
    ("beegfs pool list --output json --raw --page-size=0", 1, "--page-size=0 is not supported for this view"),
    ("beegfs --version", 1, "unknown flag: --version"),
    ("beegfs paint d", 1, 'unknown command "paint" for "beegfs"'),
    # pvfs2-*: 255 where main returns -1, 1 where it exits.
    ("pvfs2-xattr -s -k pvfs2.layout -v 00004 d", 255, "extended attribute key is not prefixed pvfs2.layout"),
    ("pvfs2-xattr -s -k trusted.x -v 1 d", 255, "Not permitted to set key trusted.x"),
    ("pvfs2-xattr -s -k user.pvfs2.layout d", 1, "Please specify value"),
    ("pvfs2-xattr -t d", 1, "Please specify key"),
    ("pvfs2-xattr -t -k user.pvfs2.layout missing", 255, "Could not open missing"),
    ("pvfs2-xattr -t -k user.pvfs2.layout /tmp", 255, "Not a file!"),
    ("pvfs2-viewdist -f d", 255, "Could not read distribution information!"),
    ("pvfs2-viewdist -f missing", 255, "Could not open missing"),
    ("pvfs2-viewdist f", 1, "Usage"),
    ("pvfs2-statfs -m /tmp", 255, "could not find filesystem for /tmp/ in pvfstab"),
]


@pytest.mark.parametrize("line, status, message", REJECTED, ids=[line[:60] for line, _, _ in REJECTED])
def test_rejected(tmp_path, line, status, message):
    fake = Fake(line.split()[0], tmp_path)
    before = sorted(os.listdir(fake.mount))
    done = fake.run(line)
    assert done.returncode == status and message in done.stderr, done
    # What a Lustre server refuses leaves the file that lfs has created (llapi_file_open_param).
    by_server = ("setstripe error", "cannot create composite", "No space") if line.startswith("lfs") else ()
    left = ["new"] if message.startswith(by_server) and "already" not in message else []
    assert sorted(os.listdir(fake.mount)) == before + left


def test_stripes_of_lustre(tmp_path):
    fake = Fake("lfs", tmp_path)
    fake.works("lfs setstripe -E 1M -S 64K -c 2 -p hdd -E -1 -S 128K -c 3 -o 1,0,0 d")
    (fake.mount / "d" / "new").touch()
    text = fake.works("lfs getstripe -d --yaml d/new").split()
    assert text.count("lcme_id:") == 2 and text[text.index("lmm_pool:") + 1] == "hdd"
    assert sorted(text[i + 1] for i, word in enumerate(text) if word == "l_ost_idx:") == ["0", "1"]
    # An existing file keeps its layout; a new default applies to later files.
    fake.works("lfs setstripe -d d")
    assert fake.works("lfs getstripe -d --yaml d/new").split() == text
    assert "stripe_size:   1048576" in fake.works("lfs getstripe -d --yaml d")


def test_the_size_of_a_pool_bounds_what_a_file_gets(tmp_path):
    fake = Fake("lfs", tmp_path)
    fake.works("lfs setstripe -c 7 -p hdd new")
    assert "lmm_stripe_count:  2" in fake.works("lfs getstripe -d --yaml new")
    fake = Fake("beegfs", tmp_path / "b")
    fake.works("beegfs entry set --num-targets=7 --pool=fast d")
    (fake.mount / "d" / "new").touch()
    told = fake.works("beegfs entry info --output json --raw d/new")
    assert '"RAID0 (7x524288)"' in told and '"storage_targets":"s:201"' in told


def test_beegfs_is_silent_about_files(tmp_path):
    fake = Fake("beegfs", tmp_path)
    before = fake.works("beegfs entry info --output json --raw f")
    fake.works("beegfs entry set --chunk-size=1Mi f")
    assert fake.works("beegfs entry info --output json --raw f") == before


INFO = "beegfs entry info --output json --raw"


def test_a_mirrored_directory_of_beegfs_stays_mirrored(tmp_path):
    fake = Fake("beegfs", tmp_path)
    fake.works("beegfs entry set --pattern=mirrored d")
    fake.works("beegfs entry set --num-targets=2 --chunk-size=64Ki d")
    assert '"stripe_pattern":"Buddy Mirror (2x65536)"' in fake.works(f"{INFO} d")
    (fake.mount / "d" / "new").touch()
    told = fake.works(f"{INFO} d/new")
    assert '"storage_mirrors":"s:1"' in told and '"storage_targets":"(mirrored)"' in told


@pytest.mark.parametrize("version, refused", [("2.12.9", True), ("2.14.0", True), ("2.15.8", False), ("2.17.57", False)])
def test_lustre_migrates_no_open_file(tmp_path, version, refused):
    fake = Fake("lfs", tmp_path)
    with open(fake.state / "fake.conf", "a") as conf:
        conf.write(f"version {version}\n")
    with open(fake.mount / "f", "a"):
        assert fake.run("lfs migrate -n -p hdd f").returncode == 16
    with open(fake.mount / "f"):
        assert fake.run("lfs migrate -n -p hdd f").returncode == (16 if refused else 0)
    fake.works("lfs migrate -n -p hdd f")


@pytest.mark.parametrize("release", ["8.0", "8.1", "8.2", "8.3", "8.4"])
def test_beegfs_takes_the_child_of_a_link_for_the_mount(tmp_path, release):
    fake = Fake("beegfs", tmp_path)
    fake.environment["STRIPEWISE_FAKE_VERSION"] = release
    os.symlink(fake.mount, tmp_path / "link")
    fake.works(f"beegfs entry set --num-targets=1 {tmp_path}/link/d")
    is_rpc = release in ("8.0", "8.1")
    for path, count in [(".", 1 if is_rpc else 4), ("d", 4 if is_rpc else 1)]:
        assert f'"RAID0 ({count}x524288)"' in fake.works(f"{INFO} {path}"), path
    # Of the link itself only the directory that it is in counts.
    assert fake.run(f"{INFO} {tmp_path}/link").returncode == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may create files with the tool")
def test_files_of_beegfs_belong_to_the_group_of_the_tool(tmp_path):
    fake = Fake("beegfs", tmp_path)
    fake.works("beegfs entry create file --targets=101 new")
    fake.works("beegfs entry create file --targets=101 --gid=7 --permissions=600 other")
    new, other = ((fake.mount / name).stat() for name in ("new", "other"))
    assert (new.st_gid, new.st_mode & 0o7777, other.st_gid, other.st_mode & 0o7777) == (64002, 0o644, 7, 0o600)


def test_variables_are_flags_of_beegfs(tmp_path):
    fake = Fake("beegfs", tmp_path)
    listing = "beegfs target list --capacity --output json --raw"
    plain = fake.works(listing)
    assert '"space_free":"7"' in plain and '"storage_pool":"s:1"' in plain and '"storage_pool":"(n/a)"' in plain
    for name, value, told in [
        ("PAGE_SIZE", "0", '{"alias":"meta_101"'),
        ("COLUMNS", "alias", '[{"alias":"meta_101"},'),
        ("DEBUG", "true", '"storage_pool":"Default[s:1, uid:101]"'),
    ]:
        fake.environment = {f"BEEGFS_{name}": value}
        assert told in fake.works(listing), name
    assert "not supported" in fake.run("beegfs pool list --output json --raw --page-size=0").stderr
    fake.environment = {"BEEGFS_MOUNT": "none"}
    assert "Path does not exist" in fake.run(f"{INFO} {fake.mount}/d").stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
def test_only_root_may_choose_pools_and_targets(tmp_path):
    fake = Fake("beegfs", tmp_path)
    for directory in (tmp_path, fake.mount, fake.state):
        directory.chmod(0o755)
    (fake.state / "user").write_text("65534")
    for line, message in [
        ("beegfs entry set --pool=fast d", "only root can configure pools"),
        ("beegfs entry create file --targets=101 new", "only root can use this command"),
        ("beegfs entry set --num-targets=1 d", "Permission denied"),
    ]:
        done = fake.run(line)
        assert done.returncode == 1 and message in done.stderr, done
    with open(fake.state / "fake.conf", "a") as file:
        file.write("may set\n")
    os.chown(fake.mount / "d", 65534, 65534)
    fake.works("beegfs entry set --num-targets=1 d")


def hinted(fake, **hints):
    """Sets hints on `d`, and returns what `pvfs2-viewdist` prints of a new file in it; None if no
    file could be created."""
    for hint, value in hints.items():
        fake.works(f"pvfs2-xattr -s -k user.pvfs2.{hint} -v {value} d")
    (fake.mount / "d" / "new").unlink(missing_ok=True)
    (fake.mount / "d" / "new").touch()
    done = fake.run("pvfs2-viewdist -f d/new")
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("params", ["strips:0:28K;2:28K", "strips:1:28K", "strips:0:0", "strips:", "strip_size:65536", "strips:0:1;1:1;2:1;3:1"])
def test_orangefs_makes_no_file_with_strips_that_it_does_not_understand(tmp_path, params):
    """Gaps in the datafiles' numbers, sizes of 0, more datafiles than servers: setting them works."""
    assert hinted(Fake("pvfs2", tmp_path), dist_name="varstrip_dist", dist_params=params) is None


def test_orangefs_passes_over_what_it_does_not_understand(tmp_path):
    fake = Fake("pvfs2", tmp_path)
    assert "strip_size:65536" in hinted(fake, dist_name="simple_stripe", dist_params="strips:0:28K")
    assert "strip_size:65536" in hinted(fake, dist_params="strip_size:0")
    assert "\n0:28T;1:5\n" in hinted(fake, dist_name="varstrip_dist", dist_params="strips:0:28T;1:5"), "28 bytes"


def test_hints_of_orangefs(tmp_path):
    fake = Fake("pvfs2", tmp_path)
    servers = {"layout": "00004", "server_list": "00002~tcp://c:1~tcp://a:1"}
    told = hinted(fake, dist_name="varstrip_dist", dist_params="strips:0:28K;1:172K;0:5", **servers)
    assert "\n0:28K;1:172K;0:5\n" in told
    assert told.index("Datafile 0 - tcp://c:1") < told.index("Datafile 1 - tcp://a:1")
    assert fake.works("pvfs2-xattr -t -k user.pvfs2.layout d") == 'key : "user.pvfs2.layout" \tValue : "00004"\n'
    # No file can be made on servers that are unknown, or more than the distribution has datafiles.
    assert hinted(fake, server_list="00001~tcp://nobody:1") is None
    assert hinted(fake, server_list="00003~tcp://a:1~tcp://b:1~tcp://c:1") is None


def test_an_empty_hint_of_orangefs_is_none(tmp_path):
    fake = Fake("pvfs2", tmp_path)
    default = hinted(fake)
    hints = {"dist_name": "simple_stripe", "dist_params": "strip_size:4096", "layout": "00004", "server_list": "00001~tcp://c:1"}
    assert hinted(fake, **hints) != default
    call = lambda hint: [str(FAKES / "pvfs2-xattr"), "-s", "-k", f"user.pvfs2.{hint}", "-v", "", "d"]
    for hint in hints:
        subprocess.run(call(hint), cwd=fake.mount, env={**os.environ, "STRIPEWISE_FAKE": str(fake.state)}, check=True)
    assert hinted(fake).split("Datafile")[0] == default.split("Datafile")[0]
    (fake.mount / "d" / "below").mkdir()
    done = fake.run("pvfs2-xattr -t -k user.pvfs2.layout d/below")
    assert (done.returncode, done.stdout) == (254, "PVFS_sys_geteattr: no hints defined\n")


def test_a_short_file_of_orangefs_shows_one_datafile(tmp_path):
    fake = Fake("pvfs2", tmp_path)
    assert "datafiles/servers = 1\n" in hinted(fake, num_dfiles="2")
    (fake.mount / "d" / "new").write_bytes(bytes(65537))
    assert "datafiles/servers = 2\n" in fake.works("pvfs2-viewdist -f d/new")
    assert "datafiles/servers = 2\n" in hinted(fake, layout="00003"), "not where the servers are random"


def test_calls_take_turns(tmp_path):
    """A call that ran between a file's creation and its layout would give the file another layout.
    """
    fake = Fake("lfs", tmp_path)
    other = os.open(fake.state, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    call = fake.start("lfs setstripe -p hdd new")
    wait_until(lambda: f"FLOCK  ADVISORY  WRITE {call.pid} " in Path("/proc/locks").read_text(), call)
    assert not (fake.mount / "new").exists()
    os.close(other)
    assert call.wait() == 0
    assert "pool:          hdd" in fake.works("lfs getstripe --yaml new")
