"""`stripewise try`: before, plan, place, after, and back if it is no faster."""

import contextlib
import dataclasses
import json
import os
import pty
import re
import shlex
import signal
import subprocess

import pytest

from conftest import HANGS_S, Tier, wait_until
from test_native_only import Site as NativeSite

CONTENT = bytes(range(256)) * 4096
MANIFEST = b"stripewise file"

# The slow servers take 20 ms for each request, the fast ones 30 us: the difference is far more than
# what other programs on the machine make of it.
SLOW = Tier("hdd", 2, startup_s=2e-2, per_byte_s=1e-9, emulate=True)
FAST = Tier("ssd", 2, startup_s=3e-4, per_byte_s=1e-9, emulate=True)

# Reads the file once, and counts its runs in `runs.log`. With a word `hold` it then waits for the
# file `go` in every run from that number on, and notes signals in `signals.log`; with `fail` it
# ends with code 7 from that run on.
PROGRAM = """
import os, signal, sys, time
here, path, *words = sys.argv[1:]
runs = os.path.join(here, "runs.log")
with open(runs, "a") as file:
    file.write("x")
run = os.path.getsize(runs)
words = dict(zip(words[::2], map(int, words[1::2])))
f = os.open(path, os.O_RDONLY)
for n in range(16):
    assert os.pread(f, 65536, n << 16) == bytes(range(256)) * 256
def note(number, frame):
    with open(os.path.join(here, "signals.log"), "a") as file:
        file.write(signal.Signals(number).name + " ")
    sys.exit(1)
if run >= words.get("hold", run + 1):
    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGTERM, note)
    open(os.path.join(here, "held"), "w").close()
    while not os.path.exists(os.path.join(here, "go")):
        time.sleep(0.01)
if run >= words.get("fail", run + 1):
    sys.exit(7)
"""


