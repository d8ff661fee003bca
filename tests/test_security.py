"""Attacks of users on each other and on root through shared targets. docs/security.md names each of
these tests.

A *planter* prepares something below a target, in /dev/shm or in a manifest. Then the *owner*, or
root with the commands or the library, does ordinary work. The planter's preparation must not lead
to any of the owner's or root's data being read, changed, given away or removed.
"""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from conftest import HANGS_S, LIBRARY_NAME
from copies import lengthen, sealed, write_plan

# Unused user ids, so that these users have no other files. All maps of a user on this machine are
# in one run directory, so each test process has users of its own.
OWNER = 60_000 + os.getpid() % 1_000 * 2
PLANTER = OWNER + 1
CONTENT = b"of the owner " * 10_000
# A journal may be 64 KiB longer than its map requires.
LONG_JOURNAL = 160 << 10

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


ACCESS_LIST = "system.posix_acl_access"


def homes(cluster, user):
    return [target / "stripewise" / f"u{user}" for target in cluster.targets]


def objects(cluster, user):
    return [path for home in homes(cluster, user) if home.is_dir() for path in home.iterdir()]


def remove_run_dirs():
    for user in (OWNER, PLANTER):
        for path in Path("/dev/shm").glob(f"stripewise-{user}*"):
            shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def shared(cluster, stripewise):
    """Targets for all users, prepared by root. shared.run(user, ...) runs a command with the
    library, shared.plain(user, ...) without it."""
    shutil.copy2(cluster.bin_dir / LIBRARY_NAME, cluster.root)
    plan = write_plan(cluster, "cache", pattern=f"{cluster.data}/cached/**")
    text = plan.read_text()
    single = f'[[rule]]\npattern = "{cluster.data}/**"\nscheme = "1-DH"\nreason = "a test"\npredicted_s = 1.0\nelapsed_s = 1.0\n'
    single += 'layouts = [[{ cycle = "hdd/0-3:64K" }]]\n'
    first_table = text.index("[cluster")
    plan.write_text(text[:first_table] + single + text[first_table:])
    source = cluster.data / "prepare"
    source.write_bytes(b"x" * 300_000)
    (cluster.data / "cached").mkdir()
    (cluster.data / "cached" / "prepare").write_bytes(b"x" * 300_000)
    stripewise("place", plan, "-q")
    for target in cluster.targets:
        target.chmod(0o1777)
        (target / "stripewise").chmod(0o1777)
    cluster.root.parent.chmod(0o755)
    for path in (cluster.root, cluster.data, cluster.data / "cached"):
        path.chmod(0o1777)
    variables = [f"LD_PRELOAD={cluster.root / LIBRARY_NAME}", f"STRIPEWISE_PLAN={plan}"]
    become = lambda user: ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []

    def run(user, *args, ok=True, **options):
        result = subprocess.run([*become(user), "env", *variables, *map(str, args)], capture_output=True, timeout=HANGS_S, **options)
        assert not ok or result.returncode == 0, result
        return result

    def plain(user, *args, ok=True, **options):
        result = subprocess.run([*become(user), *map(str, args)], capture_output=True, timeout=HANGS_S, **options)
        assert not ok or result.returncode == 0, result
        return result

    cluster.run, cluster.plain, cluster.binary = run, plain, cluster.root / "stripewise"
    shutil.copy2(cluster.bin_dir / "stripewise", cluster.binary)
    remove_run_dirs()
    yield cluster
    remove_run_dirs()


def make(shared, user, name, content=CONTENT):
    """A managed file that belongs to the user."""
    path = shared.data / name
    shared.run(user, "tee", path, input=content)
    assert path.read_bytes().startswith(b"stripewise file"), "it is managed"
    return path


def content_of(shared, path, user=OWNER):
    return shared.run(user, "cat", path).stdout


def clean(stripewise, path):
    assert stripewise("fsck", "--json", path, ok=False).json()["clean"]


