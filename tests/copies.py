"""Plans with replicas and caches, and helpers for the tests of files with several copies."""

import json
import os
import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

KINDS = ["replicas", "cache"]
CONTENT = os.urandom(1 << 20)
OVERWRITE = "import sys; f = open(sys.argv[1], 'r+b'); f.seek(int(sys.argv[2])); f.write(b'new' * 1000); f.close()"
READ = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
HOLD = "import sys; f = open(sys.argv[1], 'r+b'); f.write(b'x' * 5000); f.flush(); print(); sys.stdout.flush(); input()"


def write_plan(cluster, kind, mode="nsca", capacity="1G", pattern=None, name="plan.toml", lazy=False, original="64K", pools=False):
    """A plan for all files in cluster.data: originals on the HDDs, copies on the SSDs. In mode nsca
    everything is cached. With `pools`, the file system stripes over the servers, in stripes of at
    least 64K."""
    overlay = f"lazy_close = {str(lazy).lower()}\nprocs = 4\nprocs_per_node = 4\n"
    if kind == "cache":
        overlay += f'mode = "{mode}"\ncapacity_per_server = "{capacity}"\n'
        copies = [("1-DH", 1, "ssd/0-3:16K"), ("1-DV", 4, "ssd/0-3:1M")]
    else:
        copies = [("wide", 1, "ssd/0-3:16K"), ("narrow", 1, "hdd/1:1M")]
    original, natives = f"hdd/0-3:{original}", []
    if pools:
        native = {"ssd/0-3:16K": "ssd/64Kx4:256K", "ssd/0-3:1M": "ssd/1Mx4:4M", "hdd/1:1M": "hdd/1Mx1:1M"}
        copies = [(name, groups, native[cycle]) for name, groups, cycle in copies]
        original = "hdd/128Kx4:512K"
        natives = [cycle.split(":")[0].split("/") for cycle in [original, *(cycle for *_, cycle in copies)]]
    text = 'version = 1\nscheme = "by hand"\n[[rule]]\n'
    text += f'pattern = "{pattern or str(cluster.data) + "/**"}"\nscheme = "{kind}"\nreason = "a test"\n'
    text += f'predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = "{original}" }}]]\n'
    for copy, groups, cycle in copies:
        word = "cache" if kind == "cache" else "replica"
        text += f'[[rule.copy]]\nkind = "{word}"\nname = "{copy}"\n'
        text += f"groups = {groups}\n" if kind == "cache" else ""
        text += f'layouts = [[{{ cycle = "{cycle}" }}]]\n'
    text += f"[rule.overlay]\n{overlay}"
    for line in cluster.text().splitlines():
        brackets = "[[" if line.startswith("[[") else "[" if line.startswith("[") else ""
        text += (f"{brackets}cluster.{line[len(brackets):]}" if brackets else line) + "\n"
    for tier, label in natives:
        width, count = label.split("x")
        text += f'[[cluster.native]]\ntier = "{tier}"\nwidth = "{width}"\ncount = {count}\n'
    path = cluster.root / name
    path.write_text(text)
    return path


def journal_of(cluster):
    """The only journal of an extent map on the cluster's targets."""
    (journal,) = [p for target in cluster.targets for p in target.glob("stripewise/*/*.extents")]
    return journal


def objects(cluster, tier, manifest_too=False):
    """The objects on a tier's servers."""
    servers = [target for target in cluster.targets if target.name.startswith(tier)]
    found = [p for server in servers for p in server.glob("stripewise/*/*")]
    return [p for p in found if p.suffix[1:].isdigit() or manifest_too]


def remove_objects(cluster, tier):
    """Removes all objects on the tier's servers, as if the servers had lost them."""
    for object in objects(cluster, tier):
        object.unlink()


def hold(cluster, python):
    """Starts a program that writes 5000 bytes to `cluster.path` and keeps it open until it reads a
    line."""
    command = [python, "-c", HOLD, cluster.path]
    environment = {**os.environ, **cluster.environment()}
    holder = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    return holder


def batches(journal):
    """(kind, sequence number) of the journal's batches, and the offset of their end
    (docs/formats/extents.md)."""
    data, at, found = Path(journal).read_bytes(), 64, []
    while data[at : at + 4] == b"swb\x01":
        kind, number, _count, length = struct.unpack_from("<B3xQII", data, at + 4)
        found.append((kind, number))
        at += 24 + length + 4
    return found, at


CHANGES = 2


