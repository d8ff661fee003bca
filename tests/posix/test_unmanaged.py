"""Programs that open no managed file behave as without the library."""

import re

import pytest
from conftest import run_command

from .conftest import HERE

SCRIPT = r"""
cd "$0"; seq 1 30000 > a; sort -R --random-source=a a > b; gzip -k b; tar cf t.tar a b; ls -l --time-style=+ a b
md5sum a b; stat -c '%s %b %h' a; wc a b; cp -a a c; mv c d; ln d e; rm d
for i in $(seq 1 60); do echo $i | cat > /dev/null; done; (ulimit -n 20; cat a | head -n 1)
python3 -c 'import json, os, subprocess; print(subprocess.check_output(["echo", "x"])); print(len(os.listdir(".")))'
exec 7< a; read -r first <&7; read -r second <&7; echo $first $second; diff a b | wc -l
"""

WAYS = {"library alone": {"STRIPEWISE_PLAN": ""}, "with a plan": {}, "recorded": {"STRIPEWISE_TRACE_DIR": "SPOOL"}}


def environment(worlds, way, tmp_path):
    """The library's environment, in one of the ways of using it."""
    spool = tmp_path / "spool"
    spool.mkdir(exist_ok=True)
    return {**worlds.cluster.environment(), **{k: v.replace("SPOOL", str(spool)) for k, v in WAYS[way].items()}}


@pytest.mark.parametrize("way", WAYS)
def test_a_script(worlds, way, tmp_path):
    results, files = [], []
    for name, env in (("bare", {}), ("loaded", environment(worlds, way, tmp_path))):
        directory = tmp_path / name
        directory.mkdir()
        result = run_command("bash", "-c", SCRIPT, directory, env=env)
        results.append((result.out, result.err))
        files.append({f.name: f.read_bytes() for f in directory.iterdir() if f.suffix not in (".gz", ".tar")})
    assert results[0] == results[1]
    assert files[0] == files[1]


def calls(trace, directory):
    """A program's calls in the strace output, without those that load the library or
    check files."""
    lines = []
    for line in trace.read_text().splitlines():
        line = re.sub(r"^\d+ +", "", line).replace(str(directory), "DIR")
        line = re.sub(r"0x[0-9a-f]+|/tmp/\S+", "_", line)
        lines.append(line)
    # The loader's calls come before the program's first call on a file.
    start = next(i for i, line in enumerate(lines) if "DIR/" in line and not line.startswith("execve"))
    own = (
        r"pread64\(\d+, .*, 24, 0\) ",  # is it an anchor?
        r"fstat\(", r"newfstatat\(", r"fcntl\(\d+, F_GETFL\)", r"mmap\(NULL, (4096|8192|524288),", r"mprotect\(_, 65536, PROT_NONE", r"madvise\(", r"brk\(", r"munmap\(",
        r"rt_sigprocmask\(.*~\[ILL TRAP ABRT BUS FPE (KILL )?SEGV (STOP )?RTMIN RT_1\]",  # symbol lookup, on a stack where no handler may run
        r"getpid\(", r"gettid\(", r"exit_group", r"\+\+\+", r"sysinfo\(",
    )  # fmt: skip
    kept = [line for line in lines[start:] if not any(re.match(pattern, line) for pattern in own)]
    # The library inspects a file by name through a descriptor that it closes at once.
    text = "\n".join(kept)
    return re.sub(r"openat\([^\n]*O_NOATIME\|O_CLOEXEC\) = (\d+)\nclose\(\1\) += 0\n", "", text).split("\n")


@pytest.mark.parametrize(
    "command",
    [["cat", "a", "a"], ["dd", "if=a", "of=b", "bs=7000", "status=none"], ["cp", "a", "c"], ["head", "-c", "9", "a"], ["sort", "-r", "a", "-o", "d"]],
    ids=lambda command: command[0],
)
def test_the_same_system_calls(worlds, command, tmp_path):
    """Apart from checking what a file is, the library adds no calls and omits none."""
    seen = []
    for name, env in (("bare", {}), ("loaded", {**worlds.cluster.environment(), "STRIPEWISE_PLAN": ""})):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "a").write_bytes(b"".join(b"%d\n" % n for n in range(3000)))
        paths = [re.sub(r"^(if=|of=|)(a|b|c|d)$", rf"\g<1>{directory}/\2", word) for word in command]
        trace = tmp_path / f"{name}.trace"
        setting = [f"-E{key}={value}" for key, value in env.items()]
        run_command("strace", "-f", "-s", "32", "-o", trace, *setting, *paths)
        seen.append(calls(trace, directory))
    assert seen[0] == seen[1]


def test_another_library_sees_the_same(worlds, tmp_path):
    """An independent counter behind the library counts the same bytes and calls as without it."""
    shim = tmp_path / "shim.so"
    run_command("gcc", "-O1", "-fPIC", "-shared", "-o", shim, HERE / "shim.c", "-ldl")
    (tmp_path / "a").write_bytes(bytes(1000003))
    counts = []
    for name, preload in (("bare", f"{shim}"), ("loaded", f"{worlds.cluster.environment()['LD_PRELOAD']}:{shim}")):
        out = tmp_path / f"{name}.count"
        env = {"LD_PRELOAD": preload, "SHIM_OUT": str(out)}
        run_command("dd", f"if={tmp_path}/a", f"of={tmp_path}/{name}", "bs=5000", env=env)
        counts.append(out.read_text())
    assert counts[0] == counts[1] and "read 1000003 in" in counts[0]


def test_record_locks_stay(worlds, programs, tmp_path):
    """Closing any descriptor of a file drops the process's locks on it, so the library checks files
    without that."""
    said = []
    for name, env in (("bare", {}), ("loaded", worlds.cluster.environment())):
        said.append(run_command(programs / "robust", "locks", tmp_path / name, env=env).out)
    assert said[0] == said[1] and "lock kept" in said[0]


def test_managed_bytes_do_not_pass_by(worlds, tmp_path):
    """On a managed file no bytes go through libc's write; all of them go to the objects."""
    shim = tmp_path / "shim.so"
    run_command("gcc", "-O1", "-fPIC", "-shared", "-o", shim, HERE / "shim.c", "-ldl")
    out = tmp_path / "count"
    preload = f"{worlds.cluster.environment()['LD_PRELOAD']}:{shim}"
    (tmp_path / "a").write_bytes(bytes(1000003))
    env = {"LD_PRELOAD": preload, "SHIM_OUT": str(out)}
    worlds.with_library("dd", f"if={tmp_path}/a", f"of={worlds.managed}/f", "bs=5000", "status=none", env=env)
    assert "read 1000003 in" in out.read_text() and "written 0 in 0" in out.read_text()
    of_file = [file for file in worlds.objects() if file.suffix != ".manifest"]
    assert sum(file.stat().st_size for file in of_file) == 1000003
