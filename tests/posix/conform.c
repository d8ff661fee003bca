/* Makes the same random calls on two files, one plain and one managed, and compares every
 * result.
 *
 *   conform PLAIN_DIR MANAGED_DIR SEED STEPS [page]
 *
 * The two worlds differ only in the directory: results, errno, bytes, offsets and sizes must be
 * equal after every call. With `page` the stripes are multiples of the page size, so shared
 * mappings are compared, too. It prints the calls that led to the first difference, and the
 * seed. Without the library (both plain) it must pass as well. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORLDS = 2, SLOTS = 6, NAMES = 3, FILE_MAX_BYTES = 3 << 20, BUFFER = 1 << 18 };

static const char *directory[WORLDS];
static int fds[WORLDS][SLOTS];
static uint64_t state;
static int maps_shared;
static void *volatile nowhere = (void *)8;
static unsigned char out[BUFFER], in[WORLDS][BUFFER];
static char history[48][160];
static unsigned long step, seed;

struct result {
    long value;
    int error;
    uint64_t hash; /* of the other data returned */
};

static uint64_t next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t n)
{
    return next() % n;
}

static uint64_t mix(const void *bytes, size_t len, uint64_t hash)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * 0x100000001b3;
    return hash;
}

static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(history[step % 48], sizeof history[0], format, args);
    va_end(args);
}

static void differ(const char *what)
{
    fprintf(stderr, "conform: seed %lu step %lu: %s\n", seed, step, what);
    for (unsigned long i = step < 47 ? 0 : step - 47; i <= step; i++)
        fprintf(stderr, "  %6lu %s\n", i, history[i % 48]);
    exit(1);
}

static void compare(const struct result r[WORLDS])
{
    char what[200];
    if (r[0].value == r[1].value && (r[0].value != -1 || r[0].error == r[1].error) && r[0].hash == r[1].hash)
        return;
    snprintf(what, sizeof what, "plain %ld (%s, %lx), managed %ld (%s, %lx)", r[0].value,
        r[0].value == -1 ? strerror(r[0].error) : "ok", (unsigned long)r[0].hash, r[1].value,
        r[1].value == -1 ? strerror(r[1].error) : "ok", (unsigned long)r[1].hash);
    differ(what);
}

/* Runs CALL (with `w` the world) in both worlds. */
#define BOTH(...)                                                                                                                          \
    do {                                                                                                                                   \
        struct result r[WORLDS] = {0};                                                                                                     \
        for (int w = 0; w < WORLDS; w++) {                                                                                                 \
            errno = 0;                                                                                                                     \
            r[w].value = (long)(__VA_ARGS__);                                                                                              \
            r[w].error = errno;                                                                                                            \
        }                                                                                                                                  \
        compare(r);                                                                                                                        \
    } while (0)

static char *path_in(int w, int name)
{
    static char path[WORLDS][4][PATH_MAX];
    snprintf(path[w][name], PATH_MAX, "%s/file%d", directory[w], name);
    return path[w][name];
}

static off_t some_offset(void)
{
    switch (below(12)) {
    case 0: return 0;
    case 1: return -(off_t)below(5000);
    case 2: return 4096 * below(64);
    case 3: return 4096 * below(256) + below(3) - 1;
    case 4: return FILE_MAX_BYTES + below(100000);
    default: return below(1 << (4 + below(18)));
    }
}

static size_t some_length(void)
{
    switch (below(8)) {
    case 0: return 0;
    case 1: return 1 + below(16);
    case 2: return 4096 * (1 + below(8));
    case 3: return below(BUFFER);
    default: return below(20000);
    }
}

static void fill(size_t len)
{
    uint64_t x = next();
    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)((x = x * 6364136223846793005u + 1442695040888963407u) >> 56);
}

/* Several vectors over the buffer, with len bytes in total. */
static int split(unsigned char *base, size_t len, struct iovec *vectors)
{
    int count = 1 + below(7);
    size_t done = 0;
    for (int i = 0; i < count; i++) {
        size_t part = i == count - 1 ? len - done : below(len - done + 1);
        vectors[i] = (struct iovec){base + done, part};
        done += part;
    }
    return count;
}

