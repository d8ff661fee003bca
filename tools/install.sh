#!/bin/sh
# Installs what is built, takes it away again, or makes an archive of it. Needs no root where the
# directory is the user's.
#
#     tools/install.sh install PREFIX     PREFIX/bin, PREFIX/lib/stripewise, PREFIX/share
#     tools/install.sh uninstall PREFIX   removes exactly what was installed there
#     tools/install.sh dist DIR           DIR/stripewise-VERSION-MACHINE.tar.gz, and debug symbols
#
# Everything finds each other by relative paths, so PREFIX can be moved. Variables: BIN_DIR (default
# target/release), BUILD_DIR (of the libraries for MPI, default build).
set -eu
cd "$(dirname "$0")/.."

BIN_DIR=${BIN_DIR:-target/release}
BUILD_DIR=${BUILD_DIR:-build}
LIBRARY=libstripewise_posix.so
MPI_LIBRARY=libstripewise_mpi.so
# Paths below PREFIX of all installed files, one on each line.
LIST=share/stripewise/installed
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

say() { echo "install: $*"; }
fail() { echo "install: $*" >&2; exit 1; }

# Copies a file to a path below PREFIX, and notes that.
put() {
    mkdir -p "$prefix/$(dirname "$3")"
    install -m "$1" "$2" "$prefix/$3"
    echo "$3" >>"$prefix/$LIST"
}

# The same without the symbols for debuggers.
put_program() {
    put 755 "$1" "$2"
    if command -v strip >/dev/null; then
        strip --strip-unneeded "$prefix/$2"
    else
        say "there is no strip here, so $2 has its debug symbols and is large"
    fi
}

install_into() {
    prefix=$1
    [ -x "$BIN_DIR/stripewise" ] && [ -f "$BIN_DIR/$LIBRARY" ] || fail "nothing is built in $BIN_DIR: make build-release"
    if [ -f "$prefix/$LIST" ]; then
        say "replaces what is installed in $prefix"
        remove_from "$prefix"
    fi
    mkdir -p "$prefix/$(dirname $LIST)"
    echo "$LIST" >"$prefix/$LIST"
    put_program "$BIN_DIR/stripewise" bin/stripewise
    put_program "$BIN_DIR/$LIBRARY" "lib/stripewise/$LIBRARY"
    for mpi in mpich openmpi; do
        if [ -f "$BUILD_DIR/$mpi/$MPI_LIBRARY" ]; then
            put_program "$BUILD_DIR/$mpi/$MPI_LIBRARY" "lib/stripewise/$mpi/$MPI_LIBRARY"
        else
            say "left out: the library for $mpi, as there was no mpicc.$mpi; traces of its programs have no ranks"
        fi
    done
    put 644 LICENSE share/doc/stripewise/LICENSE
    put 644 README.md share/doc/stripewise/README.md
    "$prefix/bin/stripewise" generate "$prefix/share" | while read -r path; do
        echo "${path#"$prefix"/}" >>"$prefix/$LIST"
    done
    module=share/modulefiles/stripewise/$VERSION
    mkdir -p "$prefix/$(dirname "$module")"
    cat >"$prefix/$module" <<'EOF'
#%Module1.0
module-whatis "stripewise: finds and uses the data layout that makes an application's I/O fast"
conflict stripewise
set prefix [file dirname [file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]]
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
EOF
    echo "$module" >>"$prefix/$LIST"
}

remove_from() {
    [ -f "$1/$LIST" ] || fail "$1/$LIST is not there, so nothing is known to be installed in $1"
    cp "$1/$LIST" "$1/$LIST.removed"
    while read -r path; do
        rm -f "$1/$path"
    done <"$1/$LIST.removed"
    # Directories that are empty now, the deepest first.
    sed 's|/[^/]*$||' "$1/$LIST.removed" | sort -u | while read -r dir; do
        while [ "$dir" != . ]; do echo "$dir"; dir=$(dirname "$dir"); done
    done | sort -ru >"$1/.directories"
    rm -f "$1/$LIST.removed"
    while read -r dir; do
        rmdir "$1/$dir" 2>/dev/null || true
    done <"$1/.directories"
    rm -f "$1/.directories"
    rmdir "$1" 2>/dev/null || true
}

# The newest version of glibc that a file needs.
needs_glibc() {
    objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1
}

make_archive() {
    name=stripewise-$VERSION-$(uname -m)
    rm -rf "${1:?}/$name"
    install_into "$1/$name"
    tar -C "$1" -czf "$1/$name.tar.gz" "$name"
    for file in stripewise $LIBRARY; do
        objcopy --only-keep-debug "$BIN_DIR/$file" "$1/$file.debug"
    done
    tar -C "$1" -czf "$1/$name-debug.tar.gz" stripewise.debug $LIBRARY.debug
    rm -f "$1/stripewise.debug" "$1/$LIBRARY.debug"
    say "made $1/$name.tar.gz, which needs $(needs_glibc "$1/$name/bin/stripewise") (the library: $(needs_glibc "$1/$name/lib/stripewise/$LIBRARY"))"
    rm -rf "${1:?}/$name"
}

# An absolute path, of a directory that may not be there yet.
absolute() {
    [ -n "$1" ] || fail "name the directory: PREFIX=$HOME/sw"
    mkdir -p "$1" && cd "$1" && pwd -P
}

case ${1:-} in
    install)
        directory=$(absolute "${2:-}")
        install_into "$directory"
        say "installed in $directory; to use it: PATH=$directory/bin:\$PATH (or: module use $directory/share/modulefiles)" ;;
    uninstall)
        [ -d "${2:-}" ] || fail "${2:-PREFIX}: there is no such directory"
        remove_from "$(absolute "$2")" ;;
    dist) make_archive "$(absolute "${2:-}")" ;;
    *) fail "tools/install.sh install PREFIX | uninstall PREFIX | dist DIR" ;;
esac
