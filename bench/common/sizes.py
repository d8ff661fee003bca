"""Sizes in bytes in their usual notation."""

import re

KIB, MIB = 1 << 10, 1 << 20


def human(size):
    """65536 -> 64K."""
    for unit, factor in (("G", 1 << 30), ("M", MIB), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_size(text):
    """64K -> 65536."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match:
        raise ValueError(f"'{text}' is no size")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
