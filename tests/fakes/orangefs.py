"""A strict fake of OrangeFS 2.10's `pvfs2-xattr`, `pvfs2-viewdist`, `pvfs2-touch` and
`pvfs2-statfs`, selected by its name.

`fake.conf`: `mount DIR`, `server ADDRESS BYTES_FREE`.

Hints are real attributes `user.pvfs2.*` of directories here. OrangeFS ignores those that it does
not understand: no call fails, and a new file has the default distribution.

Sources, all of waltligon/orangefs:
src/apps/admin/{pvfs2-xattr,pvfs2-viewdist,pvfs2-touch,pvfs2-statfs}.c,
src/io/description/{dist-simple-stripe,dist-varstrip,dist-varstrip-parser,dist-twod-stripe}.c,
src/client/sysint/sys-create.sm (create_parent_getattr_inspect), include/pvfs2-types.h
(PVFS_SYS_LAYOUT_*), pvfs2-dist-varstrip.h. The effect of the hints was determined with a 2.10
installation.
"""

import errno
import os
import sys

import fake

FAILED = 255  # return -1 of main
VALUE_MAX = 1024  # VALBUFSZ of pvfs2-xattr, and of dist_params
STRIPS_MAX = 1025  # PVFS_DIST_VARSTRIP_MAX_STRIPS_STRING_LENGTH
DATAFILES_MAX = 1024  # PVFS_REQ_LIMIT_DFILE_COUNT
NAMESPACES = ("system.", "user.", "trusted.", "security.")
ROUND_ROBIN, LIST = 2, 4  # PVFS_SYS_LAYOUT_*
DEFAULT = ("simple_stripe", "strip_size:65536")

CONF = fake.configuration()
MOUNT = os.path.realpath(CONF["mount"][0][0])
SERVERS = {words[0]: int(words[1]) for words in CONF["server"]}


def failed(message):
    fake.end(FAILED, message)


def resolve(path, call="PVFS_util_resolve"):
    """Resolves a path like PVFS_util_resolve."""
    real = os.path.realpath(path)
    if real != MOUNT and not real.startswith(MOUNT + "/"):
        return None
    return real


def hint(directory, name):
    """The hint of a directory or of its nearest ancestor that has any. (OrangeFS copies hints when
    a directory is created.)"""
    while True:
        try:
            return os.getxattr(directory, f"user.pvfs2.{name}").decode()
        except OSError as error:
            if error.errno != errno.ENODATA:
                raise
        if any(key.startswith("user.pvfs2.") for key in os.listxattr(directory)) or len(directory) <= len(MOUNT):
            return None
        directory = os.path.dirname(directory)


def strips(text):
    """[(datafile, bytes)] like PINT_dist_strips_parse and varstrip's get_num_dfiles; None if
    invalid."""
    if len(text) >= STRIPS_MAX - 1:
        return None
    found = []
    for part in text.split(";"):
        datafile, colon, size = part.partition(":")
        bytes_ = fake.size(size) if size[-1:] not in "TtPp" else None
        if not colon or not datafile.isdigit() or not bytes_:
            return None
        found.append((int(datafile), bytes_))
    numbers = {datafile for datafile, _ in found}
    # "The strip partitioning string must contain all data file numbers from 0 to the highest one
    # specified!"
    return found if numbers == set(range(len(numbers))) else None


def distribution(name, params):
    """(name, params_string, datafiles or None) from the hints; the default for anything not
    understood."""
    pairs = dict(pair.split(":", 1) for pair in (params or "").split(",") if ":" in pair)
    number = lambda key: int(pairs[key]) if pairs.get(key, "").isdigit() and int(pairs[key]) > 0 else None
    if name == "simple_stripe" and number("strip_size"):
        return name, f"strip_size:{number('strip_size')}", None
    if name == "varstrip_dist" and (params or "").startswith("strips:"):
        # The value of strips extends to the end; it contains no commas.
        found = strips(params.removeprefix("strips:"))
        if found:
            return name, params, 1 + max(datafile for datafile, _ in found)
    if name == "twod_stripe" and all(map(number, ("num_groups", "strip_size", "group_strip_factor"))):
        # params_string uses another name for it.
        return name, params.replace("group_strip_factor", "factor"), None
    return *DEFAULT, None


