/* The interface of the preload library (libstripewise_posix.so,
 * crates/preload/src/calls/mpi.rs) to this one. All functions may be missing, because they are
 * looked up at run time. */
#ifndef STRIPEWISE_H
#define STRIPEWISE_H

#include <stdint.h>

struct stripewise {
    /* Called once, when MPI is initialized: this process is `rank` of `ranks`; `ranks_on_node` of
     * them are on its node, which has number `node` in the job (0 and -1: unknown). */
    void (*note_mpi)(int ranks, int rank, int ranks_on_node, int node);
    /* Makes a file durable, as far as the preload library is responsible for that. Called before
     * the close of a file that this process may have written. Returns 0 or an errno. */
    int (*file_sync)(const char *path);
    /* Whether several nodes may have the open file open and must commit what others shall see: it
     * has several copies, and its targets allow it. */
    int (*file_is_shared)(const char *path);
    /* Commits what this node has written to such a file, if `commits`, and acquires what other
     * nodes have committed. Returns 0 or an errno. */
    int (*file_exchange)(const char *path, int commits);
    /* Whether data sieving costs less than single requests for the pieces. Sieving reads all bytes
     * from the first to the last one, `buffer_bytes` at a time; for writes it reads, modifies and
     * writes them back. `processes` access the file at once, each with pieces of `piece_bytes`
     * whose starts are `stride_bytes` apart. 1: yes, 0: no, -1: unknown. */
    int (*sieving_pays)(const char *path, int writes, int processes, int64_t piece_bytes, int64_t stride_bytes, int64_t buffer_bytes);
    /* The number of an open file in marks; 0: the file is not recorded. */
    uint32_t (*mark_file)(const char *path);
    /* Marks the begin of a collective call of this thread. Returns the time. */
    uint64_t (*mark_begin)(void);
    /* Marks the end of MPI_File_NAME on a file that `processes` processes have open together.
     * `bytes` is the number of bytes that this process requested, or minus an errno if the call
     * failed. */
    void (*mark_end)(uint32_t file, const char *name, int processes, int64_t bytes, uint64_t start);
};

#endif
