/* The requests of an IOR-like run: who accesses what, in which order. Pure: depends on its arguments only. */
#ifndef WORKLOADS_IOR_STREAM_H
#define WORKLOADS_IOR_STREAM_H

#include "common.h"
#include "stream.h"

enum access {
    ACCESS_SEQUENTIAL, /* a rank's blocks, front to back */
    ACCESS_RANDOM,     /* in an order by chance: see enum within */
    ACCESS_STRIDED,    /* transfers dealt out to the ranks in turn; shared file only */
};

/* Where a rank's random transfers lie. */
enum within {
    WITHIN_EVEN,  /* a seeded permutation of all transfers of the file, of which every rank gets equally many */
    WITHIN_FILE,  /* IOR -z: those of a segment are dealt out by chance, so that ranks get different numbers */
    WITHIN_BLOCK, /* in the rank's own block */
};

/* A shared file has `segments` segments; each has one block per rank, in rank order; a block has
 * block / transfer transfers. With a file per process each file has `segments` blocks. */
struct ior_shape {
    enum access access;
    enum within within;
    int file_per_process;
    uint64_t transfer, block, segments; /* bytes, bytes, number; block is a multiple of transfer */
    uint64_t seed; /* of the random order */
};

/* The requests of a rank of a struct ior_shape; has a list to be freed. */
struct stream ior_stream(const void *shape, int rank, int ranks);

#endif
