"""What former versions wrote is read: files of all kinds of layouts, traces, plans, predictions,
statistics.

tests/former/COMMIT.txt is a recording of what the build of that commit left on disk
(tests/former/record.py). A recording is unpacked into another directory than the one it was made in, so the paths in its
texts are replaced, and its anchors take the identity of the unpacked files.
"""

import base64
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import BIN, LIBRARY_NAME, run_command
from copies import kinds_of, sealed
from former.record import CONTENT, KINDS, NEW, NEW_AT

RECORDINGS = sorted((Path(__file__).parent / "former").glob("*.txt"))
EXPECTED = CONTENT[:NEW_AT] + NEW + CONTENT[NEW_AT + len(NEW) :]


@dataclass
class Former:
    """An unpacked recording."""

    root: Path

    def run(self, *args, **options):
        """Runs a command over the recorded plan."""
        environment = {"LD_PRELOAD": str(BIN / LIBRARY_NAME), "STRIPEWISE_PLAN": str(self.root / "plan.toml")}
        return run_command(*args, env=environment, **options)


def moved(former, root, content):
    """The text with `root` in place of the recording's directory; a manifest with its checksum
    right again. The hole behind the text of old anchors stays."""
    text, hole = content.rstrip(b"\0"), len(content) - len(content.rstrip(b"\0"))
    text = text.decode().replace(former, str(root))
    return (sealed(text) if text.startswith("stripewise file") else text).encode() + bytes(hole)


def unpack(recording, root):
    """Unpacks the recording below `root`."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(recording.read_bytes()))) as tar:
        tar.extractall(root, filter="tar")
    former = (root / "root").read_text()
    for path in (p for p in root.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if path.suffix == ".toml" or content.startswith(b"stripewise file"):
            path.chmod(0o644)
            path.write_bytes(moved(former, root, content))
    identify(root)
    return Former(root)


def identify(root):
    """Gives the anchors' texts, and the same texts next to the objects, the identity of the
    unpacked anchors."""
    manifests = {field(p, "id"): p for p in (root / "servers").rglob("*.manifest")}
    for anchor in (root / "data").iterdir():
        for path in (anchor, manifests[field(anchor, "id")]):
            lines = path.read_bytes().decode().split("\n")
            known = [n for n, line in enumerate(lines) if line.startswith("anchor = ")]
            for n in known:
                lines[n] = f'anchor = "inode={anchor.stat().st_ino}"'
            if known:
                path.write_text(sealed("\n".join(lines)))
        anchor.chmod(0o444)


def field(manifest, key):
    """The value of a key of a manifest."""
    (line,) = [line for line in manifest.read_text().split("\n") if line.startswith(f"{key} = ")][:1]
    return line.split('"')[1]


@pytest.fixture(params=RECORDINGS, ids=lambda recording: recording.stem)
def former(request, tmp_path):
    """Each recording in turn."""
    return unpack(request.param, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_read_written_checked_and_exported(former, stripewise, kind):
    path = former.root / "data" / kind
    assert former.run("cat", path).out.encode() == EXPECTED
    # Objects of the other recorded files are on the same targets, and as old as the recording.
    assert kinds_of(stripewise("fsck", "--json", "--orphan-age", "0", path, ok=False)) == []
    former.run("dd", f"of={path}", "bs=10", "seek=1000", "conv=notrunc,fsync", stdin="now written")
    expected = EXPECTED[:10_000] + b"now written" + EXPECTED[10_011:]
    assert stripewise("cat", path).out.encode() == expected
    stripewise("fsck", "--repair", path)
    former.run("truncate", "-s", "123456", path)
    stripewise("export", path)
    assert path.read_bytes() == expected[:123456]
    left = [p for p in (former.root / "servers").rglob("*.manifest") if field(p, "path") == str(path)]
    assert left == []


def test_traces_plans_predictions_and_statistics_are_read(former, stripewise):
    root = former.root
    if not (root / "job.trace").exists():
        pytest.skip("that version's program was not recorded")
    files = stripewise("trace", "--summary", root / "job.trace", "--json").json()["files"]
    assert {Path(file["name"]).name for file in files} >= set(KINDS)
    stripewise("place", "--dry-run", root / "planned.toml")
    inputs = ["-t", "job.trace", "-p", "planned.toml", "--predictions", "predictions.json", "-s", "statistics.json"]
    page = root / "report.html"
    stripewise("report", *inputs, "-o", page, cwd=root)
    assert all(kind in page.read_text() for kind in KINDS)
