"""The criteria of every bad-input test: one clear line, an exit code that is not 0, nothing written
or lost."""

import hashlib
import os
from pathlib import Path


def snapshot(root):
    """Every path below root with its type, size and content: {relative path: description}."""
    found = {}
    for path in sorted(Path(root).rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "directory"
        else:
            found[name] = f"{path.stat().st_size} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return found


def assert_refused(result, *words):
    """The command failed with exactly one line of its own, which contains all the words."""
    assert result.code == 1, str(result)
    said = [line for line in result.err.splitlines() if line.strip()]
    assert len(said) == 1 and said[0].startswith("stripewise: "), str(result)
    missing = [word for word in words if str(word) not in said[0]]
    assert not missing, f"does not say {missing}: {result}"
    assert "panicked" not in result.err and not result.out, str(result)


class Unchanged:
    """`with Unchanged(root):` fails if anything below root was created, removed or changed."""

    def __init__(self, root):
        self.root = root

    def __enter__(self):
        self.before = snapshot(self.root)

    def __exit__(self, kind, *_):
        if kind is None:
            after = snapshot(self.root)
            assert after == self.before, {
                name: (self.before.get(name), after.get(name))
                for name in self.before.keys() | after.keys()
                if self.before.get(name) != after.get(name)
            }
