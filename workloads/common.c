#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int all_ranks_fail_alike = 0;
int my_rank = 0, all_ranks = 1;

void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all_ranks);
}

void fail(const char *format, ...)
{
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (my_rank == 0 || !all_ranks_fail_alike) {
        char message[512];
        va_list args;
        va_start(args, format);
        vsnprintf(message, sizeof message, format, args);
        va_end(args);
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
    }
    if (initialized && !all_ranks_fail_alike) {
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL); /* mpirun forwards the message */
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (initialized)
        MPI_Finalize(); /* not an abort: mpiexec.hydra may lose the message then */
    exit(1);
}

void fail_errno(const char *what, const char *path)
{
    fail("%s '%s': %s", what, path, strerror(errno));
}

void check_mpi(int rc, const char *what, const char *path)
{
    if (rc == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int len = 0;
    MPI_Error_string(rc, text, &len);
    fail("%s '%s': %.*s", what, path, len, text);
}

uint64_t parse_size(const char *flag, const char *text)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (*end != '\0' && strchr(units, *end)) {
        shift = 10 * (unsigned)(strchr(units, *end) - units + 1);
        end++;
    }
    if (end == text || *end != '\0' || text[0] == '-' || errno != 0 || value > ((uint64_t)INT64_MAX >> shift))
        fail("%s: '%s' is no size; give bytes, or a number with K, M, G or T", flag, text);
    return value << shift;
}

double parse_seconds(const char *flag, const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.0 && value < 1e9))
        fail("%s: '%s' is no number of seconds; give one like 0.25", flag, text);
    return value;
}

int parse_choice(const char *flag, const char *text, const char *const *names)
{
    char known[128] = "";
    for (int i = 0; names[i]; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", names[i]);
    }
    fail("%s: '%s' is not known; choose one of: %s", flag, text, known);
}

void *need_memory(size_t bytes, const char *what)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PAGE_BYTES, bytes ? bytes : 1) != 0)
        fail("no memory for %zu bytes of %s; use more ranks or less data", bytes, what);
    return memory;
}

/* splitmix64's output function: a bijection whose outputs for adjacent inputs are unrelated. */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return mix(*state);
}

uint64_t pattern_key(uint64_t seed, uint64_t file)
{
    return mix(seed * 0x9e3779b97f4a7c15u + file + 1);
}

/* The 8 bytes of the file whose first has offset 8 * word. */
static inline uint64_t pattern_word(uint64_t word, uint64_t key)
{
    return mix(word * 0x9e3779b97f4a7c15u + key);
}

static inline unsigned char pattern_byte(uint64_t offset, uint64_t key)
{
    return (unsigned char)(pattern_word(offset / 8, key) >> (8 * (offset % 8)));
}

void pattern_fill(unsigned char *buf, uint64_t len, uint64_t offset, uint64_t key)
{
    uint64_t i = 0;
    for (; i < len && (offset + i) % 8 != 0; i++)
        buf[i] = pattern_byte(offset + i, key);
    for (; i + 8 <= len; i += 8) {
        uint64_t word = pattern_word((offset + i) / 8, key);
        memcpy(buf + i, &word, 8);
    }
    for (; i < len; i++)
        buf[i] = pattern_byte(offset + i, key);
}

uint64_t pattern_check(const unsigned char *buf, uint64_t len, uint64_t offset, uint64_t key, uint64_t *first_bad)
{
    unsigned char expected[4096];
    uint64_t bad = 0;
    for (uint64_t done = 0; done < len; done += sizeof expected) {
        uint64_t part = len - done < sizeof expected ? len - done : sizeof expected;
        pattern_fill(expected, part, offset + done, key);
        if (memcmp(expected, buf + done, part) == 0)
            continue;
        for (uint64_t i = 0; i < part; i++) {
            if (buf[done + i] == expected[i])
                continue;
            if (bad == 0)
                *first_bad = offset + done + i;
            bad++;
        }
    }
    return bad;
}

void quiet_barrier(MPI_Comm comm)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 100 * 1000};
    MPI_Request barrier;
    int done = 0;
    MPI_Ibarrier(comm, &barrier);
    for (MPI_Test(&barrier, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&barrier, &done, MPI_STATUS_IGNORE))
        nanosleep(&pause, NULL);
}

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void print_json_string(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 0x20)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('"');
}
