#!/bin/sh
# Fetches ROMIO's own tests from the sources of Debian's MPICH, which must be the version that is
# installed. Prints the directory of the tests. Sources that are there stay as they are.
#
#     testbed/nodes/romio.sh DIR       DIR is outside of the checkout
set -eu
dir=$1
version=$(dpkg-query -W -f '${source:Upstream-Version}' mpich)
tests=$dir/mpich-$version/src/mpi/romio/test

fail() { echo "romio: $*" >&2; exit 1; }

if [ ! -e "$tests/simple.c" ]; then
    command -v apt-get >/dev/null 2>&1 || fail "no apt-get here; unpack the sources of MPICH $version into $dir"
    mkdir -p "$dir/lists/partial"
    dir=$(cd "$dir" && pwd)
    . /etc/os-release
    # Lists of its own, so that the machine's package sources stay as they are.
    echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >"$dir/sources.list"
    set -- -q -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$dir/lists"
    (cd "$dir" && apt-get "$@" update && apt-get "$@" source --download-only mpich) >"$dir/log" 2>&1 ||
        fail "the sources of mpich cannot be fetched: $(tail -n 1 "$dir/log")"
    tar -C "$dir" -xf "$dir/mpich_$version.orig.tar.xz" "mpich-$version/src/mpi/romio/test"
fi
echo "$tests"
