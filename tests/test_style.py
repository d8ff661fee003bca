"""How pages and comments read, as far as a program can tell: their width, and no fragments; and
that Python programs use no name that is not there."""

import ast
import re
import subprocess

import pytest
from conftest import ROOT
from pyflakes import checker, messages

WIDTH = 100
TRACKED = [ROOT / name for name in subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).split()]
PAGES = [path for path in TRACKED if path.suffix == ".md"]
COMMENTS = {
    r"\s*//[/!]? ?(.*)": (".rs", ".cpp"),
    r"\s*(?:/\*|\* )(.*)": (".c", ".h"),
    r"\s*# ?(?!\[|!\[|include|define)(.*)": (".py", ".sh", ".toml", ".ini", "Makefile", "run"),
    r"\s*! (.*)": (".f90", ".F90"),
}
# A comment that only continues the name of what it is about: "How.", "Of a cache.".
FRAGMENT = re.compile(r"(How|Where|When|Why|Of|For|From|To|In|On|At|By|With|Without|As|And|Or|Not)( \S+){0,2}\.")


def name_of(path):
    return str(path.relative_to(ROOT))


def prose(page):
    """The lines of a page outside of fenced and indented blocks, tables and HTML, and those that
    can be broken nowhere."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith(("|", "    ", "<", "![")) and not re.fullmatch(r"\s*(\S+|`[^`]*`\S*)", line):
            yield number, line


def comments(path):
    """The lines of a source file that are comments, with their numbers."""
    pattern = next((re.compile(p) for p, ends in COMMENTS.items() if path.name.endswith(ends)), None)
    if pattern and path.is_file():
        for number, line in enumerate(path.read_text(errors="replace").split("\n"), 1):
            if pattern.fullmatch(line):
                yield number, line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_prose_is_at_most_100_columns_wide(page):
    assert [f"{number}: {line}" for number, line in prose(page) if len(line) > WIDTH] == []


def test_comments_are_at_most_100_columns_wide():
    wide = [f"{name_of(path)}:{number}" for path in TRACKED for number, line in comments(path) if len(line) > WIDTH]
    assert wide == []


def test_comments_are_no_fragments():
    found = []
    for path in (path for path in TRACKED if path.suffix == ".rs"):
        lines = dict(comments(path))
        for number, line in lines.items():
            alone = number - 1 not in lines and number + 1 not in lines
            if alone and FRAGMENT.fullmatch(line.lstrip(" /!")):
                found.append(f"{name_of(path)}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("program", [path for path in TRACKED if path.suffix == ".py"], ids=name_of)
def test_names_in_python_are_defined(program):
    """Also in tests that not every machine runs."""
    tree = ast.parse(program.read_text(), str(program))
    undefined = (messages.UndefinedName, messages.UndefinedLocal, messages.UndefinedExport)
    assert [str(m) for m in checker.Checker(tree, str(program)).messages if isinstance(m, undefined)] == []
