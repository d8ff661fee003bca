/* Replaces the preload library: writes each call of the MPI library as a line to SHIM_LOG.PID. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *log_file(void)
{
    static FILE *file;
    char name[4096];
    if (!file) {
        snprintf(name, sizeof name, "%s.%d", getenv("SHIM_LOG"), getpid());
        file = fopen(name, "w");
        setlinebuf(file);
    }
    return file;
}

void stripewise_note_mpi(int ranks, int rank, int ranks_on_node, int node)
{
    fprintf(log_file(), "job %d %d %d %d\n", ranks, rank, ranks_on_node, node);
}

int stripewise_file_sync(const char *path)
{
    fprintf(log_file(), "sync %s\n", path);
    return getenv("SHIM_SYNC_FAILS") ? 5 : 0;
}

int stripewise_file_is_shared(const char *path)
{
    (void)path;
    return 0;
}

int stripewise_file_exchange(const char *path, int commits)
{
    (void)path;
    (void)commits;
    return 0;
}

int stripewise_sieving_pays(const char *path, int writes, int processes, int64_t piece, int64_t stride, int64_t buffer)
{
    fprintf(log_file(), "sieving %s %d %d %ld %ld %ld\n", path, writes, processes, piece, stride, buffer);
    const char *below = getenv("SHIM_SIEVE_BELOW");
    return below ? piece < atoi(below) : -1;
}

uint32_t stripewise_mark_file(const char *path)
{
    fprintf(log_file(), "file %s\n", path);
    return 9;
}

uint64_t stripewise_mark_begin(void)
{
    return 77;
}

void stripewise_mark_end(uint32_t file, const char *name, int processes, int64_t bytes, uint64_t start)
{
    fprintf(log_file(), "mark %s %d %ld%s\n", name, processes, bytes, file == 9 && start == 77 ? "" : " (wrong file or start)");
}
