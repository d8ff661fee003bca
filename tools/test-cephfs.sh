#!/bin/sh
# The tests on a real CephFS: brings the testbed up, runs the tests, and always takes the testbed
# down.
#
#     tools/test-cephfs.sh PYTHON
#
# Variables: those of tests/conftest.py (STRIPEWISE_LONG=1: long variants, too); CEPHFS_BED: flags
# of `testbed/cephfs up` (--base, --port), to run next to another testbed.
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

# A pool whose quota is used up, for the drivers' conformance suite.
fill() {
    mkdir "$STRIPEWISE_CEPHFS/full" && setfattr -n ceph.dir.layout.pool -v "$1" "$STRIPEWISE_CEPHFS/full" &&
        dd if=/dev/zero of="$STRIPEWISE_CEPHFS/full/file" bs=1M count=4 status=none &&
        ceph osd pool set-quota "$1" max_bytes 1 || return 1
    for _ in $(seq 60); do
        ceph health detail | grep -q POOL_FULL && return
        sleep 0.5
    done
    echo "test-cephfs: the pool $1 does not become full" >&2
    return 1
}

status=0
"$python" -m pytest -q --durations=10 tests/cephfs || status=1
fill hdd1 || status=1
STRIPEWISE_CEPHFS_FULL=hdd1 cargo test --no-fail-fast -p stripewise-drivers || status=1
exit $status
