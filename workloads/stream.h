/* The requests of one rank: the interface between the programs, which compute their benchmark's
 * offsets, and the code that makes, prints and verifies the requests. */
#ifndef WORKLOADS_STREAM_H
#define WORKLOADS_STREAM_H

#include <mpi.h>
#include <stdint.h>

/* One access of one rank. */
struct request {
    uint64_t offset; /* offset in its file, bytes */
    uint64_t len;    /* bytes */
    uint64_t place;  /* offset of its data in the memory that holds all of a step's data, bytes */
};

/* The requests of one rank. A run has one or several steps; each has the same number of
 * requests. */
struct stream {
    struct request (*at)(const struct stream *stream, uint64_t step, uint64_t i); /* pure; i < count */
    uint64_t count;    /* requests per step */
    uint64_t bytes;    /* bytes per step: the sum of its requests */
    uint64_t memory;   /* bytes of memory that hold a step's data, including gaps */
    uint64_t largest;  /* bytes of the largest request */
    const void *shape; /* the program's parameters, for at() */
    int rank, ranks;   /* the rank that makes the requests; number of ranks */
    uint64_t *list;    /* for at() if it needs a list; freed by stream_free */
};

void stream_free(struct stream *stream);

/* All of a step's requests in MPI's terms when one call makes them. A step continues in the file's
 * view where the previous one ended. */
struct view {
    MPI_Offset start;     /* offset of the view in the file, bytes */
    MPI_Datatype element; /* the view's etype */
    MPI_Datatype file;    /* the view's pattern */
    MPI_Datatype memory;  /* memory_count of these make a step */
    int memory_count;
    MPI_Offset step_elements; /* elements of a step */
};

/* Commits the types (named types are left alone). */
void view_commit(struct view *view);

void view_free(struct view *view);

/* A view that lists the requests of step 0; their data must be contiguous in memory. */
struct view view_of_requests(const struct stream *stream);

#endif
