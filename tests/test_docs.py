"""The pages agree with the code: links lead somewhere, files and tests that are named exist, and dependencies are Cargo's."""

import re
import tomllib
from functools import cache

import pytest
from conftest import ROOT

CRATES = ROOT / "crates"
ROOMS = {manifest.parent.name: tomllib.loads(manifest.read_text()) for manifest in sorted(CRATES.glob("*/Cargo.toml"))}
NAMES = {manifest["package"]["name"]: room for room, manifest in ROOMS.items()}

ARCHITECTURE, PAPERS = ROOT / "ARCHITECTURE.md", ROOT / "docs" / "papers.md"
READMES = sorted(CRATES.glob("*/README.md"))
CHECKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "glossary.md", ARCHITECTURE, PAPERS, *READMES]
ALL = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/**/*.md"), *READMES]

A_PATH = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
ENDINGS = ("/", ".rs", ".md", ".py", ".toml", ".sh", ".c", ".css", ".svg")


def name_of(page):
    """How a page is called in the list of tests."""
    return str(page.relative_to(ROOT))


def outside_of_blocks(page):
    """The text of a page without fenced blocks and comments."""
    return re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(), flags=re.DOTALL)


def code(text):
    """What stands between backticks."""
    return re.findall(r"`([^`\n]+)`", text)


@cache
def source(path):
    """A source file's text."""
    return path.read_text()


@cache
def sources(folder=CRATES):
    """All Rust files of a folder."""
    return sorted(path for path in folder.rglob("*.rs") if path.is_file())


@cache
def rust_tests(room):
    """The paths of all tests of a crate, as `cargo test` prints them; tests in its folder tests/ by their file's name."""
    found = set()
    for path in sources(CRATES / room):
        parts = path.relative_to(CRATES / room).with_suffix("").parts[1:]
        module = [part for part in parts if part not in ("mod", "lib")]
        text = source(path)
        for match in re.finditer(r"#\[test\](?:\s*///?[^\n]*|\s*#\[[^\]]*\])*\s+fn (\w+)", text):
            inner = ["tests"] if re.search(r"^mod tests \{", text[: match.start()], re.MULTILINE) else []
            found.add("::".join([*module, *inner, match[1]]))
        # Tests that a macro makes, a module for each kind of thing that they test.
        for macro, body in re.findall(r"macro_rules! (\w+) \{(.*?)\n\}", text, re.DOTALL):
            if "#[test] fn $name()" in body:
                names = re.search(rf"^{macro}!\((.*?)\);", text, re.MULTILINE | re.DOTALL)[1].split()
                found |= {"::".join([*module, kind, name]) for kind in re.findall(r"mod (\w+) \{", body) for name in names}
    return found


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", outside_of_blocks(page)):
        if not re.match(r"https?://|#", target):
            assert (page.parent / target.split("#")[0]).exists(), target


def found(page, path):
    """The file that a page means by a path: from itself, from the checkout, or from the crates."""
    bases = [page.parent, ROOT, CRATES, page.parent / "src"]
    return next((base / path for base in bases if (base / path).exists()), None)


@pytest.mark.parametrize("page", CHECKED, ids=name_of)
def test_files_that_are_named_exist(page):
    paths = [path for path in code(outside_of_blocks(page)) if A_PATH.fullmatch(path) and "/" in path and path.endswith(ENDINGS)]
    missing = [path for path in paths if not found(page, path) and not path.startswith("/")]
    assert not missing


def table_rows(page):
    """The cells of every row of every table."""
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set("".join(row)) <= set("-| :")]


def numbered(page, heading):
    """The items of the numbered list under a heading, each on one line."""
    section = page.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [" ".join(item.split()) for item in re.split(r"^\d+\. ", section, flags=re.MULTILINE)[1:]]


def assert_test_exists(name, rooms):
    """`module::test`, where `*` stands for any characters, is a test of one of the crates."""
    pattern = re.compile("(.*::)?" + re.escape(name).replace(r"\*", ".*"))
    assert any(pattern.fullmatch(test) for room in rooms for test in rust_tests(room)), f"no test {name} in {rooms}"


def test_every_test_of_the_papers_exists():
    rows = [row for row in table_rows(PAPERS) if row[-1] != "test"]
    named = [(row, name) for row in rows for name in code(row[-1]) if "::" in name]
    assert len(named) > 40
    for row, name in named:
        files = [path for cell in row[:-1] for path in code(cell) if path.endswith(".rs") or "/src/" in path]
        rooms = {path.split("/")[0] for path in files}
        assert_test_exists(name, rooms or ROOMS)


def test_every_function_of_the_papers_is_in_the_file_named():
    path = None
    for row in table_rows(PAPERS):
        for name in code(row[-2]):
            if "/" in name:
                path = CRATES / name
            elif re.fullmatch(r"[\w:]+", name) and path and path.is_file():
                last = name.split("::")[-1]
                assert re.search(rf"\b(fn|struct|enum|trait|const) {last}\b|^\s+{last}\b", source(path), re.MULTILINE), (name, path)


