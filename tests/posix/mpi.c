/* MPI-IO in all its ways: writes a file, reads it back in another way, compares every byte.
 *
 *   mpi FILE [BLOCKS]           blocks of 5000 bytes that each rank writes, at most 24
 *
 * It prints one line per way. The content is a function of the file offset, so runs with
 * different ranks and libraries can be compared with cmp. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 5000, BLOCKS_MAX = 24 };

static int rank, ranks, blocks = BLOCKS_MAX;
static const char *path;

static void fail(const char *what, long at)
{
    fprintf(stderr, "rank %d: %s (%ld)\n", rank, what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int rc, const char *what)
{
    if (rc != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int len;
        MPI_Error_string(rc, text, &len);
        fprintf(stderr, "%s: %s\n", what, text);
        fail(what, rc);
    }
}

static unsigned char byte_at(uint64_t offset, int salt)
{
    uint64_t x = (offset + 1) * 0x9e3779b97f4a7c15u + (uint64_t)salt * 77;
    return (unsigned char)(x >> 47);
}

static void fill(unsigned char *buffer, uint64_t offset, size_t len, int salt)
{
    for (size_t i = 0; i < len; i++)
        buffer[i] = byte_at(offset + i, salt);
}

static void expect(const unsigned char *buffer, uint64_t offset, size_t len, int salt, const char *way)
{
    for (size_t i = 0; i < len; i++)
        if (buffer[i] != byte_at(offset + i, salt))
            fail(way, (long)(offset + i));
}

static MPI_File open_file(int mode)
{
    MPI_File file;
    check(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "open");
    return file;
}

static void done(const char *way)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: ok\n", way);
}

static uint64_t place(int block)
{
    return ((uint64_t)block * ranks + rank) * BLOCK;
}

static void independent(unsigned char *buffer)
{
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
    for (int i = 0; i < blocks; i++) {
        fill(buffer, place(i), BLOCK, 1);
        check(MPI_File_write_at(file, place(i), buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
    }
    check(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < blocks; i++) {
        uint64_t at = (((uint64_t)i * ranks) + (rank + 1) % ranks) * BLOCK;
        check(MPI_File_read_at(file, at, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
        expect(buffer, at, BLOCK, 1, "independent");
    }
    MPI_Offset size;
    check(MPI_File_get_size(file, &size), "get_size");
    if (size != (MPI_Offset)blocks * ranks * BLOCK)
        fail("size", (long)size);
    check(MPI_File_close(&file), "close");
    done("independent");
}

static void collective(unsigned char *buffer)
{
    MPI_File file = open_file(MPI_MODE_RDWR);
    for (int i = 0; i < blocks; i++) {
        fill(buffer, place(i), BLOCK, 2);
        check(MPI_File_write_at_all(file, place(i), buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
    }
    check(MPI_File_sync(file), "sync");
    for (int i = 0; i < blocks; i++) {
        check(MPI_File_read_at_all(file, place(i), buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "read_at_all");
        expect(buffer, place(i), BLOCK, 2, "collective");
    }
    check(MPI_File_close(&file), "close");
    done("collective");
}

/* Each rank sees every ranks-th block: a view, so that one request has many pieces. */
static void strided(unsigned char *buffer, int all)
{
    MPI_Datatype type;
    MPI_File file = open_file(MPI_MODE_RDWR);
    int salt = 3 + all;
    MPI_Type_vector(blocks, BLOCK, BLOCK * ranks, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    check(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL), "set_view");
    for (int i = 0; i < blocks; i++)
        fill(buffer + i * BLOCK, place(i), BLOCK, salt);
    check(all ? MPI_File_write_all(file, buffer, blocks * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE)
              : MPI_File_write(file, buffer, blocks * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE),
        "strided write");
    check(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    memset(buffer, 0, blocks * BLOCK);
    check(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
    check(all ? MPI_File_read(file, buffer, blocks * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE)
              : MPI_File_read_all(file, buffer, blocks * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE),
        "strided read");
    for (int i = 0; i < blocks; i++)
        expect(buffer + i * BLOCK, place(i), BLOCK, salt, "strided");
    check(MPI_File_close(&file), "close");
    MPI_Type_free(&type);
    done(all ? "strided collective" : "strided");
}

static void nonblocking(unsigned char *buffer)
{
    MPI_Request requests[BLOCKS_MAX];
    MPI_Status statuses[BLOCKS_MAX];
    MPI_File file = open_file(MPI_MODE_RDWR);
    for (int i = 0; i < blocks; i++) {
        fill(buffer + i * BLOCK, place(i), BLOCK, 5);
        check(MPI_File_iwrite_at(file, place(i), buffer + i * BLOCK, BLOCK, MPI_BYTE, &requests[i]), "iwrite_at");
    }
    check(MPI_Waitall(blocks, requests, statuses), "waitall");
    check(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    memset(buffer, 0, blocks * BLOCK);
    for (int i = 0; i < blocks; i++)
        check(MPI_File_iread_at(file, place(i), buffer + i * BLOCK, BLOCK, MPI_BYTE, &requests[i]), "iread_at");
    check(MPI_Waitall(blocks, requests, statuses), "waitall");
    for (int i = 0; i < blocks; i++)
        expect(buffer + i * BLOCK, place(i), BLOCK, 5, "nonblocking");
    check(MPI_File_close(&file), "close");
    done("nonblocking");
}

/* A shared file pointer assigns positions in any order, so each record carries its number. */
static void shared_pointer(unsigned char *buffer)
{
    MPI_File file = open_file(MPI_MODE_RDWR);
    check(MPI_File_set_size(file, 0), "set_size");
    for (int i = 0; i < 8; i++) {
        memset(buffer, rank + 1, 1000);
        check(MPI_File_write_shared(file, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
    }
    check(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    int *counts = calloc(ranks + 1, sizeof *counts);
    for (int i = 0; i < 8 * ranks; i++) {
        check(MPI_File_read_at(file, i * 1000, buffer, 1000, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
        for (int j = 1; j < 1000; j++)
            if (buffer[j] != buffer[0])
                fail("shared pointer: torn record", i);
        counts[buffer[0]]++;
    }
    for (int r = 1; r <= ranks; r++)
        if (counts[r] != 8)
            fail("shared pointer: records lost", r);
    free(counts);
    check(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "seek_shared");
    memset(buffer, rank + 1, 500);
    check(MPI_File_write_ordered(file, buffer, 500, MPI_BYTE, MPI_STATUS_IGNORE), "write_ordered");
    check(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    check(MPI_File_read_at(file, rank * 500, buffer, 500, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
    if (buffer[0] != rank + 1 || buffer[499] != rank + 1)
        fail("write_ordered", buffer[0]);
    check(MPI_File_close(&file), "close");
    done("shared pointer");
}

/* The final content does not depend on the order. */
static void last(unsigned char *buffer)
{
    MPI_File file = open_file(MPI_MODE_RDWR);
    check(MPI_File_set_size(file, 0), "set_size");
    check(MPI_File_set_size(file, (MPI_Offset)blocks * ranks * BLOCK + 777), "set_size");
    for (int i = 0; i < blocks; i += 2) {
        fill(buffer, place(i), BLOCK, 6);
        check(MPI_File_write_at(file, place(i), buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
    }
    /* No larger: OMPIO fills new bytes with whatever its buffer holds. */
    check(MPI_File_preallocate(file, (MPI_Offset)blocks * ranks * BLOCK), "preallocate");
    check(MPI_File_close(&file), "close");
    done("set_size and preallocate");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2)
        fail("usage: mpi FILE", argc);
    path = argv[1];
    if (argc > 2)
        blocks = atoi(argv[2]);
    unsigned char *buffer = malloc(BLOCKS_MAX * BLOCK);
    independent(buffer);
    collective(buffer);
    strided(buffer, 0);
    strided(buffer, 1);
    nonblocking(buffer);
    shared_pointer(buffer);
    last(buffer);
    free(buffer);
    MPI_Finalize();
    return 0;
}
