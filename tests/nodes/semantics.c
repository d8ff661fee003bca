/* What MPI promises of files that ranks share, checked by ranks on several nodes (MPI 4.0, sections
 * 14.6 and 14.7). Prints "ok" if all of it holds.
 *
 *     semantics FILE CASE
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* All nodes commit, and then acquire. */
static void settle(MPI_File file)
{
    done(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    done(MPI_File_sync(file), "sync");
}

static void check_byte(MPI_File file, MPI_Offset at, int expected, const char *what, int round)
{
    char byte = 0;
    done(MPI_File_read_at(file, at, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), "read");
    need(byte == expected, what, round);
}

/* After sync, barrier, sync every rank reads what the others wrote, and also a rank that has not
 * written itself. */
static void by_sync(const char *name)
{
    MPI_File file = opened(name);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset at = (MPI_Offset)round * BLOCK / 4;
        char byte = 1 + round;
        if (rank == round % ranks)
            done(MPI_File_write_at(file, at, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        settle(file);
        check_byte(file, at, 1 + round, "an older byte of the only writer", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
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

/* A file that has all of its bytes, in all of its copies. */
static MPI_File filled(const char *name, MPI_Offset bytes)
{
    char *content = memset(malloc(bytes), 111, bytes);
    MPI_File file;
    if (rank == 0) {
        done(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file), "open");
        done(MPI_File_write_at(file, 0, content, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        done(MPI_File_close(&file), "close");
    }
    free(content);
    MPI_Barrier(MPI_COMM_WORLD);
    return opened(name);
}

/* Every rank has every n-th piece of the file from an offset on. */
static MPI_Datatype own_pieces(MPI_File file, MPI_Offset from, int piece)
{
    MPI_Datatype pieces;
    MPI_Type_vector(BLOCK, piece, ranks * piece, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    done(MPI_File_set_view(file, from + rank * piece, MPI_BYTE, pieces, "native", MPI_INFO_NULL), "set_view");
    return pieces;
}

static void plain_view(MPI_File file, MPI_Datatype *pieces)
{
    done(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
    MPI_Type_free(pieces);
}

/* A rank reads what it wrote itself, whichever ranks moved the bytes, without a sync. (Every second
 * round writes to new bytes, where a write goes to another copy than the reads before.) */
static void by_own_bytes(const char *name)
{
    enum { PIECE = 4 };
    MPI_File file = filled(name, (MPI_Offset)ranks * BLOCK * PIECE);
    char block[BLOCK * PIECE];
    for (int round = 0; round < ROUNDS; round++) {
        int mine = 1 + (rank + round) % 100;
        MPI_Offset from = (MPI_Offset)(round / 2) * ranks * BLOCK * PIECE;
        MPI_Datatype pieces = own_pieces(file, from, PIECE);
        memset(block, mine, sizeof block);
        done(MPI_File_write_at_all(file, 0, block, sizeof block, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
        memset(block, 0, sizeof block);
        if (round % 2) {
            done(MPI_File_read_at_all(file, 0, block, sizeof block, MPI_BYTE, MPI_STATUS_IGNORE), "read_at_all");
            for (size_t at = 0; at < sizeof block; at++)
                need(block[at] == mine, "a collective read of the rank's own bytes", round);
        }
        plain_view(file, &pieces);
        for (int piece = 0; piece < BLOCK; piece += BLOCK / 10)
            check_byte(file, from + (MPI_Offset)(piece * ranks + rank) * PIECE, mine, "the rank's own bytes", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    done(MPI_File_close(&file), "close");
}

/* Writes of other bytes in between undo none, without a sync before: rank 0 writes all bytes, then
 * another rank the third of each four, alone or with all others collectively. Every second round
 * writes to new bytes. */
static void between(const char *name, int collective)
{
    enum { PIECE = 4, PIECES = 300 };
    int each = collective ? PIECES : ranks * PIECES, from_rank = collective ? rank * PIECE : 0;
    MPI_Offset bytes = (MPI_Offset)ranks * PIECES * PIECE;
    MPI_File file = filled(name, bytes);
    char *content = malloc(bytes);
    for (int round = 0; round < ROUNDS; round++) {
        int first = 1 + round, second = 51 + round;
        MPI_Offset from = round / 2 * bytes;
        if (rank == 0)
            done(MPI_File_write_at(file, from, memset(content, first, bytes), bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Datatype third;
        MPI_Type_create_resized(MPI_BYTE, 0, collective ? ranks * PIECE : PIECE, &third);
        MPI_Type_commit(&third);
        done(MPI_File_set_view(file, from + from_rank + 2, MPI_BYTE, third, "native", MPI_INFO_NULL), "set_view");
        memset(content, second, bytes);
        if (collective)
            done(MPI_File_write_at_all(file, 0, content, each, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
        else if (rank == 1 + round % (ranks - 1))
            done(MPI_File_write_at(file, 0, content, each, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
        plain_view(file, &third);
        settle(file);
        done(MPI_File_read_at(file, from, content, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        for (MPI_Offset at = 0; at < bytes; at++)
            need(content[at] == (at % PIECE == 2 ? second : first), "a byte that was written", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(content);
    done(MPI_File_close(&file), "close");
}

static void by_pieces(const char *name)
{
    between(name, 0);
}

static void by_pieces_of_all(const char *name)
{
    between(name, 1);
}

/* Preallocation changes no byte, and the size of a file only if that is smaller. */
static void by_preallocation(const char *name)
{
    MPI_Offset whole = (MPI_Offset)ranks * BLOCK, size;
    MPI_File file = filled(name, whole);
    for (int round = 0; round < ROUNDS; round++) {
        put(file, round);
        done(MPI_File_preallocate(file, whole / 2), "preallocate");
        done(MPI_File_get_size(file, &size), "get_size");
        need(size == whole, "the size after preallocating less", round);
        settle(file);
        check(file, round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    done(MPI_File_preallocate(file, 2 * whole), "preallocate");
    done(MPI_File_get_size(file, &size), "get_size");
    need(size == 2 * whole, "the size after preallocating more", ROUNDS);
    check(file, ROUNDS - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    /* New bytes, which other ranks do not know of. */
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset from = (2 + round) * whole;
        char byte = 1 + (rank + round) % 100;
        done(MPI_File_write_at(file, from + rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        done(MPI_File_preallocate(file, from + whole), "preallocate");
        settle(file);
        for (int other = 0; other < ranks; other++)
            check_byte(file, from + other, 1 + (other + round) % 100, "a byte that was preallocated again", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    done(MPI_File_set_size(file, whole), "set_size");
    done(MPI_File_close(&file), "close");
}

/* With a shared pointer, blocks follow each other in the order of ranks, or in any order. */
static void by_shared_pointer(const char *name)
{
    MPI_File file = opened(name);
    char block[BLOCK];
    MPI_Offset size;
    memset(block, 1 + rank, BLOCK);
    for (int round = 0; round < ROUNDS; round++)
        done(MPI_File_write_ordered(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write_ordered");
    settle(file);
    for (int n = 0; n < ROUNDS * ranks; n++)
        check_byte(file, (MPI_Offset)(n + 1) * BLOCK - 1, 1 + n % ranks, "a block that was written in order", n);
    MPI_Barrier(MPI_COMM_WORLD);
    done(MPI_File_write_shared(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
    settle(file);
    done(MPI_File_get_size(file, &size), "get_size");
    need(size == (MPI_Offset)(ROUNDS + 1) * ranks * BLOCK, "the size after writes by the shared pointer", ROUNDS);
    int seen = 0;
    for (int n = 0; n < ranks; n++) {
        char byte = 0;
        MPI_Offset at = (MPI_Offset)(ROUNDS * ranks + n) * BLOCK;
        done(MPI_File_read_at(file, at, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        seen |= 1 << byte;
    }
    need(seen == ((1 << ranks) - 1) << 1, "every rank's block once", ROUNDS);
    done(MPI_File_close(&file), "close");
}

/* A file opened for appending begins at the end that other nodes gave it. */
static void by_append(const char *name)
{
    char block[BLOCK];
    MPI_Offset at, end;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_File file;
        int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_APPEND;
        done(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "open");
        done(MPI_File_get_position(file, &at), "get_position");
        need(at == (MPI_Offset)round * BLOCK, "the position after opening for appending", round);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == round % ranks)
            done(MPI_File_write(file, memset(block, 1 + round, BLOCK), BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        settle(file);
        done(MPI_File_get_size(file, &end), "get_size");
        need(end == (MPI_Offset)(round + 1) * BLOCK, "the size after appending", round);
        for (int n = 0; n <= round; n++)
            check_byte(file, (MPI_Offset)(n + 1) * BLOCK - 1, 1 + n, "an appended block", round);
        done(MPI_File_close(&file), "close");
    }
}

/* Whoever has closed a file may delete it. */
static void by_deletion(const char *name)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_File file = opened(name);
        put(file, round);
        done(MPI_File_close(&file), "close");
        if (rank == 0)
            done(MPI_File_delete(name, MPI_INFO_NULL), "delete");
        MPI_Barrier(MPI_COMM_WORLD);
        int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE;
        done(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "open a new file");
        put(file, round);
        done(MPI_File_close(&file), "close");
        need(access(name, F_OK) != 0, "a file that was to be deleted is there", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File file = opened(name);
    done(MPI_File_close(&file), "close");
}

/* Each round writes new bytes, and all processes sync them: the journal shows what that costs. */
static void by_commits(const char *name)
{
    MPI_File file = opened(name);
    char block[BLOCK];
    memset(block, 1, BLOCK);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset at = (MPI_Offset)(round * ranks + rank) * BLOCK;
        done(MPI_File_write_at(file, at, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        MPI_Barrier(MPI_COMM_WORLD);
        done(MPI_File_sync(file), "sync");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    done(MPI_File_close(&file), "close");
}

/* Where atomic mode cannot be had, it is refused, and the file stays as it is. */
static void by_refusal(const char *name)
{
    MPI_File file = opened(name);
    int class, atomic = 1, refused = MPI_File_set_atomicity(file, 1);
    need(refused != MPI_SUCCESS, "set_atomicity succeeded", 0);
    MPI_Error_class(refused, &class);
    need(class == MPI_ERR_UNSUPPORTED_OPERATION, "the class of the error", 0);
    done(MPI_File_get_atomicity(file, &atomic), "get_atomicity");
    need(!atomic, "the mode that was refused", 0);
    done(MPI_File_set_atomicity(file, 0), "set_atomicity to 0");
    put(file, 0);
    settle(file);
    check(file, 0);
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
} cases[] = {
    {"sync", by_sync}, {"close", by_close}, {"size", by_size}, {"atomicity", by_atomicity}, {"own bytes", by_own_bytes},
    {"pieces", by_pieces}, {"pieces of all", by_pieces_of_all}, {"preallocation", by_preallocation}, {"shared pointer", by_shared_pointer}, {"append", by_append},
    {"deletion", by_deletion}, {"refusal", by_refusal}, {"commits", by_commits},
};

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
