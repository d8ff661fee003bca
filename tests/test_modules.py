"""The modules of a crate use each other in one direction only: no two of them depend on each other,
directly or through others. Re-exports count as uses of the module that has the item."""

import re
from graphlib import CycleError, TopologicalSorter

import pytest
from conftest import ROOT

TESTS = re.compile(r"(^|/)tests?(/|\.rs$)|tests\.rs$")


class Crate:
    """The modules of a crate, by path from its root: `file::overlay`; the root is the empty path."""

    def __init__(self, source):
        self.texts = {}
        for path in source.rglob("*.rs"):
            inside = path.relative_to(source)
            if not TESTS.search(str(inside)):
                parts = inside.with_suffix("").parts
                self.texts[parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts] = code(path.read_text())
        self.exports = {}
        for module, text in self.texts.items():
            for item in used(text, r"\bpub(?:\([^)]*\))? use ([^;]+);"):
                if place := self.absolute(module, item):
                    self.exports[(*module, place[-1])] = place

    def absolute(self, module, item):
        """The path from the root of what `module` calls `item`; None if it is of another crate."""
        first, *rest = item
        if first in ("crate", "self"):
            return (() if first == "crate" else module) + tuple(rest)
        if first == "super":
            return self.absolute(module[:-1], ["self", *rest] if rest[:1] != ["super"] else rest)
        return (*module, *item) if (*module, first) in self.texts else None

    def owner(self, place):
        """The module that defines what is at `place`."""
        for length in range(len(place), -1, -1):
            if place[:length] in self.texts:
                exported = self.exports.get(place[: length + 1])
                return place[:length] if exported in (None, place) else self.owner(exported + place[length + 1 :])
        return None

    def uses(self, module):
        """The other modules whose items the module uses."""
        text = self.texts[module]
        body = re.sub(r"\buse [^;]+;", "", text)
        items = used(text, r"(?<!pub )(?<!\) )\buse ([^;]+);")
        items += [path.split("::") for path in re.findall(r"(?<![\w:])((?:\w+::)+\w+)", body)]
        places = [self.absolute(module, item) for item in items]
        return {self.owner(place) for place in places if place} - {module, None}


def code(text):
    """The source without comments and unit tests."""
    return re.sub(r"//[^\n]*", "", re.split(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{", text, flags=re.M)[0])


def used(text, pattern):
    """The items of the `use` declarations that match, each as a list of words."""
    return [item.split("::") for tree in re.findall(pattern, text) for item in expanded("".join(tree.split()))]


def expanded(tree):
    """The paths of a `use` tree without blanks: a::{b,c::{d}} -> a::b, a::c::d"""
    head, brace, inner = tree.partition("{")
    if not brace:
        return [re.sub(r"(?<=\w)as(?=[A-Z_])\w+$", "", tree)]
    parts, depth = [""], 0
    for letter in inner.removesuffix("}"):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [path for part in parts if part for path in expanded(head + part)]


def cycle(crate):
    """Modules that use each other in a circle; empty if there are none."""
    try:
        TopologicalSorter({module: crate.uses(module) for module in crate.texts}).prepare()
    except CycleError as error:
        return ["::".join(module) or "the root" for module in error.args[1]]
    return []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "crates").iterdir() if (path / "src").is_dir()))
def test_modules_point_one_way(name):
    assert not cycle(Crate(ROOT / "crates" / name / "src"))


def test_a_circle_is_found(tmp_path):
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\nmod c;\npub use c::Thing;\n")
    (tmp_path / "a.rs").write_text("use crate::{b::{self, Other}, Thing};\n")
    (tmp_path / "b.rs").write_text("// use crate::a;\nfn f() { std::b::g() }\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n")
    (tmp_path / "c.rs").write_text("pub struct Thing;\n")
    assert cycle(Crate(tmp_path)) == []
    (tmp_path / "c.rs").write_text("pub struct Thing;\nfn f() { super::a::g() }\n")
    assert sorted(cycle(Crate(tmp_path))[1:]) == ["a", "c"]
