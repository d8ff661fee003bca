"""The same layouts in one pool over all OSDs of a class: the file system stripes, and places
objects on OSDs by hash."""

import choice
import grid
from sizes import KIB, MIB

EXPERIMENT = "pools"
# CephFS's stripes are multiples of 64K, so a request below 256K cannot be striped over four OSDs.
SIZES = [256 * KIB, 1 * MIB]


def measure(run, args):
    """Every layout of the cells that are possible on pools, repeatedly."""
    run.bed.write_cluster_of_pools({"hdd": run.bed.capacity_bytes()})
    choice.all_cells(run, EXPERIMENT, [cell for cell in grid.cells(args) if cell.size in SIZES])
