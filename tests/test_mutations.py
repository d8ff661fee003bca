"""The list of mutations (tests/mutations) fits the code: a mutation that does not apply shows
nothing."""

import tomllib

import pytest
from conftest import ROOT

MUTATIONS = tomllib.loads((ROOT / "tests" / "mutations" / "mutations.toml").read_text())["mutation"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation["mechanism"].replace(" ", "_"))
def test_it_applies(mutation):
    assert (ROOT / mutation["file"]).read_text().count(mutation["old"]) == 1
    if "crate" not in mutation:
        assert (ROOT / mutation["test"].split()[0].split("::")[0]).exists()


def test_every_invariant_has_one():
    """Every invariant except 3 has a mutation here. The mutations for 3 are those of the extent
    map; for a file with one copy, the kernel keeps acknowledged writes."""
    assert {mutation["invariant"] for mutation in MUTATIONS} == {1, 2, 4, 5, 6, 7, 8, 9}
