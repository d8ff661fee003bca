"""An error of the kernel inside an interposed call is an error of the call or is got over. It is never a plain file, never a wrong byte."""

import json
import re

import pytest
from conftest import LIBRARY_NAME, LONG, run_command

# What a test of files has no use for: the MPI library's questions.
NOT_ABOUT_FILES = re.compile(r"stripewise_")
COPY = '[[rule.copy]]\nkind = "{0}"\nname = "fast"\nlayouts = [[{{ cycle = "ssd/0-1:8K" }}]]\n'
KINDS = {
    "one copy": "",
    "replicas": COPY.format("replica"),
    "cache": COPY.format("cache") + '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "1G"\nprocs = 1\nbackground = 1\n',
}


def test_every_interposed_call_has_a_case(campaign, bin_dir):
    defined = run_command("nm", "-D", "--defined-only", bin_dir / LIBRARY_NAME).out
    functions = {line.split()[2] for line in defined.splitlines() if line.split()[1] in "TW"}
    called = set(run_command(campaign, "names").out.split())
    assert {name for name in functions - called if not NOT_ABOUT_FILES.match(name)} == set()
    assert called - functions == set()


def plan_text(cluster, copies):
    """One rule for everything in cluster.data."""
    text = f'version = 1\nscheme = "DEF"\n[[rule]]\npattern = {json.dumps(f"{cluster.data}/**")}\nscheme = "DEF"\nreason = "a test"\n'
    text += f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "hdd/0-1:4K" }}]]\n{copies}\n'
    return text + re.sub(r"^(\[+)", r"\1cluster.", cluster.text(), flags=re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_the_kernel(campaign, cluster, stripewise, kind, capsys):
    cluster.plan.write_text(plan_text(cluster, KINDS[kind]))
    # All system calls of a call in one thread: another one is not looked into.
    env = {"STRIPEWISE_FANOUT": "serial"}
    done = cluster.run(campaign, cluster.data, kind, "long" if LONG else "short", env=env, ok=False, timeout=3000)
    with capsys.disabled():
        print(f"\n{done.out.splitlines()[-1]}" if done.out else done)
    assert done.code == 0, f"{done.out[-20000:]}{done.err[-4000:]}"
    found = stripewise("fsck", "--json", cluster.data, ok=False)
    # A call that failed may leave components that no name leads to, or a temporary of a file that was being created.
    assert set(kinds_of(found.out)) <= {"orphan", "temporary"}, found.out[-4000:]


def kinds_of(text):
    """What fsck found."""
    return [finding["kind"] for finding in json.loads(text)["findings"]]
