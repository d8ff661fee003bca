"""The flags of `beegfs`, which variables named BEEGFS_* also set.

Sources, of ThinkParQ/beegfs-go 8.4.0 below ctl/internal: config/config.go, cmd/root.go,
cmd/entry/{flags,create}.go, util/parser.go.
"""

import os
import re

from beegfs_entries import MIRRORED, RAID0, VERSION, failed

CHUNK_MIN, CHUNK_MAX = 64 << 10, 2**32 - 1  # entry/flags.go:14-18
# internal/util/parser.go:22-53; K is 1000.
UNITS = {"": 1, "B": 1, **{f"{unit}{b}": 1000**power for unit, power in zip("kKMG", (1, 1, 2, 3)) for b in ("", "B")},
         **{f"{unit}i{b}": 1024**power for unit, power in zip("kKMG", (1, 1, 2, 3)) for b in ("", "B")}}  # fmt: skip


def chunk_size(text):
    """chunksizeFlag.Set, entry/flags.go:42-57, and ParseIntFromStr, util/parser.go:65-107."""
    words = re.fullmatch(r"([\d.]+)([a-zA-Z]*)", text)
    if words is None:
        units = "SI prefix (k, M, G, T, P, E), IEC prefix (ki, Mi, Gi, Ti, Pi, Ei, Ei)"
        raise ValueError(f"invalid size format, must be a number followed by a valid {units}, or no prefix for bytes")
    number, unit = words.groups()
    if unit not in UNITS or ("." in number and unit in ("", "B")):
        wrong = "bytes must be specified as a whole number, did you mean to specify an SI or IEC prefix besides B?"
        raise ValueError(f"{wrong} (provided input: {text})")
    size = int(float(number) * UNITS[unit])
    if not CHUNK_MIN <= size <= CHUNK_MAX:
        wrong = f"parsed chunksize ({size} bytes) is out of bounds"
        raise ValueError(f"{wrong} (must be between {CHUNK_MIN} bytes and {CHUNK_MAX} bytes)")
    if size & (size - 1):
        raise ValueError(f"chunksize is not a power of 2: {size}")
    return size


def unsigned(text, base=10):
    """strconv.ParseUint of 32 bits; permissions, in octal, are strconv.ParseInt's."""
    call, limit = ("ParseInt", 2**31) if base == 8 else ("ParseUint", 2**32)
    if not re.fullmatch("[0-7]+" if base == 8 else "[0-9]+", text):
        raise ValueError(f'strconv.{call}: parsing "{text}": invalid syntax')
    if int(text, base) >= limit:
        raise ValueError(f'strconv.{call}: parsing "{text}": value out of range')
    return int(text, base)


def entity(text):
    """EntityIdParser of storage entities, common/beegfs/entityparser.go:44-118: a number or an
    alias."""
    text = text.strip()
    number = text.removeprefix("s:").removeprefix("storage:")
    if number.isdigit() and 0 < int(number) < 2**16:
        return int(number)
    if not re.fullmatch("[a-zA-Z][-a-zA-Z0-9_.]*", text):
        raise ValueError(f"invalid alias '{text}': must start with a letter and may only contain letters, digits, '-', '_' and '.'")
    return text


def stripe_pattern(text):
    """stripePatternFlag.Set, entry/flags.go:121-130."""
    if text not in ("raid0", "mirrored"):
        raise ValueError("unsupported stripe pattern (supported patterns: raid0, mirrored)")
    return MIRRORED if text == "mirrored" else RAID0


def boolean(text):
    if text.lower() not in ("true", "false", "t", "f", "1", "0"):
        raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text.lower() in ("true", "t", "1")


def output(text):
    if text not in ("table", "json", "json-pretty", "ndjson"):
        raise ValueError(f'invalid value: "{text}" (allowed: [table json json-pretty ndjson])')
    return text


# config/config.go:21-92; a variable BEEGFS_NAME gives the value of a flag that is not given,
# config/config.go:88-98.
GLOBAL = {"output": (output, "table"), "raw": (boolean, False), "debug": (boolean, False), "page-size": (unsigned, 100),
          "columns": (str, None), "mount": (str, "auto"), "num-workers": (unsigned, 2), "log-level": (unsigned, 0)}  # fmt: skip
PATTERN = {"chunk-size": (chunk_size, None), "num-targets": (unsigned, None), "pool": (entity, None), "pattern": (stripe_pattern, None),
           "force": (boolean, False)}  # fmt: skip
# entry/create.go:53-74.
CREATE = {"targets": (lambda text: [entity(part) for part in text.split(",")], None), "uid": (unsigned, None),
          "gid": (unsigned, None), "permissions": (lambda text: unsigned(text, 8), 0o644)}  # fmt: skip


def setting(name, convert, default):
    """The value of a flag that is not given. viper takes garbage for 0, and lists from words."""
    text = os.environ.get(f"BEEGFS_{name.upper().replace('-', '_')}") if name in GLOBAL else None
    if not text:
        return default
    if name == "columns":
        return text.split()
    try:
        return convert(text)
    except ValueError:
        return 0


def flags(arguments, known):
    """The values of all flags, and the other arguments, as pflag reads them: --name=value or --name
    value; flags that are true or false take no second word."""
    values, others, place = {name: setting(name, *rule) for name, rule in known.items()}, [], 0
    while place < len(arguments):
        word, equals, value = arguments[place].partition("=")
        name = word.removeprefix("--").lower()  # cmd/root.go:87-90
        if not word.startswith("--"):
            others.append(arguments[place])
        elif name not in known:
            failed(f"unknown flag: {word}")
        else:
            if not equals:
                place += known[name][0] is not boolean
                if place >= len(arguments):
                    failed(f"flag needs an argument: {word}")
                value = "true" if known[name][0] is boolean else arguments[place]
            try:
                values[name] = value.split(",") if name == "columns" else known[name][0](value)
            except ValueError as wrong:
                failed(f'invalid argument "{value}" for "--{name}" flag: {wrong}')
        place += 1
    return values, others


def authorized(given, for_root):
    """globalPersistentPreRunE and isCommandAuthorized, cmd/root.go:238-310."""
    if given["num-workers"] < 1:
        failed("the number of workers must be at least 1")
    if os.geteuid() != 0 and for_root:
        failed("only root can use this command")
    if os.geteuid() != 0 and given["mount"] == "none":
        failed("only root can interact with an unmounted file system")


def missing_path(use):
    """entry/*.go, and attachCustomArgsErr, cmd/root.go:175-182 (8.0.0: 155-162)."""
    failed(f"missing <path> argument. Usage: {use}\nUsage: {use}{' --help' if VERSION >= (8, 1) else ''}")
