"""The program fsx."""

import pytest
from conftest import BUILD


@pytest.fixture(scope="session")
def fsx():
    """The installed program."""
    program = BUILD / "fsx" / "bin" / "fsx"
    if not program.exists():
        pytest.exit(f"no fsx in {BUILD}: run `make workloads`", returncode=1)
    return program