static void do_open(int slot)
{
    static const int access_modes[] = {O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY};
    int name = below(NAMES), flags = access_modes[below(5)];
    if (below(3)) flags |= O_CREAT;
    if (!below(8)) flags |= O_TRUNC;
    if (!below(12)) flags |= O_EXCL;
    if (!below(5)) flags |= O_APPEND;
    if (!below(16)) flags |= O_NOFOLLOW;
    if (!below(24)) flags |= O_DSYNC;
    if (!below(40)) flags = O_PATH;
    if (!below(40)) flags = O_RDONLY | O_DIRECTORY;
    int how = below(4);
    note("slot %d = open(file%d, %#x) way %d", slot, name, flags, how);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        if (fds[w][slot] >= 0) close(fds[w][slot]);
        errno = 0;
        if (how == 0) {
            int dir = open(directory[w], O_RDONLY | O_DIRECTORY);
            char relative[32];
            snprintf(relative, sizeof relative, "./file%d", name);
            fds[w][slot] = openat(dir, relative, flags, 0640);
            r[w].error = errno;
            close(dir);
        } else if (how == 1 && flags == (O_RDWR | O_CREAT)) {
            char link[PATH_MAX];
            snprintf(link, sizeof link, "%s/link%d", directory[w], name);
            fds[w][slot] = open(link, flags, 0640);
            r[w].error = errno;
        } else {
            fds[w][slot] = open(path_in(w, name), flags, 0640);
            r[w].error = errno;
        }
        r[w].value = fds[w][slot] >= 0 ? 0 : -1;
    }
    compare(r);
}

static void do_read(int slot)
{
    size_t len = some_length();
    off_t offset = some_offset();
    int kind = below(5);
    uint64_t before = state;
    note("slot %d read kind %d (%zu at %ld)", slot, kind, len, (long)offset);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        struct iovec vectors[8];
        state = before;
        int count = split(in[w], len, vectors), fd = fds[w][slot];
        memset(in[w], 0xee, len);
        errno = 0;
        switch (kind) {
        case 0: r[w].value = read(fd, in[w], len); break;
        case 1: r[w].value = pread(fd, in[w], len, offset); break;
        case 2: r[w].value = readv(fd, vectors, count); break;
        case 3: r[w].value = preadv(fd, vectors, count, offset); break;
        default: r[w].value = preadv2(fd, vectors, count, below(2) ? -1 : offset, 0);
        }
        r[w].error = errno;
        r[w].hash = mix(in[w], len, 7);
    }
    compare(r);
}

static void do_write(int slot)
{
    size_t len = some_length();
    off_t offset = some_offset();
    int kind = below(5);
    fill(len);
    uint64_t before = state;
    note("slot %d write kind %d (%zu at %ld)", slot, kind, len, (long)offset);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        struct iovec vectors[8];
        state = before;
        int count = split(out, len, vectors), fd = fds[w][slot];
        errno = 0;
        switch (kind) {
        case 0: r[w].value = write(fd, out, len); break;
        case 1: r[w].value = pwrite(fd, out, len, offset); break;
        case 2: r[w].value = writev(fd, vectors, count); break;
        case 3: r[w].value = pwritev(fd, vectors, count, offset); break;
        default: {
            int flags = below(4) ? 0 : RWF_APPEND;
            r[w].value = pwritev2(fd, vectors, count, below(2) ? -1 : offset, flags);
        }
        }
        r[w].error = errno;
    }
    compare(r);
}

static void do_seek(int slot)
{
    int whence = (int[]){SEEK_SET, SEEK_CUR, SEEK_END, 77}[below(40) ? below(3) : 3];
    off_t offset = some_offset();
    note("slot %d lseek(%ld, %d)", slot, (long)offset, whence);
    BOTH(lseek(fds[w][slot], offset, whence));
}

static uint64_t of_stat(const struct stat *s)
{
    uint64_t size = s->st_size, mode = s->st_mode, links = s->st_nlink;
    return mix(&size, 8, mix(&mode, 8, mix(&links, 8, 3)));
}