def layout(path, directory, listed=None, obeyed=True):
    """The layout of a new file in a directory, as one line; None if the file cannot be created.
    With obeyed=False the directory's list is ignored."""
    name, params, datafiles = distribution(hint(directory, "dist_name"), hint(directory, "dist_params"))
    servers = listed
    if servers is None and obeyed and hint(directory, "layout") == f"{LIST:05}":
        count, *servers = (hint(directory, "server_list") or "0").split()
        if not count.isdigit() or int(count) != len(servers) or not servers:
            servers = None
    if servers is not None and any(server not in SERVERS for server in servers):
        return None
    if servers is None:
        # The first server differs from file to file.
        every, first = list(SERVERS), os.stat(path).st_ino if os.path.exists(path) else 0
        wanted = hint(directory, "num_dfiles") or ""
        count = datafiles or (int(wanted) if wanted.isdigit() and int(wanted) else len(every))
        servers = [every[(first + k) % len(every)] for k in range(min(count, len(every)))]
    if datafiles and datafiles > len(servers):
        return None
    return f"{name} {params} {','.join(servers[:datafiles] if datafiles else servers)}"


def arrived(_, child):
    """Gives a new file the layout of its directory's hints, and a new directory the hints."""
    directory = os.path.dirname(child)
    if not os.path.isdir(child):
        return layout(child, directory)
    for key in os.listxattr(directory):
        if key.startswith("user.pvfs2.") and key not in os.listxattr(child):
            os.setxattr(child, key, os.getxattr(directory, key))
    return "hinted"


def settle(path):
    """Settles the files next to `path`, which may be new itself."""
    fake.settle(path if path == MOUNT else os.path.dirname(path), MOUNT, arrived, directories=True)


def getopt(flags, usage):
    """({option: value}, the other arguments); an option with a colon takes a value."""
    given, others, arguments = {}, [], sys.argv[1:]
    while arguments:
        word = arguments.pop(0)
        place = flags.find(word[1:2]) if word.startswith("-") and len(word) > 1 else -1
        if not word.startswith("-"):
            others.append(word)
        elif place < 0:
            fake.end(1, usage)
        elif flags[place + 1 : place + 2] == ":":
            if not word[2:] and not arguments:
                fake.end(1, usage)
            given[word[1]] = word[2:] or arguments.pop(0)
        else:
            given[word[1]] = ""
    return given, others


def xattr():
    given, _ = getopt("k:v:ts", "Usage: pvfs2-xattr -s {set xattrs} -k <key> -v <val> -t {print attributes} filename")
    path, key, value = sys.argv[-1], given.get("k"), given.get("v")
    if "s" in given and value is None:
        fake.end(1, "Please specify value if setting extended attributes")
    if key is None:
        fake.end(1, "Please specify key if getting extended attributes")
    real = resolve(path)
    if real is None or not os.path.exists(real):
        why = "Not a file!" if real is None else "PVFS_sys_lookup: No such file or directory"
        failed(f"{why}\nCould not open {path}")
    if not key.startswith(NAMESPACES):
        failed(f"extended attribute key is not prefixed {key}")
    settle(real)
    if "s" not in given:
        try:
            found = os.getxattr(real, key).decode()
        except OSError as error:
            failed(f"PVFS_sys_geteattr: {os.strerror(error.errno)}")
        if "t" in given:
            print(f"key:{key} Value:\n{found}")
        return
    if not key.startswith("user."):
        failed(f"Not permitted to set key {key}")
    if len(value) > VALUE_MAX:
        failed("PVFS_sys_geteattr: Invalid argument")
    if not os.access(real, os.W_OK):
        failed("PVFS_sys_geteattr: Permission denied")
    if not (fake.ignores_hints() and key.startswith("user.pvfs2.")):
        os.setxattr(real, key, value.encode())


