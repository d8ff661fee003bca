"""The access mode that a program asked for, where it differs from that of the kernel's descriptor.
"""

import pytest

from .conftest import cases, compiled


@pytest.fixture(scope="session")
def access(tmp_path_factory):
    """The program of the cases."""
    return compiled(tmp_path_factory.mktemp("access"), ["gcc"], "access.c")


@pytest.mark.parametrize("case", cases("access.c"))
def test_a_managed_file_answers_as_a_plain_one(prey, access, case, execute):
    if prey.kind in ("replicas", "cache") and case in ("forged", "permissions", "asked"):
        pytest.skip("other users may not join in on the copies of a file")
    # Other users open the files, too.
    prey.cluster.root.parent.chmod(0o755)
    plain = prey.cluster.root / "plain"
    results = []
    for path, run in ((plain, execute), (prey.path, prey.with_library)):
        # Both files are new and equally long.
        run("truncate", "-s", 0, path)
        run("truncate", "-s", 1 << 20, path)
        result = run(access, case, path)
        results.append((result.out + result.err).replace(str(path), "PATH").splitlines())
    assert results[0] == results[1]
    assert results[0]
    prey.assert_clean()
