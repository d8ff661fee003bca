/* The results of a run, as text and as JSON. */
#ifndef WORKLOADS_REPORT_H
#define WORKLOADS_REPORT_H

#include "run.h"

struct phase {
    enum direction direction;
    double open_s, close_s;
    double elapsed_s; /* slowest rank, between barriers, with computing and fsync */
    double compute_s; /* the computing time of the slowest rank in it */
    double *rank_s;   /* every rank's own I/O, without waiting for others; rank 0 only */
    unsigned long long bytes; /* all ranks */
};

struct outcome {
    unsigned long long verified, wrong; /* bytes, all ranks; rank 0 only */
};

void print_json(const struct workload *w, const struct phase *phases, int count, const struct outcome *outcome);

void print_text(const struct workload *w, const struct phase *phases, int count, const struct outcome *outcome);

/* Prints a dry run's requests in one direction, rank by rank, in order. Pieces of one call over a
 * view that are adjacent in the file and in memory are joined, as MPI does. */
void print_requests(const struct workload *w, enum direction direction);

/* The path of a rank's file, on the heap. */
char *path_of(const struct workload *w, int owner);

#endif
