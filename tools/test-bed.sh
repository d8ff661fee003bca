#!/bin/sh
# The tests on a real file system: brings a testbed up, runs the tests, and always takes the testbed
# down.
#
#     tools/test-bed.sh cephfs PYTHON
#     tools/test-bed.sh orangefs PYTHON DIR      DIR: an installed OrangeFS, or its source tree
#     tools/test-bed.sh nodes PYTHON             four nodes with a CephFS
#
# Variables: those of tests/conftest.py (STRIPEWISE_LONG=1: long variants, too); CEPHFS_BED,
# ORANGEFS_BED and NODES_BED: flags of the testbed's `up` (--base, --port), to run next to another
# testbed.
set -u
cd "$(dirname "$0")/.." || exit 1
name=$1 python=$2
shift 2
bed="testbed/$name"
case $name in
cephfs) flags=${CEPHFS_BED:-} ;;
orangefs) flags=${ORANGEFS_BED:-} ;;
# Correctness does not depend on the speed of disks.
nodes) flags="${NODES_BED:-} --nodes 4 --on cephfs -- --no-limits" ;;
*) echo "test-bed: there is no testbed/$name to test on" >&2 && exit 1 ;;
esac
# shellcheck disable=SC2086  # a list of words
set -- "$@" $flags
base=/tmp/stripewise-$name
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
    echo "test-bed: the pool $1 does not become full" >&2
    return 1
}

status=0
[ "$name" = nodes ] && export STRIPEWISE_NODES="$base"
"$python" -m pytest -q --durations=10 "tests/$name" || status=1
if [ "$name" = cephfs ]; then
    fill hdd1 || status=1
    export STRIPEWISE_CEPHFS_FULL=hdd1
fi
[ "$name" = nodes ] || cargo test --no-fail-fast -p stripewise-drivers || status=1
exit $status
