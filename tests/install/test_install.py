"""An installation below a directory of the user's: what is there, that it can be moved, and that
nothing is left of it."""

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, DARSHAN_LOGS, LIBRARY_NAME, MPIS, ROOT, run_command

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def install(bin_dir):
    """install(*words): runs tools/install.sh with what is under test."""
    environment = {"BIN_DIR": str(bin_dir), "BUILD_DIR": str(BUILD)}
    return lambda *words, **options: run_command("sh", ROOT / "tools" / "install.sh", *words, env=environment, **options)


@pytest.fixture
def prefix(install, tmp_path):
    """An installation."""
    install("install", tmp_path / "sw")
    return tmp_path / "sw"


def clean(*words, cwd, user=None):
    """Runs a command with an empty environment, as another user if one is named."""
    become = ["setpriv", "--reuid", user.pw_uid, "--regid", user.pw_gid, "--clear-groups"] if user else []
    return run_command("env", "-i", "PATH=/usr/bin:/bin", *become, *words, cwd=cwd)


def test_everything_is_there_and_is_small(prefix, workloads):
    files = {str(path.relative_to(prefix)): path.stat() for path in prefix.rglob("*") if path.is_file()}
    library = f"lib/stripewise/{LIBRARY_NAME}"
    assert {"bin/stripewise", library, "share/man/man1/stripewise-plan.1", "share/fish/vendor_completions.d/stripewise.fish"} <= set(files)
    assert {f"lib/stripewise/{mpi}/libstripewise_mpi.so" for mpi in MPIS} <= set(files)
    for name in ("bin/stripewise", library):
        sections = run_command("readelf", "-S", prefix / name).out
        assert ".debug_info" not in sections and ".symtab" not in sections, name
    assert all(stat.st_mode & 0o022 == 0 for stat in files.values())
    listed = (prefix / "share" / "stripewise" / "installed").read_text().split("\n")
    assert sorted(filter(None, listed)) == sorted(files)


def test_it_can_be_moved_and_needs_no_environment(prefix, tmp_path, cluster, planned):
    """An ordinary user runs a program over managed files, and asks for advice on a log."""
    moved = tmp_path / "elsewhere"
    prefix.rename(moved)
    user = NOBODY if os.geteuid() == 0 else None
    if user:
        os.chmod(tmp_path, 0o755)
        for path in (cluster.root, *cluster.root.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
    program = moved / "bin" / "stripewise"
    clean(program, "run", "-p", cluster.plan, "--", "cp", "/bin/true", cluster.data / "f", cwd=tmp_path, user=user)
    assert (cluster.data / "f").read_bytes().startswith(b"stripewise file, format ")
    (tmp_path / "copy").write_bytes(b"")
    os.chmod(tmp_path / "copy", 0o666)
    clean(program, "export", cluster.data / "f", cwd=tmp_path, user=user)
    assert (cluster.data / "f").read_bytes() == Path("/bin/true").read_bytes()
    log = shutil.copy(DARSHAN_LOGS[0], tmp_path / "job.darshan")
    assert clean(program, "advise", log, cwd=tmp_path, user=user).out


def test_every_command_has_a_man_page_and_completions(prefix):
    help_text = run_command(prefix / "bin" / "stripewise", "--help").out
    commands = re.findall(r"^  ([a-z]+) ", help_text.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    assert len(commands) > 15 and "mount" in commands
    pages = {path.name for path in (prefix / "share" / "man" / "man1").iterdir()}
    for command in (name for name in commands if name != "help"):
        assert f"stripewise-{command}.1" in pages
    assert not any("generate" in page or "-help" in page for page in pages), pages
    completion = prefix / "share" / "bash-completion" / "completions" / "stripewise.bash"
    ask = f'source {completion}; COMP_WORDS=(stripewise ca); COMP_CWORD=1; _stripewise stripewise ca stripewise; echo "${{COMPREPLY[@]}}"'
    assert run_command("bash", "-c", ask).out.split() == ["calibrate", "cat"]


def test_nothing_is_left_of_it(install, prefix):
    install("uninstall", prefix)
    assert not prefix.exists()
    refused = install("uninstall", prefix.parent, ok=False)
    assert refused.code == 1 and "nothing is known to be installed" in refused.err


def test_what_others_have_put_there_stays(install, prefix):
    kept = prefix / "bin" / "other"
    kept.write_text("another program")
    (prefix / "share" / "doc" / "other").mkdir()
    install("install", prefix)
    install("uninstall", prefix)
    left = sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*"))
    assert left == ["bin", "bin/other", "share", "share/doc", "share/doc/other"]


def test_a_former_installation_is_replaced(install, prefix):
    former = prefix / "share" / "man" / "man1" / "stripewise-former.1"
    former.write_text("a command that is no more")
    with open(prefix / "share" / "stripewise" / "installed", "a") as listed:
        listed.write("share/man/man1/stripewise-former.1\n")
    assert "replaces" in install("install", prefix).out
    assert not former.exists() and (prefix / "bin" / "stripewise").exists()


def test_what_is_missing_is_said(bin_dir, tmp_path):
    script = ROOT / "tools" / "install.sh"
    refused = run_command("sh", script, "install", tmp_path / "sw", env={"BIN_DIR": str(tmp_path)}, ok=False)
    assert refused.code == 1 and "nothing is built" in refused.err
    said = run_command("sh", script, "install", tmp_path / "sw", env={"BIN_DIR": str(bin_dir), "BUILD_DIR": str(tmp_path)}).out
    assert "left out: the library for mpich" in said and "left out: the library for openmpi" in said
    assert run_command("sh", script, "install", ok=False).code == 1


def test_an_archive_is_unpacked_anywhere(install, tmp_path):
    made = install("dist", tmp_path / "dist")
    archives = sorted(path.name for path in (tmp_path / "dist").iterdir())
    assert len(archives) == 2 and re.search(r"needs GLIBC_2\.\d+", made.out), made
    (tmp_path / "unpacked").mkdir()
    run_command("tar", "-C", tmp_path / "unpacked", "-xzf", tmp_path / "dist" / archives[1])
    (root,) = (tmp_path / "unpacked").iterdir()
    assert clean(root / "bin" / "stripewise", "--version", cwd="/").out.startswith("stripewise ")
    symbols = subprocess.run(["tar", "-tzf", tmp_path / "dist" / archives[0]], capture_output=True, text=True, check=True).stdout.split()
    assert symbols == ["stripewise.debug", f"{LIBRARY_NAME}.debug"]
