#!/bin/sh
# What is tested on a real CephFS: brings the test bed up, runs the tests, takes the bed down in any case.
#   tools/test-cephfs.sh PYTHON     with the variables of tests/conftest.py; STRIPEWISE_LONG=1: the long variants, too
# Variables: CEPHFS_BED, flags of `testbed/cephfs up` (--base, --port): beside the bed of somebody else.
set -u
cd "$(dirname "$0")/.." || exit 1
python=$1
bed="testbed/cephfs"
# shellcheck disable=SC2086  # a list of words
set -- ${CEPHFS_BED:-}
base=/tmp/stripewise-cephfs
previous=
for word in "$@"; do
    [ "$previous" = --base ] && base=$word
    previous=$word
done

down() { "$python" "$bed" down --base "$base"; }
trap down EXIT
trap 'exit 130' INT TERM HUP
down && "$python" "$bed" up "$@" || exit 1
environment=$("$python" "$bed" env --base "$base") || exit 1
eval "$environment"

status=0
"$python" -m pytest -q --durations=10 tests/cephfs || status=1
cargo test --no-fail-fast -p stripewise-drivers || status=1
exit $status
