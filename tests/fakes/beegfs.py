"""A strict fake of BeeGFS 8's `beegfs`: entry info, entry set, entry create file, pool list, target
list, version. STRIPEWISE_FAKE_VERSION (8.0 to 8.4) selects the release that it behaves like.

`fake.conf`: `mount DIR`, `target NUMBER POOL BYTES_FREE` (`-`: the target does not answer), `pool
NUMBER NAME` (the first is the default pool), `buddy NUMBER POOL` (a buddy group), `group NUMBER`
(the group of the installed tool), `may set` (sysAllowUserSetPattern). The file `locked` makes the
inodes of files locked.

Sources, all of ThinkParQ/beegfs-go, with lines of 8.4.0 unless another release is named, below
ctl/internal: cmd/root.go, config/config.go, cmdfmt/{fmt,json}.go, cmd/entry/{set,create,info,
flags}.go, cmd/pool/list.go, cmd/target/list.go, cmd/version.go; ctl/pkg/ctl/entry/{set,create}.go;
ctl/build/postinstall.sh. Guesses: the pattern of an entry that is a link, numbers of inodes, uids.
"""

import json
import os
import re
import sys

import beegfs_entries as fs
import fake
from beegfs_entries import CONF, MOUNT, OPS_ERRORS, POOLS, TARGETS, VERSION, failed
from beegfs_flags import CREATE, GLOBAL, PATTERN, authorized, boolean, flags, missing_path

# The package installs the tool setgid: build/postinstall.sh:5-6 (since 8.0.1), .goreleaser.yml.
GROUP = int(CONF.get("group", [["64002"]])[0][0])
NOT_MAPPED = "requested entity ID not found in the mapper"  # pkg/util/mapper.go:26


def entities(kind, name, number, letter="s"):
    """EntityIdSet.String, common/beegfs/entity.go:201-203."""
    return f"{name}[{letter}:{number}, uid:{kind + number}]"


def pool_called(pool, doing):
    name = next((name for name, number in POOLS.items() if pool in (name, number)), None)
    return name or failed(f"{doing} {spelled(pool)}: {NOT_MAPPED}: {spelled(pool)}")


def spelled(identifier):
    return f"s:{identifier}" if isinstance(identifier, int) else identifier


def entry_set(arguments):
    given, paths = flags(arguments, GLOBAL | PATTERN)
    if not paths:
        missing_path("set <path> [<path>] ...")
    authorized(given, for_root=False)
    # setAndValidateEUID, pkg/ctl/entry/set.go:46-82.
    if os.geteuid() != 0 and given["pool"] is not None:
        failed("only root can configure pools")
    if os.geteuid() != 0 and given["pattern"] is not None:
        failed("only root can configure stripe patterns")
    # runEntrySetCmd, entry/set.go:143-179. Up to 8.1 an error counts as an entry.
    names = {"Chunksize": "chunk-size", "Pool": "pool", "DefaultNumTargets": "num-targets", "StripePattern": "pattern"}
    updates = [f"{name} ({spelled(given[flag]) if flag == 'pool' else given[flag]})" for name, flag in names.items() if given[flag] is not None]
    summaries = [f"Summary: processed {count} entries | configuration updates: {', '.join(updates)}" for count in range(len(paths) + 1)]
    fs.BEFORE_ERRORS[:] = [summaries[VERSION < (8, 2)]]
    mount = fs.client(paths[0], given["mount"])
    for number, path in enumerate(paths):
        fs.BEFORE_ERRORS[:] = [summaries[number + (VERSION < (8, 2))]]
        within = fs.relative(path, mount)
        place = fs.found(mount, within)
        # Entries that are not directories are skipped silently, pkg/ctl/entry/set.go:260-266.
        if os.path.islink(place) or not os.path.isdir(place):
            continue
        chunk, count, pool, kind, _ = fs.pattern_of(place)
        # handleDirectory, pkg/ctl/entry/set.go:149-223. The type stays unless it is given.
        if given["pool"] is not None:
            pool = pool_called(given["pool"], "unable to retrieve the specified storage pool")
            if not fs.of_pool(pool) and not given["force"]:
                failed(f"storage pool with ID {POOLS[pool]} does not contain any targets (use force to override)")
        if given["pattern"] is not None:
            kind = given["pattern"]
            if not fs.of_pool(pool, kind) and not given["force"]:
                what = "buddy groups" if kind == fs.MIRRORED else "targets"
                assigned = f"its assigned storage pool {entities(100, pool, POOLS[pool])} does not contain any {what}"
                failed(f"refusing to set stripe pattern {kind} on path {within} because {assigned} (use force to override)")
        # The server: SetDirPatternMsgEx.cpp and DirInode::setStripePattern of ThinkParQ/beegfs.
        if os.geteuid() != 0 and (["set"] not in CONF.get("may", []) or os.stat(place).st_uid != os.geteuid()):
            failed(f"server returned an error performing the requested updates for path {within}: {OPS_ERRORS['PERM'][1]}")
        if not fake.ignores_hints():
            fake.keep(place, f"{given['chunk-size'] or chunk},{given['num-targets'] or count},{pool},{kind},")
    print(summaries[-1], file=sys.stderr)


