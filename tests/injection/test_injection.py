"""An error of the kernel inside an interposed call is either an error of the call or is handled. It
never leads to a plain file or a wrong byte."""

import json
import re

import pytest
from conftest import LIBRARY_NAME, LONG, Tier, run_command

# The interface to the MPI library has nothing to do with files.
NOT_ABOUT_FILES = re.compile(r"stripewise_")
# These calls change processes and descriptor numbers. The first later call on a number finds out
# which file it refers to.
OF_NUMBERS = {
    "_Fork", "clone", "closedir", "mprotect", "open_by_handle_at", "pidfd_getfd", "posix_spawn_file_actions_destroy", "recvmmsg", "syscall",
}
HDDS, SSDS = Tier("hdd", 2), Tier("ssd", 2)
COPY = '[[rule.copy]]\nkind = "{0}"\nname = "fast"\nlayouts = [[{{ cycle = "ssd/0-1:8K" }}]]\n'
ROOTS = "one copy, as root"
KINDS = {
    "one copy": "",
    ROOTS: "",
    "replicas": COPY.format("replica"),
    "cache": COPY.format("cache") + '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "1G"\nprocs = 1\nbackground = 1\n',
}


def test_every_interposed_call_has_a_case(campaign, bin_dir):
    defined = run_command("nm", "-D", "--defined-only", bin_dir / LIBRARY_NAME).out
    functions = {line.split()[2] for line in defined.splitlines() if line.split()[1] in "TW"}
    called = set(run_command(campaign, "names").out.split())
    assert {name for name in functions - called - OF_NUMBERS if not NOT_ABOUT_FILES.match(name)} == set()
    assert called - functions == set()


def plan_text(cluster, copies):
    """A plan with one rule for all files in cluster.data."""
    text = f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = {json.dumps(f"{cluster.data}/**")}\nscheme = "DEF"\nreason = "a test"\n'
    text += f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "hdd/0-1:4K" }}]]\n{copies}\n'
    return text + re.sub(r"^(\[+)", r"\1cluster.", cluster.text(), flags=re.MULTILINE)


# Root without capabilities behaves like any user: the kernel refuses to open an anchor for writing.
OWNER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
# Each part has a subset of the calls, so that several processes can share the campaign.
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_the_kernel(campaign, make_cluster, stripewise, count, kind, part):
    """Runs all calls on files with one copy. On files with several copies, only those that touch
    the other copies run."""
    copies = KINDS[kind]
    cluster = make_cluster([HDDS, SSDS] if copies else [HDDS])
    cluster.plan.write_text(plan_text(cluster, copies))
    rights = [] if kind == ROOTS else OWNER
    extent = "long" if LONG else "few" if copies else "short"
    # All system calls of an interposed call must be made by one thread, because other threads are
    # not traced.
    command = [*rights, campaign, cluster.data, kind, extent, f"{part}/{PARTS}"]
    said = cluster.run(*command, env={"STRIPEWISE_FANOUT": "serial"}, ok=False, timeout=None)
    assert said.code == 0, said.out[-20000:]
    count(f"system calls that failed, {kind}", int(re.search(r": (\d+) cases of ", said.out)[1]))
    moved = f"{cluster.data}-without-rule"
    found = stripewise("fsck", "--json", cluster.data, moved, "-c", cluster.toml, "--orphan-age", 0, ok=False).json()
    # A call that removes a file may leave objects without a name.
    wrong = [it for it in found["findings"] if it["problem"] and it["kind"] != "orphan"]
    assert wrong == [], wrong[:20]
