/* MPI as Python loads it: in a library that the program loads for itself only. PROGRAM selects
 * the program, otherwise this is the library. */
#ifdef PROGRAM
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(const char *) = library ? (int (*)(const char *))dlsym(library, "run") : NULL;
    if (!run)
        fprintf(stderr, "%s\n", dlerror());
    return run ? run(argv[2]) : 1;
}
#else
#include <stddef.h>
#include <mpi.h>

int run(const char *path)
{
    MPI_File file;
    int rank, numbers[100] = {0};
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * 400, numbers, 100, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    return MPI_Finalize();
}
#endif
