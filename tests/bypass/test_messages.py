"""The library's messages when standard error is a managed file."""

import subprocess


def test_messages_go_where_the_program_writes(prey):
    """One message comes during a call on another file (a target is missing), one at an open."""
    log, plain = prey.cluster.data / "log", prey.cluster.data / "plain"
    plain.write_text("not managed")
    lost = prey.cluster.targets[0] / "stripewise-target.toml"
    lost.rename(lost.with_suffix(".away"))
    script = f'echo first >&2; : >> "{plain}"; echo second >&2; cat "{prey.path}"; echo third >&2'
    with_log = f'exec 2>> "{log}"; {script}'
    # The log lies on the other targets.
    text = prey.cluster.plan.read_text()
    rule = text[text.index("[[rule]]") : text.index("[cluster.network]")]
    layouts = 'layouts = [[{ cycle = "ssd/0-3:64K" }]]\n'
    head = rule[: rule.index("layouts")].replace("/**", "/log")
    prey.cluster.plan.write_text(text.replace("[[rule]]", head + layouts + "[[rule]]", 1))
    prey.with_library("bash", "-c", with_log, ok=False)
    assert log.read_bytes().startswith(b"stripewise file, format ")
    content = subprocess.run(["cat", log], env=dict(prey.cluster.environment()), capture_output=True, check=True, text=True).stdout
    lines = content.splitlines()
    said = [line for line in lines if line.startswith("stripewise: ")]
    assert any("is not in the planned layout" in line for line in said), content
    assert any(str(prey.cluster.targets[0]) in line for line in said), content
    assert [line for line in lines if line in ("first", "second", "third")] == ["first", "second", "third"], content
    lost.with_suffix(".away").rename(lost)
    prey.assert_unharmed()