static void do_stat(int slot)
{
    int kind = below(4), name = below(NAMES);
    note("slot %d, file%d: stat kind %d", slot, name, kind);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        struct stat s = {0};
        struct statx x = {0};
        errno = 0;
        switch (kind) {
        case 0: r[w].value = fstat(fds[w][slot], &s); break;
        case 1: r[w].value = stat(path_in(w, name), &s); break;
        case 2: r[w].value = fstatat(fds[w][slot], "", &s, AT_EMPTY_PATH); break;
        default:
            r[w].value = statx(AT_FDCWD, path_in(w, name), 0, STATX_BASIC_STATS, &x);
            s.st_size = x.stx_size, s.st_mode = x.stx_mode, s.st_nlink = x.stx_nlink;
        }
        r[w].error = errno;
        r[w].hash = r[w].value == 0 ? of_stat(&s) : 0;
    }
    compare(r);
}

static void do_size(int slot)
{
    off_t size = below(20) ? (off_t)below(FILE_MAX_BYTES >> below(10)) : -5, len = below(30) ? 1 + below(200000) : 0;
    int name = below(NAMES), kind = below(6);
    note("slot %d, file%d: size kind %d (%ld, %ld)", slot, name, kind, (long)size, (long)len);
    switch (kind) {
    case 0:
    case 1: BOTH(ftruncate(fds[w][slot], size)); break;
    case 2: BOTH(truncate(path_in(w, name), size)); break;
    case 3: BOTH(posix_fallocate(fds[w][slot], size, len)); break;
    case 4: BOTH(fallocate(fds[w][slot], 0, size, len)); break;
    default: BOTH(fallocate(fds[w][slot], FALLOC_FL_KEEP_SIZE, size, len));
    }
}

static void do_descriptor(int slot)
{
    int other = below(SLOTS), kind = below(8);
    note("slot %d and %d: descriptor kind %d", slot, other, kind);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        int *a = &fds[w][slot], *b = &fds[w][other], made;
        errno = 0;
        switch (kind) {
        case 0:
            if (slot == other) break;
            made = dup(*a);
            r[w].error = errno;
            if (*b >= 0) close(*b);
            *b = made;
            r[w].value = made < 0 ? -1 : 0;
            break;
        case 1:
            if (*a < 0 || *b < 0) break;
            r[w].value = dup2(*a, *b) == *b;
            break;
        case 2:
            if (slot == other) break;
            made = fcntl(*a, F_DUPFD_CLOEXEC, 40);
            r[w].error = errno;
            if (*b >= 0) close(*b);
            *b = made;
            r[w].value = made < 0 ? -1 : made >= 40;
            break;
        case 3:
            r[w].value = close(*a);
            r[w].error = errno;
            *a = -1;
            break;
        case 4: r[w].value = fsync(*a); break;
        case 5: r[w].value = fdatasync(*a); break;
        case 6: r[w].value = fcntl(*a, F_GETFL) & (O_ACCMODE | O_APPEND | O_PATH); break;
        default: {
            int flags = fcntl(*a, F_GETFL);
            r[w].value = flags < 0 ? -1 : fcntl(*a, F_SETFL, flags ^ O_APPEND);
        }
        }
        if (r[w].value == -1 && !r[w].error) r[w].error = errno;
    }
    compare(r);
}

static void do_name(void)
{
    int name = below(NAMES), other = below(NAMES), kind = below(6);
    note("file%d, file%d: name kind %d", name, other, kind);
    switch (kind) {
    case 0: BOTH(unlink(path_in(w, name))); break;
    case 1: BOTH(name == other ? 0 : rename(path_in(w, name), path_in(w, other))); break;
    case 2: BOTH(access(path_in(w, name), W_OK)); break;
    case 3: BOTH(chmod(path_in(w, name), 0600)); break;
    case 4: {
        struct timespec times[2] = {{1000000000, 0}, {1000000000 + below(1000), 0}};
        struct result r[WORLDS] = {0};
        for (int w = 0; w < WORLDS; w++) {
            struct stat s = {0};
            errno = 0;
            r[w].value = utimensat(AT_FDCWD, path_in(w, name), times, 0);
            r[w].error = errno;
            if (r[w].value == 0 && stat(path_in(w, name), &s) == 0) r[w].hash = s.st_mtim.tv_sec;
        }
        compare(r);
        break;
    }
    default: BOTH(renameat2(AT_FDCWD, path_in(w, name), AT_FDCWD, path_in(w, other), RENAME_NOREPLACE));
    }
}

