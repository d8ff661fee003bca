/* Measures the cost of a collective call with and without the library: nanoseconds per
 * MPI_File_write_at_all and MPI_File_set_view of one rank, the minimum of 51 rounds.
 *
 *   mpicc -O2 -o calls mpi/benches/calls.c; [LD_PRELOAD=...] ./calls /dev/shm/file */
#include <mpi.h>
#include <stdio.h>

enum { CALLS = 2000, ROUNDS = 51 };

static void measure(const char *name, MPI_File file, MPI_Datatype type)
{
    double least_ns = 1e18;
    long number = 7;
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < CALLS; i++) {
            if (type == MPI_DATATYPE_NULL)
                MPI_File_write_at_all(file, 0, &number, 1, MPI_LONG, MPI_STATUS_IGNORE);
            else
                MPI_File_set_view(file, 0, MPI_LONG, type, "native", MPI_INFO_NULL);
        }
        double ns = (MPI_Wtime() - start) / CALLS * 1e9;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    printf("%s %.0f\n", name, least_ns);
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Datatype strided;
    MPI_Init(&argc, &argv);
    if (argc < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    measure("write_at_all", file, MPI_DATATYPE_NULL);
    measure("set_view, contiguous", file, MPI_LONG);
    MPI_Type_vector(16, 2, 8, MPI_LONG, &strided);
    MPI_Type_commit(&strided);
    measure("set_view, a vector", file, strided);
    MPI_Type_free(&strided);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
