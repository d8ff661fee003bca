"""Programs on plain files, and on managed files with several copies: results and bytes must be equal."""

import pytest

from .conftest import Worlds, seeds
from .test_mpi import STACKS, launch

HDDS = '[{ cycle = "hdd/0-3:8K" }]'


def copy(kind, name, cycle, groups=""):
    """A copy of the rule."""
    return f'[[rule.copy]]\nkind = "{kind}"\nname = "{name}"\n{groups}\nlayouts = [[{{ cycle = "{cycle}" }}]]\n'


CACHES = copy("cache", "1-DH", "ssd/0-3:4K", "groups = 1") + copy("cache", "1-DV", "ssd/0-3:64K", "groups = 4")
COPIES = {
    "replicas": copy("replica", "1-DV", "ssd/0-3:256K") + copy("replica", "odd", "hdd/0-1:333 ssd/2:1000"),
    "cache": CACHES + '[rule.overlay]\nmode = "sla"\ncapacity_per_server = "256K"\nprocs = 4\n',
    "cache of everything": CACHES + '[rule.overlay]\nmode = "nsca"\ncapacity_per_server = "64K"\ndurability = "each-write"\n',
}


@pytest.fixture(params=COPIES)
def copies(cluster, request):
    """Plain files, and managed ones with several copies."""
    return Worlds(cluster, HDDS, COPIES[request.param])


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_random_calls(copies, programs, seed):
    """conform.c says at which call they differ, and how to see it again."""
    copies.with_library(programs / "conform", copies.plain, copies.managed, seed, 1500, timeout=600)


@pytest.mark.parametrize("stack", STACKS)
def test_mpi(copies, programs, stack):
    """Independent, collective, strided, nonblocking access by four processes."""
    copies.both(lambda directory: launch(stack, 4, programs / "mpi", directory / "file", 8), timeout=300)
    copies.assert_same("file")
    assert any(file.stat().st_blocks for file in copies.components() if "/ssd" in str(file)), "nothing went to a further copy"