def chosen_targets(given, pool, within):
    """checkAndGetTargets, pkg/ctl/entry/create.go:205-253. It puts them into a map, which loses
    their order."""
    chosen, wrong = [], f"invalid configuration for path {within}:"
    for named in given["targets"] or []:
        target = next((number for number in TARGETS if named in (number, f"target_{number}")), None)
        if target is None:
            failed(f"{wrong} unable to look up specified target: {NOT_MAPPED}: {spelled(named)}")
        if TARGETS[target][0] != pool and not given["force"]:
            names = entities(1000, f"target_{target}", target), entities(100, pool, POOLS[pool])
            failed(f"{wrong} specified target {names[0]} is not in the pool {names[1]} assigned to the new entry (use force to override)")
        if target in chosen:
            failed(f"{wrong} the same target was specified multiple times: {target}")
        chosen.append(target)
    return chosen[::-1]


def entry_create(arguments):
    """CreateEntry and generateAndVerifyMakeFileReq, pkg/ctl/entry/create.go:67-184, 313-411."""
    given, paths = flags(arguments, GLOBAL | PATTERN | CREATE)
    if not paths:
        missing_path("file <path> [<path>] ...")
    authorized(given, for_root=True)
    for other in ("pool", "pattern"):
        if given[other] is not None and given["targets"] is not None:
            group = f"[{other} targets buddy-groups]"
            failed(f"if any flags in the group {group} are set none of the others can be; [{other} targets] were all set")
    mount = fs.client(os.path.dirname(os.path.abspath(sorted(paths)[0])), given["mount"])
    rows = [created(given, fs.relative(path, mount), mount) for path in sorted(paths)]
    printed(rows, given, ["name", "status", "entry_id", "type"])
    if any(row["entry_id"] == "n/a" for row in rows):
        failed("unable to create one or more entries (see individual results for details)")


def created(given, within, mount):
    """Creates a file and returns the row for it."""
    parent = fs.found(mount, os.path.dirname(within))
    chunk, count, pool, kind, _ = fs.pattern_of(parent)
    kind = given["pattern"] or kind
    wrong = f"invalid configuration for path {within}:"
    if given["pool"] is not None:
        pool = pool_called(given["pool"], f"{wrong} error looking up the specified pool")
    if given["targets"] and (given["num-targets"] or 0) > len(given["targets"]):
        failed(f"{wrong} requested number of targets is greater than the number of targets that were specified")
    chosen = chosen_targets(given, pool, within)
    if chosen:
        kind = fs.RAID0
    elif not fs.of_pool(pool, kind):
        name, what = entities(100, pool, POOLS[pool]), "buddy groups" if kind == fs.MIRRORED else "targets"
        failed(f"{wrong} the specified pool {name} does not contain any {what} for the configured stripe pattern {kind}")
    place = os.path.join(parent, os.path.basename(within))
    status = "PATHNOTEXISTS" if not os.path.isdir(parent) or os.path.islink(parent) else "EXISTS"
    if status == "PATHNOTEXISTS" or os.path.lexists(place):
        return {"name": within, "status": OPS_ERRORS[status], "entry_id": "n/a", "type": "n/a"}
    os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    # The defaults are the effective user and group: entry/flags.go:303-357. The server
    # (MkFileWithPatternMsgEx.cpp of ThinkParQ/beegfs) takes both as they are, also in a setgid
    # directory, and the umask is 0: pkg/ctl/entry/create.go:90-95.
    os.chown(place, os.geteuid() if given["uid"] is None else given["uid"], GROUP if given["gid"] is None else given["gid"])
    os.chmod(place, given["permissions"] & 0o7777)
    pattern = f"{given['chunk-size'] or chunk},{given['num-targets'] or count},{pool},{kind},"
    fake.keep(place, pattern + ":".join(map(str, chosen)) if chosen else fs.inherited(pattern, place))
    return {"name": within, "status": (0, "Success"), "entry_id": entry_id(place), "type": (2, "file")}


