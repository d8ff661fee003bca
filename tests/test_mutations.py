"""The list of what can be taken out (tests/mutations) fits the code: what does not apply shows nothing."""

import tomllib

import pytest
from conftest import ROOT

MUTATIONS = tomllib.loads((ROOT / "tests" / "mutations" / "mutations.toml").read_text())["mutation"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation["mechanism"].replace(" ", "_"))
def test_it_applies(mutation):
    for edit in mutation["edits"]:
        assert (ROOT / edit["file"]).read_text().count(edit["old"]) == 1, edit["old"]
    if "crate" not in mutation:
        for test in mutation["tests"]:
            assert (ROOT / test.split()[0].split("::")[0]).exists()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation["mechanism"].replace(" ", "_"))
def test_no_entry_has_the_keys_of_another(mutation):
    optional = {"without", "crate", "environment", "seconds_max"}
    assert set(mutation) - optional == {"invariants", "mechanism", "tests", "edits"}
    for edit in mutation["edits"]:
        assert set(edit) == {"file", "old", "new"}


def test_every_invariant_has_one():
    assert {number for mutation in MUTATIONS for number in mutation["invariants"]} == set(range(1, 11))
