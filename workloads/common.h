/* What all workload generators share: sizes, the data pattern, quiet waiting, requests, errors.
 * Nothing here is specific to one benchmark. All functions are called by one thread per process. */
#ifndef WORKLOADS_COMMON_H
#define WORKLOADS_COMMON_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

/* This process and how many there are, in MPI_COMM_WORLD; set by start(). */
extern int my_rank, all_ranks;

/* MPI_Init, and sets my_rank and all_ranks. */
void start(int *argc, char ***argv);

/* Prints "PROGRAM: message" and ends all ranks (MPI_Abort) with exit code 1. */
noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Set while all ranks check the same thing (their flags): then rank 0 speaks for all and nothing is aborted. */
extern int all_ranks_fail_alike;

/* As fail, with the text of errno. */
noreturn void fail_errno(const char *what, const char *path);

/* Fails with the MPI error's text unless rc is MPI_SUCCESS. */
void check_mpi(int rc, const char *what, const char *path);

/* "64K" -> 65536; K, M, G, T are binary. Fails, naming the flag, if the text is no size. */
uint64_t parse_size(const char *flag, const char *text);

/* "0.25" -> 0.25. Fails, naming the flag, if the text is no number of seconds from 0 on. */
double parse_seconds(const char *flag, const char *text);

enum { PAGE_BYTES = 4096 };

/* The index of text in names, a NULL-terminated list in the order of an enum. Fails, naming the flag and the
 * choices, if it is not there. */
int parse_choice(const char *flag, const char *text, const char *const *names);

/* malloc of whole pages' alignment, as direct I/O needs it, that fails with a message which says what for. */
void *need_memory(size_t bytes, const char *what);

/* Fills buf with what a file holds at [offset, offset+len): every byte depends on its offset and on key, so that
 * a byte at a wrong place or of another file is found. */
void pattern_fill(unsigned char *buf, uint64_t len, uint64_t offset, uint64_t key);

/* The number of bytes of buf that are not what pattern_fill would have written; the file offset of the first
 * wrong one goes to *first_bad if there is one. */
uint64_t pattern_check(const unsigned char *buf, uint64_t len, uint64_t offset, uint64_t key, uint64_t *first_bad);

/* A key for the file of rank `file` (0: the shared one) of a run with this seed. */
uint64_t pattern_key(uint64_t seed, uint64_t file);

/* The seeded pseudo-random sequence of splitmix64. */
uint64_t next_random(uint64_t *state);

/* A barrier whose waiters sleep instead of spinning: many ranks on few cores must not disturb the ones that
 * still do I/O. Ranks leave it within about 0.2 ms of each other. */
void quiet_barrier(MPI_Comm comm);

/* Seconds of a clock that only goes forward, of this node. */
double now_s(void);

/* Prints text as a JSON string, with quotes. */
void print_json_string(const char *text);

#endif
