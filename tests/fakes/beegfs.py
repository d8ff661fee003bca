"""A strict fake of BeeGFS 8's `beegfs`: entry info, entry set, entry create file, pool list, target
list.

`fake.conf`: `mount DIR`, `target NUMBER POOL BYTES_FREE`, `pool NUMBER NAME` (the first is the
default pool), `may set` (sysAllowUserSetPattern).

Sources, all of ThinkParQ/beegfs-go: ctl/internal/cmd/entry/{set,info,create,flags}.go,
ctl/pkg/ctl/entry/{set,create}.go, ctl/internal/cmd/pool/list.go, ctl/internal/cmd/target/list.go,
ctl/internal/cmd/root.go, ctl/internal/config/config.go, ctl/internal/cmdfmt/json.go,
common/beegfs/{entity,entry}.go. Errors are cobra's `Error: ...` with status 1.
"""

import errno
import os
import sys

import fake

CHUNK_MIN, CHUNK_MAX = 64 << 10, 2**32 - 1  # minChunksize, maxChunksize in entry/flags.go
PREFIXES = {"": 1, "k": 10**3, "kB": 10**3, "M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9,
            "Ki": 1 << 10, "KiB": 1 << 10, "Mi": 1 << 20, "MiB": 1 << 20, "Gi": 1 << 30, "GiB": 1 << 30}  # ctl/internal/util

CONF = fake.configuration()
MOUNT = os.path.realpath(CONF["mount"][0][0])
POOLS = {words[1]: int(words[0]) for words in CONF["pool"]}
TARGETS = {int(words[0]): (words[1], int(words[2])) for words in CONF["target"]}
DEFAULT_POOL = CONF["pool"][0][1]
# (chunk, number of targets, pool, targets)
ROOT_PATTERN = f"524288,4,{DEFAULT_POOL},"


def failed(message):
    fake.end(1, f"Error: {message}")


def inside(path):
    """The path within the file system."""
    real = os.path.realpath(path)
    if real != MOUNT and not real.startswith(MOUNT + "/"):
        failed(f"unable to initialize file system client from the specified path: {path} is not in a BeeGFS mount")
    if not os.path.lexists(path):
        failed(f"stat {path}: no such file or directory")
    return real


def of_pool(pool):
    return [target for target, (its, _) in TARGETS.items() if its == pool]


def inherited(text, path):
    """The layout of a new file or directory: the pattern, and for a file targets of its pool."""
    chunk, count, pool, _ = (text or ROOT_PATTERN).split(",")
    if os.path.isdir(path):
        return f"{chunk},{count},{pool},"
    targets = of_pool(pool)
    first = os.stat(path).st_ino
    chosen = [targets[(first + k) % len(targets)] for k in range(min(int(count), len(targets)))]
    return f"{chunk},{count},{pool},{':'.join(map(str, chosen))}"


def settle(path):
    fake.settle(path, MOUNT, inherited, directories=True)


def chunk_size(text):
    """Parses a size like chunksizeFlag.Set and ParseIntFromStr."""
    flag = f'invalid argument "{text}" for "--chunk-size" flag'
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    prefix = text[len(number) :]
    if not number.replace(".", "", 1).isdigit() or prefix not in PREFIXES:
        failed(f"{flag}: bytes must be specified as a whole number, did you mean to specify an SI or IEC prefix besides B?")
    size = int(float(number) * PREFIXES[prefix])
    if not CHUNK_MIN <= size <= CHUNK_MAX:
        failed(f"{flag}: parsed chunksize ({size} bytes) is out of bounds (must be between {CHUNK_MIN} and {CHUNK_MAX} bytes)")
    if size & (size - 1):
        failed(f"{flag}: chunksize is not a power of 2: {size}")
    return size


def flags(arguments, known):
    """{flag: value} and the other arguments; flags are --name=value or --name value."""
    given, others, place = {}, [], 0
    while place < len(arguments):
        name, equals, value = arguments[place].partition("=")
        if not name.startswith("--"):
            others.append(arguments[place])
        elif name not in known:
            failed(f"unknown flag: {name}")
        elif known[name] and not equals:
            place += 1
            if place >= len(arguments):
                failed(f"flag needs an argument: {name}")
            given[name] = arguments[place]
        else:
            given[name] = value
        place += 1
    return given, others