/* A child shares the offset and writes through it. */
static void do_fork(int slot)
{
    size_t len = 1 + below(3000);
    fill(len);
    note("slot %d: a child writes %zu", slot, len);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        pid_t child = fork();
        if (child == 0) _exit(write(fds[w][slot], out, len) == (ssize_t)len ? 0 : errno);
        int status = 0;
        waitpid(child, &status, 0);
        r[w].value = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
        r[w].hash = lseek(fds[w][slot], 0, SEEK_CUR);
    }
    compare(r);
}

static void do_stream(void)
{
    static const char *modes[] = {"r", "r+", "w", "w+", "a", "a+", "rb"};
    int name = below(NAMES), lines = below(40);
    const char *mode = modes[below(7)];
    long at = below(3) ? (long)below(20000) : -1;
    uint64_t before = state;
    note("file%d: stream \"%s\", %d lines at %ld", name, mode, lines, at);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        state = before;
        errno = 0;
        FILE *f = fopen(path_in(w, name), mode);
        r[w].error = errno;
        r[w].value = f ? 0 : -1;
        if (!f) continue;
        if (at >= 0) r[w].value += fseek(f, at, below(2) ? SEEK_SET : SEEK_END) ? 1 : 0;
        uint64_t hash = 1;
        int wrote = 0;
        for (int i = 0; i < lines; i++) {
            long numbers[4] = {0};
            int op = below(6), writes = op < 2;
            if (op < 4 && writes != wrote) numbers[3] = fseek(f, 0, SEEK_CUR), wrote = writes; /* C demands it */
            switch (op) {
            case 0: numbers[0] = fprintf(f, "line %d of %d\n", i, lines); break;
            case 1: numbers[0] = fwrite(out, 1, below(9000), f); break;
            case 2:
                numbers[0] = fread(in[w], 1, below(9000), f);
                hash = mix(in[w], numbers[0], hash);
                break;
            case 3: /* another character than the one read makes glibc 2.36 lose its place in a plain file */
                numbers[0] = fgetc(f), numbers[1] = ungetc(numbers[0], f), numbers[2] = fgetc(f);
                break;
            case 4: numbers[0] = fflush(f), numbers[1] = fseek(f, below(30000), SEEK_SET); break;
            default: numbers[0] = ftell(f), numbers[1] = !!feof(f), numbers[2] = !!ferror(f);
            }
            hash = mix(numbers, sizeof numbers, hash);
        }
        struct stat s;
        fflush(f);
        fstat(fileno(f), &s);
        hash = mix(&s.st_size, 8, hash);
        r[w].value += fclose(f) ? 2 : 0;
        r[w].hash = hash;
    }
    compare(r);
}

static void do_map(int slot)
{
    size_t len = 1 + below(BUFFER);
    off_t offset = 4096 * below(64);
    int shared = maps_shared && below(2), writes = below(2);
    fill(len);
    note("slot %d: mmap %zu at %ld, shared %d, writes %d", slot, len, (long)offset, shared, writes);
    struct result r[WORLDS] = {0};
    for (int w = 0; w < WORLDS; w++) {
        struct stat s;
        if (fstat(fds[w][slot], &s) || s.st_size <= offset) continue;
        size_t valid = (size_t)(s.st_size - offset) < len ? (size_t)(s.st_size - offset) : len;
        errno = 0;
        unsigned char *map =
            mmap(0, len, PROT_READ | (writes ? PROT_WRITE : 0), shared ? MAP_SHARED : MAP_PRIVATE, fds[w][slot], offset);
        r[w].error = errno;
        r[w].value = map == MAP_FAILED ? -1 : 0;
        if (map == MAP_FAILED) continue;
        r[w].hash = mix(map, valid, 5);
        if (writes) memcpy(map + valid / 3, out, valid / 2);
        r[w].hash = mix(map, valid, r[w].hash);
        if (shared) r[w].value += msync(map, len, MS_SYNC);
        munmap(map, len);
    }
    compare(r);
}

