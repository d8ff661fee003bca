"""The errno campaign: every system call of every interposed call on a managed file fails once."""

from pathlib import Path

import pytest
from conftest import run_command

HERE = Path(__file__).resolve().parent
WARNINGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror"]


@pytest.fixture(scope="session")
def campaign(tmp_path_factory):
    """The built program."""
    program = tmp_path_factory.mktemp("errno") / "campaign"
    sources = [HERE / name for name in ("campaign.c", "calls.c", "inject.c")]
    run_command("gcc", *WARNINGS, "-o", program, *sources, "-laio", "-pthread")
    return program
