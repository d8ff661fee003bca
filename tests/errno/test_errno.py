"""An error of the kernel inside an interposed call is an error of the call or is got over. It is never a plain file, never a wrong byte."""

import json
import re

import pytest
from conftest import LIBRARY_NAME, LONG, Tier, run_command

# What a test of files has no use for: the MPI library's questions.
NOT_ABOUT_FILES = re.compile(r"stripewise_")
# They change what is known of processes and of descriptor numbers; what a number leads to is found
# out by the first call that uses it.
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
    """One rule for everything in cluster.data."""
    text = f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = {json.dumps(f"{cluster.data}/**")}\nscheme = "DEF"\nreason = "a test"\n'
    text += f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "hdd/0-1:4K" }}]]\n{copies}\n'
    return text + re.sub(r"^(\[+)", r"\1cluster.", cluster.text(), flags=re.MULTILINE)


# Root without the rights of root: as any user. The kernel refuses to open an anchor for writing.
OWNER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
# Each part has some of the calls, so that several processes can share them.
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_the_kernel(campaign, make_cluster, stripewise, count, kind, part):
    """All calls on files with one copy, and those that touch the other copies on files that have some."""
    copies = KINDS[kind]
    cluster = make_cluster([HDDS, SSDS] if copies else [HDDS])
    cluster.plan.write_text(plan_text(cluster, copies))
    rights = [] if kind == ROOTS else OWNER
    extent = "long" if LONG else "few" if copies else "short"
    # All system calls of a call in one thread: another one is not looked into.
    command = [*rights, campaign, cluster.data, kind, extent, f"{part}/{PARTS}"]
    said = cluster.run(*command, env={"STRIPEWISE_FANOUT": "serial"}, ok=False, timeout=None)
    assert said.code == 0, said.out[-20000:]
    count(f"system calls that failed, {kind}", int(re.search(r": (\d+) cases of ", said.out)[1]))
    moved = f"{cluster.data}-without-rule"
    found = stripewise("fsck", "--json", cluster.data, moved, "-c", cluster.toml, "--orphan-age", 0, ok=False).json()
    # A call that removes a file may leave components that no name leads to.
    wrong = [it for it in found["findings"] if it["problem"] and it["kind"] != "orphan"]
    assert wrong == [], wrong[:20]
