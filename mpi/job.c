/* Finds this process's rank, the number of ranks, the number of ranks on its node, and the node's
 * number. */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "shim.h"

static atomic_int known;
static atomic_int own = -1;

int own_node(void)
{
    return atomic_load(&own);
}

int job_is_known(void)
{
    return atomic_load(&known);
}

/* Waits for all ranks. A rank without this library never arrives, so rank 0 logs what it waits for.
 * */
static void wait_for_all(MPI_Comm world, int rank)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000};
    const time_t patience_s = 10;
    struct timespec start, now;
    MPI_Request barrier;
    int done = 0, said = rank != 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    PMPI(Ibarrier)(world, &barrier);
    for (PMPI(Test)(&barrier, &done, MPI_STATUS_IGNORE); !done; PMPI(Test)(&barrier, &done, MPI_STATUS_IGNORE)) {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!said && now.tv_sec - start.tv_sec > patience_s) {
            said = 1;
            fprintf(stderr, "stripewise: rank 0 waits in MPI_Init for the other ranks; do all nodes load libstripewise_mpi.so (mpirun "
                            "-x LD_PRELOAD)? STRIPEWISE_MPI=off does without it\n");
        }
    }
}

/* Finds the number of this rank's node; nodes are numbered in the order of their first ranks.
 * Returns the number of ranks on the node. */
static int find_node(MPI_Comm world, int rank, int *node)
{
    MPI_Comm here, peers;
    int rank_here, ranks_here;
    PMPI(Comm_split_type)(world, MPI_COMM_TYPE_SHARED, rank, SHIM_INFO_NULL, &here);
    PMPI(Comm_rank)(here, &rank_here);
    PMPI(Comm_size)(here, &ranks_here);
    /* The first rank of each node finds its position among the first ranks. */
    PMPI(Comm_split)(world, rank_here == 0 ? 0 : 1, rank, &peers);
    PMPI(Comm_rank)(peers, node);
    PMPI(Bcast)(node, 1, SHIM_INT, 0, here);
    PMPI(Comm_free)(&peers);
    PMPI(Comm_free)(&here);
    return ranks_here;
}

void learn_job(const struct stripewise *stripewise, int collectively)
{
    int initialised = 0, ranks = 0, rank = 0, ranks_on_node = 0, node = -1;
    PMPI(Initialized)(&initialised);
    if (!initialised || atomic_exchange(&known, 1))
        return;
    MPI_Comm world = SHIM_COMM_WORLD;
    PMPI(Comm_size)(world, &ranks);
    PMPI(Comm_rank)(world, &rank);
    if (collectively && ranks > 1) {
        wait_for_all(world, rank);
        ranks_on_node = find_node(world, rank, &node);
    } else if (ranks == 1) {
        ranks_on_node = 1;
        node = 0;
    }
    atomic_store(&own, node);
    stripewise->note_mpi(ranks, rank, ranks_on_node, node);
}
