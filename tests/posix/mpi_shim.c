/* Makes every collective call of MPI-IO once, each with another count. Rank 0 prints the mark
 * that each should leave: "NAME BYTES".
 *
 *   mpi_shim FILE           all calls
 *   mpi_shim FILE close     opens and closes in several ways, one of which needs a sync; prints
 *                           the result of MPI_File_close
 *   mpi_shim FILE views     makes views; prints "PIECE STRIDE HINT" of those that have pieces
 *
 * Before MPI starts, the program removes rank and size from the environment and accesses a file,
 * so that the recorder cannot learn them from there. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, count = 100;
static int numbers[4096];

static void check(int rc, const char *what)
{
    if (rc != MPI_SUCCESS) {
        fprintf(stderr, "%s failed (%d)\n", what, rc);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void say(const char *name, int bytes)
{
    if (rank == 0)
        printf("%s %d\n", name, bytes);
}

/* A call with a buffer, and the mark that it should leave. */
#define DATA(name, ...)                                                                                              \
    do {                                                                                                             \
        count++;                                                                                                     \
        check(MPI_File_##name(__VA_ARGS__), #name);                                                                  \
        say(#name, count *(int)sizeof(int));                                                                         \
    } while (0)
#define OTHER(name, ...)                                                                                             \
    do {                                                                                                             \
        check(MPI_File_##name(__VA_ARGS__), #name);                                                                  \
        say(#name, 0);                                                                                               \
    } while (0)

static void all_calls(const char *path)
{
    MPI_File file;
    MPI_Request request;
    MPI_Status *none = MPI_STATUS_IGNORE;
    MPI_Offset at = (MPI_Offset)rank * 4096;
    OTHER(open, MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    OTHER(set_size, file, 65536);
    OTHER(preallocate, file, 65536);
    OTHER(set_view, file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    DATA(write_at_all, file, at, numbers, count, MPI_INT, none);
    DATA(read_at_all, file, at, numbers, count, MPI_INT, none);
    DATA(write_all, file, numbers, count, MPI_INT, none);
    DATA(read_all, file, numbers, count, MPI_INT, none);
    DATA(write_ordered, file, numbers, count, MPI_INT, none);
    DATA(read_ordered, file, numbers, count, MPI_INT, none);
    DATA(write_at_all_begin, file, at, numbers, count, MPI_INT);
    OTHER(write_at_all_end, file, numbers, none);
    DATA(read_at_all_begin, file, at, numbers, count, MPI_INT);
    OTHER(read_at_all_end, file, numbers, none);
    DATA(write_all_begin, file, numbers, count, MPI_INT);
    OTHER(write_all_end, file, numbers, none);
    DATA(read_all_begin, file, numbers, count, MPI_INT);
    OTHER(read_all_end, file, numbers, none);
    DATA(write_ordered_begin, file, numbers, count, MPI_INT);
    OTHER(write_ordered_end, file, numbers, none);
    DATA(read_ordered_begin, file, numbers, count, MPI_INT);
    OTHER(read_ordered_end, file, numbers, none);
    DATA(iwrite_at_all, file, at, numbers, count, MPI_INT, &request);
    MPI_Wait(&request, none);
    DATA(iread_at_all, file, at, numbers, count, MPI_INT, &request);
    MPI_Wait(&request, none);
    DATA(iwrite_all, file, numbers, count, MPI_INT, &request);
    MPI_Wait(&request, none);
    DATA(iread_all, file, numbers, count, MPI_INT, &request);
    MPI_Wait(&request, none);
#if MPI_VERSION >= 4
    count++;
    check(MPI_File_write_at_all_c(file, at, numbers, count, MPI_INT, none), "write_at_all_c");
    say("write_at_all", count * (int)sizeof(int));
#endif
    OTHER(sync, file);
    OTHER(close, &file);
}

static void close_with(const char *path, int mode, const char *how)
{
    MPI_File file;
    int class = MPI_SUCCESS;
    check(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "open");
    int rc = MPI_File_close(&file);
    MPI_Error_class(rc, &class);
    if (rank == 0)
        printf("%s: %s\n", how, class == MPI_SUCCESS ? "ok" : class == MPI_ERR_IO ? "MPI_ERR_IO" : "another error");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Takes ownership of the type. The numbers are the expected description of the view; 0: none. */
static void view(MPI_File file, MPI_Datatype type, int extent, int piece, int stride)
{
    MPI_Datatype resized;
    MPI_Type_create_resized(type, 0, extent, &resized);
    MPI_Type_commit(&resized);
    check(MPI_File_set_view(file, 0, MPI_INT, resized, "native", MPI_INFO_NULL), "set_view");
    char hint[64] = "none";
    int found;
    MPI_Info info;
    MPI_File_get_info(file, &info);
    MPI_Info_get(info, "romio_ds_write", sizeof hint - 1, hint, &found);
    MPI_Info_free(&info);
    if (rank == 0 && piece)
        printf("%d %d %s\n", piece, stride, hint);
    MPI_Type_free(&type);
    MPI_Type_free(&resized);
}

static void views(const char *path)
{
    const int lengths[] = {1, 2, 3}, places[] = {0, 20, 40, 60};
    const MPI_Aint addresses[] = {0, 100, 200};
    const int sizes[] = {16, 8}, part[] = {4, 2}, rows[] = {4, 8}, columns[] = {16, 2}, starts[] = {2, 0};
    MPI_Datatype t, u;
    MPI_File file;
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    MPI_Type_vector(8, 3, 10, MPI_INT, &t);
    view(file, t, 320, 12, 40);
    MPI_Type_create_hvector(8, 2, 64, MPI_INT, &t);
    view(file, t, 512, 8, 64);
    MPI_Type_contiguous(80, MPI_INT, &t);
    view(file, t, 320, 0, 0);
    MPI_Type_contiguous(10, MPI_INT, &t);
    view(file, t, 320, 40, 320);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &t);
    view(file, t, 240, 8, 80);
    MPI_Type_create_hindexed(3, lengths, addresses, MPI_INT, &t);
    view(file, t, 300, 8, 100);
    MPI_Type_create_indexed_block(4, 2, places, MPI_INT, &t);
    view(file, t, 320, 8, 80);
    MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_INT, &t);
    view(file, t, 512, 8, 128);
    MPI_Type_create_subarray(2, sizes, rows, starts, MPI_ORDER_C, MPI_INT, &t);
    view(file, t, 512, 128, 512);
    MPI_Type_create_subarray(2, sizes, columns, (int[]){0, 0}, MPI_ORDER_FORTRAN, MPI_INT, &t);
    view(file, t, 512, 128, 512);
    /* Vectors in a struct, twice. */
    MPI_Type_vector(4, 1, 4, MPI_INT, &u);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 128}, (MPI_Datatype[]){u, u}, &t);
    MPI_Type_free(&u);
    view(file, t, 256, 4, 32);
    check(MPI_File_close(&file), "close");
}

static void look_before_mpi(const char *path)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    char *values[4];
    for (int i = 0; i < 4; i++) {
        char *value = getenv(names[i]);
        values[i] = value ? strdup(value) : NULL;
        unsetenv(names[i]);
    }
    close(open(path, O_RDWR | O_CREAT, 0644));
    for (int i = 0; i < 4; i++)
        if (values[i])
            setenv(names[i], values[i], 1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    look_before_mpi(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 2) {
        all_calls(argv[1]);
    } else if (strcmp(argv[2], "views") == 0) {
        views(argv[1]);
    } else {
        close_with(argv[1], MPI_MODE_RDONLY, "read");
        close_with(argv[1], MPI_MODE_RDWR, "written");
        close_with(argv[1], MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, "deleted");
    }
    MPI_Finalize();
    return 0;
}