class Site:
    """A cluster, a file in the slow layout of the plan `now.toml`, and a program that reads it."""

    def __init__(self, cluster, stripewise, bin_dir, python):
        self.cluster, self.stripewise, self.bin_dir = cluster, stripewise, bin_dir
        self.root, self.path, self.dir = cluster.root, cluster.data / "f.dat", cluster.root / "try"
        self.path.write_bytes(CONTENT)
        self.trace = self.root / "t"
        synth = ["synth", "ior", "--procs", 1, "--transfer", "64K", "--total", "1M", "--op", "read", "--shared"]
        stripewise(*synth, "--file", self.path, "-o", self.trace)
        self.now = self.make_plan("now", "1-DH on hdd")
        program = self.root / "program.py"
        program.write_text(PROGRAM)
        self.command = [python, program, self.root, self.path]

    def make_plan(self, name, scheme):
        plan = self.root / f"{name}.toml"
        words = ("--scheme", scheme, "--min-gain", "none", "-o", plan)
        self.stripewise("plan", self.trace, "-c", self.cluster.toml, *words)
        return plan

    def place(self, plan):
        self.stripewise("place", plan)
        return self

    def words(self, *flags, command=(), over="now", at_most=8):
        """The command line. `over` is the plan that the program runs over now."""
        over = ["--over", self.root / f"{over}.toml"] if over else []
        line = ["try", "-c", self.cluster.toml, "-d", self.dir, "--runs", 3, "--at-most", at_most, *over, *flags]
        return [*map(str, line), "--", *map(str, command or self.command)]

    def try_it(self, *flags, ok=True, **how):
        return self.stripewise(*self.words(*flags, **how), ok=ok)

    def begin(self, *flags, **how):
        """Starts it in the background."""
        words = [self.bin_dir / "stripewise", *self.words(*flags, **how)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def servers(self):
        """The tiers on which the file is; None if it is a plain one."""
        if not self.path.read_bytes().startswith(MANIFEST):
            return None
        copy = self.stripewise("status", "--json", self.path).json()["files"][0]
        return set(re.findall(r'"(hdd|ssd)/\d', json.dumps(copy)))

    def runs(self):
        """The number of runs of the program."""
        file = self.root / "runs.log"
        return file.stat().st_size if file.exists() else 0

    def assert_sound(self):
        """The file has its bytes, and nothing is wrong with it."""
        self.stripewise("fsck", self.path)
        assert subprocess.run([self.bin_dir / "stripewise", "cat", self.path], capture_output=True).stdout == CONTENT


@pytest.fixture
def site(make_cluster, stripewise, bin_dir, python):
    made = Site(make_cluster((SLOW, FAST)), stripewise, bin_dir, python)
    return made.place(made.now)


def undo_line(text):
    """The command that a text offers."""
    line = re.search(r"stripewise (try --undo --dir \S+?)`?(?=[\s`]|$)", text)
    assert line, text
    return shlex.split(line[1])


# -------------------------------------------------------------------------------- kept or undone


def test_a_gain_is_kept_and_can_be_undone(site):
    done = site.try_it()
    assert site.servers() == {"ssd"} and "Kept: " in done.out, str(done)
    site.assert_sound()
    assert f"{site.path}" in done.out and "all of them" in done.out and "the whole command" in done.out
    assert "The plan promised" in done.out and "No promise" not in done.out
    undone = site.stripewise(*undo_line(done.out))
    assert site.servers() == {"hdd"} and "have the layouts back" in undone.err
    site.assert_sound()


def test_json_has_every_run(site):
    done = site.try_it("--json").json()
    assert done["result"] == "kept" and undo_line(done["undo"])
    io, wall = done["measured"]["io"], done["measured"]["wall"]
    assert len(io["before"]["runs_s"]) >= 3 and len(wall["after"]["runs_s"]) >= 3
    # The file has sixteen requests.
    assert io["before"]["mean_s"] > 15 * SLOW.startup_s
    assert io["difference"]["verdict"] == "faster" and io["difference"]["saved_s"] > io["difference"]["spread_s"]
    assert [it["pattern"] for it in done["measured"]["sets"]] == [str(site.path)]
    plan, totals = json.loads((site.dir / "plan.json").read_text()), done["totals"]
    assert totals["now_s"] == plan["files"][0]["present"]["elapsed_s"] and totals["planned_s"] == plan["files"][0]["elapsed_s"]
    assert totals["promise"]["saves"] == pytest.approx(1 - totals["planned_s"] / totals["now_s"])
    assert site.runs() == len(io["before"]["runs_s"]) + len(io["after"]["runs_s"])


def test_without_a_gain_the_files_go_back(site):
    site.place(site.make_plan("fast", "1-DH on ssd"))
    done = site.try_it("-p", site.make_plan("slow", "1-DV on hdd"), over="fast")
    assert "Undone: the new layouts take" in done.out, str(done)
    assert site.servers() == {"ssd"}
    site.assert_sound()


def test_a_plan_as_quick_as_memory_promises_nothing(make_cluster, stripewise, bin_dir, python):
    quick = dataclasses.replace(FAST, startup_s=1e-6)
    site = Site(make_cluster((SLOW, quick)), stripewise, bin_dir, python)
    words = " ".join(site.place(site.now).try_it().out.split())
    assert "No promise: the model says 0.0" in words and "memory alone may take" in words, words
    assert "Kept: " in words and "So only the measurement counts" in words
    site.assert_sound()


def test_a_plain_file_becomes_plain_again(make_cluster, stripewise, bin_dir, python):
    """A plain file is in the page cache, so the slow servers are slower."""
    site = Site(make_cluster((SLOW, FAST)), stripewise, bin_dir, python)
    owner = site.path.stat().st_mode
    done = site.try_it("-p", site.now, over=None)
    assert "Undone: " in done.out and site.servers() is None, str(done)
    assert site.path.read_bytes() == CONTENT and site.path.stat().st_mode == owner


WRITES = """
import os, sys
if os.path.exists(sys.argv[1]):
    os.remove(sys.argv[1])
with open(sys.argv[1], "wb", buffering=0) as file:
    for n in range(16):
        file.write(bytes(range(256)) * 256)
"""


def test_new_files_of_the_program_go_back_too(make_cluster, stripewise, bin_dir, python):
    """Each run writes the file anew, and the last ones in the layout of the plan."""
    site = Site(make_cluster((SLOW, FAST)), stripewise, bin_dir, python)
    site.path.unlink()
    done = site.try_it("-p", site.now, over=None, command=[python, "-c", WRITES, site.path])
    assert "Undone: " in done.out, str(done)
    assert site.path.read_bytes() == CONTENT


def test_a_plan_that_changes_nothing_is_not_tried(site):
    site.place(site.make_plan("fast", "1-DH on ssd"))
    done = site.try_it("--min-gain", "90%", over="fast")
    assert "Nothing to try: the plan changes no layout: keep the present layout" in done.out, str(done)
    assert site.servers() == {"ssd"} and not list(site.dir.glob("after-*"))


# Reads the file so often in its first eight runs, and so often later.
CHANGES = """
import os, sys
log, path, first, later = sys.argv[1:]
with open(log, "a") as file:
    file.write("x")
f = os.open(path, os.O_RDONLY)
for n in range(int(first if os.path.getsize(log) <= 8 else later)):
    os.pread(f, 1 << 20, 0)
"""


@pytest.mark.parametrize(("first", "later", "said"), [(400, 4, "Kept: "), (4, 400, "Undone: the new layouts take")])
def test_native_layouts_are_tried_too(tmp_path, stripewise, python, first, later, said):
    """On a fake of Lustre, which makes nothing faster or slower: the program itself does."""
    site = NativeSite(tmp_path)
    path = site.data / "a.dat"
    path.write_bytes(CONTENT)
    before = site.lfs(path)
    site.write_plan(("*.dat", "hdd/0-3:1M"))
    words = ["try", "--native", "-p", site.plan, "-d", tmp_path / "try", "--runs", 8, "--at-most", 8]
    program = [python, "-c", CHANGES, tmp_path / "runs.log", path, first, later]
    done = stripewise(*words, "--", *program, env=site.environment)
    assert said in done.out, str(done)
    assert ("hdd" in site.lfs(path)) == (said == "Kept: "), site.lfs(path)
    if said == "Kept: ":
        stripewise(*undo_line(done.out), env=site.environment)
    assert path.read_bytes() == CONTENT and "hdd" not in site.lfs(path), before


def test_cold_runs_or_says_why_not(site):
    done = site.try_it("--cold")
    allowed = os.access("/proc/sys/vm/drop_caches", os.W_OK)
    assert "Kept: " in done.out
    assert allowed or "the page cache stays as it is" in done.err, str(done)


# ------------------------------------------------------------------------------------- failures


def test_a_command_that_fails_changes_nothing(site):
    done = site.try_it(ok=False, command=[*site.command, "fail", 1])
    assert done.code == 7 and "nothing was changed" in done.err and site.runs() == 1
    assert site.servers() == {"hdd"}
    missing = site.try_it(ok=False, command=["/no/such/program"])
    assert missing.code != 0 and "/no/such/program" in missing.err and site.servers() == {"hdd"}
    site.assert_sound()


def test_a_command_that_fails_in_the_new_layout_brings_the_old_one_back(site):
    done = site.try_it(ok=False, command=[*site.command, "fail", 4], at_most=3)
    assert done.code == 7 and site.runs() == 4, str(done)
    assert "failed over the new layouts" in done.err and "have the layouts back" in done.err
    assert site.servers() == {"hdd"}
    site.assert_sound()


def test_what_is_kept_is_not_forgotten(site):
    site.try_it()
    again = site.try_it("--min-gain", "none", ok=False)
    assert again.code == 1 and "undo it with" in again.err and "--dir" in again.err
    site.stripewise(*undo_line(again.err))
    assert site.servers() == {"hdd"}
    assert "Kept: " in site.try_it("--min-gain", "none").out


def test_a_directory_has_one_try_at_a_time(site):
    process = site.begin(command=[*site.command, "hold", 1])
    wait_until(lambda: held(site), process)
    for words in (site.words(), ["try", "--undo", "-d", site.dir]):
        second = site.stripewise(*words, ok=False)
        assert second.code == 1 and f"another process works on the try in {site.dir}" in second.err, str(second)
    interrupt(site, process)


def test_mistakes_are_named(site, tmp_path):
    for words, said in (
        (["try", "--undo", "-d", tmp_path / "none"], f"{tmp_path}/none holds no try"),
        (["try", "-d", site.cluster.data, "--", "true"], f"{site.cluster.data} is not empty and holds no try"),
        (["try", "-d", tmp_path / "a/b", "--", "true"], f"{tmp_path}/a/b, cannot be made"),
        (["try", "--runs", 5, "--at-most", 3, "--", "true"], "--at-most 3 is less than --runs 5"),
        (["try", "-p", tmp_path / "no.toml", "-d", tmp_path / "c", "--", "true"], f"{tmp_path}/no.toml cannot be read"),
        (["try"], "COMMAND"),
    ):
        done = site.stripewise(*words, ok=False, cwd=tmp_path)
        assert done.code != 0 and said in done.err, str(done)


# --------------------------------------------------------------------------------------- Ctrl-C


def held(site):
    return (site.root / "held").exists()


def interrupt(site, process):
    """Sends SIGINT to `try` alone, and returns what it said."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANGS_S)
    assert process.returncode == -signal.SIGINT, (out, err)
    return err


def test_an_interrupt_before_the_change_leaves_nothing(site):
    process = site.begin(command=[*site.command, "hold", 2])
    wait_until(lambda: held(site), process)
    said = interrupt(site, process)
    assert "interrupted: nothing was changed" in said, said
    assert site.servers() == {"hdd"} and len(list(site.dir.glob("before-*.trace"))) == 1
    (site.root / "go").touch()
    done = site.try_it(command=[*site.command, "hold", 2])
    assert "Kept: " in done.out and "run 1 before" not in done.err, "the first run counts"


def test_an_interrupt_while_it_plans(site):
    """The cluster file is a pipe that nothing comes through."""
    pipe = site.root / "cluster.pipe"
    os.mkfifo(pipe)
    words = [str(pipe) if word == str(site.cluster.toml) else word for word in site.words()]
    process = subprocess.Popen([site.bin_dir / "stripewise", *words], stderr=subprocess.PIPE, text=True)
    while "planning" not in process.stderr.readline():
        assert process.poll() is None
    said = interrupt(site, process)
    assert "interrupted: nothing was changed" in said and site.servers() == {"hdd"}, said


def test_an_interrupt_from_the_terminal_reaches_the_command_once(site):
    """The terminal sends SIGINT to `try` and to the command. It is not passed on again."""
    words = [str(site.bin_dir / "stripewise"), *site.words(command=[*site.command, "hold", 1])]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    wait_until(lambda: held(site))
    os.write(terminal, b"\x03")
    said = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while more := os.read(terminal, 4096):
            said += more
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGINT
    os.close(terminal)
    assert b"interrupted: nothing was changed" in said, said
    assert (site.root / "signals.log").read_text() == "SIGINT "


def test_an_interrupt_after_the_change_can_be_undone_or_continued(site):
    held_command = [*site.command, "hold", 4]
    process = site.begin(command=held_command, at_most=3)
    wait_until(lambda: held(site), process)
    said = interrupt(site, process)
    assert "interrupted: files may be in the layouts of" in said and "the same command continues" in said, said
    site.assert_sound()
    site.stripewise(*undo_line(said))
    assert site.servers() == {"hdd"}
    site.assert_sound()
    assert "was undone" in site.stripewise(*undo_line(said)).err, "twice is no harm"


def test_an_interrupted_try_continues_in_the_new_layout(site):
    held_command = [*site.command, "hold", 5]
    process = site.begin(command=held_command, at_most=3)
    wait_until(lambda: held(site), process)
    interrupt(site, process)
    (site.root / "go").touch()
    done = site.try_it(command=held_command, at_most=3)
    assert "Kept: " in done.out and site.runs() == 7, str(done)
    assert "before the change" not in done.err and "run 2 after" in done.err
    site.assert_sound()


def test_an_interrupt_while_files_are_placed(site, stripewise):
    """There are so many files that placing them is not done when the first one is."""
    for number in range(400):
        (site.cluster.data / f"g{number}").write_bytes(os.urandom(64) * 4096)
    trace, plan = site.root / "g", site.root / "g.toml"
    synth = ["synth", "ior", "--procs", 1, "--transfer", "64K", "--total", "1M", "--op", "read", "--shared"]
    stripewise(*synth, "--file", site.cluster.data / "g1", "-o", trace)
    stripewise("plan", trace, "-c", site.cluster.toml, "--scheme", "1-DH", "--min-gain", "none", "-o", plan)
    before = {path: path.read_bytes() for path in sorted(site.cluster.data.glob("g*"))}
    process = site.begin("-p", plan, over=None)
    is_managed = lambda path: path.read_bytes()[:15] == MANIFEST
    wait_until(lambda: any(map(is_managed, before)), process)
    said = interrupt(site, process)
    assert "interrupted: files may be in the layouts of" in said, said
    site.stripewise(*undo_line(said))
    assert {path: path.read_bytes() for path in before} == before


def test_an_interrupt_while_they_go_back(make_cluster, stripewise, bin_dir, python):
    site = Site(make_cluster((SLOW, FAST)), stripewise, bin_dir, python)
    for number in range(400):
        (site.cluster.data / f"f{number}.dat").write_bytes(os.urandom(64) * 4096)
    before = {path: path.read_bytes() for path in sorted(site.cluster.data.glob("f*"))}
    plan = site.root / "all.toml"
    plan.write_text(site.now.read_text().replace("/f.dat", "/f*.dat"))
    is_managed = lambda path: path.read_bytes()[:15] == MANIFEST
    process = site.begin("-p", plan, over=None)
    wait_until(lambda: all(map(is_managed, before)), process)
    wait_until(lambda: not all(map(is_managed, before)), process)
    said = interrupt(site, process)
    assert "interrupted: files may be in the layouts of" in said, said
    site.stripewise(*undo_line(said))
    assert {path: path.read_bytes() for path in before} == before
