"""Finds an installed OrangeFS, or builds one from a source tree."""

import os
import shutil
import subprocess
from pathlib import Path

from farm import ROOT, Problem

# Where a source tree is installed.
PREFIX = ROOT / "build" / "orangefs"
# The user interface library and the graphical monitor are not needed; -fcommon because headers of
# 2.10 define variables.
CONFIGURE = ["--with-db-backend=bdb", "--enable-fuse", "--enable-shared", "--disable-usrint", "--disable-karma"]
CFLAGS = "-g -O1 -fcommon -w"
BUILD_TOOLS = ("autoconf", "automake", "bison", "flex", "gcc", "make", "pkg-config")


def installed(source):
    """The directory where the OrangeFS of `source` is installed: itself, or where it is built."""
    source = Path(source).resolve()
    if is_prefix(source):
        return source
    if not (source / "prepare").exists() or not (source / "configure.ac").exists():
        raise Problem(f"{source} is neither an installed OrangeFS (sbin/pvfs2-server) nor its source tree (prepare)")
    if not is_prefix(PREFIX):
        build(source)
    return PREFIX


def is_prefix(directory):
    return all((directory / program).exists() for program in ("sbin/pvfs2-server", "bin/pvfs2fuse", "bin/pvfs2-xattr"))


def build(source):
    missing = [tool for tool in BUILD_TOOLS if not shutil.which(tool)]
    if missing:
        raise Problem(f"{missing[0]} is not there; remedy: tools/setup.sh orangefs")
    log = ROOT / "build" / "orangefs.log"
    log.parent.mkdir(exist_ok=True)
    steps = (["./prepare"], ["./configure", f"--prefix={PREFIX}", *CONFIGURE], ["make", f"-j{os.cpu_count()}"], ["make", "install"])
    with open(log, "wb") as file:
        for step in steps:
            environment = {**os.environ, "CFLAGS": CFLAGS}
            if subprocess.run(step, cwd=source, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False).returncode:
                raise Problem(f"`{' '.join(step)}` failed in {source}; its output is in {log}")
