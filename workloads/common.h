/* Helpers that all workload generators share: sizes, the data pattern, quiet waiting, errors.
 * Nothing here is specific to one benchmark. Only one thread per process may call the functions. */
#ifndef WORKLOADS_COMMON_H
#define WORKLOADS_COMMON_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

/* Rank of this process and number of ranks, in MPI_COMM_WORLD; set by start(). */
extern int my_rank, all_ranks;

/* MPI_Init, and sets my_rank and all_ranks. */
void start(int *argc, char ***argv);

/* Prints "PROGRAM: message" and ends all ranks (MPI_Abort) with exit code 1. */
noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Set while all ranks make the same check (of their flags): then only rank 0 prints a failure,
 * without aborting. */
extern int all_ranks_fail_alike;

/* As fail, with the text of errno. */
noreturn void fail_errno(const char *what, const char *path);

/* Fails with the MPI error's text unless rc is MPI_SUCCESS. */
void check_mpi(int rc, const char *what, const char *path);

/* "64K" -> 65536; K, M, G, T are binary. Fails, naming the flag, if the text is not a size. */
uint64_t parse_size(const char *flag, const char *text);

/* "0.25" -> 0.25. Fails, naming the flag, if the text is not a nonnegative number of seconds. */
double parse_seconds(const char *flag, const char *text);

enum { PAGE_BYTES = 4096 };

/* The index of text in names, a NULL-terminated list in the order of an enum. Fails, naming the
 * flag and the choices, if it is not there. */
int parse_choice(const char *flag, const char *text, const char *const *names);

/* malloc with page alignment, as direct I/O needs it. Fails with a message that names `what`. */
void *need_memory(size_t bytes, const char *what);

/* Fills buf with a file's pattern at [offset, offset+len). Every byte depends on its offset and on
 * key, so that a byte at a wrong place or of another file is detected. */
void pattern_fill(unsigned char *buf, uint64_t len, uint64_t offset, uint64_t key);

/* The number of bytes of buf that differ from pattern_fill's. If there is one, stores the file
 * offset of the first in *first_bad. */
uint64_t pattern_check(const unsigned char *buf, uint64_t len, uint64_t offset, uint64_t key, uint64_t *first_bad);

/* A key for the file of rank `file` (0: the shared one) of a run with this seed. */
uint64_t pattern_key(uint64_t seed, uint64_t file);

/* The seeded pseudo-random sequence of splitmix64. */
uint64_t next_random(uint64_t *state);

/* A barrier whose waiters sleep instead of spinning, so that many ranks on few cores do not disturb
 * ranks that still do I/O. Ranks leave it within about 0.2 ms of each other. */
void quiet_barrier(MPI_Comm comm);

/* Seconds of this node's monotonic clock. */
double now_s(void);

/* Prints text as a JSON string, with quotes. */
void print_json_string(const char *text);

#endif
