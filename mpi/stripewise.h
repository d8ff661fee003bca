/* What the preload library (libstripewise_posix.so, crates/preload/src/mpi.rs) offers to this one. All functions may be missing: they are looked
 * up when the program runs. */
#ifndef STRIPEWISE_H
#define STRIPEWISE_H

#include <stdint.h>

struct stripewise {
    /* Once, when MPI is initialised: this process is `rank` of `ranks`; `ranks_on_node` of them are on its node, which is number
     * `node` of the job (0 and -1: not known). */
    void (*note_mpi)(int ranks, int rank, int ranks_on_node, int node);
    /* A file is about to be closed that this process may have written: it becomes durable as far as the preload library answers for
     * that. Returns 0 or an errno. */
    int (*file_sync)(const char *path);
    /* Whether it costs less to read all from the first to the last byte, `buffer_bytes` at a time, than the pieces that are wanted; for writes,
     * to read that, change and write it back. `processes` do it at once, each with pieces of `piece_bytes`, from one start to the
     * next `stride_bytes`. 1: yes, 0: no, -1: not known. */
    int (*sieving_pays)(const char *path, int writes, int processes, int64_t piece_bytes, int64_t stride_bytes, int64_t buffer_bytes);
    /* The number of an open file for marks; 0: it is not recorded. */
    uint32_t (*mark_file)(const char *path);
    /* This thread begins a collective call; returns the time. */
    uint64_t (*mark_begin)(void);
    /* It has ended MPI_File_NAME on a file that `processes` processes have open together; this one asked for so many bytes, or the
     * call failed: minus an errno. */
    void (*mark_end)(uint32_t file, const char *name, int processes, int64_t bytes, uint64_t start);
};

#endif