def test_objects_cannot_be_read_past_a_closed_directory(shared):
    """A world-readable file in a directory that other users cannot enter: its objects are as
    inaccessible as the file."""
    closed = shared.data / "closed"
    shared.plain(OWNER, "mkdir", "-m", "700", closed)
    make(shared, OWNER, "closed/f")
    assert (closed / "f").stat().st_mode & 0o777 == 0o444, "nobody may write to an anchor"
    for home in homes(shared, OWNER)[:4]:
        assert (home.stat().st_uid, home.stat().st_mode & 0o777) == (OWNER, 0o711)
        assert shared.plain(PLANTER, "ls", home, ok=False).returncode != 0
    assert shared.run(PLANTER, "cat", closed / "f", ok=False).returncode != 0


def test_others_may_do_with_a_shared_file_what_its_mode_says(shared):
    path = make(shared, OWNER, "f")
    assert content_of(shared, path, PLANTER) == CONTENT
    assert shared.run(PLANTER, "dd", f"of={path}", "conv=notrunc", input=b"no", ok=False).returncode != 0
    shared.run(OWNER, "chmod", "666", path)
    shared.run(PLANTER, "dd", f"of={path}", "conv=notrunc,fsync", input=b"yes")
    assert content_of(shared, path) == b"yes" + CONTENT[3:]


def test_permissions_follow_directories_with_groups_and_access_lists(shared):
    """With setgid directories and default access lists, objects get the same permissions as the
    anchor."""
    grouped = shared.data / "grouped"
    grouped.mkdir()
    os.chown(grouped, OWNER, 64199)
    grouped.chmod(0o2770)
    shared.plain(0, "setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--groups=64199", "env", f"LD_PRELOAD={shared.root / LIBRARY_NAME}",
                 f"STRIPEWISE_PLAN={shared.root / 'plan.toml'}", "tee", grouped / "f", input=CONTENT)
    assert {path.stat().st_gid for path in objects(shared, OWNER)} == {64199} == {(grouped / "f").stat().st_gid}
    listed = shared.data / "listed"
    shared.plain(OWNER, "mkdir", "-m", "700", listed)
    before = set(objects(shared, OWNER))
    value = access_list(owner=6, planter=6, group=4, mask=6)
    try:
        os.setxattr(listed, "system.posix_acl_default", value)
    except OSError:
        pytest.skip("the file system has no access lists")
    path = make(shared, OWNER, "listed/f")
    listed.chmod(0o711)
    new = [path for path in objects(shared, OWNER) if path not in before and path.suffix != ".manifest"]
    assert new and all(os.getxattr(path, ACCESS_LIST) == value for path in new)
    assert content_of(shared, path, PLANTER) == CONTENT
    # A plain setfacl: the group's permissions are those of its entry, while the mode shows those of
    # the mask.
    value = access_list(owner=6, planter=6, group=0, mask=6)
    os.setxattr(path, ACCESS_LIST, value)
    content_of(shared, path, OWNER)
    assert all(os.getxattr(path, ACCESS_LIST) == value for path in new)
    assert os.getxattr(path, ACCESS_LIST) == access_list(owner=4, planter=6, group=0, mask=4)


def access_list(owner, planter, group, mask):
    """user::OWNER, user:PLANTER:PLANTER, group::GROUP, mask::MASK, other::---, in the kernel's
    encoding."""
    nobody = 0xFFFFFFFF
    entries = [(1, owner, nobody), (2, planter, PLANTER), (4, group, nobody), (16, mask, nobody), (32, 0, nobody)]
    of_entry = lambda tag, mode, who: tag.to_bytes(2, "little") + mode.to_bytes(2, "little") + who.to_bytes(4, "little")
    return (2).to_bytes(4, "little") + b"".join(of_entry(*entry) for entry in entries)


def test_a_plain_chmod_is_noticed_and_followed(shared, stripewise):
    path = make(shared, OWNER, "f")
    shared.plain(OWNER, "chmod", "600", path)
    kinds = [finding["kind"] for finding in stripewise("fsck", "--json", path, ok=False).json()["findings"]]
    assert kinds == ["access"]
    content_of(shared, path)
    assert {p.stat().st_mode & 0o777 for p in objects(shared, OWNER)} == {0o600}
    clean(stripewise, path)


