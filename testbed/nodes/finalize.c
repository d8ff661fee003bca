/*
 * Lets MPICH 4.0 (Debian 12) end over TCP.
 *
 * In MPI_Finalize each rank flushes its UCX endpoints. Then it waits for the others in a barrier of
 * the process manager, in which it does not progress UCX any more. The flush of a later rank over
 * TCP waits for that progress, so both hang. (pmodels/mpich pull request 6596 mends it;
 * openucx/ucx issue 8738 describes it.) What was sent has arrived by then, because MPI_Finalize
 * begins with a barrier of all ranks. So endpoints need no flush, and are left to the end of their
 * worker.
 *
 *     LD_PRELOAD=build/finalize.so
 */
#include <stddef.h>

/* ucp/api/ucp.h: NULL stands for UCS_OK, done at once. */
void *ucp_disconnect_nb(void *endpoint)
{
    (void)endpoint;
    return NULL;
}
