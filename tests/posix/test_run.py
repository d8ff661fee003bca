"""`stripewise run`."""

import json
import signal
import subprocess


def test_runs_over_the_plan_and_passes_everything_on(worlds, stripewise):
    script = 'seq 3 > "$0/f"; cat "$0/f"; echo problem >&2; exit 7'
    result = stripewise("run", "-p", worlds.cluster.plan, "--", "sh", "-c", script, worlds.managed, ok=False)
    assert (result.code, result.out, result.err) == (7, "1\n2\n3\n", "problem\n")
    assert worlds.is_managed("f")
    result = stripewise("run", "-p", worlds.cluster.plan, "--", "cat", stdin="through standard input\n")
    assert result.out == "through standard input\n"


def test_a_signal_ends_it_as_it_ends_the_command(worlds, bin_dir):
    command = [bin_dir / "stripewise", "run", "-p", worlds.cluster.plan, "--", "sh", "-c", "kill -TERM $$"]
    assert subprocess.run(command).returncode == -signal.SIGTERM


def test_print_env_is_enough_for_a_launcher(worlds, stripewise, execute):
    printed = stripewise("run", "-p", worlds.cluster.plan, "--print-env", "--fanout", "serial")
    script = f"{printed.out}sh -c 'seq 3 > {worlds.managed}/f'"
    execute("sh", "-c", script)
    assert worlds.is_managed("f")
    as_json = json.loads(stripewise("run", "-p", worlds.cluster.plan, "--print-env", "--json").out)
    assert as_json["STRIPEWISE_PLAN"] == str(worlds.cluster.plan) and "STRIPEWISE_FANOUT" not in as_json
    # Other preloaded libraries stay; ours appears once.
    env = {"LD_PRELOAD": as_json["LD_PRELOAD"]}
    again = json.loads(stripewise("run", "-p", worlds.cluster.plan, "--print-env", "--json", env=env).out)
    assert again == as_json


def test_what_is_wrong_is_said_before_the_command_runs(worlds, stripewise, tmp_path):
    def refused(*args, **options):
        result = stripewise("run", *args, "--", "touch", tmp_path / "ran", ok=False, **options)
        assert result.code == 1 and not (tmp_path / "ran").exists()
        lines = result.err.splitlines()
        assert len(lines) == 1, result
        return lines[0]

    plan = worlds.cluster.plan
    assert "/no/plan.toml cannot be read" in refused("-p", "/no/plan.toml")
    assert "/no/library.so" in refused("-p", plan, "--lib", "/no/library.so")
    worlds.cluster.targets[3].rmdir()
    line = refused("-p", plan)
    assert "hdd/3" in line and str(worlds.cluster.targets[3]) in line and "stripewise place" in line
    plan.write_text(plan.read_text().replace("version = 1", "version = 99"))
    assert "99" in refused("-p", plan)
    result = stripewise("run", ok=False)
    assert result.code != 0 and "--plan" in result.err


def test_programs_out_of_reach_are_named(worlds, stripewise, execute, tmp_path):
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    execute("gcc", "-static", "-o", tmp_path / "static", source)
    result = stripewise("run", "-p", worlds.cluster.plan, "--", tmp_path / "static")
    assert "linked statically" in result.err and "keep their present layout" in result.err
    assert stripewise("run", "-p", worlds.cluster.plan, "--", "true").err == ""