@pytest.mark.parametrize("what", ["symlink", "fifo", "hard link", "directory"])
def test_what_is_planted_in_place_of_a_journal_is_not_used(shared, stripewise, what):
    """Root's commands work on files of a user who tries to obtain root's data."""
    secret = shared.root / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    path = make(shared, PLANTER, "cached/f")
    (journal,) = [p for p in objects(shared, PLANTER) if p.suffix == ".extents"]
    before = secret.stat()
    # The journal must be rewritten, which happens in a new file next to it, .new.
    lengthen(journal, LONG_JOURNAL)
    for suffix in (".new", ".times", ".wanted", ""):
        planted = journal.with_name(journal.name + suffix)
        with contextlib.suppress(FileNotFoundError):
            planted.unlink()
        if what == "symlink":
            shared.plain(PLANTER, "ln", "-s", secret, planted)
        elif what == "fifo":
            shared.plain(PLANTER, "mkfifo", planted)
        elif what == "hard link":
            os.link(secret, planted)
        else:
            shared.plain(PLANTER, "mkdir", planted)
        for command in (["drain"], ["cat"], ["status"], ["fsck", "--repair"], ["warm"]):
            stripewise(*command, path, ok=False)
        shared.run(0, "cat", path, ok=False)
        after = secret.stat()
        assert secret.read_text() == "secret"
        assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
        if planted.is_dir() and not planted.is_symlink():
            planted.rmdir()
        else:
            with contextlib.suppress(FileNotFoundError):
                planted.unlink()
        if suffix == ".new":
            stripewise("fsck", "--repair", path)
            shared.run(PLANTER, "cat", path)
            assert journal.stat().st_size < LONG_JOURNAL, "it was to be written anew"


def test_objects_that_are_no_files_of_the_owner_are_not_used(shared):
    """Links, FIFOs and other users' files in place of objects are an error at once, for the owner
    and for root."""
    secret = shared.root / "secret"
    secret.write_text("secret")
    path = make(shared, PLANTER, "f")
    object = next(p for p in objects(shared, PLANTER) if p.suffix == ".1")
    for plant in (["ln", "-s", secret], ["mkfifo"], ["mkdir"]):
        object.rmdir() if object.is_dir() and not object.is_symlink() else object.unlink()
        shared.plain(PLANTER, *plant, object)
        for user in (0, PLANTER):
            for command in (["cat", path], ["truncate", "-s", "5", path], ["chmod", "666", path]):
                assert shared.run(user, *command, ok=False).returncode != 0
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret", 0o644)


def crafted(shared, victim, name):
    """A manifest of the planter's with the id of another user's file; the size of the file does not
    matter."""
    text = victim.read_bytes().split(b"\0")[0].decode()
    path = shared.data / name
    path.write_text(text)
    os.chown(path, PLANTER, PLANTER)
    return path


@pytest.mark.parametrize("command", [["rm"], ["chown", str(PLANTER)], ["chmod", "666"], ["truncate", "-s", "0"], ["cp", "/etc/passwd"]])
def test_a_crafted_manifest_does_not_lead_to_others_objects(shared, stripewise, command):
    """Root gives away, changes, empties or removes a file that the planter prepared. The owner of
    the id loses nothing."""
    victim = make(shared, OWNER, "victim")
    before = {p: (p.stat().st_uid, p.stat().st_mode, p.stat().st_size) for p in objects(shared, OWNER)}
    assert len(before) > len(shared.targets) / 2, "there is something to lose"
    planted = crafted(shared, victim, "planted")
    arguments = [*command, planted]
    shared.run(0, *arguments, ok=False)
    if command == ["rm"] and planted.exists():
        stripewise("rm", "-f", planted)
    assert before == {p: (p.stat().st_uid, p.stat().st_mode, p.stat().st_size) for p in objects(shared, OWNER)}
    assert content_of(shared, victim) == CONTENT
    assert not [p for p in objects(shared, PLANTER) if p.is_file() and p.stat().st_size]


def test_fsck_does_not_believe_paths_on_targets(shared, stripewise):
    """Copies of a manifest that claim a file of root's, one in a closed directory and one in an
    open one."""
    path = make(shared, PLANTER, "f")
    copy = next(p for p in objects(shared, PLANTER) if p.suffix == ".manifest")
    closed = shared.root / "closed"
    closed.mkdir(mode=0o700)
    opened = shared.root / "opened"
    opened.mkdir()
    opened.chmod(0o777 | stat.S_ISVTX)
    for target in (closed / "rootfile", opened / "rootfile"):
        target.write_text("root's")
        shared.plain(PLANTER, "rm", "-f", path)
        text = copy.read_text()
        # The file's path precedes those of the targets, which stay; otherwise fsck would not get as
        # far as the file.
        text = re.sub(r'(?m)^path = ".*"$', f'path = "{target}"', text, count=1)
        copy.write_text(sealed(text))
        for directory in ([], [target.parent], [shared.root]):
            stripewise("fsck", "-c", shared.toml, "--repair", "--orphan-age", "0", *directory, ok=False)
        assert target.read_text() == "root's" and target.stat().st_uid == 0
        assert not list(target.parent.glob("*aside*"))


