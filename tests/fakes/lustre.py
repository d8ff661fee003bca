"""A strict fake of Lustre's `lfs`: setstripe, getstripe -d [--yaml], df, pool_list.

`fake.conf`: `mount DIR`, `fsname NAME`, `ost INDEX KIB_FREE [STATE]`, `pool NAME INDEX...`, `full
INDEX...`.

Sources: lustre/utils/lfs.c (lfs_setstripe_internal, parse_targets, lfs_poollist),
lustre/utils/liblustreapi.c (llapi_stripe_param_verify, llapi_file_open_param, llapi_get_poollist,
llapi_get_poolmembers, lov_dump_user_lmm_header, lov_dump_user_lmm_v1v3, lov_dump_comp_v1),
lustre/lod/lod_lov.c (lod_verify_striping), lustre/lod/lod_qos.c (lod_alloc_ost_list),
lustre/doc/lfs-setstripe.1, lfs-df.1, libcfs/include/libcfs/util/parser.h (CMD_HELP), all of
lustre/lustre-release, 2.12 to 2.15.
"""

import errno
import os
import sys

import fake

CMD_HELP = 4  # parser.h; lfs's main returns it
UNIT = 64 << 10  # LOV_MIN_STRIPE_SIZE
STRIPES_MAX = 2000  # LOV_MAX_STRIPE_COUNT
POOL_NAME_MAX = 15  # LOV_MAXPOOLNAME
EOF = 2**64 - 1  # LUSTRE_EOF

CONF = fake.configuration()
MOUNT = os.path.realpath(CONF["mount"][0][0])
FSNAME = CONF["fsname"][0][0]
OSTS = {int(words[0]): (int(words[1]), "".join(words[2:])) for words in CONF["ost"]}
POOLS = {words[0]: [int(index) for index in words[1:]] for words in CONF.get("pool", [])}
FULL = {int(index) for words in CONF.get("full", []) for index in words}
DEFAULT = {"end": EOF, "size": 1 << 20, "count": 1, "pool": "", "first": -1, "osts": [], "over": False}


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


def dumps(components):
    """Serializes a layout to one line."""
    fields = ("end", "size", "count", "pool", "first")
    line = lambda c: ",".join(str(c[f]) for f in fields) + f",{int(c['over'])}," + ":".join(map(str, c["osts"]))
    return ";".join(map(line, components))


def loads(text):
    """Parses the output of dumps."""
    components = []
    for line in text.split(";"):
        end, size, count, pool, first, over, osts = line.split(",")
        osts = [int(ost) for ost in osts.split(":") if ost]
        components.append({"end": int(end), "size": int(size), "count": int(count), "pool": pool, "first": int(first),
                           "over": over == "1", "osts": osts})
    return components


def allocate(components, path):
    """Gives the first component its objects; later components get theirs when they are written."""
    for number, component in enumerate(components):
        if number > 0:
            continue
        candidates = POOLS.get(component["pool"], list(OSTS)) if component["pool"] else list(OSTS)
        if not component["osts"]:
            count = len(candidates) if component["count"] == -1 else component["count"]
            # Without overstriping a component has at most one stripe per OST.
            count = min(count, len(candidates))
            start = candidates.index(component["first"]) if component["first"] in candidates else os.stat(path).st_ino
            component["osts"] = [candidates[(start + k) % len(candidates)] for k in range(count)]
            component["count"] = count
        component["objects"] = True
        if FULL & set(component["osts"]):
            return False
    return True


def inherited(text, path):
    """The layout of a new file."""
    components = loads(text) if text else [dict(DEFAULT)]
    allocate(components, path)
    return dumps(components)


def parse_targets(text, found):
    """Parses `0,2-4,0x5`; None if it is invalid."""
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            first = int(first, 0)
            last = int(last, 0) if dash else first
        except ValueError:
            return None
        if first < 0 or last < first:
            return None
        found.extend(range(first, last + 1))
    return found


