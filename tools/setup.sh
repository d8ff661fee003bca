#!/bin/sh
# Installs what building and testing stripewise needs, and only what is missing. It is safe to run
# again.
#
#     tools/setup.sh          packages, Rust version check, Python environment in .venv
#     tools/setup.sh disks    only the packages for throttled disks (testbed/disks)
#     tools/setup.sh cephfs   only the packages for a CephFS on this machine (testbed/cephfs);
#                             nothing is started or configured
#     tools/setup.sh orangefs only the packages to build and run an OrangeFS (testbed/orangefs)
#     tools/setup.sh nodes    only the packages for several nodes on this machine (testbed/nodes),
#                             with Slurm and a parallel h5py; nothing is started or configured
#
# Variables: PYTHON (default python3), VENV (default .venv).
set -eu
cd "$(dirname "$0")/.."

# Both MPIs, because programs are tested under both; fio for the verification of the data path.
# The nodes' SSH server and network are small, and part of the tests; so is FUSE, for the mount.
PACKAGES_OF_NODES="iproute2 util-linux procps dropbear-bin"
PACKAGES="gcc make python3 python3-venv mpich libmpich-dev openmpi-bin libopenmpi-dev gfortran fio libaio-dev libc6-dev strace rsync git fuse3 hdf5-tools $PACKAGES_OF_NODES"
PACKAGES_OF_DISKS="gcc make python3 pkg-config fuse3 libfuse3-dev e2fsprogs util-linux"
# Ceph's daemons as plain programs, without the packages that would start them as services.
PACKAGES_OF_CEPHFS="$PACKAGES_OF_DISKS ceph-mon ceph-osd ceph-mgr ceph-mds ceph-fuse ceph-common python3-rados attr linux-libc-dev"
PACKAGES_OF_ORANGEFS="gcc make python3 pkg-config autoconf automake bison flex libdb-dev libssl-dev libfuse-dev util-linux"
PACKAGES_OF_SLURM="slurmctld slurmd slurm-client munge libpmix2"
# Parallel HDF5, which Debian builds for Open MPI.
PACKAGES_OF_H5PY="python3-h5py-mpi python3-mpi4py hdf5-tools"
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
TOOLS="gcc mpicc mpirun fio gfortran $PYTHON"

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

missing_packages() {
    for package in $PACKAGES; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
    done
}

install_packages() {
    if ! command -v apt-get >/dev/null 2>&1; then
        missing=""
        for tool in $TOOLS; do
            command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
        done
        [ -z "$missing" ] && { say "no apt-get here; the tools that are needed are all there"; return; }
        fail "no apt-get here (not Debian or Ubuntu) and these are missing:$missing." \
            "Install them, or the counterparts of: $PACKAGES"
    fi
    missing=$(missing_packages)
    [ -z "$missing" ] && { say "all Debian packages are there"; return; }
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || fail "needs root to install: $missing (no sudo here; run as root:" \
            "apt-get install --no-install-recommends $missing)"
        as_root="sudo"
    fi
    say "installing Debian packages: $missing"
    $as_root apt-get update -q
    # shellcheck disable=SC2086  # a list of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

check_cargo() {
    need=$(sed -n 's/^rust-version *= *"\([0-9.]*\)".*/\1/p' Cargo.toml)
    remedy="install Rust from https://rustup.rs (or 'rustup update stable') and open a new shell"
    command -v cargo >/dev/null 2>&1 || fail "cargo is not there and stripewise needs Rust $need or newer: $remedy"
    have=$(cargo --version | sed 's/^cargo \([0-9]*\.[0-9]*\).*/\1/')
    oldest=$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -n 1)
    [ "$oldest" = "$need" ] || fail "cargo is $have but stripewise needs Rust $need or newer: $remedy"
    say "cargo $have is new enough (needs $need)"
}

make_venv() {
    # The stamp is a copy of the pins, so changed pins are installed again.
    if [ -x "$VENV/bin/python" ] && cmp -s tools/requirements.txt "$VENV/requirements.installed"; then
        say "Python environment $VENV is up to date"
        return
    fi
    say "Python environment: installing $(sed '/^#/d' tools/requirements.txt | tr '\n' ' ')into $VENV"
    "$PYTHON" -m venv "$VENV" || fail "'$PYTHON -m venv' failed: install python3-venv, or set PYTHON to a Python 3.11 or newer"
    "$VENV/bin/pip" install -q --disable-pip-version-check -r tools/requirements.txt ||
        fail "pip could not install tools/requirements.txt (network? Python older than 3.11?)"
    cp tools/requirements.txt "$VENV/requirements.installed"
}

case ${1:-} in
"") ;;
disks)
    PACKAGES=$PACKAGES_OF_DISKS
    TOOLS="gcc pkg-config fusermount3 mkfs.ext4 losetup"
    install_packages
    exit
    ;;
cephfs)
    PACKAGES=$PACKAGES_OF_CEPHFS
    TOOLS="gcc pkg-config fusermount3 ceph-mon ceph-osd ceph-mgr ceph-mds ceph-fuse ceph setfattr"
    install_packages
    exit
    ;;
orangefs)
    PACKAGES=$PACKAGES_OF_ORANGEFS
    TOOLS="gcc make pkg-config autoconf automake bison flex umount"
    install_packages
    exit
    ;;
nodes)
    PACKAGES="$PACKAGES_OF_NODES $PACKAGES_OF_SLURM $PACKAGES_OF_H5PY"
    TOOLS="unshare nsenter ip ps dropbear dbclient slurmctld slurmd srun munged"
    # The packages of Slurm and munge start services, unless this program forbids it.
    if command -v apt-get >/dev/null 2>&1 && [ -n "$(missing_packages)" ] && [ ! -e /usr/sbin/policy-rc.d ] && [ "$(id -u)" -eq 0 ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
    fi
    install_packages
    exit
    ;;
*) fail "'$1' is not known; see the head of tools/setup.sh" ;;
esac
install_packages
check_cargo
make_venv
