/* The requests of an IOR-like run, by rank and in order. Pure: depends on its arguments only. */
#ifndef WORKLOADS_IOR_STREAM_H
#define WORKLOADS_IOR_STREAM_H

#include "common.h"
#include "stream.h"

enum access {
    ACCESS_SEQUENTIAL, /* a rank's blocks, front to back */
    ACCESS_RANDOM,     /* in random order: see enum within */
    ACCESS_STRIDED,    /* transfers go to the ranks in turn; shared file only */
};

/* The range of a rank's random transfers. */
enum within {
    WITHIN_EVEN,  /* a seeded permutation of all transfers of the file, of which every rank gets equally many */
    WITHIN_FILE,  /* IOR -z: random owners of a segment's transfers; ranks get different numbers */
    WITHIN_BLOCK, /* the rank's own block */
};

/* A shared file has `segments` segments; each has one block per rank, in rank order; a block has
 * block / transfer transfers. With a file per process each file has `segments` blocks. */
struct ior_shape {
    enum access access;
    enum within within;
    int file_per_process;
    uint64_t transfer, block, segments; /* bytes, bytes, number; block is a multiple of transfer */
    uint64_t seed; /* seed of the random order */
};

/* The requests of a rank for a struct ior_shape. Its list must be freed (stream_free). */
struct stream ior_stream(const void *shape, int rank, int ranks);

#endif
