"""Files with copies that belong to a user, on which root's commands also work: the user continues
with what root left, or both work at the same time."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import HANGS_S, LIBRARY_NAME
from copies import KINDS, write_plan

# An unused user id, so that this user has no other files; each test process has a user of its own,
# because all maps of a user on this machine are in one run directory.
USER = 63_000 + os.getpid() % 1_000
BASE = Path(f"/dev/shm/stripewise-{USER}")
NEW = b"new" * 1000
HOLD = """exec 3<>"$0"; head -c 5000 /dev/zero | tr '\\0' x >&3; echo; read _; head -c 5000 /dev/zero | tr '\\0' y >&3"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def users(cluster):
    """The cluster, owned by the user, who can read the library there. users.as_user(...) and
    users.as_root(...) run commands."""
    shutil.copy2(cluster.bin_dir / LIBRARY_NAME, cluster.root)
    for path in (cluster.root, *cluster.root.rglob("*")):
        os.chown(path, USER, USER)
    cluster.root.parent.chmod(0o755)
    preload = {"LD_PRELOAD": cluster.root / LIBRARY_NAME, "STRIPEWISE_PLAN": cluster.plan}
    variables = [f"{name}={value}" for name, value in preload.items()]
    cluster.as_root = lambda *args: ["env", *variables, *map(str, args)]
    cluster.as_user = lambda *args: ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *cluster.as_root(*args)]
    shutil.rmtree(BASE, ignore_errors=True)
    yield cluster
    shutil.rmtree(BASE, ignore_errors=True)


def write(path, number):
    """Writes NEW at 6000 * number."""
    return ["dd", f"of={path}", "bs=3000", f"seek={2 * number}", "iflag=fullblock", "conv=notrunc", "status=none"]


def test_root_leaves_the_users_files_usable(users, stripewise):
    """Runs every command of root's that reads the file, each as the first of this boot; then the
    user continues."""
    write_plan(users, "cache")
    path = users.data / "f"
    content = os.urandom(100_000)
    (users.root / "source").write_bytes(content)
    subprocess.run(users.as_user("cp", users.root / "source", path), check=True)
    expected = bytearray(content)
    for number, command in enumerate((["status"], ["drain"], ["warm"], ["fsck"], ["fsck", "--repair"], ["cat"])):
        # Simulates a reboot.
        shutil.rmtree(BASE, ignore_errors=True)
        stripewise(*command, path)
        subprocess.run(users.as_user(*write(path, number)), input=NEW, check=True)
        expected[6000 * number : 6000 * number + 3000] = NEW
        assert BASE.stat().st_uid == USER
    assert subprocess.run(users.as_user("cat", path), capture_output=True, check=True).stdout == expected
    stripewise("drain", path)
    assert {stat.st_uid for stat in (p.stat() for p in users.root.glob("servers/*/stripewise/*/*"))} == {USER}


@pytest.mark.parametrize("kind", KINDS)
def test_root_looks_after_a_file_that_the_user_has_open(users, stripewise, kind):
    """The commands continue as the user, in the map that the user's processes share."""
    write_plan(users, kind, lazy=True)
    path = users.data / "f"
    subprocess.run(users.as_user("cp", "/bin/true", path), check=True)
    shutil.rmtree(BASE, ignore_errors=True)
    expected = bytearray(Path("/bin/true").read_bytes())
    process = subprocess.Popen(users.as_user("sh", "-c", HOLD, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"\n"
    expected[:5000] = b"x" * 5000
    for command in (["status"], ["drain"], ["fsck", "--repair"]):
        stripewise(*command, path)
    assert stripewise("cat", "--length", "5000", path).out.encode() == expected[:5000]
    process.communicate(b"\n", timeout=HANGS_S)
    assert process.returncode == 0
    expected[5000:10_000] = b"y" * 5000
    assert subprocess.run(users.as_user("cat", path), capture_output=True, check=True).stdout == expected
    stripewise("fsck", path)
