"""O_CREAT: a new file in a rule's directory is managed, whichever path leads there, and no other
file is. Results are those of plain files."""

import os
import random
import re

import pytest
from conftest import run_command
from worlds import MAGIC

from .conftest import HERE, seeds

W, RW, CREAT, EXCL, TRUNC = os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_EXCL, os.O_TRUNC
APPEND, NOFOLLOW, NONBLOCK, DIRECTORY = os.O_APPEND, os.O_NOFOLLOW, os.O_NONBLOCK, os.O_DIRECTORY


@pytest.fixture
def creates(tmp_path):
    """The built program creates.c."""
    run_command("gcc", "-O1", "-Wall", "-Wextra", "-o", tmp_path / "creates", HERE / "creates.c")
    return tmp_path / "creates"


class Trees:
    """Two copies of a tree: in one the program runs without the library, in the other with it.
    `data` is the rule's directory."""

    def __init__(self, worlds, creates, directory):
        self.worlds, self.creates = worlds, creates
        # Deep enough that no path of the test leads out of it.
        self.bare, self.loaded = (directory / name / "/".join("abcdefghij") / "tree" for name in ("bare", "loaded"))
        plan = worlds.cluster.plan
        plan.write_text(plan.read_text().replace(str(worlds.managed), str(self.loaded / "data")))
        for root in (self.bare, self.loaded):
            for name in ("data/sub", "plain/sub"):
                (root / name).mkdir(parents=True)
            for link, target in {"into": "../data", "sub/deep": "../../data/sub", "out": "sub", "stray": "strayed", "none": "../data/none"}.items():
                (root / "plain" / link).symlink_to(target)
            (root / "link").symlink_to(root / "data")
            for name in ("plain/old", "data/old"):
                (root / name).write_bytes(b"0123456789" * 30)
            os.mkfifo(root / "plain/fifo")
            self.run(root, "open data/strayed 0101")
            (root / "data/strayed").rename(root / "plain/strayed")

    def run(self, root, lines):
        """Runs the program in one of the trees."""
        lines = lines.replace("ROOT", str(root))
        env = self.worlds.cluster.environment() if root == self.loaded else {}
        result = run_command(self.creates, cwd=root, env=env, stdin=lines)
        # The library warns about files that existed before the plan.
        err = re.sub(r"stripewise: .*exists and is not in the planned layout.*\n", "", result.err)
        return result.out.replace(str(root), "ROOT"), err

    def content(self, root, path):
        env = self.worlds.cluster.environment() if root == self.loaded else {}
        return run_command("cat", path, env=env).out

    def check(self, lines):
        """Runs both programs, and compares the output, the files and their bytes, and which of them
        are managed."""
        (bare, errors), (loaded, loaded_errors) = self.run(self.bare, lines), self.run(self.loaded, lines)
        steps = dict(enumerate(lines.splitlines(), 1))
        different = [(said, steps[int(said.split(":")[0])]) for said in set(bare.splitlines()) ^ set(loaded.splitlines())]
        assert (different, errors) == ([], loaded_errors)
        files = {}
        for root in (self.bare, self.loaded):
            found = [path for path in root.parents[9].rglob("*") if path.is_file() and not path.is_symlink()]
            files[root] = {os.path.relpath(path, root): self.content(root, path) for path in found}
        assert files[self.bare] == files[self.loaded]
        for name in files[self.loaded]:
            expected = name == "plain/strayed" or (name.startswith("data/") and name != "data/old")
            assert (self.loaded / name).read_bytes().startswith(MAGIC) == expected, name


@pytest.fixture
def trees(worlds, creates, tmp_path):
    return Trees(worlds, creates, tmp_path)


# The process has loaded the plan after the first line.
WAYS = {
    "links in the path": ["ROOT/link/a", "ROOT/plain/into/b", "plain/into/sub/c", "plain/sub/deep/d", "plain/out/e"],
    "a link at its end": ["plain/none", "plain/stray", "ROOT/plain/stray"],
    "dots": ["data/../plain/a", "plain/../data/b", "plain/into/../plain/c", "./plain/./sub//d", "plain/out/../../data/e", "plain/../../tree/data/f"],
    "from the rule's directory": ["cd data", "a", "../plain/b", "ROOT/plain/c", "../plain/into/d"],
    "from elsewhere": ["cd plain", "a", "into/b", "cd sub", "c", "deep/d", "cd deep", "e", "../f"],
    "by a link to the working directory": ["cd link", "a", "sub/b", "cd ../plain", "c"],
    "what is no file": ["plain", "plain/fifo", "/dev/null", "plain/old/x", "nothing/x", "data/nothing/x", "plain/a/", "/proc/self/cwd/data/b"],
    "no directory descriptor": ["at nothing ROOT/data/a", "at nothing ROOT/plain/b", "at nothing ROOT/plain/into/c", "at nothing data/d"],
    "a link that changes": [
        "link plain/sub ROOT/way", "way/a", "link data/sub ROOT/way", "way/a", "ROOT/way/b", "link plain ROOT/way", "way/sub/c", "ROOT/way/into/d",
    ],
}  # fmt: skip