def committers(journal):
    """The sessions that committed what they had written to a journal of version 2, once for each
    time, in order (docs/formats/nodes.md). What is written is in one copy, what is copied in several:
    the mask of a batch's last range, its last byte, tells."""
    data, at, found = Path(journal).read_bytes(), 64, []
    while data[at : at + 4] == b"swb\x02":
        which, _number, author, _count, length = struct.unpack_from("<B3xQIII", data, at + 4)
        end = at + 28 + length
        found += [author] if which == CHANGES and data[end - 1].bit_count() == 1 else []
        at = end + 4
    return found


def append_opened(journal, node, boot=bytes(16)):
    """Appends what another node writes to the journal before it writes to the file."""
    found, end = batches(journal)
    number = found[-1][1] + 1 if found else 1
    payload = boot + node.encode()
    batch = b"swb\x01" + struct.pack("<B3xQII", 1, number, 1, len(payload)) + payload
    data = Path(journal).read_bytes()[:end] + batch + struct.pack("<I", zlib.crc32(batch))
    Path(journal).write_bytes(data)


def sealed(text):
    """The manifest with the right length and checksum."""
    text = re.sub(r"(?m)^length = .{7}$", lambda _: f"length = {len(text):<7}", text)
    for _ in range(2):
        text = re.sub(r"(?m)^length = .{7}$", lambda _: f"length = {len(text.encode()):<7}", text)
    blank = re.sub(r'"crc32:.{8}"', '"crc32:        "', text)
    blank = re.sub(r'(?m)^(pending_truncate = ").{20}"', r'\g<1>' + " " * 20 + '"', blank)
    return re.sub(r'"crc32:.{8}"', f'"crc32:{zlib.crc32(blank.encode()):08x}"', text)


def lengthen(journal, bytes_):
    """Appends records of this node opening the file until the journal has that length, as if the
    node's index had been lost then. `fsck --repair` rewrites such a journal, and so does any
    process whose next commit finds that length."""
    data = Path(journal).read_bytes()
    found, end = batches(journal)
    number, at, payload = found[-1][1], 64, None
    while at < end:
        kind, _, _, length = struct.unpack_from("<B3xQII", data, at + 4)
        payload = data[at + 24 : at + 24 + length] if kind == 1 else payload
        at += 24 + length + 4
    data = bytearray(data[:end])
    while len(data) < bytes_:
        number += 1
        batch = b"swb\x01" + struct.pack("<B3xQII", 1, number, 1, len(payload)) + payload
        data += batch + struct.pack("<I", zlib.crc32(batch))
    Path(journal).write_bytes(data)


def status(stripewise, path, **options):
    """The output of status --json for a file, with the copies by name in "by_name"."""
    (file,) = json.loads(stripewise("status", "--json", path, **options).out)["files"]
    file["by_name"] = {copy["name"]: copy for copy in file.get("copies", [])}
    return file


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make_copied(stripewise, cluster):
    """make_copied(kind, ...) -> the cluster, with a file `cluster.path` of CONTENT that has copies
    (see write_plan).

    Without options, all of CONTENT is in the cache alone."""

    def make(kind, content=CONTENT, **options):
        write_plan(cluster, kind, **options)
        source = cluster.root / "source"
        source.write_bytes(content)
        cluster.path = cluster.data / "f"
        for _ in range(20):
            cluster.run("cp", source, cluster.path)
            assert cluster.path.read_bytes().startswith(b"stripewise file, format 2\n")
            # On a busy machine the background copying may finish before cp does.
            if kind == "replicas" or len(options) > 0 or dirty(stripewise, cluster.path) == len(content):
                return cluster
        pytest.fail("no data stay dirty")

    return make


@pytest.fixture
def copied(make_copied, kind):
    """A file with copies whose newest bytes are not in the original: in the cache, or in the
    replica that was written."""
    return make_copied(kind, **({"lazy": True} if kind == "replicas" else {}))


@pytest.fixture
def cat(bin_dir):
    """cat(path) -> bytes: the output of `stripewise cat`."""

    def run(path):
        return subprocess.run([bin_dir / "stripewise", "cat", path], capture_output=True, check=True).stdout

    return run


def kinds_of(result):
    """The kinds of the problems that fsck --json found and did not repair."""
    return [f["kind"] for f in result.json()["findings"] if f["problem"] and not f["repaired"]]


def dirty(stripewise, path):
    return sum(copy["dirty_bytes"] for copy in status(stripewise, path)["copies"])
