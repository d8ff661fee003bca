"""A directory with managed files that is mounted, and the same directory without the mount."""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ClusterDir, has_fuse, run_command, wait_until

from bypass.conftest import KINDS, plan_text

# The kinds of managed file that differ in how they are served.
SERVED = ["1-DH", "replicas", "cache"]


def is_mounted(path):
    """Whether a file system is mounted there. It may be one whose process has ended."""
    return any(line.split()[4] == str(path) for line in Path("/proc/self/mountinfo").read_text().splitlines())


@dataclass
class View:
    """A cluster whose data directory is seen at `path`."""

    cluster: ClusterDir
    path: Path
    stripewise: object
    kind: str = "1-DH"

    def mount(self, *words, ok=True, **options):
        """Mounts, with further words for the command line."""
        done = self.stripewise("mount", *words, self.cluster.data, self.path, ok=ok, **options)
        assert is_mounted(self.path) == (done.code == 0), done
        return done

    def process(self):
        """The number of the process that serves."""
        found = subprocess.run(["pgrep", "-f", f"mount --serve .* {self.path}$"], capture_output=True, text=True)
        numbers = found.stdout.split()
        assert len(numbers) == 1, numbers
        return int(numbers[0])

    def end(self, number=signal.SIGTERM):
        """Ends the process that serves."""
        process = self.process()
        os.kill(process, number)
        wait_until(lambda: not Path(f"/proc/{process}").exists())

    def is_managed(self, name):
        """Whether the file is a managed one: without library and mount its first bytes are those of a
        manifest."""
        return (self.cluster.data / name).read_bytes().startswith(b"stripewise file, format ")

    def with_library(self, *words, **options):
        """Runs a command under the library, on the directory itself."""
        return self.cluster.run(*words, **options)


@pytest.fixture(autouse=True)
def fuse():
    """Skips the test where nothing can be mounted."""
    if not has_fuse():
        pytest.skip("no FUSE here: it needs /dev/fuse, the package fuse3, and the right to mount")


@pytest.fixture
def make_view(cluster, stripewise):
    """make_view(kind) -> View: a view, not mounted, with a plan of that kind."""
    views = []

    def make(kind="1-DH"):
        cluster.plan.write_text(plan_text(cluster, *KINDS[kind]))
        view = View(cluster, cluster.root / "view", stripewise, kind)
        view.path.mkdir(exist_ok=True)
        views.append(view)
        return view

    yield make
    for view in views:
        if is_mounted(view.path):
            run_command("fusermount3", "-u", "-z", view.path)


@pytest.fixture
def unmounted(make_view):
    """A view that is not mounted yet."""
    return make_view()


@pytest.fixture(params=SERVED)
def view(request, make_view):
    """A mounted view. New files have the layouts of a plan, one of each kind in turn."""
    made = make_view(request.param)
    made.mount("-p", made.cluster.plan)
    return made
