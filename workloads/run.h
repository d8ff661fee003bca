/* A run of a benchmark: its phases, timed; verification; what is printed. */
#ifndef WORKLOADS_RUN_H
#define WORKLOADS_RUN_H

#include "file.h"
#include "options.h"
#include "stream.h"

enum pause { PAUSE_SLEEP, PAUSE_BUSY };

/* What there is to run; all ranks have the same. */
struct workload {
    const char *program;
    const struct options *options;
    const void *shape; /* the program's parameters */
    enum api api;
    enum call call;
    int file_per_process;
    int read_shift;      /* a rank reads what the rank so many after it wrote */
    uint64_t steps;      /* at least 1 */
    double compute_s, last_compute_s; /* of every rank before each (the last) step of the write phase */
    enum pause compute_by;
    struct stream (*stream)(const void *shape, int rank, int ranks); /* a rank's requests */
    struct view (*view)(const struct stream *stream); /* CALL_VIEW*; NULL: one that lists the requests */
    void (*print_shape)(const void *shape); /* members of the JSON object, each followed by ", " */
};

/* Runs the workload (or prints its requests, if that was asked for) and prints the results on rank 0. Returns the
 * exit code: 1 if a byte was wrong. */
int run_workload(const struct workload *workload);

#endif
