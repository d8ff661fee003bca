"""A strict fake of Lustre's `lfs`: setstripe, migrate, getstripe -d [--yaml], df, pool_list.

`fake.conf`: `mount DIR`, `fsname NAME`, `version X.Y.Z`, `server X.Y.Z` (the pools of files are those
of servers of another version), `ost INDEX KIB_FREE [STATE]`, `pool NAME INDEX...`, and what is wrong: `full INDEX...`, `silent INDEX...` (OSTs that do not answer),
`inactive INDEX...`, `unpooled` (the servers do not know the pools), `restricted` (the user is not
in the group of enable_setstripe_gid), `unsafe` (migrate damages a byte), `busy` (migrate finds
writers).

Sources, all of lustre/lustre-release, read in 2.12.9, 2.14.0, 2.15.8, 2.16.1 and 2.17.57; lines are
those of 2.15.8 unless a version is named:
  lustre/utils/lfs.c: lfs_setstripe_internal (3365), comp_args_to_layout (2635),
    setstripe_args_init_inherit (2570), lsa_args_stripe_count_check (2596), parse_targets,
    lfs_component_create, lfs_migrate, showdf (6359), mntdf (6474), lfs_df (7183)
  lustre/utils/liblustreapi.c: llapi_file_open_param (2.16.1: 572), llapi_stripe_param_verify,
    llapi_get_poolmembers, lov_dump_user_lmm_header (2996), lov_dump_comp_v1 (3829)
  lustre/lod/lod_qos.c: lod_alloc_ost_list, lod_get_stripe_count (1918), lod_qos_parse_config (2380;
    2.12.9: 2060, 2.14.0: 2230, 2.15.3: 2295), lod_qos_set_pool (2171)
  lustre/lod/lod_object.c: lod_xattr_set_lov_on_dir (3902), lod_ah_init (5625), lod_layout_get_pool
    (lod_internal.h: 563)
  lustre/include/uapi/linux/lustre/lustre_user.h: lov_pool_is_ignored (758; in 2.15 since 2.15.4)
  lustre/mdt/mdt_open.c: mdt_object_open_lock (2.12.9: 988, 2.14.0: 990, 2.15.8: 957)
  lustre/llite/file.c: LL_IOC_LOV_SETSTRIPE (2.16.1: 4537), lustre/llite/xattr.c: ll_setstripe_ea
  libcfs/include/libcfs/util/parser.h: CMD_HELP

Guesses, not read in the source: the words of a failed migrate; that releases other than 2.17.57
say nothing of EEXIST for a composite, either; how -i and -o of a directory's default are shown.
"""

import errno
import fcntl
import json
import os
import sys
import time

import fake

CMD_HELP = 4  # parser.h; lfs's main returns it
UNIT = 64 << 10  # LOV_MIN_STRIPE_SIZE
STRIPES_MAX = 2000  # LOV_MAX_STRIPE_COUNT
POOL_NAME_MAX = 15  # LOV_MAXPOOLNAME
EOF = 2**64 - 1  # LUSTRE_EOF

CONF = fake.configuration()
MOUNT = os.path.realpath(CONF["mount"][0][0])
FSNAME = CONF["fsname"][0][0]
VERSION = tuple(int(number) for number in CONF.get("version", [["2.15.8"]])[0][0].split("."))
OSTS = {int(words[0]): (int(words[1]), "".join(words[2:])) for words in CONF["ost"]}
POOLS = {words[0]: [int(index) for index in words[1:]] for words in CONF.get("pool", [])}
FULL, SILENT, INACTIVE = ({int(index) for words in CONF.get(key, []) for index in words}
                          for key in ("full", "silent", "inactive"))
