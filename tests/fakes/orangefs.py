"""A strict fake of OrangeFS 2.10's `pvfs2-xattr`, `pvfs2-viewdist` and `pvfs2-statfs`, selected by
its name.

`fake.conf`: `mount DIR`, `server ADDRESS BYTES_FREE`.

Hints are real attributes `user.pvfs2.*` of directories here. OrangeFS ignores some that it does not
understand: no call fails, and a new file has the default distribution. With others no file can be
created; here the file exists, and the tools say that it has no distribution.

Sources: waltligon/orangefs, commit 4a684c81 (2.10.0), by path and line. The outputs and statuses of
the tools and the effects of the hints were compared with a 2.10 built from it, with eight servers
and pvfs2fuse; the defaults of twod_stripe were only read. Guessed: that a user without write
permission cannot set hints. (src/server/set-eattr.sm:705 refuses where OrangeFS is built with its
security; without, every user could.)
"""

import errno
import itertools
import os
import re
import sys

import fake

FAILED = 255  # return -1 of main
NO_HINT = 254  # return -PVFS_ENOENT of main: src/apps/admin/pvfs2-xattr.c:199-203
STRIPS_MAX = 1025  # include/pvfs2-dist-varstrip.h:14
SHOWN_MAX = 256  # src/apps/admin/pvfs2-viewdist.c:213
NAMESPACES = ("system.", "user.", "trusted.", "security.")
ROUND_ROBIN, RANDOM, LIST = 2, 3, 4  # include/pvfs2-types.h:213-219
HINTS = ("dist_name", "dist_params", "layout", "server_list", "num_dfiles")
DEFAULT = {"strip_size": 65536, "num_groups": 2, "group_strip_factor": 256}  # src/io/description

CONF = fake.configuration()
MOUNT = os.path.realpath(CONF["mount"][0][0])
SERVERS = {words[0]: int(words[1]) for words in CONF["server"]}


def failed(message):
    fake.end(FAILED, message)


def resolve(path):
    """Resolves a path like PVFS_util_resolve (src/common/misc/pvfs2-util.c:1654): by its text. The
    attempt to resolve links (line 1717) fails, because its result is no PVFS_path_t (line 2600), as a
    real OrangeFS 2.10 showed."""
    text = os.path.abspath(path)
    return os.path.realpath(text) if text == MOUNT or text.startswith(MOUNT + "/") else None


def value(directory, name):
    """The value of a hint; empty if it is not set."""
    try:
        return os.getxattr(directory, f"user.pvfs2.{name}").decode()
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return ""


def number(text):
    """The value of a hint that strtol must read to its end (src/server/get-attr.sm:2364-2400)."""
    return int(text) if re.fullmatch(r"[0-9]+", text) else 0


def hints(directory):
    """(name, params, layout, servers, datafiles) as src/server/get-attr.sm:2328-2429 reads them. An
    empty value is no hint. A list sets the number of datafiles, whatever the layout."""
    name, params, layout, servers, datafiles = (value(directory, hint) for hint in HINTS)
    count = re.match(r"[0-9]*", servers)[0] if len(servers) >= 6 else ""
    listed = servers.split()[1:] if count else []
    return name, params, number(layout), listed, int(count or number(datafiles))


def strips(text):
    """[(datafile, bytes)] like PINT_dist_strips_parse (dist-varstrip-parser.c:125) and
    get_num_dfiles (dist-varstrip.c:305), both in src/io/description; None if invalid. Other units
    than K, M and G are passed over."""
    found = []
    for part in text.removesuffix(";").split(";"):
        datafile, _, size = part.partition(":")
        digits = re.match(r"[0-9]*", size)[0]
        if not datafile.isdigit() or not int(digits or 0):
            return None
        found.append((int(datafile), int(digits) << {"k": 10, "m": 20, "g": 30}.get(size[-1].lower(), 0)))
    numbers = {datafile for datafile, _ in found}
    # "The strip partitioning string must contain all data file numbers from 0 to the highest one
    # specified!", and not more than there are servers.
    valid = len(text) < STRIPS_MAX - 1 and numbers == set(range(len(numbers))) and len(numbers) <= len(SERVERS)
    return found if valid else None


