"""The file system behind the fake of `beegfs`: its pools and patterns, and how each release of the
tool finds the entry of a path.

Sources: ThinkParQ/beegfs-go (the tool) at the release named, ThinkParQ/beegfs 8.3.1 (the servers).
"""

import errno
import os

import fake

VERSION = tuple(map(int, os.environ.get("STRIPEWISE_FAKE_VERSION", "8.4").split(".")))  # 8.0 to 8.4
CONF = fake.configuration()
MOUNT = os.path.realpath(CONF["mount"][0][0])
POOLS = {words[1]: int(words[0]) for words in CONF["pool"]}
# {number: (pool, free bytes or None)}
TARGETS = {int(words[0]): (words[1], None if words[2] == "-" else int(words[2])) for words in CONF["target"]}
DEFAULT_POOL = CONF["pool"][0][1]
# {number of a buddy group: pool}
BUDDIES = {int(words[0]): words[1] for words in CONF.get("buddy", [])}
# The texts of StripePatternType, common/beegfs/entry.go:59-70.
RAID0, MIRRORED = "RAID0", "Buddy Mirror"
# chunk, number of targets, pool, type, targets or buddy groups
ROOT_PATTERN = f"524288,4,{DEFAULT_POOL},{RAID0},"

# common/filesystem/errors.go:6-9, all releases.
NO_CLIENT = "unable to initialize file system client from the specified path"
NOT_SUPPORTED = "the provided path does not appear to be inside of a supported file system"
# The texts of FhgfsOpsErr, common/beegfs/errors.go:60-134 in 8.4.0.
OPS_ERRORS = {"EXISTS": (7, "Entry exists already"), "PATHNOTEXISTS": (8, "Path does not exist"),
              "PERM": (24, "Permission denied"), "INODELOCKED": (32, "Inode is locked")}  # fmt: skip


# What a command prints even if it fails.
BEFORE_ERRORS = []


def failed(message):
    """Ends the call as Execute does: cmd/root.go:135-150 in 8.4.0 (before that, cobra itself)."""
    fake.end(1, "\n".join([*BEFORE_ERRORS, f"Error: {message}"]))


def text_of(error):
    """An error of a system call as Go prints it: `lstat PATH: no such file or directory`."""
    return f"lstat {error.filename}: {os.strerror(error.errno).lower()}"


def is_within(path):
    return path == MOUNT or path.startswith(MOUNT + "/")


def followed(path):
    """A path after the kernel has followed the links in all its components but the last."""
    return os.path.normpath(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))


def device(path):
    """st_dev as lstat(2) would return it if the fake file system were mounted."""
    number = os.lstat(path).st_dev
    return "beegfs" if is_within(followed(path)) else number


def mount_of(path):
    """Finds the mount as NewFromPath does: fs.go:111-141 in 8.0.0, 113-149 in 8.2.0. The ancestor
    whose own ancestor is on another device counts as the mount. A link is on the device of the
    directory that it is in, so below a link that is the link's child."""
    at = os.path.abspath(path)
    while True:
        above = os.path.dirname(at)
        try:
            here = device(at)
        except OSError as error:
            # 8.0.0, fs.go:122. 8.1.0, fs.go:124-131, goes up after any error, 8.2.0, fs.go:125,
            # not after EACCES, and 8.4.0, fs.go:125, after ENOENT and ENOTDIR only.
            if VERSION < (8, 1):
                failed(f"{NO_CLIENT}: {text_of(error)}")
            if VERSION >= (8, 2) and error.errno == errno.EACCES:
                failed(f"{path}: {NO_CLIENT}")
            here = None
        if above == at:
            failed(f"{NO_CLIENT}: {path}" if VERSION < (8, 1) else f"{path}: {NO_CLIENT}")
        if here is not None and here != device(above):
            break
        at = above
    # NewFromMountPoint, fs.go:92-107 in 8.0.0, calls statfs(2), which follows links.
    if not is_within(os.path.realpath(at)):
        failed(NOT_SUPPORTED)
    return at


def client(path, setting):
    """The mount that BeeGFSClient (pkg/config/config.go:265-290 in 8.0.0, 496-523 in 8.4.0) takes:
    the setting's, or that of the first path. Empty: unmounted."""
    if setting == "auto":
        return mount_of(path)
    if setting == "none":
        return ""
    if not os.path.isabs(setting):
        failed("the specified value for mount does not appear to be an absolute path")
    return mount_of(setting)


def relative(path, mount):
    """GetRelativePathWithinMount: fs.go:151-157 in 8.0.0, 165-173 in 8.4.0; unmounted.go:27-29."""
    absolute = os.path.abspath(path) if mount else path
    return os.path.normpath("/" + absolute.removeprefix(mount).lstrip("/"))


def found(mount, path):
    """The place in the fake file system of the entry that the tool finds for a path within what it
    takes for the mount."""
    if VERSION < (8, 2) or not mount:
        return found_by_servers(path)
    # getEntryAndOwnerFromPathViaIoctl, entry.go:374 in 8.2.0 and 423 in 8.4.0, opens the path in
    # the mount: the kernel follows links on the way, but not the last component.
    absolute = os.path.normpath(mount + "/" + path)
    try:
        os.lstat(absolute)
    except OSError as error:
        if VERSION >= (8, 4):  # common/ioctl, GetEntryInfoV2
            failed(f'unable to get entry info for "{absolute}" via ioctl: {text_of(error)}')
        failed(f'unable to open entry "{path}": {os.strerror(error.errno).lower()}')
    return followed(absolute)


def found_by_servers(path):
    """Finds an entry from the file system's root, getEntryAndOwnerFromPathViaRPC: entry.go:283-371
    in 8.0.0. The servers (FindOwnerMsgEx::findOwner) go down directories and follow no links."""
    at = MOUNT
    for name in filter(None, path.split("/")):
        below = os.path.join(at, name)
        if os.path.islink(at) or not os.path.isdir(at) or not os.path.lexists(below):
            failed(f"unexpected search result for '{path}': {OPS_ERRORS['PATHNOTEXISTS'][1]}")
        at = below
    return at


def of_pool(pool, kind=RAID0):
    """The targets of a pool or, for mirrored files, its buddy groups."""
    members = BUDDIES.items() if kind == MIRRORED else ((target, its) for target, (its, _) in TARGETS.items())
    return [number for number, its in members if its == pool]


def inherited(text, place):
    """The layout of a new file or directory: the pattern, and for a file targets of its pool."""
    chunk, count, pool, kind, _ = (text or ROOT_PATTERN).split(",")
    if os.path.isdir(place):
        return f"{chunk},{count},{pool},{kind},"
    targets = of_pool(pool, kind)
    first = os.stat(place).st_ino
    chosen = [targets[(first + k) % len(targets)] for k in range(min(int(count), len(targets)))]
    return f"{chunk},{count},{pool},{kind},{':'.join(map(str, chosen))}"


def pattern_of(place):
    """[chunk, number of targets, pool, type, targets or buddy groups] of an entry."""
    fake.settle(place, MOUNT, inherited, directories=True)
    text = fake.nearest(place, MOUNT) if os.path.isdir(place) else fake.kept(place)
    return (text or ROOT_PATTERN).split(",")


def is_locked(place):
    """Whether the servers hold the inode of a file, as while its chunks are moved."""
    return os.path.exists(f"{fake.STATE}/locked") and os.path.isfile(place)
