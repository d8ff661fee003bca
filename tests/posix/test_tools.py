"""Everyday tools: shells, cp, dd, tar, rsync, stream editors."""

import os

import pytest

SHELL = r"""
set -e
cd "$0"
seq 1 50000 > numbers
cat numbers numbers > twice
cp numbers copy; cp -p numbers preserved; cp --sparse=always twice sparse
cmp numbers copy
head -c 100000 twice | tail -c 1000 > part
dd if=twice of=dd.out bs=70000 2> dd.err; dd if=numbers of=dd.out bs=1000 seek=50 conv=notrunc 2>> dd.err
grep -v records dd.err | grep -c copied
echo first > log; echo second >> log; printf '%s\n' third fourth >> log
while read -r line; do echo "<$line>"; done < log
wc -l < numbers; wc -c twice; sort -rn numbers | head -n 3; tail -n 2 numbers; md5sum numbers twice part dd.out
sed -i 's/^1\(.*\)/one\1/' copy; grep -c one copy
awk '{ s += $1 } END { print s }' numbers
exec 5> through; echo one >&5; ( echo two >&5 ); echo three >&5; exec 5>&-; cat through
{ echo brace; ls -d . ; } > group; cat group
tee tee1 tee2 < log > /dev/null
truncate -s 12345 part; stat -c %s part numbers; : > log; stat -c %s log
tar cf archive.tar numbers part tee1; tar tf archive.tar; mkdir out; tar xf archive.tar -C out; cmp out/numbers numbers
gzip -n -c numbers > numbers.gz; gzip -dc numbers.gz | cmp - numbers
mv copy moved; ln numbers hard; ln -s moved soft; cmp soft moved; rm hard
mv tee1 tee2; ls
split -b 30000 numbers piece.; cat piece.* | cmp - numbers
perl -e 'open F, "+<", "part" or die; seek F, 100, 0; print F "perl"; close F; open F, "part"; local $/; $x = <F>; print length $x, substr($x, 98, 8), "\n"'
find . -size +100k -name 'n*' | sort
diff numbers twice | wc -l
rm -r out piece.*
"""


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_shell(worlds, shell):
    worlds.both(lambda directory: [shell, "-c", SHELL, directory])
    names = sorted(os.listdir(worlds.plain))
    assert sorted(os.listdir(worlds.managed)) == names
    for name in names:
        if (worlds.plain / name).is_symlink() or name in ("moved", "copy", "dd.err", "archive.tar", "soft"):
            continue  # sed's result is a renamed plain file; tar's contains times
        if worlds.is_managed(name):
            worlds.assert_same(name)
        else:
            assert (worlds.plain / name).read_bytes() == (worlds.managed / name).read_bytes()