def printed(rows, given, defaults, every=None):
    """Prints like cmdfmt/fmt.go:63-202 and cmdfmt/json.go. A value that is a pair is a number in JSON
    and a text in a table."""
    wanted = given["columns"] if given["columns"] is not None else every if every and given["debug"] else defaults
    kind, page = given["output"], given["page-size"]
    if kind == "table":
        print("  ".join(defaults).upper())
        print("\n".join("  ".join(value[1] if isinstance(value, tuple) else str(value) for value in row.values()) for row in rows))
        return
    shown = [{key: value[0] if isinstance(value, tuple) else value for key, value in row.items()
              if key in wanted or "all" in wanted} for row in rows]  # fmt: skip
    one_a_line = kind == "ndjson" or page == 0
    for group in shown if one_a_line else [shown[first : first + page] for first in range(0, len(shown), page)]:
        # json.Marshal: the keys of maps sorted, those of structs not, and < > & escaped.
        group = dict(sorted(group.items())) if one_a_line else [dict(sorted(row.items())) for row in group]
        text = json.dumps(group, separators=(",", ":"), ensure_ascii=False)
        print(re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", text), end="\n" if one_a_line else "\n\n")


def need_raw_json(given):
    if given["output"] == "table" or not given["raw"]:
        failed("the fake prints --output json --raw only")


def entry_id(place):
    return "root" if place == MOUNT else f"0-{os.lstat(place).st_ino:X}-1"


def entry_info(arguments):
    given, paths = flags(arguments, GLOBAL)
    if not paths:
        missing_path("info <path> [<path>] ...")
    authorized(given, for_root=False)
    need_raw_json(given)
    mount = fs.client(paths[0], given["mount"])
    rows = [entry_row(within, fs.found(mount, within)) for within in (fs.relative(path, mount) for path in paths)]
    # entry/info.go:81-82 in 8.0.0 and 8.1.0, 84-85 in 8.2.0, 85-86 in 8.3.0 and in 8.4.0.
    every = list(rows[0])
    states = [name for name in ("cool_down", "access", "state") if VERSION >= (8, 3) and (VERSION >= (8, 4) or name != "cool_down")]
    printed(rows, given, every[:10] + states, every if VERSION >= (8, 2) else None)


def entry_row(within, place):
    """assembleTableRow: entry/info.go:263-341 in 8.0.0, 277-377 in 8.4.0."""
    kind = (3, "symlink") if os.path.islink(place) else (1, "directory") if os.path.isdir(place) else (2, "file")
    row = {"path": within, "entry_id": entry_id(place), "type": kind, "meta_node": "m:1", "meta_mirror": "(unmirrored)"}
    chunk, count, pool, pattern, targets = fs.pattern_of(place) if kind[0] < 3 else (0, 0, fs.DEFAULT_POOL, "invalid", "")
    targets = ",".join(f"s:{target}" for target in targets.split(":") if target)
    number = POOLS[pool]
    if fs.is_locked(place):
        # Before 8.4 what the server has not filled in is shown as it is.
        chunk, count, pool, number, pattern, targets = 0, 0, "<unknown>", 0, "invalid", ""
    is_dir = kind[0] == 1
    # entry/info.go:280 in 8.0.0 and 8.1.0 shows the pool of files too; 8.2.0, 277-281, does not.
    row["storage_pool"] = f"{pool} ({number})" if is_dir or VERSION < (8, 2) else f"({kind[1]})"
    row["stripe_pattern"] = f"{pattern} ({count}x{chunk})"
    none = "(unavailable)" if VERSION >= (8, 2) else ""
    # entry/info.go:342-346 in 8.4.0.
    shown = ("(directory)",) * 2 if is_dir else ("(mirrored)", targets) if pattern == fs.MIRRORED else (targets or none, "(unmirrored)")
    row |= {"storage_targets": shown[0], "storage_mirrors": shown[1]}
    row |= {"remote_targets": "(none)", "cool_down": "(n/a)", "client_sessions": "(directory)" if is_dir else "Reading: 0, Writing: 0"}
    row |= {"data_state": "(n/a)"} if VERSION < (8, 1) else {"access": "(n/a)", "state": "(n/a)"}
    if fs.is_locked(place) and VERSION >= (8, 4):  # entry/info.go:297-305
        known = ("path", "entry_id", "type", "meta_node", "meta_mirror")
        row |= {name: f"(unavailable: {OPS_ERRORS['INODELOCKED'][1]})" for name in row if name not in known}
    return row


def identifier(number, kind):
    """LegacyId, common/beegfs/entity.go:54-57; 2 is a metadata, 3 a storage entity."""
    return {"num_id": number, "node_type": kind}


def pool_list(arguments):
    """cmd/pool/list.go:34-133."""
    given, others = flags(arguments, GLOBAL)
    authorized(given, for_root=False)
    if others and VERSION >= (8, 1):
        failed(f'unknown command "{others[0]}" for "beegfs pool list"\nUsage: list --help')
    if given["page-size"] == 0:
        failed("--page-size=0 is not supported for this view")
    need_raw_json(given)
    rows = []
    for name, number in POOLS.items():
        ids = [entities(1000, f"target_{target}", target) + "\n" if given["debug"] else f"s:{target}," for target in fs.of_pool(name)]
        rows.append({"uid": 100 + number, "id": identifier(number, 3), "alias": name, "targets": "".join(ids).strip(",")})
        buddies = [entities(2000, f"group_{group}", group) + "\n" if given["debug"] else f"s:{group}," for group in fs.of_pool(name, fs.MIRRORED)]
        rows[-1]["mirrors"] = "".join(buddies).strip(",")
        rows[-1] |= {f"{whose}_{what}_limit": "" for whose in ("user", "group") for what in ("space", "inode")}
    printed(rows, given, ["id", "alias", "targets", "mirrors"])


def target_list(arguments):
    """cmd/target/list.go:54-255. Every user may run it: the annotation in line 33."""
    given, _ = flags(arguments, GLOBAL | {"capacity": (boolean, False)})
    authorized(given, for_root=False)
    need_raw_json(given)
    defaults = ["id", "type", "alias", "node", "storage_pool"]
    capacity = ["cap_pool", "space", "space_used", "space_free", "inodes", "inodes_used", "inodes_free"]
    # A metadata target may have the number of a storage target.
    rows = [target_row(min(TARGETS), 2, "meta", None, 7, given["debug"])]
    rows += [target_row(target, 3, "target", pool, free, given["debug"]) for target, (pool, free) in TARGETS.items()]
    printed(rows, given, defaults + (capacity if given["capacity"] else []), list(rows[0]))


def target_row(number, kind, name, pool, free, debug):
    shown_pool = "(n/a)" if pool is None else entities(100, pool, POOLS[pool]) if debug else f"s:{POOLS[pool]}"
    total = "-" if free is None else str(free + 100)
    used = "-" if free is None else f"100 ({100 - free / (free + 100) * 100:.2f}%)"
    free, letter = "-" if free is None else str(free), "ms"[kind - 2]
    return {"uid": 1000 + number, "id": identifier(number, kind), "type": kind, "alias": f"{name}_{number}",
            "node": entities(0, ("meta", "storage")[kind - 2], 1, letter) if debug else f"{letter}:1", "storage_pool": shown_pool, "reachability": "Offline" if free == "-" else "Online",
            "last_contact": "1s ago", "consistency": "Good", "sync_state": "Healthy", "cap_pool": "Normal",
            "space": total, "space_used": used, "space_free": free, "inodes": total, "inodes_used": used,
            "inodes_free": free}  # fmt: skip


def version(arguments):
    """cmd/version.go:19-40."""
    given, _ = flags(arguments, GLOBAL)
    authorized(given, for_root=False)
    print(f"Version: {'.'.join(map(str, VERSION))}.0 | Commit unknown | Built: unknown\n")
    print("Hint: The version displayed here is that of the command line tool, which may differ from BeeGFS itself.")


COMMANDS = {("entry", "set"): entry_set, ("entry", "info"): entry_info, ("entry", "create", "file"): entry_create,
            ("pool", "list"): pool_list, ("target", "list"): target_list, ("version",): version}  # fmt: skip


def main():
    fake.count_the_call(1, "Error: context deadline exceeded")
    for length in (3, 2, 1):
        run = COMMANDS.get(tuple(sys.argv[1 : length + 1]))
        if run is not None:
            break
    else:
        first = (sys.argv[1:] or [""])[0]
        if first.startswith("--"):
            failed(f"unknown flag: {first}")
        if any(command[0] == first for command in COMMANDS):
            fake.end(0)  # cobra prints the help of a group of commands, whatever follows its name
        failed(f'unknown command "{first}" for "beegfs"')
    try:
        run(sys.argv[length + 1 :])
    except OSError as error:
        failed(f"{error.filename}: {os.strerror(error.errno or 5)}")