EA_STRIPES = 160  # LOV_MAX_STRIPE_COUNT_OLD: what an attribute without ea_inode has room for
SERVER = tuple(int(number) for number in CONF["server"][0][0].split(".")) if "server" in CONF else VERSION
# Whether lfs and the servers know the pools `ignore` and `inherit`: LU-15707.
IGNORES, SERVER_IGNORES = VERSION >= (2, 15, 4), SERVER >= (2, 15, 4)
NO_STRIPES = "-"  # stored with a file without a layout, and a directory without a default
DEFAULT = {"start": 0, "end": EOF, "size": 1 << 20, "count": 1, "pool": "", "first": -1, "osts": [], "over": False,
           "mdt": False, "extension": 0, "mirror": 0, "prefer": False}


def failed(number, message):
    """Prints and exits like llapi_error and lfs's main."""
    fake.end(number, f"{message}: {os.strerror(number)} ({number})")


def usage(message):
    """Prints the usage like the label usage_error."""
    fake.end(CMD_HELP, f"{message}\nset striping pattern of a file or directory default\nusage: setstripe ...")


def on_lustre(path):
    """Fails like llapi_search_fsname if the path is not on Lustre."""
    real = os.path.realpath(path)
    if real != MOUNT and not real.startswith(MOUNT + "/"):
        failed(errno.ENODEV, f"'{path}' is not on a Lustre filesystem")
    return real


def loads(text):
    return json.loads(text) if text and text != NO_STRIPES else None


