"""The benchmarks' requests, derived independently from their documentation, slowly and by other
means than in the programs: {rank: [(offset, length), ...]}, in order, one for each region, row or
transfer; and the bytes at these places.
"""

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


def hpio(ranks, regions, size, spacing=0, interleaved=False):
    """The picture in HPIO's --help: 0___1___0___1 for 2 processes, 2 regions of 1 byte, spacing 3
    (interleaved)."""
    turns = [(i, r) for i in range(regions) for r in range(ranks)]
    if not interleaved:
        turns.sort(key=lambda turn: turn[1])
    found, position = {r: [] for r in range(ranks)}, 0
    for _, rank in turns:
        found[rank].append((position, size))
        position += size + spacing
    return found


def tile(tiles, elements, size, overlap=(0, 0), header=0):
    """mpi-tile-io: the elements of the array that each display of a video wall shows. Arguments are
    (x, y)."""
    firsts = [[i * (elements[a] - overlap[a]) for i in range(tiles[a])] for a in (0, 1)]
    width = firsts[0][-1] + elements[0]
    found = {}
    for y, top in enumerate(firsts[1]):
        for x, left in enumerate(firsts[0]):
            rows = range(top, top + elements[1])
            starts = [header + (row * width + left) * size for row in rows]
            found[x + y * tiles[0]] = [(start, elements[0] * size) for start in starts]
    return found


def bt_cell(points, q, rank, layer):
    """make_set.f90 of NPB, whose coordinates begin at 1: [(first point, points)] in x, y and z."""
    coord = [rank % q, rank // q, 0]
    for c in range(1, layer + 1):
        coord = [(coord[0] + 1) % q, (coord[1] - 1 + q) % q, c]
    size, excess = divmod(points, q)
    cell = []
    for c in (place + 1 for place in coord):
        if c <= excess:
            cell.append(((c - 1) * (size + 1), size + 1))
        else:
            cell.append((excess * (size + 1) + (c - excess - 1) * size, size))
    return cell


def btio(ranks, points, dumps):
    """simple_mpiio.f90's loops: dumps, cells, z, y; iseek counts doubles."""
    q = round(ranks**0.5)
    found = {}
    for rank in range(ranks):
        found[rank] = rows = []
        for dump in range(dumps):
            for layer in range(q):
                (x0, nx), (y0, ny), (z0, nz) = bt_cell(points, q, rank, layer)
                for z in range(nz):
                    for y in range(ny):
                        iseek = (z0 + z) + points * dump
                        iseek = (y0 + y) + points * iseek
                        iseek = 5 * (x0 + points * iseek)
                        rows.append((8 * iseek, 8 * 5 * nx))
    return found


def joined(requests, calls=1):
    """The contiguous pieces that `calls` calls over a file view make of the requests, equally many
    each."""
    result, each = [], len(requests) // calls
    for i, (offset, length) in enumerate(requests):
        if i % each and sum(result[-1]) == offset:
            result[-1] = (result[-1][0], result[-1][1] + length)
        else:
            result.append((offset, length))
    return result


def mix(x):
    """The output function of splitmix64, applied to an array."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def content(size, seed=1, file=0):
    """The first `size` bytes that all the programs would write into a file (0: shared; rank + 1:
    the rank's own)."""
    key = mix(np.array([(seed * GOLDEN + file + 1) & WORD], dtype=np.uint64))
    words = np.arange((size + 7) // 8, dtype=np.uint64) * np.uint64(GOLDEN) + key
    return mix(words).tobytes()[:size]


def covered(requests):
    """The bytes of a file that these requests (by rank) write, as a NumPy mask."""
    everything = [request for own in requests.values() for request in own]
    mask = np.zeros(max(offset + length for offset, length in everything), dtype=bool)
    for offset, length in everything:
        mask[offset : offset + length] = True
    return mask