def test_rsync_both_ways(worlds, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number in range(5):
        (source / f"f{number}").write_bytes(os.urandom(1 + number * 100000))
    worlds.with_library("cp", "-r", source, worlds.managed / "tree")
    worlds.with_library("cp", "-r", worlds.managed / "tree", tmp_path / "back")
    for number in range(5):
        assert (source / f"f{number}").read_bytes() == (tmp_path / "back" / f"f{number}").read_bytes()
        assert worlds.is_managed(f"tree/f{number}")


SPARSE = r"""
set -e
cd "$0"
truncate -s 40M sparse
for at in 0 9 10 25; do head -c 70000 /dev/urandom | dd of=sparse bs=64K seek=$((at * 16)) conv=notrunc iflag=fullblock 2> /dev/null; done
cp --sparse=auto sparse copy
tar -S -cf archive.tar sparse; mkdir out; tar -S -xf archive.tar -C out
cmp sparse copy; cmp sparse out/sparse
stat -c '%s %n' sparse copy out/sparse
"""


DATA_BYTES = """
import os, sys
file, at, data = os.open(sys.argv[1], os.O_RDONLY), 0, 0
while True:
    try:
        start = os.lseek(file, at, os.SEEK_DATA)
    except OSError:
        break
    at = os.lseek(file, start, os.SEEK_HOLE)
    data += at - start
print(data)
"""


def test_copies_of_sparse_files_stay_sparse(worlds, python):
    """cp and tar can query the holes and need not read them."""
    worlds.both(lambda directory: ["bash", "-c", SPARSE, directory])
    for name in ("sparse", "copy", "out/sparse"):
        assert worlds.is_managed(name)
        blocks = int(worlds.with_library("stat", "-c", "%b", worlds.managed / name).out)
        assert blocks * 512 < 2 << 20, f"{name}: {blocks} blocks"
        data = int(worlds.with_library(python, "-c", DATA_BYTES, worlds.managed / name).out)
        assert 280000 <= data < 2 << 20, f"{name}: {data} bytes of data"
    # 280000 bytes of data, plus the headers and padding of tar.
    size = int(worlds.with_library("stat", "-c", "%s", worlds.managed / "archive.tar").out)
    assert size < 1 << 20, f"the archive has {size} bytes"


def test_removing_takes_the_objects_along(worlds):
    worlds.with_library("bash", "-c", 'cd "$0"; seq 1 30000 > a; cp a b; cp a c; mv a b; rm c', worlds.managed)
    of_b = len(worlds.objects())
    worlds.with_library("rm", worlds.managed / "b")
    assert of_b == 9 and worlds.objects() == []


def test_without_the_library_a_program_sees_what_it_is(worlds):
    worlds.with_library("bash", "-c", 'seq 1 1000000 > "$0"', worlds.managed / "file")
    text = (worlds.managed / "file").read_bytes()[:4096].decode(errors="replace")
    assert text.startswith("stripewise file, format 1\n") and "stripewise cat FILE" in text
    assert text.count("[[target]]") == len(worlds.objects()) - 1


def test_managed_files_need_no_plan(worlds):
    """The library alone serves existing managed files, and creates no new ones."""
    worlds.with_library("bash", "-c", 'seq 1 100000 > "$0/file"', worlds.managed)
    alone = {**worlds.cluster.environment(), "STRIPEWISE_PLAN": ""}
    command = 'cd "$0"; tail -n 1 file; echo more >> file; tail -c 12 file; seq 3 > new; stat -c %s file new'
    result = worlds.with_library("bash", "-c", command, worlds.managed, env=alone)
    assert result.out == "100000\n100000\nmore\n588900\n6\n" and result.err == ""
    assert not worlds.is_managed("new")


def test_existing_plain_files_stay(worlds):
    """The file stays plain, and the library logs that once per process."""
    (worlds.managed / "old").write_text("as it was\n")
    result = worlds.with_library("bash", "-c", 'echo more >> "$0/old"; cat "$0/old"', worlds.managed)
    assert result.out == "as it was\nmore\n"
    assert result.err.count("is not in the planned layout") == 1
    assert not worlds.is_managed("old")


def test_a_broken_plan_is_said_and_nothing_else_happens(worlds):
    worlds.cluster.plan.write_text("version = 1\nnonsense = 3\n")
    result = worlds.with_library("bash", "-c", 'seq 3 > "$0/f"; cat "$0/f"', worlds.managed)
    assert result.out == "1\n2\n3\n" and not worlds.is_managed("f")
    assert "STRIPEWISE_PLAN=" in result.err and "nonsense" in result.err


def test_a_missing_target_is_an_error_and_nothing_is_lost(worlds):
    worlds.with_library("bash", "-c", 'seq 1 100000 > "$0"', worlds.managed / "file")
    target = worlds.cluster.targets[2]
    target.rename(target.with_suffix(".away"))
    result = worlds.with_library("cat", worlds.managed / "file", ok=False)
    assert result.code == 1 and result.out == "" and str(target) in result.err and "Input/output error" in result.err
    result = worlds.with_library("bash", "-c", 'echo > "$0"', worlds.managed / "file", ok=False)
    assert result.code == 1
    target.with_suffix(".away").rename(target)
    assert worlds.content("file").endswith(b"99999\n100000\n")
