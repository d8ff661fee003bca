/* A file under test, by POSIX or by MPI-IO. Every failure ends the program with a message
 * (fail). */
#ifndef WORKLOADS_FILE_H
#define WORKLOADS_FILE_H

#include "common.h"
#include "stream.h"

/* The interface through which requests reach the file. */
enum api {
    API_POSIX,  /* open, pread, pwrite */
    API_MPIIO,  /* MPI_File_* */
    API_DIRECT, /* as API_POSIX, with O_DIRECT: offsets and sizes in multiples of PAGE_BYTES */
};

/* The MPI-IO calls that carry the data. POSIX supports only CALL_AT. */
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

/* Opens path; for writing, creates it if necessary, and never truncates it. With MPI-IO collective
 * over comm, with these hints. */
void file_open(struct data_file *file, enum api api, const char *path, MPI_Comm comm, enum direction direction,
               MPI_Info hints);

/* Sets the view for CALL_VIEW and CALL_VIEW_ALL. */
void file_set_view(struct data_file *file, const struct view *view);

/* The work of one rank in one step. */
struct job {
    enum direction direction;
    enum call call;
    const struct stream *stream; /* its requests, in order; for CALL_VIEW* with ascending offsets */
    uint64_t step;
    unsigned char *buf; /* job_memory() bytes */
    uint64_t slots;     /* at least slots_needed(); with all requests, each has its own place */
    uint64_t key;       /* key of the pattern that is written */
    const struct view *view; /* CALL_VIEW*: the current view */
};

/* Number of requests that hold a buffer at the same time. */
uint64_t slots_needed(enum call call, uint64_t count);

/* Size of buf, bytes. */
uint64_t job_memory(const struct job *job);

/* The memory with the data of a request; request i is r. */
unsigned char *job_data(const struct job *job, uint64_t i, struct request r);

/* Fills buf with the data to write if every request has its own place; otherwise file_transfer does
 * so, piece by piece. Call it before each step, outside of the timed part. */
void job_fill(const struct job *job);

/* Makes the job's requests; every byte is transferred when it returns. */
void file_transfer(struct data_file *file, const struct job *job);

/* Makes the bytes durable. With MPI-IO collective. */
void file_sync(struct data_file *file);

void file_close(struct data_file *file);

#endif