def check(component, several):
    """Checks like llapi_stripe_param_verify, and for components like llapi_layout_sanity and
    lod_verify_striping."""
    pool, count, osts = component["pool"], component["count"], component["osts"]
    if component["size"] >= 1 << 32:
        failed(errno.EINVAL, f"error: stripe size '{component['size']}' over 4GB limit")
    if osts and component.pop("counted", False) and count != len(osts):
        usage(f"lfs setstripe: stripe count {count} doesn't match the number of OSTs: {len(osts)}")
    if osts:
        component["count"] = len(osts)
    if component["count"] > STRIPES_MAX:
        failed(errno.EINVAL, f"Invalid stripe count {component['count']}\n")
    if pool:
        if len(pool) > POOL_NAME_MAX:
            usage(f"error: setstripe: pool name '{pool}' is too long (max is {POOL_NAME_MAX} characters)")
        if pool not in POOLS or not POOLS[pool]:
            what = "has no OSTs" if pool in POOLS else "does not exist"
            failed(errno.EINVAL, f"pool '{FSNAME}.{pool}' {what}")
    for index in osts:
        if index not in OSTS or (pool and index not in POOLS[pool]):
            where = "pool" if pool else "system"
            failed(errno.ENODEV, f"llapi_layout_search_ost: cannot find OST {FSNAME}-OST{index:04x}_UUID in {where}")
    if several and component["end"] != EOF and component["end"] % component["size"]:
        # "stripe size isn't aligned"
        failed(errno.EINVAL, "lfs setstripe: cannot create composite file")


def options(arguments):
    """The components described by the options, whether to delete, and the files."""
    components, delete = [], False
    now, started = dict(DEFAULT, osts=[], end=0), False
    place = 0

    def value():
        nonlocal place
        place += 1
        if place >= len(arguments):
            usage(f"lfs setstripe: option requires an argument -- '{arguments[place - 1]}'")
        return arguments[place]

    while place < len(arguments) and arguments[place].startswith("-"):
        option = arguments[place]
        if option == "-E":
            if now["end"]:
                components.append(now)
                # Later components inherit the options of the previous one, except its OSTs.
                now = dict(now, osts=[], first=-1, counted=False)
            text = value()
            now["end"] = EOF if text in ("-1", "eof", "EOF") else fake.size(text)
            if now["end"] is None or (now["end"] != EOF and now["end"] % UNIT):
                usage(f"lfs setstripe setstripe: invalid component end '{text}'")
            if components and now["end"] <= components[-1]["end"]:
                usage("lfs setstripe: invalid layout")
        elif option == "-S":
            text = value()
            now["size"] = fake.size(text)
            if now["size"] is not None and now["size"] < 4096:
                now["size"] *= 1024
            if now["size"] is None or now["size"] % UNIT:
                usage(f"lfs setstripe setstripe: invalid stripe size '{text}'")
        elif option in ("-c", "-C"):
            text = value()
            if not text.lstrip("-").isdigit() or not -1 <= int(text) <= STRIPES_MAX:
                usage(f"lfs setstripe setstripe: invalid stripe count '{text}'")
            now.update(count=int(text), counted=True, over=option == "-C")
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
            now["pool"] = "" if text in ("", "none") else text
        elif option == "-d":
            delete = True
        else:
            usage(f"lfs setstripe: unrecognized option '{option}'")
        started = started or option != "-d"
        place += 1
    if delete and started:
        usage("lfs setstripe setstripe: option -d is mutually exclusive with -s, -c, -o, -p, -I, -F and -E options")
    if now["end"] == 0:
        now["end"] = EOF
    return components + [now], delete, arguments[place:]


def setstripe(arguments):
    components, delete, paths = options(arguments)
    if not paths:
        usage("lfs setstripe setstripe: FILE must be specified")
    for path in paths:
        real = on_lustre(path)
        for component in components:
            check(component, len(components) > 1)
        fake.settle(real, MOUNT, inherited)
        is_dir = os.path.isdir(path)
        if is_dir and delete:
            fake.forget(real)
            continue
        if is_dir:
            if not fake.ignores_hints():
                fake.keep(real, dumps(components))
            continue
        if delete:
            failed(errno.ENOTDIR, f"unable to open '{path}'")
        if os.path.lexists(path):
            # The file has objects already, whether or not it was written.
            fake.end(errno.EEXIST, f"setstripe error for '{path}': stripe already set")
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644))
        if fake.ignores_hints():
            fake.settle(real, MOUNT, inherited)
        elif allocate(components, real):
            fake.keep(real, dumps(components))
        else:
            os.unlink(path)
            failed(errno.ENOSPC, f"setstripe error for '{path}'")