def test_a_directory_that_somebody_made_first_is_refused(shared, stripewise):
    """If another user creates the owner's directory on a target, it gets none of the owner's data.
    """
    for home in homes(shared, OWNER):
        shared.plain(PLANTER, "mkdir", "-m", "777", home)
    refused = shared.run(OWNER, "tee", shared.data / "f", input=CONTENT, ok=False)
    assert refused.returncode != 0 and f"belongs to user {PLANTER}, not to user {OWNER}" in refused.stderr.decode()
    assert not objects(shared, OWNER)
    for home in homes(shared, OWNER):
        os.chown(home, OWNER, OWNER)
    make(shared, OWNER, "f")


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_run_directory_that_somebody_made_first_is_passed_over(shared, mode):
    """The same if that directory is made to look like the owner's, or is reached through a link."""
    base = Path(f"/dev/shm/stripewise-{OWNER}")
    shared.plain(PLANTER, "mkdir", base)
    base.chmod(mode)
    path = make(shared, OWNER, "cached/f")
    assert content_of(shared, path) == CONTENT
    assert not list(base.iterdir())
    shutil.rmtree(base)
    base.symlink_to(shared.root)
    before = set(shared.root.iterdir())
    assert content_of(shared, path) == CONTENT
    assert set(shared.root.iterdir()) == before
    base.unlink()