GLOBAL = {"--output": True, "--raw": False}
PATTERN = {"--chunk-size": True, "--num-targets": True, "--pool": True}


def pattern(given):
    """The values of the flags that set a pattern."""
    values = {}
    if "--chunk-size" in given:
        values["chunk"] = chunk_size(given["--chunk-size"])
    if "--num-targets" in given:
        if not given["--num-targets"].isdigit() or int(given["--num-targets"]) >= 2**32:
            failed(f'invalid argument "{given["--num-targets"]}" for "--num-targets" flag: strconv.ParseUint: parsing')
        values["count"] = int(given["--num-targets"])
    if "--pool" in given:
        values["pool"] = given["--pool"]
    return values


def pool_called(name):
    """A pool by alias or number."""
    by_number = {str(number): alias for alias, number in POOLS.items()}
    return by_number.get(name.removeprefix("s:"), name if name in POOLS else None)


def entry_set(arguments):
    given, paths = flags(arguments, GLOBAL | PATTERN | {"--force": False})
    if not paths:
        failed("missing <path> argument. Usage: set <path> [<path>] ...")
    values = pattern(given)
    # setAndValidateEUID
    if os.geteuid() != 0 and "pool" in values:
        failed("only root can configure pools")
    for path in paths:
        real = inside(path)
        settle(real)
        if "pool" in values:
            pool = pool_called(values["pool"])
            if pool is None:
                failed(f"unable to retrieve the specified storage pool {values['pool']}: no such entity found in the mapping")
            if not of_pool(pool) and "--force" not in given:
                failed(f"storage pool with ID {POOLS[pool]} does not contain any targets (use force to override)")
            values["pool"] = pool
        # Entries that are not directories are skipped silently.
        if not os.path.isdir(path):
            continue
        if os.geteuid() != 0 and (["set"] not in CONF.get("may", []) or os.stat(path).st_uid != os.geteuid()):
            failed(f"server returned an error performing the requested updates for path {path}: Permission denied")
        if not fake.ignores_hints():
            chunk, count, pool, _ = (fake.nearest(real, MOUNT) or ROOT_PATTERN).split(",")
            fake.keep(real, f"{values.get('chunk', chunk)},{values.get('count', count)},{values.get('pool', pool)},")
    print(f"Summary: processed {len(paths)} entries | configuration updates: ...", file=sys.stderr)


def entry_create(arguments):
    given, paths = flags(arguments, GLOBAL | PATTERN | {"--force": False, "--targets": True, "--permissions": True})
    if not paths:
        failed("missing <path> argument. Usage: file <path> [<path>] ...")
    if os.geteuid() != 0:
        failed("only root can use this command")
    if "--pool" in given and "--targets" in given:
        group = "[pool targets buddy-groups]"
        failed(f"if any flags in the group {group} are set none of the others can be; [pool targets] were all set")
    values = pattern(given)
    for path in paths:
        parent = inside(os.path.dirname(os.path.abspath(path)))
        settle(parent)
        chunk, count, pool, _ = (fake.nearest(parent, MOUNT) or ROOT_PATTERN).split(",")
        if "pool" in values:
            pool = pool_called(values["pool"])
            if pool is None:
                failed(f"invalid configuration for path {path}: error looking up the specified pool {values['pool']}")
        chosen = []
        for text in filter(None, given.get("--targets", "").split(",")):
            target = int(text.removeprefix("s:")) if text.removeprefix("s:").isdigit() else None
            if target not in TARGETS:
                failed(f"invalid configuration for path {path}: unable to look up specified target: {text}")
            if TARGETS[target][0] != pool and "--force" not in given:
                wrong = f"specified target s:{target} is not in the pool {pool} assigned to the new entry (use force to override)"
                failed(f"invalid configuration for path {path}: {wrong}")
            if target in chosen:
                failed(f"invalid configuration for path {path}: the same target was specified multiple times: {target}")
            chosen.append(target)
        count = values.get("count", int(count))
        if chosen and values.get("count", 0) > len(chosen):
            wrong = "requested number of targets is greater than the number of targets that were specified"
            failed(f"invalid configuration for path {path}: {wrong}")
        if os.path.lexists(path):
            print(f"[{{\"entry_id\":\"n/a\",\"name\":\"{path}\",\"status\":\"Entry exists already\",\"type\":\"n/a\"}}]")
            failed("unable to create one or more entries (see individual results for details)")
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.chmod(path, int(given.get("--permissions", "0644"), 8))
        chunk = values.get("chunk", chunk)
        if chosen:
            # checkAndGetTargets puts them into a map, which loses their order.
            fake.keep(path, f"{chunk},{count},{pool},{':'.join(map(str, reversed(chosen)))}")
        else:
            fake.keep(path, inherited(f"{chunk},{count},{pool},", path))


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def printed(rows):
    """Prints like cmdfmt/json.go: objects with sorted keys, as in Go."""
    objects = ["{" + ",".join(f"{quoted(key)}:{value}" for key, value in sorted(row.items())) + "}" for row in rows]
    print("[" + ",".join(objects) + "]\n")


