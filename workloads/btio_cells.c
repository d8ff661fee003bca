#include "btio_cells.h"

int square_root(int ranks)
{
    int q = 0;
    while ((int64_t)(q + 1) * (q + 1) <= ranks)
        q++;
    return q * q == ranks ? q : 0;
}

struct cell cell_of(uint64_t points, int q, int rank, int layer)
{
    int place[3] = {(rank % q + layer) % q, (rank / q + q - layer) % q, layer};
    uint64_t each = points / (uint64_t)q, excess = points % (uint64_t)q;
    struct cell cell;
    for (int axis = 0; axis < 3; axis++) {
        uint64_t before = (uint64_t)place[axis];
        cell.size[axis] = each + (before < excess ? 1 : 0);
        cell.low[axis] = before * each + (before < excess ? before : excess);
    }
    return cell;
}