def instantiate(component, path):
    """Chooses the objects of a component (lod_alloc_qos, lod_alloc_ost_list). Returns an errno."""
    known = POOLS.get(component["pool"]) if "unpooled" not in CONF else None
    # The server ignores a pool that it does not know or that is empty, and keeps the name.
    candidates = known or list(OSTS)
    if component["osts"]:
        bad = [place for place, index in enumerate(component["osts"]) if index not in OSTS]
        if bad:
            return errno.EINVAL if VERSION >= (2, 15) and bad[0] == 0 else errno.ENODEV
    else:
        count = component["count"] or 1
        if count < 0:
            count = len(candidates) * -count
        elif not component["over"]:
            count = min(count, len(candidates))
        start = candidates.index(component["first"]) if component["first"] in candidates else os.stat(path).st_ino
        component["osts"] = [candidates[(start + k) % len(candidates)] for k in range(count)]
    if VERSION >= (2, 15, 5) and component["end"] != EOF:  # lod_qos.c:2446
        room = -(-(component["end"] - component["start"]) // component["size"])
        component["osts"] = component["osts"][:max(room, 1)]
    if "ea_inode" not in CONF:
        component["osts"] = component["osts"][:EA_STRIPES]
    component["count"] = len(component["osts"])
    component["objects"] = True
    return errno.ENOSPC if FULL & set(component["osts"]) else 0


def allocate(components, path):
    """Gives the first component of each mirror its objects; later ones get theirs when they are
    written. Returns an errno."""
    failures = [instantiate(component, path) for component in components
                if component["start"] == 0 and not component["mdt"] and not component["extension"]]
    return next(filter(None, failures), 0)


def inherited(text, path):
    """The layout of a new file, or the default of a new directory, which is a copy of its parent's
    (before 2.16 without the list of OSTs)."""
    if os.path.isdir(path):
        components = loads(text)
        for component in components or []:
            component["osts"] = component["osts"] if VERSION >= (2, 16) else []
        return json.dumps(components) if components else NO_STRIPES
    components = loads(text) or loads(fake.kept(MOUNT)) or [dict(DEFAULT)]
    if not composite(components) and not components[0]["pool"]:
        components[0]["pool"] = default_pool(os.path.dirname(path))
    allocate(components, path)
    return json.dumps(components)


def settle():
    fake.settle(MOUNT, MOUNT, inherited, directories=True)


def parse_targets(text, found):
    """Parses `0,2-4,0x5`; None if it is invalid. Up to 2.12 repeated OSTs are dropped."""
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            first = int(first, 0)
            last = int(last, 0) if dash else first
        except ValueError:
            return None
        if first < 0 or last < first:
            return None
        found.extend(index for index in range(first, last + 1) if VERSION >= (2, 13) or index not in found)
    return found


def check_component(component):
    """Checks like comp_args_to_layout and lsa_args_stripe_count_check, whose failure is a usage
    error also for a plain layout."""
    osts, count = component["osts"], component["count"]
    if len(osts) >= STRIPES_MAX:
        usage(f"Invalid nr_tgts({STRIPES_MAX})")
    if osts and count is not None and count > 0 and count != len(osts):
        usage(f"stripe_count({count}) != nr_tgts({len(osts)})")
    if component["mdt"] and component["pool"]:
        usage(f"Option 'pool' can't be specified with Data-on-MDT component: '{component['pool']}'")
    if component["mdt"] and count is not None:
        usage(f"Option 'stripe-count' can't be specified with Data-on-MDT component: {count}")


def check(component, several):
    """Checks like llapi_stripe_param_verify, and for components like llapi_layout_sanity and
    lod_verify_striping."""
    pool, osts = component["pool"], component["osts"]
    if component["size"] >= 1 << 32:
        failed(errno.EINVAL, f"error: stripe size '{component['size']}' over 4GB limit")
    if len(pool) > POOL_NAME_MAX:
        usage(f"error: setstripe: pool name '{pool}' is too long (max is {POOL_NAME_MAX} characters)")
    checked = VERSION >= (2, 16) or (VERSION < (2, 15) and not several)
    if pool and checked and not POOLS.get(pool) and not (IGNORES and pool == "ignore"):
        what = "has no OSTs" if pool in POOLS else "does not exist"
        failed(errno.EINVAL, f"pool '{FSNAME}.{pool}' {what}")
    for index in osts if VERSION < (2, 15) and not several else []:
        if index not in OSTS or (pool and index not in POOLS[pool]):
            where = "pool" if pool else "system"
            failed(errno.ENODEV, f"llapi_layout_search_ost: cannot find OST {FSNAME}-OST{index:04x}_UUID in {where}")


def misaligned(component):
    """lod_verify_striping: "stripe size isn't aligned"."""
    return not component["mdt"] and component["end"] != EOF and component["end"] % component["size"] != 0


def options(arguments):
    """The components described by the options, the single options, and the files."""
    components, alone = [], set()
    now, started = dict(DEFAULT, osts=[], end=0, count=None), False
    place = mirror = 0

    def value():
        nonlocal place
        place += 1
        if place >= len(arguments):
            usage(f"lfs setstripe: option requires an argument -- '{arguments[place - 1]}'")
        return arguments[place]

    def finish():
        """Ends a component. A later one inherits its size, count and pool
        (setstripe_args_init_inherit)."""
        nonlocal now
        last = components[-1] if components and components[-1]["mirror"] == now["mirror"] else None
        now["start"] = last["end"] if last else 0
        check_component(now)
        if last and now["end"] <= last["end"]:
            usage("lfs setstripe: invalid layout")
        size = now["end"] if now["mdt"] else now["size"]
        if now["extension"]:
            # The extendable component begins without a byte, the first one with its extension.
            begun = now["start"] + (now["extension"] if now["start"] == 0 else 0)
            components.append(dict(now, end=begun, extension=0))
            components.append(dict(now, start=begun, prefer=False))
        else:
            components.append(dict(now, size=size))
        inherit = {key: now[key] for key in ("count", "pool")}
        now = dict(DEFAULT, osts=[], end=0, size=size, mirror=mirror, **inherit)

    while place < len(arguments) and arguments[place].startswith("-"):
        option = arguments[place]
        if option == "-E":
            if now["end"]:
                finish()
            text = value()
            now["end"] = EOF if text in ("-1", "eof", "EOF") else fake.size(text)
            if now["end"] is None or (now["end"] != EOF and now["end"] % UNIT):
                usage(f"lfs setstripe setstripe: invalid component end '{text}'")
        elif option == "-N":
            if mirror:
                now["end"] = now["end"] or EOF
                finish()
            mirror += 1
            now["mirror"] = mirror
        elif option == "-S":
            text = value()
            now["size"] = fake.size(text)
            if now["size"] is not None and now["size"] < 4096:
                now["size"] *= 1024
            if now["size"] is None or now["size"] % UNIT:
                usage(f"lfs setstripe setstripe: invalid stripe size '{text}'")
        elif option == "-c" or (option == "-C" and VERSION >= (2, 13)):
            text = value()
            least = -32 if VERSION >= (2, 16) and option == "-C" else -1  # LLAPI_OVERSTRIPE_COUNT_MAX
            if not text.lstrip("-").isdigit() or not least <= int(text) <= STRIPES_MAX:
                usage(f"lfs setstripe setstripe: invalid stripe count '{text}'")
            now.update(count=int(text), over=option == "-C")
        elif option == "-i":
            text = value()
            if not text.lstrip("-").isdigit():
                usage(f"lfs setstripe setstripe: invalid stripe offset '{text}'")
            now["first"] = int(text)
        elif option == "-o":
            text = value()
            now["osts"] = parse_targets(text, list(now["osts"]))
            if now["osts"] is None:
                usage(f"lfs setstripe setstripe: invalid OST target(s) '{text}'")
            now.update(first=now["osts"][0], over=len(set(now["osts"])) < len(now["osts"]))
        elif option == "-p":
            text = value().removeprefix(FSNAME + ".")
            now["pool"] = "" if text in ("", "none") or (IGNORES and text == "inherit") else text
        elif option == "-L":
            if value() != "mdt" or components and components[-1]["mirror"] == now["mirror"]:
                failed(errno.EINVAL, "error: 'mdt' layout can be only the first one")
            now["mdt"] = True
        elif option == "-z" and VERSION >= (2, 13):
            now["extension"] = fake.size(value())
        elif option == "--comp-flags=prefer":
            now["prefer"] = True
        elif option in ("-d", "-n"):
            alone.add(option)
        else:
            usage(f"lfs setstripe: unrecognized option '{option}'")
        started = started or option not in ("-d", "-n")
        place += 1
    if "-d" in alone and started:
        usage("lfs setstripe setstripe: option -d is mutually exclusive with -s, -c, -o, -p, -I, -F and -E options")
    if now["end"] == 0:
        now["end"] = EOF
    finish()
    for component in components:
        component["count"] = len(component["osts"]) or (1 if component["count"] is None else component["count"])
        component["count"] = 0 if component["mdt"] else component["count"]
    return components, alone, arguments[place:]


def composite(components):
    return len(components) > 1 or components[0]["end"] != EOF


def refused(components, number, path):
    """A composite's failure is -1 whatever the errno (lfs_component_create)."""
    if composite(components):
        fake.end(1, f"lfs setstripe: cannot create composite file '{path}': {os.strerror(number)}")
    fake.end(number, f"setstripe error for '{path}': {os.strerror(number)}")


def restricted(path):
    """llapi_file_open_param of 2.16: the file is removed and opened again. Directories and
    composites, which are set as attributes, are not restricted (llite/dir.c, llite/xattr.c)."""
    print(f"setstripe warning for '{path}': Setstripe is restricted by your administrator, default striping applied",
          file=sys.stderr)
    if os.path.exists(path):
        os.unlink(path)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    settle()


def default_pool(directory):
    """The first pool of the default of a directory. Where that has none and is plain, or there is no
    default, the pool of the root's (lod_ah_init, lod_layout_get_pool)."""
    own, root = loads(fake.nearest(directory, MOUNT)), loads(fake.kept(MOUNT))
    above = own or root or []
    pool = next((component["pool"] for component in above if component["pool"]), "")
    if own and root and not pool and not composite(own) and not composite(root):
        pool = root[0]["pool"]
    return pool


def resolve(components, directory):
    """Chooses the pools that a new file really gets (lod_qos_parse_config, lod_qos_set_pool). Returns
    an errno."""
    if any(map(misaligned, components)):
        return errno.EINVAL
    inherited_pool = default_pool(directory)
    for component in components:
        if SERVER_IGNORES and component["pool"] == "ignore":
            component["pool"] = ""
            continue
        pool = component["pool"] or inherited_pool
        if component["osts"] and (2, 15) <= SERVER < (2, 15, 5):
            pool = ""  # LU-14480, until LU-15658
        members = POOLS.get(pool) if "unpooled" not in CONF else None
        if members and component["first"] >= 0:
            chosen = component["osts"] if component["osts"] and SERVER >= (2, 15, 5) else [component["first"]]
            if not set(chosen) <= set(members):
                if SERVER < (2, 15, 5):
                    return errno.EINVAL
                pool, members = "", None
        if members and component["count"] > len(members) and not component["over"]:
            component["count"] = len(members)
            component["osts"] = component["osts"][:len(members)]
        component["pool"] = pool
    return 0


def setstripe(arguments):
    components, alone, paths = options(arguments)
    if not paths:
        usage("lfs setstripe setstripe: FILE must be specified")
    for path in paths:
        real = on_lustre(path)
        for component in components:
            check(component, composite(components))
        settle()
        if os.path.isdir(path):
            set_default(path, real, components, "-d" in alone)
        elif "-d" in alone:
            failed(errno.ENOTDIR, f"unable to open '{path}'")
        elif "restricted" in CONF and VERSION >= (2, 16) and not composite(components):
            restricted(path)
        else:
            create(path, real, components)


def set_default(path, real, components, delete):
    if any(map(misaligned, components)):
        refused(components, errno.EINVAL, path)
    if SERVER_IGNORES and not composite(components) and components[0]["pool"] == "ignore":
        components[0]["pool"] = ""  # lod_xattr_set_lov_on_dir
    if delete:
        fake.keep(real, NO_STRIPES)
    elif not fake.ignores_hints():
        fake.keep(real, json.dumps(components))


def create(path, real, components):
    if os.path.lexists(path) and fake.kept(real) != NO_STRIPES:
        # The file has objects already, whether or not it was written.
        if composite(components):
            return  # ll_setstripe_ea (2.17.57: lustre/llite/xattr.c) says nothing of EEXIST.
        fake.end(errno.EEXIST, f"setstripe error for '{path}': stripe already set")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    except OSError as error:
        if composite(components):
            refused(components, error.errno, path)
        raise
    # O_LOV_DELAY_CREATE: it has no stripes, and stays so where setting them fails.
    fake.keep(real, NO_STRIPES)
    if fake.ignores_hints():
        fake.forget(real)
        settle()
        return
    number = resolve(components, os.path.dirname(real)) or allocate(components, real)
    if number:
        refused(components, number, path)
    fake.keep(real, json.dumps(components))


def dump(component, is_dir, indent, chosen):
    """Prints like lov_dump_user_lmm_header and lov_dump_user_lmm_v1v3 with --yaml."""
    space, prefix = "      " if indent else "", "" if is_dir else "lmm_"
    pattern = "mdt" if component["mdt"] else "raid0,overstriped" if component["over"] else "raid0"
    extension = component["extension"]
    first = component["osts"][0] if component["osts"] and (chosen or is_dir) else component["first"]
    if component["mdt"] and not is_dir:
        first = 0
    print(f"{space}{prefix}stripe_count:  {0 if extension else component['count']}")
    if extension:
        print(f"{space}{prefix}extension_size: {extension}")
    else:
        print(f"{space}{prefix}stripe_size:   {component['size']}")
    print(f"{space}{prefix}pattern:       {pattern}")
    if not is_dir:
        print(f"{space}{prefix}layout_gen:    0")
    print(f"{space}{prefix}stripe_offset: {first}")
    if component["pool"] and not (IGNORES and component["pool"] == "ignore"):  # lov_dump_user_lmm_header
        print(f"{space}{prefix}pool:          {component['pool']}")
    if chosen and not is_dir and not component["mdt"]:
        print("      lmm_objects:" if indent else "lmm_objects:")
        for number, index in enumerate(component["osts"]):
            print(f"      - l_ost_idx: {index}\n        l_fid:     0x1000{index:x}0000:0x{number + 2:x}:0x0")
    print()


def dump_composite(components, is_dir):
    """Prints like lov_dump_comp_v1_header and lov_dump_comp_v1_entry with --yaml."""
    print(f"  lcm_layout_gen:    {0 if is_dir else len(components)}")
    print(f"  lcm_mirror_count:  {max(1, components[-1]['mirror'])}")
    print(f"  lcm_entry_count:   {len(components)}")
    for number, component in enumerate(components):
        chosen = component.get("objects", False) and not is_dir
        name, mirror = ("N/A", "N/A") if is_dir else (number + 1, component["mirror"])
        end = "EOF" if component["end"] == EOF else component["end"]
        flags = [("init", chosen), ("prefer", component["prefer"]), ("extension", component["extension"])]
        flags = ",".join(flag for flag, on in flags if on) or "0"
        print(f"  component{number}:\n    lcme_id:             {name}\n    lcme_mirror_id:      {mirror}")
        print(f"    lcme_flags:          {flags}\n    lcme_extent.e_start: {component['start']}")
        print(f"    lcme_extent.e_end:   {end}\n    sub_layout:")
        dump(component, is_dir, True, chosen)


def getstripe(arguments):
    paths = [argument for argument in arguments if not argument.startswith("-")]
    unknown = [a for a in arguments if a.startswith("-") and a not in ("-d", "--directory", "-y", "--yaml", "-R", "--raw")]
    if unknown or not paths:
        usage(f"getstripe: unrecognized option '{unknown[0]}'" if unknown else "getstripe: missing filename")
    for path in paths:
        real = on_lustre(path)
        if not os.path.exists(path):
            failed(errno.ENOENT, f"lfs getstripe: cannot open '{path}'")
        settle()
        is_dir = os.path.isdir(path)
        components = loads(fake.nearest(real, MOUNT) if is_dir else fake.kept(real))
        components = components or (loads(fake.kept(MOUNT)) if is_dir else None)
        if not components:
            # A file of another user that this call cannot settle has the default.
            if not is_dir and fake.kept(real) == NO_STRIPES:
                print(f"{path} has no stripe info")
            elif is_dir:
                # 0 as a number, since 2.17 as no names (llapi_lov_pattern_string).
                pattern = "" if VERSION >= (2, 17) else "0"
                print(f"stripe_count:  1\nstripe_size:   1048576\npattern:       {pattern}\nstripe_offset: -1\n")
            else:
                dump(DEFAULT, is_dir, False, False)
        elif composite(components):
            dump_composite(components, is_dir)
        else:
            dump(components[0], is_dir, False, True)


def is_open(path):
    """Whether the server refuses the lease that -n takes: before 2.15 for any other descriptor of
    the file, since then for one that writes. Leases of the local file system have the same rules.
    """
    kind = fcntl.F_WRLCK if VERSION < (2, 15) else fcntl.F_RDLCK
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # A process that the caller's other threads have forked holds the caller's descriptors until
        # it runs its program.
        for _ in range(20):
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
                return False
            except BlockingIOError:
                time.sleep(0.05)
        return True
    finally:
        os.close(descriptor)


def migrate(arguments):
    """Gives a file another layout and keeps its inode (lfs_migrate, migrate_nonblock)."""
    components, alone, paths = options(arguments)
    for path in paths:
        real = on_lustre(path)
        for component in components:
            check(component, composite(components))
        settle()
        if "-n" in alone and ("busy" in CONF or is_open(path)):
            fake.end(errno.EBUSY, f"error: lfs migrate: {path}: cannot get lease: {os.strerror(errno.EBUSY)}")
        with open(path, "r+b") as file:
            number = resolve(components, os.path.dirname(real)) or allocate(components, real)
            if number:
                fake.end(number, f"error: lfs migrate: {path}: cannot create volatile file: {os.strerror(number)}")
            first = file.read(1)
            if "unsafe" in CONF and first:
                times = os.stat(path)
                file.seek(0)
                file.write(bytes([first[0] ^ 1]))
                file.flush()
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if not fake.ignores_hints():
            fake.keep(real, json.dumps(components))


def df(arguments):
    flags = {argument for argument in arguments if argument.startswith("-")}
    for path in (argument for argument in arguments if not argument.startswith("-")):
        real = os.path.realpath(path)
        if real != MOUNT and not real.startswith(MOUNT + "/"):
            # lfs_df: up to 2.14 no mount matches, and nothing is printed.
            fake.end(*((errno.EOPNOTSUPP, f"df:{path} Not a Lustre filesystem") if VERSION >= (2, 15) else (0,)))
    print(f"{'UUID':<20} {'1K-blocks':>11} {'Used':>11} {'Available':>11} Use% Mounted on")
    rows = [(f"{FSNAME}-MDT0000_UUID", 1 << 20, "", "MDT:0")]
    rows += [(f"{FSNAME}-OST{index:04x}_UUID", free, state, f"OST:{index}") for index, (free, state) in sorted(OSTS.items())]
    status = 0
    for uuid, free, state, name in rows:
        index = int(name[4:]) if name.startswith("OST") else None
        if index in INACTIVE:
            if "-v" in flags:
                print(f"{f'OST{index:04x}':<20}: inactive device")
        elif index in SILENT:
            if "-l" not in flags:
                fake.end(errno.ETIMEDOUT, "the real tool waits for the OST")
            print(f"{uuid:<20}: {os.strerror(errno.ESHUTDOWN)}")
            status = errno.ESHUTDOWN
        else:
            # oss_names: flags that are no error are shown with -v only.
            state = "".join(flag for flag in state if flag not in "af" or "-v" in flags)
            print(f"{uuid:<20} {2 * free:>11} {free:>11} {free:>11}  50% {MOUNT}[{name}] {state}".rstrip())
    total = sum(free for free, _ in OSTS.values())
    print(f"\n{'filesystem_summary:':<20} {2 * total:>11} {total:>11} {total:>11}  50% {MOUNT}\n")
    fake.end(status)


def pool_list(arguments):
    if len(arguments) != 1:
        usage("pool_list: one argument")
    name, _, pool = arguments[0].partition(".")
    if name != FSNAME:
        failed(errno.ENOENT, f"Lustre filesystem '{arguments[0]}' not found")
    if not pool:
        print(f"Pools from {FSNAME}:")
        for pool in POOLS:
            print(f"{FSNAME}.{pool}")
        return
    print(f"Pool: {FSNAME}.{pool}")
    if pool not in POOLS:
        failed(errno.ENOENT, f"cannot open /proc/fs/lustre/lov/{FSNAME}-clilov-0/pools/{pool}")
    for index in POOLS[pool]:
        print(f"{FSNAME}-OST{index:04x}_UUID")


def main():
    commands = {"setstripe": setstripe, "migrate": migrate, "getstripe": getstripe, "df": df, "pool_list": pool_list}
    if sys.argv[1:] == ["--version"]:
        print("lfs " + ".".join(map(str, VERSION)))
        return
    fake.count_the_call(errno.EIO, "lfs: Input/output error (5)")
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        fake.end(2, f"lfs: '{' '.join(sys.argv[1:2])}' is not a valid command. See 'lfs --list-commands'.")
    try:
        commands[sys.argv[1]](sys.argv[2:])
    except OSError as error:
        failed(error.errno, f"lfs {sys.argv[1]}: unable to open '{error.filename}'")
