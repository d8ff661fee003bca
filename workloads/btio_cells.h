/* The diagonal multi-partitioning of BT in the NAS Parallel Benchmarks (NPB 3.3 and 3.4,
 * BT/make_set.f90; Wijngaart et al., NAS report 02-007): q * q ranks cut a cube of points into q
 * * q * q cells; each has q of them, one in each layer in z, from layer to layer one further in
 * x and one back in y (cyclically). Pure. */
#ifndef WORKLOADS_BTIO_CELLS_H
#define WORKLOADS_BTIO_CELLS_H

#include <stdint.h>

/* First point and number of points in x, y, z. */
struct cell {
    uint64_t low[3], size[3];
};

/* The whole number q with q * q = ranks, or 0 if there is none. */
int square_root(int ranks);

/* The cell of a rank of q * q in a layer from 0 to q - 1, of a cube with `points` points in each
 * direction. Where q does not divide the points, the first cells in a direction have one more. */
struct cell cell_of(uint64_t points, int q, int rank, int layer);

#endif
