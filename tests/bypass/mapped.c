/* Maps a file in every way, in a process whose `mmap` another library has patched, and prints
 * the bytes it sees.
 *   mapped FILE [LIBRARY]
 * With LIBRARY, that library is loaded after FILE was opened, and no call comes between that and
 * the first mapping. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

#define LENGTH (256 * 1024)

static uint64_t digest(const unsigned char *bytes)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < LENGTH; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

typedef void *map_function(void *, size_t, int, int, int, off_t);

static void map(map_function *mapper, const char *name, int fd, int protection, int flags, int salt)
{
    unsigned char *at = mapper(NULL, LENGTH, protection, flags, fd, 4096);
    if (at == MAP_FAILED) {
        printf("%s %d %d: %s\n", name, protection, flags, strerrorname_np(errno));
        return;
    }
    printf("%s %d %d: %016lx", name, protection, flags, digest(at));
    if (protection & PROT_WRITE) {
        memset(at + salt * 4096, salt, 4096);
        printf(", then %016lx, sync %d", digest(at), msync(at, LENGTH, MS_SYNC));
    }
    printf(", unmapped %d\n", munmap(at, LENGTH));
}

static void all(const char *path, int first)
{
    static const int ways[] = {O_RDWR, O_RDONLY};
    for (int way = 0; way < 2; way++) {
        int fd = way == 0 ? first : open(path, ways[way]);
        for (int writes = 0; writes < 2; writes++) {
            int protection = PROT_READ | (writes ? PROT_WRITE : 0);
            map(mmap, "mmap", fd, protection, MAP_SHARED, way * 8 + 1);
            map(mmap, "mmap", fd, protection, MAP_PRIVATE, way * 8 + 2);
            map(mmap64, "mmap64", fd, protection, MAP_SHARED, way * 8 + 3);
            map(mmap64, "mmap64", fd, protection, MAP_PRIVATE, way * 8 + 4);
        }
        close(fd);
    }
    char *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("anonymous %d\n", memory != MAP_FAILED && memory[LENGTH - 1] == 0);
}

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDWR);
    if (argc == 3 && !dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL))
        abort();
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#endif
    all(argv[1], fd);
    unsigned char byte = 0;
    dprintf(2, "%s", pread(open(argv[1], O_RDONLY), &byte, 1, 4096) == 1 ? "" : "cannot be read");
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
