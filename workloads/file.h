/* A file under test, by POSIX or by MPI-IO. Every failure ends the program with a message (fail). */
#ifndef WORKLOADS_FILE_H
#define WORKLOADS_FILE_H

#include "common.h"
#include "stream.h"

/* How requests reach the file. */
enum api {
    API_POSIX,  /* open, pread, pwrite */
    API_MPIIO,  /* MPI_File_* */
    API_DIRECT, /* as API_POSIX, past the page cache (O_DIRECT): offsets and sizes in multiples of PAGE_BYTES */
};

/* Which MPI-IO calls carry the data. POSIX knows only CALL_AT. */
enum call {
    CALL_AT,          /* MPI_File_write_at: one independent call per request */
    CALL_AT_ALL,      /* MPI_File_write_at_all: one collective call per request */
    CALL_NONBLOCKING, /* MPI_File_iwrite_at: up to MAX_IN_FLIGHT at once */
    CALL_VIEW,        /* all requests as one file view and one independent call */
    CALL_VIEW_ALL,    /* the same, collective */
};

enum { MAX_IN_FLIGHT = 4 };

enum direction { FOR_READ, FOR_WRITE };

struct data_file {
    enum api api;
    const char *path;
    int fd;       /* API_POSIX, API_DIRECT */
    MPI_File mpi; /* API_MPIIO */
    MPI_Comm comm;
};

/* Opens path, for writing creating it where needed (never truncating). With MPI-IO collective over comm, with
 * these hints. */
void file_open(struct data_file *file, enum api api, const char *path, MPI_Comm comm, enum direction direction,
               MPI_Info hints);

/* Sets the view that CALL_VIEW and CALL_VIEW_ALL go through. */
void file_set_view(struct data_file *file, const struct view *view);

/* What one rank does in one step. */
struct job {
    enum direction direction;
    enum call call;
    const struct stream *stream; /* its requests, done in this order; CALL_VIEW* needs ascending offsets */
    uint64_t step;
    unsigned char *buf; /* job_memory() bytes */
    uint64_t slots;     /* from slots_needed() to the count of requests; with all of them, each has its own place */
    uint64_t key;       /* of the pattern that is written */
    const struct view *view; /* CALL_VIEW*: the one that was set */
};

/* How many requests hold a buffer at the same time. */
uint64_t slots_needed(enum call call, uint64_t count);

/* Bytes of buf. */
uint64_t job_memory(const struct job *job);

/* Where the data of a request is; request i is r. */
unsigned char *job_data(const struct job *job, uint64_t i, struct request r);

/* Puts into buf what is to be written if every request has its own place; if not, file_transfer does it, piece by
 * piece. Call it before each step, outside of what is timed. */
void job_fill(const struct job *job);

/* Does the job; every byte is transferred when it returns. */
void file_transfer(struct data_file *file, const struct job *job);

/* Makes the bytes durable. With MPI-IO collective. */
void file_sync(struct data_file *file);

void file_close(struct data_file *file);

#endif
