/* What MPI promises of files that ranks share, checked by ranks on several nodes (MPI 4.0, sections
 * 14.6 and 14.7). Prints "ok" if all of it holds.
 *
 *     semantics FILE CASE
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without atomic mode, some of the many rounds read parts of a write. */
enum { BLOCK = 3000, ROUNDS = 10, ATOMIC_ROUNDS = 200 };

static int rank, ranks;

static void need(int condition, const char *what, int round)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void done(int error, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File opened(const char *name)
{
    MPI_File file;
    done(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file), "open");
    return file;
}

/* The rank's block, filled with a byte of its own. */
static void put(MPI_File file, int round)
{
    char block[BLOCK];
    memset(block, 1 + (rank + round) % 100, BLOCK);
    done(MPI_File_write_at(file, (MPI_Offset)rank * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write");
}

/* All ranks' blocks are those of the round. */
static void check(MPI_File file, int round)
{
    for (int other = 0; other < ranks; other++) {
        char block[BLOCK];
        done(MPI_File_read_at(file, (MPI_Offset)other * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        for (int at = 0; at < BLOCK; at++)
            need(block[at] == 1 + (other + round) % 100, "an older byte", round);
    }
}

/* After sync, barrier, sync every rank reads what the others wrote. */
static void by_sync(const char *name)
{
    MPI_File file = opened(name);
    for (int round = 0; round < ROUNDS; round++) {
        put(file, round);
        done(MPI_File_sync(file), "sync");
        MPI_Barrier(MPI_COMM_WORLD);
        done(MPI_File_sync(file), "sync");
        check(file, round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    done(MPI_File_close(&file), "close");
}

/* So after close and open. */
static void by_close(const char *name)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_File file = opened(name);
        put(file, round);
        done(MPI_File_close(&file), "close");
        file = opened(name);
        check(file, round);
        done(MPI_File_close(&file), "close");
    }
}

/* A size that was set is everybody's, and cut bytes come back as zeros. */
static void by_size(const char *name)
{
    MPI_File file = opened(name);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset whole = (MPI_Offset)ranks * BLOCK, half = whole / 2 + round, size;
        char byte = 1;
        put(file, round);
        done(MPI_File_sync(file), "sync");
        done(MPI_File_set_size(file, half), "set_size");
        done(MPI_File_get_size(file, &size), "get_size");
        need(size == half, "the size after a cut", round);
        MPI_Barrier(MPI_COMM_WORLD);
        done(MPI_File_set_size(file, whole), "set_size");
        done(MPI_File_get_size(file, &size), "get_size");
        need(size == whole, "the size after growing", round);
        done(MPI_File_read_at(file, whole - 1 - rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        need(byte == 0, "a cut byte is back", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    done(MPI_File_close(&file), "close");
}

/* In atomic mode a read sees all of a write or nothing of it, and after a barrier all of it. */
static void by_atomicity(const char *name)
{
    MPI_File file = opened(name);
    char block[BLOCK];
    int atomic = 0;
    done(MPI_File_set_atomicity(file, 1), "set_atomicity");
    done(MPI_File_get_atomicity(file, &atomic), "get_atomicity");
    need(atomic, "the mode that was set", 0);
    if (rank == 0)
        done(MPI_File_write_at(file, 1, memset(block, 99, BLOCK), BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ATOMIC_ROUNDS; round++) {
        memset(block, 1 + rank, BLOCK);
        if ((rank + round) % 2 == 0)
            done(MPI_File_write_at(file, 1, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        done(MPI_File_read_at(file, 1, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        for (int at = 1; at < BLOCK; at++)
            need(block[at] == block[0], "bytes of two writes", round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1)
        done(MPI_File_write_at(file, 1, memset(block, 77, BLOCK), BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    MPI_Barrier(MPI_COMM_WORLD);
    done(MPI_File_read_at(file, 1, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "read");
    need(block[0] == 77 && block[BLOCK - 1] == 77, "a write before the barrier is not seen", ATOMIC_ROUNDS);
    done(MPI_File_close(&file), "close");
}

static const struct {
    const char *name;
    void (*check)(const char *name);
} cases[] = {{"sync", by_sync}, {"close", by_close}, {"size", by_size}, {"atomicity", by_atomicity}};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t n = 0; argc == 3 && n < sizeof cases / sizeof *cases; n++)
        if (!strcmp(argv[2], cases[n].name)) {
            cases[n].check(argv[1]);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                puts("ok");
        }
    MPI_Finalize();
    return 0;
}