def distribution(name, params):
    """(name, what params_string prints, datafiles or 0), or None where no file can be created
    (src/client/sysint/sys-create.sm:877-990)."""
    if name == "varstrip_dist":
        found = strips(params.removeprefix("strips:")) if params.startswith("strips:") else None
        # params_string is without the name of the parameter: dist-varstrip.c:415.
        return found and (name, params.removeprefix("strips:"), 1 + max(datafile for datafile, _ in found))
    if name not in ("", "simple_stripe", "twod_stripe"):
        return None
    given = dict(pair.split(":", 1) for pair in params.split(",") if ":" in pair) if name else {}
    # "ignore parse errors!" (sys-create.sm:940); a value of 0 is passed over.
    numbers = {key: number(given.get(key, "")) or default for key, default in DEFAULT.items()}
    if name == "twod_stripe":
        # params_string has another name for the last: dist-twod-stripe.c:519.
        return name, "num_groups:{num_groups},strip_size:{strip_size},factor:{group_strip_factor}".format(**numbers), 0
    return "simple_stripe", f"strip_size:{numbers['strip_size']}", 0


def layout(path, directory):
    """The layout of a new file in a directory, as one line; None if the file cannot be created."""
    name, params, algorithm, listed, datafiles = hints(directory)
    found = distribution(name, params)
    if found is None:
        return None
    count = min(found[2] or datafiles or len(SERVERS), len(SERVERS))
    stuffed = "whole"
    if algorithm == LIST:
        # Other addresses cannot be resolved; a list must not be longer than there are datafiles
        # (src/common/misc/pint-cached-config.c:611-618). pvfs2fuse dies where it is empty.
        if not listed or len(listed) > count or any(server not in SERVERS for server in listed):
            return None
        servers = listed
    else:
        # The first server differs from file to file.
        every, first = list(SERVERS), os.stat(path).st_ino
        servers = [every[(first + k) % len(every)] for k in range(count)]
        # Up to its first strip a file is with its metadata: src/server/create.sm:252-280.
        if algorithm != RANDOM and count > 1:
            stuffed = "stuffed"
    return f"{found[0]} {found[1]} {','.join(servers)} {stuffed}"


def inherit(directory, child):
    """Gives a new directory the hints that count: src/server/mkdir.sm:759-850."""
    name, params, algorithm, _, datafiles = hints(directory)
    servers = value(directory, "server_list")
    values = (name, params, algorithm and f"{algorithm:05}", servers if len(servers) >= 6 else "", datafiles and f"{datafiles:05}")
    for hint, text in zip(HINTS, values, strict=True):
        if text and f"user.pvfs2.{hint}" not in os.listxattr(child):
            os.setxattr(child, f"user.pvfs2.{hint}", text.encode())
    return "hinted"


def arrived(_, child):
    """Gives a new file the layout of its directory's hints, and a new directory the hints."""
    directory = os.path.dirname(child)
    return inherit(directory, child) if os.path.isdir(child) else layout(child, directory)


