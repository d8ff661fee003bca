/* A run of a benchmark: its timed phases, verification and output. */
#ifndef WORKLOADS_RUN_H
#define WORKLOADS_RUN_H

#include "file.h"
#include "options.h"
#include "stream.h"

enum pause { PAUSE_SLEEP, PAUSE_BUSY };

/* The description of a run; the same on all ranks. */
struct workload {
    const char *program;
    const struct options *options;
    const void *shape; /* the program's parameters */
    enum api api;
    enum call call;
    int file_per_process;
    int read_shift;      /* a rank reads the data of the rank this many after it */
    uint64_t steps;      /* at least 1 */
    double compute_s, last_compute_s; /* computing before each (the last) step of the write phase */
    enum pause compute_by;
    struct stream (*stream)(const void *shape, int rank, int ranks); /* a rank's requests */
    struct view (*view)(const struct stream *stream); /* CALL_VIEW*; NULL: one that lists the requests */
    void (*print_shape)(const void *shape); /* members of the JSON object, each followed by ", " */
};

/* Runs the workload (or, in a dry run, prints its requests) and prints the results on rank 0.
 * Returns the exit code: 1 if a byte was wrong. */
int run_workload(const struct workload *workload);

#endif
