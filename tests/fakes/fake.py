"""Shared code of the fakes of file systems' tools.

A fake file system is a directory. STRIPEWISE_FAKE names a second directory with its description:
`fake.conf`, with lines of words (`mount DIR`, and further ones defined by each fake), and files
that inject faults: `ignore` (hints are accepted and not obeyed), `fail_after` (a number: that many
calls work, all later ones fail), `fail` (calls that begin with these words fail), `user` (a number:
root's calls act as this user). The layout of a file is stored in an attribute of it, so that it
moves and disappears with the file.

A kernel would give a new file its layout. Here every call first does that for the files created
since the last call. Calls take turns: as with a kernel, no call sees a file between its creation
and its layout.
"""

import errno
import fcntl
import os
import sys

STATE = os.environ.get("STRIPEWISE_FAKE") or sys.exit("this is a fake for tests: STRIPEWISE_FAKE must name its directory")
ATTRIBUTE = "user.stripewise_fake"

if os.path.exists(f"{STATE}/user") and os.geteuid() == 0:
    with open(f"{STATE}/user") as file:
        USER = int(file.read())
    os.setresuid(USER, USER, USER)

TURN = os.open(STATE, os.O_RDONLY | os.O_DIRECTORY)
fcntl.flock(TURN, fcntl.LOCK_EX)  # held until the call ends


def end(status, message=""):
    """Ends the call."""
    if message:
        print(message, file=sys.stderr)
    sys.stdout.flush()
    os._exit(status)


def configuration():
    """{first word of a line: [the other words]}"""
    lines = {}
    with open(f"{STATE}/fake.conf") as file:
        for line in file:
            first, *words = line.split()
            lines.setdefault(first, []).append(words)
    return lines


def ignores_hints():
    """Whether hints are accepted and not obeyed."""
    return os.path.exists(f"{STATE}/ignore")


def count_the_call(status, message):
    """Fails if no more calls may work, or this one may not."""
    if os.path.exists(f"{STATE}/fail"):
        with open(f"{STATE}/fail") as file:
            words = file.read().split()
        if sys.argv[1 : len(words) + 1] == words:
            end(status, message)
    path = f"{STATE}/fail_after"
    if not os.path.exists(path):
        return
    with open(path) as file:
        left = int(file.read())
    if left <= 0:
        end(status, message)
    with open(path, "w") as file:
        file.write(str(left - 1))


def kept(path):
    """The text stored with a file or directory, or None. A copied attribute does not count as the
    file's own."""
    try:
        owner, _, text = os.getxattr(path, ATTRIBUTE).decode().partition(" ")
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EACCES, errno.EPERM):
            return None
        raise
    return text if int(owner) == os.stat(path).st_ino else None


def keep(path, text):
    """Stores a text with a file or directory. It needs permission to write to it."""
    os.setxattr(path, ATTRIBUTE, f"{os.stat(path).st_ino} {text}".encode())


def forget(path):
    """Removes the stored text."""
    try:
        os.removexattr(path, ATTRIBUTE)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise


def nearest(directory, top):
    """The text stored with a directory or its nearest ancestor that has one, up to `top`."""
    while True:
        text = kept(directory)
        if text is not None or len(directory) <= len(top):
            return text
        directory = os.path.dirname(directory)


def settle(path, top, inherited, directories=False):
    """Stores `inherited(text of their directory)` with the files (and directories) below `path`
    that have no text yet."""
    if not os.path.isdir(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return
    for parent, names, files in os.walk(path):
        for name in files + (names if directories else []):
            child = os.path.join(parent, name)
            try:
                if not os.path.islink(child) and kept(child) is None:
                    text = inherited(nearest(parent, top), child)
                    if text is not None:
                        keep(child, text)
            except (PermissionError, FileNotFoundError):
                pass  # Another user owns it, or it was renamed meanwhile: the next call settles it.


def size(text):
    """The bytes of `64K`, as `llapi_parse_size` and `strtoull` read it; None if it is
    not a size."""
    units = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    return int(number) << units[unit] if number.isdigit() and unit in units else None
