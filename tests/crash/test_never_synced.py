"""A power cut may leave a file that was never synced without some of its objects: what the user
then sees and can do.

`stripewise_datapath` `tests::never_synced` tests which states a power cut can leave, and that
`fsck` has a remedy for each.
"""

import sys


def test_a_file_with_a_lost_object_is_named_and_can_be_removed(stripewise, planned):
    planned.run("sh", "-c", 'seq 1 200000 > "$0/f"', planned.data)
    stripewise("fsck", "-c", planned.toml, planned.data)
    next(planned.targets[2].glob("stripewise/*/*.2")).unlink()
    # A program gets an error, and the library logs which command helps.
    read = planned.run(sys.executable, "-c", "open(__import__('sys').argv[1]).read()", planned.data / "f", ok=False)
    assert "Input/output error" in read.err and "a part of the file is lost; `stripewise fsck`" in read.err, str(read)
    found = stripewise("fsck", planned.data, ok=False)
    assert found.code == 1 and f"problem: {planned.data}/f: " in found.out, str(found)
    assert "never synced, remove it with `stripewise rm -f`" in found.out, str(found)
    assert stripewise("fsck", "--repair", planned.data, ok=False).code == 1
    # Without -f nothing is removed; with it, everything is.
    assert stripewise("rm", planned.data / "f", ok=False).code == 1
    stripewise("rm", "-f", planned.data / "f")
    assert stripewise("fsck", "--orphan-age", 0, "-c", planned.toml, planned.data).out.endswith(": 0 problems\n")
    assert not [path for target in planned.targets for path in target.glob("stripewise/*/*")]
    planned.run("sh", "-c", 'seq 1 10 > "$0/f"', planned.data)
    assert planned.run("tail", "-n", 1, planned.data / "f").out == "10\n"


def test_a_program_that_starts_anew_needs_no_remedy(stripewise, planned):
    planned.run("sh", "-c", 'seq 1 200000 > "$0/f"', planned.data)
    next(planned.targets[2].glob("stripewise/*/*.2")).unlink()
    done = planned.run("sh", "-c", 'seq 1 20 > "$0/f"; tail -n 1 "$0/f"', planned.data)
    assert done.out == "20\n" and done.err == ""
    stripewise("fsck", "--orphan-age", 0, "-c", planned.toml, planned.data)