static void do_odd(int slot)
{
    int kind = below(6), advice = (int[]){POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED, 99}[below(3)];
    note("slot %d: odd kind %d", slot, kind);
    switch (kind) {
    case 0: {
        struct result r[WORLDS] = {0};
        for (int w = 0; w < WORLDS; w++) {
            int unread = 0;
            r[w].value = ioctl(fds[w][slot], FIONREAD, &unread);
            r[w].error = errno;
            r[w].hash = r[w].value == 0 ? unread : 0;
        }
        compare(r);
        break;
    }
    case 1: BOTH(flock(fds[w][slot], LOCK_SH) | flock(fds[w][slot], LOCK_UN)); break;
    case 2: {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 100};
        BOTH(fcntl(fds[w][slot], F_SETLK, &lock));
        break;
    }
    case 3: BOTH(posix_fadvise(fds[w][slot], 0, 0, advice)); break;
    case 4: BOTH(pread(fds[w][slot], nowhere, 100, 0)); break;
    default: BOTH(pwrite(fds[w][slot], nowhere, 100, 0));
    }
}

/* Compares everything about every file, through fresh descriptors. */
static void check_all(void)
{
    note("all files");
    for (int name = 0; name < NAMES; name++) {
        struct result r[WORLDS] = {0};
        for (int w = 0; w < WORLDS; w++) {
            int fd = open(path_in(w, name), O_RDONLY);
            r[w].value = fd < 0 ? -1 : 0;
            r[w].error = errno;
            if (fd < 0) continue;
            ssize_t n;
            uint64_t hash = 9;
            while ((n = read(fd, in[w], BUFFER)) > 0)
                hash = mix(in[w], n, hash);
            r[w].value = lseek(fd, 0, SEEK_END);
            r[w].hash = hash + n;
            close(fd);
        }
        compare(r);
    }
    for (int slot = 0; slot < SLOTS; slot++)
        BOTH(fds[w][slot] < 0 ? -2 : lseek(fds[w][slot], 0, SEEK_CUR));
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: conform PLAIN_DIR MANAGED_DIR SEED STEPS [page]\n");
        return 2;
    }
    seed = strtoul(argv[3], 0, 0);
    unsigned long steps = strtoul(argv[4], 0, 0);
    state = seed * 0x9e3779b97f4a7c15 + 0x1234567;
    maps_shared = argc > 5;
    for (int w = 0; w < WORLDS; w++) {
        directory[w] = argv[1 + w];
        for (int name = 0; name < NAMES; name++) {
            char link[PATH_MAX], target[32];
            snprintf(link, sizeof link, "%s/link%d", directory[w], name);
            snprintf(target, sizeof target, "file%d", name);
            unlink(link), unlink(path_in(w, name));
            if (symlink(target, link)) return perror("symlink"), 2;
        }
        memset(fds[w], -1, sizeof fds[w]);
    }
    for (step = 0; step < steps; step++) {
        int slot = below(SLOTS);
        switch (below(20)) {
        case 0:
        case 1: do_open(slot); break;
        case 2:
        case 3:
        case 4:
        case 5: do_read(slot); break;
        case 6:
        case 7:
        case 8:
        case 9: do_write(slot); break;
        case 10:
        case 11: do_seek(slot); break;
        case 12: do_stat(slot); break;
        case 13: do_size(slot); break;
        case 14: do_descriptor(slot); break;
        case 15: do_stream(); break;
        case 16: do_map(slot); break;
        case 17: do_odd(slot); break;
        case 18:
            if (below(3) == 0) do_name();
            break;
        default:
            if (below(8) == 0) do_fork(slot);
        }
        if (below(50) == 0) check_all();
    }
    check_all();
    printf("conform: seed %lu, %lu steps: equal\n", seed, steps);
    return 0;
}
