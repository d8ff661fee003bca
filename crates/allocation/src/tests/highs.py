"""Writes highs.txt: the least values of the relaxed random programs of brute_force.rs, by HiGHS.

pip install scipy && python3 highs.py > highs.txt
"""

import numpy
from scipy.optimize import linprog

PROGRAMS = 300


class Random:
    """SplitMix64, as in the crate `random`."""

    def __init__(self, seed):
        self.state = seed

    def up_to(self, most):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (z ^ (z >> 31)) % (most + 1)


def random_program(seed):
    """The weights of the phases, the rows, and the columns of every region."""
    up_to = Random(seed).up_to
    phases = up_to(2)
    rows = []
    for phase in range(phases):
        rows += [("time", phase)] * (1 + up_to(2))
    rows += [("space", up_to(40) * 1e6) for _ in range(up_to(2))]
    count = 1 + up_to(5)

    def column(is_first):
        seconds = 1e-3 * up_to(1000)
        uses = {}
        for row, (kind, _) in enumerate(rows):
            if kind == "time" and up_to(3) > 0:
                uses[row] = 1e-3 * (1 + up_to(5000))
            elif kind == "space" and not is_first and up_to(3) > 0:
                uses[row] = 1e6 * (1 + up_to(30))
        return seconds, uses

    columns = 5 if count <= 4 else 3
    regions = [[column(i == 0) for i in range(columns)] for _ in range(count)]
    return [1.0 + phase for phase in range(phases)], rows, regions


def least(weights, rows, regions):
    """The least value, seconds. Space counts in millions of bytes."""
    columns = [(region, *column) for region, of in enumerate(regions) for column in of]
    phases = len(columns)
    costs = [seconds for _, seconds, _ in columns] + weights
    most = numpy.zeros((len(rows), len(costs)))
    limits = numpy.zeros(len(rows))
    for row, (kind, value) in enumerate(rows):
        unit = 1e6 if kind == "space" else 1.0
        for variable, (_, _, uses) in enumerate(columns):
            most[row, variable] = uses.get(row, 0.0) / unit
        if kind == "space":
            limits[row] = value / unit
        else:
            most[row, phases + value] = -1.0
    once = numpy.zeros((len(regions), len(costs)))
    for variable, (region, _, _) in enumerate(columns):
        once[region, variable] = 1.0
    most, limits = (most, limits) if rows else (None, None)
    return linprog(costs, most, limits, once, numpy.ones(len(regions)), method="highs").fun


for seed in range(PROGRAMS):
    print(repr(float(least(*random_program(seed)))))