def dump(component, is_dir, indent, chosen):
    """Prints like lov_dump_user_lmm_header and lov_dump_user_lmm_v1v3 with --yaml."""
    space, prefix = "      " if indent else "", "" if is_dir else "lmm_"
    pattern = "raid0,overstriped" if component["over"] else "raid0"
    first = component["osts"][0] if component["osts"] and (chosen or is_dir) else component["first"]
    print(f"{space}{prefix}stripe_count:  {component['count']}")
    print(f"{space}{prefix}stripe_size:   {component['size']}")
    print(f"{space}{prefix}pattern:       {pattern}")
    if not is_dir:
        print(f"{space}{prefix}layout_gen:    0")
    print(f"{space}{prefix}stripe_offset: {first}")
    if component["pool"]:
        print(f"{space}{prefix}pool:          {component['pool']}")
    if chosen and not is_dir:
        print("      lmm_objects:" if indent else "lmm_objects:")
        for number, index in enumerate(component["osts"]):
            print(f"      - l_ost_idx: {index}\n        l_fid:     0x1000{index:x}0000:0x{number + 2:x}:0x0")
    print()


def getstripe(arguments):
    paths = [argument for argument in arguments if not argument.startswith("-")]
    unknown = [a for a in arguments if a.startswith("-") and a not in ("-d", "--directory", "-y", "--yaml", "-R", "--raw")]
    if unknown or not paths:
        usage(f"getstripe: unrecognized option '{unknown[0]}'" if unknown else "getstripe: missing filename")
    for path in paths:
        real = on_lustre(path)
        if not os.path.exists(path):
            failed(errno.ENOENT, f"lfs getstripe: cannot open '{path}'")
        fake.settle(real, MOUNT, inherited)
        is_dir = os.path.isdir(path)
        text = fake.nearest(real, MOUNT) if is_dir else fake.kept(real)
        components = loads(text) if text else [dict(DEFAULT)]
        if len(components) == 1 and components[0]["end"] == EOF:
            dump(components[0], is_dir, False, True)
            continue
        print(f"  lcm_layout_gen:    {0 if is_dir else len(components)}\n  lcm_mirror_count:  1")
        print(f"  lcm_entry_count:   {len(components)}")
        start = 0
        for number, component in enumerate(components):
            chosen = number == 0 and not is_dir
            name = "N/A" if is_dir else number + 1
            end = "EOF" if component["end"] == EOF else component["end"]
            print(f"  component{number}:\n    lcme_id:             {name}\n    lcme_mirror_id:      {'N/A' if is_dir else 0}")
            print(f"    lcme_flags:          {'init' if chosen else 0}\n    lcme_extent.e_start: {start}")
            print(f"    lcme_extent.e_end:   {end}\n    sub_layout:")
            dump(component, is_dir, True, chosen)
            start = component["end"]


def df(arguments):
    for path in arguments:
        on_lustre(path)
    print(f"{'UUID':<20} {'1K-blocks':>11} {'Used':>11} {'Available':>11} Use% Mounted on")
    rows = [(f"{FSNAME}-MDT0000_UUID", 1 << 20, "", "MDT:0")]
    rows += [(f"{FSNAME}-OST{index:04x}_UUID", free, state, f"OST:{index}") for index, (free, state) in sorted(OSTS.items())]
    for uuid, free, state, name in rows:
        print(f"{uuid:<20} {2 * free:>11} {free:>11} {free:>11}  50% {MOUNT}[{name}] {state}".rstrip())
    total = sum(free for free, _ in OSTS.values())
    print(f"\n{'filesystem_summary:':<20} {2 * total:>11} {total:>11} {total:>11}  50% {MOUNT}\n")


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
    commands = {"setstripe": setstripe, "getstripe": getstripe, "df": df, "pool_list": pool_list}
    if sys.argv[1:] == ["--version"]:
        print("lfs 2.15.0")
        return
    fake.count_the_call(errno.EIO, "lfs: Input/output error (5)")
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        fake.end(2, f"lfs: '{' '.join(sys.argv[1:2])}' is not a valid command. See 'lfs --list-commands'.")
    try:
        commands[sys.argv[1]](sys.argv[2:])
    except OSError as error:
        failed(error.errno, f"lfs {sys.argv[1]}: unable to open '{error.filename}'")
