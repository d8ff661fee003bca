/* Files with several copies that nodes share. A node sees what others have committed, once it
 * acquires (docs/formats/nodes.md, "MPI-IO"). MPI promises more without a sync: a process reads
 * what it wrote itself, and a write leaves other bytes alone. But MPI-IO moves a process's bytes
 * through other nodes (collective buffering) and writes back bytes around them (data sieving). So
 * all nodes commit and acquire before every collective access, and after every collective write. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

void learn_sharing(const struct stripewise *stripewise, MPI_Comm comm, struct file *file)
{
    /* The maximum of a number and of its negative: whether all processes have the same. */
    int node = own_node(), facts[3] = {file->path && stripewise->file_is_shared(file->path), node, -node}, all[3];
    if (file->processes < 2)
        return;
    PMPI(Allreduce)(facts, all, 3, SHIM_INT, SHIM_MAX, comm);
    int is_one_node = all[1] == -all[2] && all[1] >= 0;
    if (all[0] && !is_one_node)
        file->is_shared = PMPI(Comm_dup)(comm, &file->comm) == MPI_SUCCESS;
}

static int meet(const struct stripewise *stripewise, const struct file *file)
{
    int error = file->path ? stripewise->file_exchange(file->path, 1) : ENOENT;
    PMPI(Barrier)(file->comm);
    return error || !file->path ? error : stripewise->file_exchange(file->path, 0);
}

int meet_before(const struct stripewise *stripewise, const struct call *call, const struct file *file)
{
    int is_access = call->kind == KIND_DATA || call->kind == KIND_BEGIN || call->kind == KIND_ALLOCATION;
    return is_access ? meet(stripewise, file) : 0;
}

int meet_after(const struct stripewise *stripewise, const struct call *call, const struct file *file)
{
    int is_write = strncmp(call->name, "write", strlen("write")) == 0;
    int has_ended = call->kind == KIND_DATA || call->kind == KIND_END;
    return (is_write && has_ended) || call->kind == KIND_ALLOCATION ? meet(stripewise, file) : 0;
}

void end_sharing(struct file *file)
{
    int rank = 0;
    /* A file that another node has open cannot be deleted. */
    PMPI(Barrier)(file->comm);
    PMPI(Comm_rank)(file->comm, &rank);
    if (file->is_deleted_on_close) {
        /* Where MPI tried to before all processes had closed it. */
        if (rank == 0 && file->path)
            unlink(file->path);
        PMPI(Barrier)(file->comm);
    }
    PMPI(Comm_free)(&file->comm);
}

int refuses_atomicity(const struct file *file)
{
#ifdef OPEN_MPI
    const char *io = getenv("OMPI_MCA_io");
    int rank = 0;
    if (io && strncmp(io, "romio", strlen("romio")) == 0)
        return 0;
    PMPI(Comm_rank)(file->comm, &rank);
    if (rank == 0)
        fprintf(stderr, "stripewise: %s: several nodes share the file, and Open MPI's own MPI-IO does not lock it in atomic mode: "
                        "choose ROMIO (mpirun --mca io romio321, or OMPI_MCA_io=romio321)\n",
                file->path ? file->path : "a file");
    return 1;
#else
    (void)file;
    return 0; /* ROMIO locks every access, and giving up a lock commits */
#endif
}
