/* A file under test, by POSIX or by MPI-IO. Every failure ends the program with a message (fail). */
#ifndef WORKLOADS_FILE_H
#define WORKLOADS_FILE_H

#include "common.h"

/* How requests reach the file. */
enum api {
    API_POSIX,  /* open, pread, pwrite */
    API_MPIIO,  /* MPI_File_* */
    API_DIRECT, /* as API_POSIX, past the page cache (O_DIRECT): buffers, offsets and sizes in multiples of DIRECT_BYTES */
};

enum { DIRECT_BYTES = 4096 };

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

/* What one rank does in one phase. */
struct job {
    enum direction direction;
    enum call call;
    const struct request *requests; /* done in this order; CALL_VIEW* needs ascending offsets */
    size_t count;
    unsigned char *buf; /* slots * slot_bytes; request i uses slot i % slots */
    size_t slots;       /* at least slots_needed() */
    size_t slot_bytes;  /* the largest request */
    uint64_t key;       /* writes: each slot is filled with pattern_fill just before it goes */
};

/* How many requests of a job hold a buffer at the same time. */
size_t slots_needed(enum call call, size_t count);

/* Does the job; every byte is transferred when it returns. */
void file_transfer(struct data_file *file, const struct job *job);

/* Makes the bytes durable. With MPI-IO collective. */
void file_sync(struct data_file *file);

void file_close(struct data_file *file);

#endif