def settle(path):
    """Settles the directories above `path`, from the top down, and the files next to it; it may be
    new itself."""
    top = path if path == MOUNT else os.path.dirname(path)
    above = [os.path.join(MOUNT, *names) for names in itertools.accumulate(([n] for n in os.path.relpath(top, MOUNT).split("/")))]
    for directory in above if top != MOUNT else ():
        try:
            if os.path.isdir(directory) and fake.kept(directory) is None:
                fake.keep(directory, inherit(os.path.dirname(directory), directory))
        except PermissionError:
            pass  # Another user owns it.
    fake.settle(top, MOUNT, arrived, directories=True)


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
    path, key, text = sys.argv[-1], given.get("k"), given.get("v")
    if "s" in given and text is None:
        fake.end(1, "Please specify value if setting extended attributes")  # pvfs2-xattr.c:654
    if key is None:
        fake.end(1, "Please specify key if getting extended attributes")  # pvfs2-xattr.c:662
    real = resolve(path)
    if real is None or not os.path.exists(real):
        why = "Not a file!" if real is None else "PVFS_sys_lookup: No such file or directory (error class: 0)"
        failed(f"{why}\nCould not open {path}")  # pvfs2-xattr.c:141, 717
    if not key.startswith(NAMESPACES):
        failed(f"extended attribute key is not prefixed {key}")  # pvfs2-xattr.c:147
    settle(real)
    if "s" not in given:
        try:
            found = os.getxattr(real, key).decode()
        except OSError as error:
            if error.errno != errno.ENODATA:
                failed(f"PVFS_sys_geteattr: {os.strerror(error.errno)} (error class: 0)")
            print("PVFS_sys_geteattr: no hints defined")  # pvfs2-xattr.c:201
            fake.end(NO_HINT)
        if "t" in given:
            print(f'key : "{key}" \tValue : "{found}"')  # pvfs2-xattr.c:284
        return
    if not key.startswith("user."):
        failed(f"Not permitted to set key {key}")  # pvfs2-xattr.c:155
    if not os.access(real, os.W_OK):
        failed("PVFS_sys_geteattr: Permission denied (error class: 0)")
    if not (fake.ignores_hints() and key.startswith("user.pvfs2.")):
        os.setxattr(real, key, text.encode())


def viewdist():
    given, _ = getopt("vf:", "Usage: pvfs2-viewdist ARGS")
    if "f" not in given:
        fake.end(1, "Usage: pvfs2-viewdist ARGS")
    path = given["f"]
    real = resolve(path)
    if real is None or not os.path.exists(real):
        failed(f"PVFS_sys_lookup: No such file or directory (error class: 0)\nCould not open {path}")
    settle(real)
    text = fake.kept(real) if os.path.isfile(real) else None
    if text is None:
        failed("PVFS_sys_geteattr: No such file or directory (error class: 0)\nCould not read distribution information!")
    name, params, servers, stuffed = text.split(" ")
    servers = servers.split(",")[:SHOWN_MAX]
    if stuffed == "stuffed" and os.stat(real).st_size <= number(params.removeprefix("strip_size:")):
        servers = servers[:1]
    # All but varstrip's params_string end with a line feed.
    print(f"dist_name = {name}\ndist_params:\n{params}" + ("" if name == "varstrip_dist" else "\n"))
    print(f"Metadataserver: {next(iter(SERVERS))}\nNumber of datafiles/servers = {len(servers)}")
    for index, server in enumerate(servers):
        handle = 4611686018427387000 + index
        print(f"Datafile {index} - {server}, handle: {handle} ({handle:08x}.bstream)")  # pvfs2-viewdist.c:281


def statfs():
    given, _ = getopt("hHvm:", "Usage  : pvfs2-statfs [-m fs_mount_point] [-h,-H]")
    if not given.get("m", "").split():
        failed("Error: failed to parse command line arguments.")
    path = given["m"].split()[0]  # sscanf's %s: pvfs2-statfs.c:303
    real = resolve(path)
    if real is None:
        failed(f"Error: could not find filesystem for {path}/ in pvfstab")  # pvfs2-statfs.c:79
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
    tools = {"xattr": xattr, "viewdist": viewdist, "statfs": statfs}
    name = os.path.basename(sys.argv[0]).removeprefix("pvfs2-")
    if sys.argv[1:] == ["--version"]:
        return
    fake.count_the_call(FAILED, "PVFS_util_init_defaults: Connection refused (error class: 128)")
    try:
        tools[name]()
    except OSError as error:
        failed(f"PVFS_sys_call: {os.strerror(error.errno)}")