def test_every_test_of_the_invariants_exists():
    items = numbered(ARCHITECTURE, "Invariants and their tests")
    assert len(items) == 9
    for item in items:
        assert_tests_exist(item.split("Tests: ")[1], None)


def test_every_test_of_the_threat_model_exists():
    page = ROOT / "docs" / "security.md"
    items = numbered(page, "Promises")
    assert len(items) >= 12
    for item in items:
        assert_tests_exist(item.split("Tests: ")[1], ROOT / "tests" / "test_security.py")


def assert_tests_exist(text, script):
    """All tests that a text names: `crate` `module::test`, `--test name`, `file.py::test` or
    `::test` of the last script."""
    words, room = code(text), None
    assert words
    for word in words:
        if word in ROOMS:
            room = word
        elif word.startswith("--test "):
            assert (CRATES / room / "tests" / word.removeprefix("--test ")).with_suffix("").exists(), word
        elif ".py" in word or word.startswith(("::", "test_")):
            path, _, test = word.rpartition("::") if word.startswith("test_") else word.partition("::")
            script = ROOT / path if path else script
            assert f"def {test}(" in script.read_text() if test else script.is_file(), word
        else:
            assert_test_exists(word, [room])


@pytest.mark.parametrize("page", [*CHECKED, *ROOT.glob("bench/**/*.md")], ids=name_of)
def test_cargo_commands_name_what_is_there(page):
    for command in re.findall(r"cargo (?:test|bench|run) [^`\n]*", page.read_text()):
        packages = re.findall(r"-p ([\w-]+)", command)
        folders = [CRATES / NAMES[name] for name in packages if name != "stripewise-CRATE"]
        for kind, name in re.findall(r"--(test|bench|example) (\w+)", command):
            places = [folder / f"{kind}{'es' if kind == 'bench' else 's'}" / name for folder in folders]
            assert any(place.with_suffix(".rs").exists() or place.is_dir() for place in places), command


@pytest.mark.parametrize("page", [ARCHITECTURE, *READMES], ids=name_of)
def test_names_of_the_code_are_in_the_code(page):
    """`Type`, `Type::method`, `module::function` occur in the crate's code (in the architecture: anywhere)."""
    folder = CRATES if page == ARCHITECTURE else page.parent
    text = "\n".join(source(path) for path in sources(folder))
    names = [name for name in code(outside_of_blocks(page)) if re.fullmatch(r"[A-Z]\w*[a-z]\w*|\w+(::\w+)+", name)]
    elsewhere = "\n".join(source(path) for path in sources())
    for name in names:
        first, *rest = name.split("::")
        where = elsewhere if first in ROOMS else text
        assert all(re.search(rf"\b{part}\b", where) for part in (rest or [first])), name


def crates_of_the_architecture():
    """{crate: (its layer, crates that it uses)} as the table says, in its order."""
    crates = {}
    for layer, name, _, uses in (row for row in table_rows(ARCHITECTURE) if row[1] != "crate"):
        named = set(code(uses))
        [crate] = code(name)
        crates[crate] = (layer, set(ROOMS) - named - {crate} if uses.startswith("all but ") else named)
    return crates


def test_the_dependencies_of_the_architecture_are_those_of_cargo():
    drawn = {crate: uses for crate, (_, uses) in crates_of_the_architecture().items()}
    real = {
        crate: {NAMES[name] for name in manifest.get("dependencies", {}) if name in NAMES} for crate, manifest in ROOMS.items()
    }
    assert drawn == real


def test_a_crate_uses_only_crates_of_its_layer_and_of_those_above():
    crates = crates_of_the_architecture()
    layers = list(dict.fromkeys(layer for layer, _ in crates.values()))
    assert len(layers) == 7
    for crate, (layer, uses) in crates.items():
        assert all(layers.index(crates[used][0]) <= layers.index(layer) for used in uses), crate


# The kernel, the clock, the environment, and what outlives a call.
IMPURE = r"std::(fs|env|net|process|time)\b|\b(println|eprintln)!|\bstatic (mut )?[A-Z]|thread_local|OnceLock|LazyLock|rustix|libc::"


def test_pure_crates_do_nothing_but_compute():
    pure = {crate for crate, (layer, _) in crates_of_the_architecture().items() if layer == "pure"}
    assert len(pure) == 9
    for room in pure:
        for path in sources(CRATES / room / "src"):
            if "tests" not in path.parts and path.stem != "tests":
                text = source(path).split("#[cfg(test)]\nmod tests {")[0]
                assert not re.search(IMPURE, text), (path, re.search(IMPURE, text)[0])


def test_every_room_says_what_it_is():
    assert [page.parent.name for page in READMES] == sorted(ROOMS)
    for page in READMES:
        assert page.read_text().splitlines()[0] in (f"# {page.parent.name}", f"# {ROOMS[page.parent.name]['package']['name']}")
