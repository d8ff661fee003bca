/* Sets only hints that help on managed files according to measurements (bench/results.d/mpi.md),
 * and only where the user has given none. */
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum { VALUE_MAX = 63 };

/* ROMIO's default buffer sizes for data sieving. */
enum { SIEVE_READ_BYTES = 4 << 20, SIEVE_WRITE_BYTES = 512 << 10 };

static int are_off(void)
{
    const char *setting = getenv("STRIPEWISE_MPI_HINTS");
    return setting && strcmp(setting, "off") == 0;
}

/* Whether the file's current hint has this value. Only ROMIO reports its hints. */
static int hint_is(MPI_Info present, const char *key, const char *value)
{
    char found[VALUE_MAX + 1];
    int is_there = 0;
    PMPI(Info_get)(present, key, VALUE_MAX, found, &is_there);
    return is_there && strcmp(found, value) == 0;
}

static int has(MPI_Info info, const char *key)
{
    int len, is_there = 0;
    if (info != SHIM_INFO_NULL)
        PMPI(Info_get_valuelen)(info, key, &len, &is_there);
    return is_there;
}

static void set(MPI_Info *info, MPI_Info given, const char *key, const char *value)
{
    if (*info == given) {
        if (given == SHIM_INFO_NULL)
            PMPI(Info_create)(info);
        else
            PMPI(Info_dup)(given, info);
    }
    PMPI(Info_set)(*info, key, value);
}

/* Data sieving: for strided independent requests ROMIO reads all bytes from the first to the last
 * one; for writes it modifies them and writes them back, under a lock. With many processes whose
 * pieces interleave, each process moves the whole file. With few processes or small pieces, sieving
 * saves startups. The preload library computes the cost on the file's layout. */
MPI_Info hints_for_view(const struct stripewise *stripewise, struct file *file, MPI_Datatype filetype, MPI_Info given)
{
    static const struct {
        const char *key;
        int writes;
        int64_t buffer_bytes;
    } ways[] = {{"romio_ds_read", 0, SIEVE_READ_BYTES}, {"romio_ds_write", 1, SIEVE_WRITE_BYTES}};
    struct strided strided;
    MPI_Info hints = given, present;
    /* Sieving writes back what other nodes may have changed meanwhile (shared.c). */
    if (file->is_shared)
        set(&hints, given, "romio_ds_write", "disable");
    if (file->is_shared)
        return hints;
    if (!file->path || are_off() || !is_strided(filetype, &strided))
        return given;
    if (PMPI(File_get_info)(file->handle, &present) != MPI_SUCCESS)
        return given;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        unsigned bit = 1u << i;
        const char *ours = file->unsieved & bit ? "disable" : "automatic";
        if (!hint_is(present, ways[i].key, ours) || has(given, ways[i].key))
            continue;
        int pays = stripewise->sieving_pays(file->path, ways[i].writes, file->processes, strided.piece_bytes,
                                            strided.stride_bytes, ways[i].buffer_bytes);
        if (pays < 0 || pays == !(file->unsieved & bit))
            continue;
        set(&hints, given, ways[i].key, pays ? "automatic" : "disable");
        file->unsieved ^= bit;
    }
    PMPI(Info_free)(&present);
    return hints;
}