def viewdist():
    given, _ = getopt("vf:", "Usage: pvfs2-viewdist ARGS")
    if "f" not in given:
        fake.end(1, "Usage: pvfs2-viewdist ARGS")
    path = given["f"]
    real = resolve(path)
    if real is None or not os.path.exists(real):
        failed(f"PVFS_sys_lookup: No such file or directory\nCould not open {path}")
    if not os.path.isfile(real):
        failed(f"Not a meta file!\nCould not open {path}")
    settle(real)
    text = fake.kept(real)
    if text is None:
        failed("PVFS_sys_geteattr: No data available\nCould not read distribution information!")
    name, params, servers = text.split(" ")
    servers = servers.split(",")
    print(f"dist_name = {name}\ndist_params:\n{params}\n")
    print(f"Metadataserver: {next(iter(SERVERS))}\nNumber of datafiles/servers = {len(servers)}")
    for number, server in enumerate(servers):
        print(f"Datafile {number} - {server}, handle: {4611686018427387000 + number} ({number:08x}.bstream)")


def touch():
    given, paths = getopt("l:r?", "Usage: pvfs2-touch pvfs2_filename[s]")
    if not paths:
        fake.end(1, "Usage: pvfs2-touch pvfs2_filename[s]")
    if "l" in given and "r" in given:
        fake.end(1, "Error: only one of -r or -l may be specified.")
    for path in paths:
        directory = os.path.dirname(os.path.abspath(path))
        real = resolve(directory)
        if real is None:
            failed("PVFS_util_resolve: No such file or directory (error class: 0)")
        servers = given["l"].split(",") if "l" in given else None
        for server in servers or []:
            if server not in SERVERS:
                failed("BMI_addr_lookup: No such device or address\nError: unable to resolve server list.")
        if servers is not None and len(servers) > DATAFILES_MAX:
            failed("Error: invalid number of datafiles")
        if os.path.lexists(path):
            failed(f"Error: An error occurred while creating {path}\nPVFS_sys_create: File exists")
        settle(real)
        # Without -l the layout is round robin, whatever the directory's list says.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o777))
        text = layout(path, real, servers, obeyed=False)
        if text is None:
            os.unlink(path)
            failed(f"Error: An error occurred while creating {path}\nPVFS_sys_create: Invalid argument")
        fake.keep(path, text)


def statfs():
    given, _ = getopt("hHvm:", "Usage  : pvfs2-statfs [-m fs_mount_point] [-h,-H]")
    if "m" not in given:
        failed("Error: failed to parse command line arguments.")
    real = resolve(given["m"])
    if real is None:
        failed(f"Error: could not find filesystem for {given['m']}/ in pvfstab")
    settle(real)
    line = "---------------------------------------\n"
    print(f"\naggregate statistics:\n{line}\n\tfs_id: 9\n\ttotal number of servers (meta and I/O): {len(SERVERS)}")
    print(f"\tbytes available:                        {len(SERVERS) * min(SERVERS.values())}")
    for kind in ("meta", "I/O"):
        print(f"\n{kind} server statistics:\n{line}")
        for server, free in SERVERS.items():
            print(f"server: {server}\n\tRAM bytes total  : 1\n\tbytes available  : {free}\n\tbytes total      : {2 * free}")
            print("\tmode: serving both metadata and I/O data\n")


def main():
    tools = {"xattr": xattr, "viewdist": viewdist, "touch": touch, "statfs": statfs}
    name = os.path.basename(sys.argv[0]).removeprefix("pvfs2-")
    if sys.argv[1:] == ["--version"]:
        return
    fake.count_the_call(FAILED, "PVFS_util_init_defaults: Connection refused")
    try:
        tools[name]()
    except OSError as error:
        failed(f"PVFS_sys_call: {os.strerror(error.errno)}")