@pytest.mark.parametrize("flags", [W | CREAT, RW | CREAT | TRUNC | NONBLOCK], ids=["created", "emptied"])
@pytest.mark.parametrize("way", WAYS)
def test_ways(trees, way, flags):
    # Opening a FIFO only for writing would wait for a reader.
    steps = [step if " " in step else f"open {step}" for step in WAYS[way]]
    opens = {step: f"{step} {flags | (RW if 'fifo' in step else 0)}" for step in steps if step.startswith(("open", "at"))}
    kept, again = [opens.get(step, step) for step in steps], opens.values()
    trees.check("\n".join([f"open plain/first {W | CREAT}", *kept, *again]))


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_random_ways(trees, seed):
    chance = random.Random(seed)
    parts = ["plain", "data", "sub", "into", "out", "deep", "link", "way", "..", ".", "..", "ROOT"]
    names = ["f", "g", "old", "stray", "strayed", "none", "fifo", "old", "f", "g"]
    access = [RW, RW | APPEND, RW | NOFOLLOW, RW | TRUNC, RW | TRUNC, RW | EXCL, RW | NONBLOCK, RW | DIRECTORY]

    def path(names):
        ways = chance.choices(parts, k=chance.randrange(5))
        start = ["ROOT"] if "ROOT" in ways or chance.random() < 0.3 else []
        return "/".join([*start, *(way for way in ways if way != "ROOT"), chance.choice(names)])

    lines = [f"open plain/first {W | CREAT}"]
    for _ in range(300):
        flags = chance.choice(access) | (CREAT if chance.random() < 0.9 else 0)
        kind = chance.random()
        if kind < 0.7:
            lines.append(f"open {path(names)} {flags}")
        elif kind < 0.8:
            lines.append(f"at {path(['.', 'sub'])} {path(names)} {flags}")
        elif kind < 0.95:
            lines.append(f"cd ROOT/{path(['.', 'sub', 'into'])}")
        else:
            target = chance.choice(["plain", "data", "plain/sub", "data/sub", "nowhere"])
            lines.append(f"link ROOT/{target} ROOT/way")
    trees.check("\n".join(lines))


def test_a_library_behind_is_not_passed_by(worlds, creates, tmp_path):
    """A library with an `open` of its own, behind ours, still sees the opens of plain files."""
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text("""#define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        int open(const char *path, int flags, unsigned mode) {
            printf("seen %s\\n", path);
            return ((int (*)(const char *, int, unsigned))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
        }""")
    run_command("gcc", "-shared", "-fPIC", "-o", shim, source)
    environment = worlds.cluster.environment()
    env = {**environment, "LD_PRELOAD": f"{environment['LD_PRELOAD']}:{shim}"}
    lines = "".join(f"open {name} {W | CREAT}\n" for name in "abc")
    run_command(creates, cwd=tmp_path, stdin=lines)
    said = run_command(creates, env=env, cwd=tmp_path, stdin=lines).out
    assert [line for line in said.splitlines() if "seen" in line] == ["seen a", "seen b", "seen c"]


def test_one_call_of_the_kernel_creates_it(worlds, creates, tmp_path):
    """A plain file is created without a check before the open, which would cost as much as the open
    itself."""
    (tmp_path / "old").write_bytes(b"x")
    lines = [f"open {name} {flags}" for name in ("new", "old", tmp_path / "new", tmp_path / "old") for flags in (W | CREAT, W | CREAT | TRUNC)]
    env = {f"-E{key}={value}" for key, value in worlds.cluster.environment().items()}
    run_command("strace", "-o", tmp_path / "trace", *env, creates, cwd=tmp_path, stdin="\n".join([f"open first {W | CREAT}", "cd .", *lines]))
    trace = (tmp_path / "trace").read_text()
    calls = trace[trace.index('chdir(".")') :].split("write(")
    for opened in calls[2:-2]:
        names = re.findall(r"^(\w+)\((?!\d)", opened, re.MULTILINE)
        assert names.count("openat2") == 1 and not {"open", "openat", "newfstatat", "readlink", "readlinkat"} & set(names), opened