def entry_info(arguments):
    _, paths = flags(arguments, GLOBAL)
    if not paths:
        failed("missing <path> argument. Usage: info <path> [<path>] ...")
    rows = []
    for path in paths:
        real = inside(path)
        settle(real)
        is_dir = os.path.isdir(path)
        text = (fake.nearest(real, MOUNT) if is_dir else fake.kept(real)) or ROOT_PATTERN
        chunk, count, pool, targets = text.split(",")
        targets = ",".join(f"s:{target}" for target in targets.split(":") if target)
        rows.append({
            "path": quoted(real.removeprefix(MOUNT) or "/"), "entry_id": quoted("0-0-1"), "type": "1" if is_dir else "2",
            "meta_node": quoted("m:1"), "meta_mirror": quoted("(unmirrored)"), "remote_targets": quoted("(none)"),
            "storage_pool": quoted(f"{pool} ({POOLS[pool]})" if is_dir else "(file)"),
            "stripe_pattern": quoted(f"RAID0 ({count}x{chunk})"),
            "storage_targets": quoted("(directory)" if is_dir else targets),
            "storage_mirrors": quoted("(directory)" if is_dir else "(unmirrored)"),
        })
    printed(rows)


def identifier(number, kind):
    return f'{{"num_id":{number},"node_type":{kind}}}'


def pool_list(arguments):
    flags(arguments, GLOBAL)
    printed([{"id": identifier(number, 3), "alias": quoted(name), "mirrors": '""',
              "targets": quoted(",".join(f"s:{target}" for target in of_pool(name)))} for name, number in POOLS.items()])


def target_list(arguments):
    given, _ = flags(arguments, GLOBAL | {"--capacity": False})
    rows = [{"id": identifier(1, 2), "alias": quoted("meta_1"), "on_node": quoted("meta"), "pool": quoted("n/a")}]
    for target, (pool, free) in TARGETS.items():
        row = {"id": identifier(target, 3), "alias": quoted(f"target_{target}"), "on_node": quoted("storage"), "pool": quoted(pool)}
        rows.append(row | ({"sfree": quoted(free)} if "--capacity" in given else {}))
    printed(rows)


def main():
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["version"]):
        print("8.0")
        return
    fake.count_the_call(1, "Error: context deadline exceeded")
    commands = {("entry", "set"): entry_set, ("entry", "info"): entry_info}
    commands |= {("pool", "list"): pool_list, ("target", "list"): target_list}
    if arguments[:3] == ["entry", "create", "file"]:
        run, rest = entry_create, arguments[3:]
    else:
        run, rest = commands.get(tuple(arguments[:2])), arguments[2:]
    if run is None:
        failed(f'unknown command "{" ".join(arguments[:2])}" for "beegfs"')
    # Without --output json the tool prints a table, which this fake does not support; set prints
    # nothing.
    if run not in (entry_set, entry_create) and ("json" not in rest and "--output=json" not in rest or "--raw" not in rest):
        failed("the fake prints --output json --raw only")
    try:
        run(rest)
    except OSError as error:
        failed(f"{error.filename}: {os.strerror(error.errno or errno.EIO)}")
