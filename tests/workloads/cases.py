"""The parameters with which the programs are tested: flags, which `stripewise synth` shares, and
the expected requests."""

import random
from dataclasses import dataclass

from conftest import LONG

from . import derive


@dataclass(frozen=True)
class Case:
    """A program and its flags, which are also those of `stripewise synth`. `by_piece` are the
    additional flags for one call per request."""

    program: str
    ranks: int
    flags: tuple
    expected: dict  # one call per request, in one direction
    by_piece: tuple  # additional flags of the program
    in_synth: bool = True  # `stripewise synth` supports this
    calls: int = 1  # number of calls through a view, in one direction

    def __str__(self):
        return f"{self.program} {self.ranks} {' '.join(map(str, self.flags))}"


def hpio(ranks, regions, size, spacing, interleaved):
    """A case of HPIO."""
    flags = ("--regions", regions, "--region-size", size, "--spacing", spacing)
    flags += ("--interleaved",) if interleaved else ()
    expected = derive.hpio(ranks, regions, size, spacing, interleaved)
    return Case("hpio", ranks, flags, expected, ("--call", "region"))


def tile(tiles, elements, size, overlap=(0, 0), header=0):
    """A case of mpi-tile-io."""
    flags = ("--tiles-x", tiles[0], "--tiles-y", tiles[1], "--elements-x", elements[0], "--elements-y", elements[1])
    flags += ("--element-size", size, "--overlap-x", overlap[0], "--overlap-y", overlap[1], "--header", header)
    expected = derive.tile(tiles, elements, size, overlap, header)
    return Case("tile", tiles[0] * tiles[1], flags, expected, ("--call", "row"))


CLASSES = {"S": (12, 12), "W": (24, 40)}  # points in each direction, dumps


def btio(ranks, name):
    """A case of BT-IO by class."""
    points, dumps = CLASSES[name]
    flags = ("--class", name)
    return Case("btio", ranks, flags, derive.btio(ranks, points, dumps), ("--subtype", "simple"), calls=dumps)


def btio_grid(ranks, points, steps, interval=5):
    """A case of BT-IO that has no class."""
    flags = ("--grid", points, "--steps", steps, "--interval", interval)
    dumps = sum(step % interval == 0 or step == steps for step in range(1, steps + 1))
    return Case("btio", ranks, flags, derive.btio(ranks, points, dumps), ("--subtype", "simple"), False, dumps)


def by_chance(count, seed):
    """Odd parameters: overlaps that leave one element, sizes that divide nothing."""
    draw = random.Random(seed).randint
    for _ in range(count):
        yield hpio(draw(1, 7), draw(1, 9), draw(1, 5000), draw(0, 1) * draw(0, 700), draw(0, 1) == 1)
        elements = (draw(1, 9), draw(1, 9))
        overlap = (draw(0, elements[0] - 1), draw(0, elements[1] - 1))
        yield tile((draw(1, 4), draw(1, 3)), elements, draw(1, 300), overlap, draw(0, 1) * draw(0, 5000))
        q = draw(1, 4)
        yield btio_grid(q * q, draw(3 * q, 3 * q + 7), draw(1, 17), draw(1, 6))


def cases(count):
    """The corner cases, and `count` random cases of each program."""
    yield hpio(2, 2, 1, 3, True)  # the picture in the --help of HPIO
    yield hpio(32, 64, 65536, 0, True)
    yield hpio(1, 5, 100, 0, False)  # a single request through a view
    yield hpio(3, 4, 1000, 24, False)
    yield tile((1, 3), (4, 2), 8)  # a tile as wide as the array
    yield tile((10, 10), (8, 8), 32768)
    yield tile((2, 3), (5, 4), 3, (4, 3), 13)
    yield btio(1, "S")
    yield btio(4, "S")  # the last row of a cell touches the first of the next one
    yield btio(16, "S")
    yield btio_grid(9, 11, 7)
    yield btio_grid(25, 17, 1)
    if LONG:
        yield btio(25, "W")  # 24 points in 5 cells
    yield from by_chance(count, 4)
