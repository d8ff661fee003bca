/* The requests of an IOR-like run: who accesses what, in which order. Pure: depends on its arguments only. */
#ifndef WORKLOADS_IOR_STREAM_H
#define WORKLOADS_IOR_STREAM_H

#include "common.h"

enum access {
    ACCESS_SEQUENTIAL, /* a rank's blocks, front to back */
    ACCESS_RANDOM,     /* a seeded permutation: every transfer of the file once, by some rank (IOR -z) */
    ACCESS_STRIDED,    /* transfers dealt out to the ranks in turn; shared file only */
};

/* A shared file has `segments` segments; each has one block per rank, in rank order; a block has
 * block / transfer transfers. With a file per process each file has `segments` blocks. */
struct stream {
    enum access access;
    int file_per_process;
    uint64_t transfer, block, segments; /* bytes, bytes, number; block is a multiple of transfer */
    uint64_t seed; /* of the random order */
};

/* Requests per rank. */
uint64_t stream_count(const struct stream *stream);

/* Writes the stream_count() requests of `rank` of `ranks` to out. */
void stream_requests(const struct stream *stream, int rank, int ranks, struct request *out);

#endif