def test_root_does_not_use_the_index_of_a_user(shared, stripewise):
    """A program of root's with the library gets an error; the commands continue as the user."""
    path = make(shared, OWNER, "cached/f")
    holder = subprocess.Popen(
        ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", "env", f"LD_PRELOAD={shared.root / LIBRARY_NAME}",
         "sh", "-c", 'exec 3<>"$0"; printf yes >&3; echo; read _', path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"\n"
    refused = shared.run(0, "cat", path, ok=False)
    assert refused.returncode != 0 and f"run this as user {OWNER}" in refused.stderr.decode()
    expected = b"yes" + CONTENT[3:]
    assert stripewise("cat", path).out.encode() == expected
    stripewise("drain", path)
    stripewise("status", path)
    holder.communicate(b"\n", timeout=HANGS_S)
    assert holder.returncode == 0
    assert content_of(shared, path) == expected
    clean(stripewise, path)


def test_root_gives_a_file_to_another_user_with_all_that_belongs_to_it(shared, stripewise):
    for name in ("f", "cached/f"):
        path = make(shared, OWNER, name)
        shared.run(0, "chown", f"{PLANTER}:{PLANTER}", path)
        assert not [p for p in objects(shared, OWNER) if p.is_file()]
        assert content_of(shared, path, PLANTER) == CONTENT
        shared.run(PLANTER, "dd", f"of={path}", "conv=notrunc", input=b"mine")
        assert content_of(shared, path, PLANTER) == b"mine" + CONTENT[4:]
        clean(stripewise, path)
        shared.run(PLANTER, "rm", path)
        assert not [p for p in objects(shared, PLANTER) if p.is_file()]


def test_root_places_the_files_of_users(shared, stripewise):
    """Files with one copy and with several copies belong to their users afterwards, who can read
    and write them."""
    paths = [shared.data / "plain", shared.data / "cached" / "plain"]
    for path in paths:
        shared.plain(OWNER, "tee", path, input=CONTENT)
    stripewise("place", shared.root / "plan.toml", "-q", "--yes")
    for path in paths:
        assert path.stat().st_uid == OWNER and path.read_bytes().startswith(b"stripewise file")
        shared.run(OWNER, "dd", f"of={path}", "conv=notrunc", input=b"mine")
        assert content_of(shared, path) == b"mine" + CONTENT[4:]
        clean(stripewise, path)
    assert {p.stat().st_uid for p in objects(shared, OWNER)} == {OWNER}


@pytest.mark.parametrize("with_library", [True, False])
@pytest.mark.parametrize("name", ["f", "cached/f"])
def test_a_copy_of_the_anchor_is_no_file_and_removing_it_destroys_nothing(shared, stripewise, name, with_library):
    """`cp a b` without the library, then `rm b`."""
    path = make(shared, OWNER, name)
    copy = path.with_name("copy")
    shared.plain(OWNER, "cp", path, copy)
    refused = shared.run(OWNER, "cat", copy, ok=False)
    assert refused.returncode != 0 and b"is a copy of the manifest of" in refused.stderr
    (shared.run if with_library else shared.plain)(OWNER, "rm", copy)
    assert content_of(shared, path) == CONTENT
    shared.plain(OWNER, "cp", path, copy)
    shared.plain(OWNER, "tee", shared.data / "other-plain", input=b"new")
    shared.run(OWNER, "mv", path, path.with_name("moved"))
    shared.run(OWNER, "rm", copy)
    assert content_of(shared, path.with_name("moved")) == CONTENT
    clean(stripewise, path.with_name("moved"))


OPENER = """
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    return fd < 0 || write(fd, "text", 4) != 4;
}
"""


def test_the_environment_does_not_direct_programs_with_more_rights(shared, tmp_path):
    """A set-user-id program that has the library loaded uses no plan and records no trace on behalf
    of its caller."""
    (tmp_path / "opener.c").write_text(OPENER)
    program = shared.root / "opener"
    library = shared.root / LIBRARY_NAME
    subprocess.run(
        ["cc", tmp_path / "opener.c", "-o", program, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{shared.root}"], check=True
    )
    os.chown(program, OWNER, OWNER)
    traces = shared.root / "traces"
    traces.mkdir()
    traces.chmod(0o777)
    environment = {**os.environ, "STRIPEWISE_PLAN": str(shared.plan), "STRIPEWISE_TRACE_DIR": str(traces)}
    for bits, managed in ((0o755, True), (0o4755, False)):
        program.chmod(bits)
        path = shared.data / f"made-{bits:o}"
        shared.plain(PLANTER, program, path, env=environment)
        if bits == 0o4755 and path.stat().st_uid != OWNER:
            pytest.skip("set-user-id programs have no effect here")
        assert path.read_bytes().startswith(b"stripewise file") == managed
        assert bool(list(traces.iterdir())) == managed
        for trace in traces.iterdir():
            trace.unlink()


@pytest.mark.parametrize("name", ["f", "cached/f"])
def test_files_of_earlier_versions_are_used_and_brought_to_the_new_form(shared, stripewise, name):
    """Objects of earlier versions lie in directories that all users share, their manifests do not
    identify the anchor, and anchors are as long as the file and writable."""
    path = make(shared, OWNER, name)
    earlier = lambda text: re.sub(rb'(?m)^anchor = ".*"\n', b"", text)
    for p in [*(p for p in objects(shared, OWNER) if p.suffix == ".manifest"), path]:
        text = sealed(earlier(p.read_bytes()).decode()).encode()
        p.write_bytes(text)
    os.truncate(path, len(CONTENT) + (1 << 20))
    path.chmod(0o644)
    for p in objects(shared, OWNER):
        old = p.parent.parent / p.name[:2]
        old.mkdir(exist_ok=True)
        old.chmod(0o1777)
        p.rename(old / p.name)
    assert content_of(shared, path) == CONTENT
    shared.run(OWNER, "dd", f"of={path}", "conv=notrunc,fsync", input=b"new")
    expected = b"new" + CONTENT[3:]
    found = stripewise("fsck", "--json", path).json()
    assert [finding["kind"] for finding in found["findings"]] == ["shared"] and found["clean"]
    assert path.read_bytes() == text and path.stat().st_mode & 0o777 == 0o444
    stripewise("fsck", "--repair", path)
    assert not stripewise("fsck", "--json", path).json()["findings"]
    assert content_of(shared, path) == expected
    shared.run(OWNER, "rm", path)
    left = [p for target in shared.targets for p in (target / "stripewise").glob("*/*")]
    assert not [p for p in left if p.stat().st_uid == OWNER]
