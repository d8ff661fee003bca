/* Properties that the kernel's descriptor no longer shows, because it is open for reading only:
 *   access CASE FILE
 * The output is the same for a plain and for a managed file. FILE exists and is long. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *self, *path;

static const char *failed(long result)
{
    return result < 0 ? strerrorname_np(errno) : "ok";
}

#define SHOW(call) printf("%s: %s\n", #call, failed((long)(call)))

static const int flags_tried[] = {
    O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_APPEND, O_WRONLY | O_SYNC, O_RDWR | O_DSYNC, O_RDWR | O_NONBLOCK, O_WRONLY | O_DIRECT,
};
#define FLAGS (sizeof flags_tried / sizeof *flags_tried)

/* Whether a raw system call could write. Printed for the managed file only, where it must not. */
static void check_kernel(int fd)
{
    char magic[17] = "";
    if (syscall(SYS_pread64, fd, magic, 16L, 0L) == 16 && strcmp(magic, "stripewise file,") == 0
        && (syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
        puts("the kernel's descriptor can write");
}

static void use(int fd)
{
    check_kernel(fd);
    char byte;
    struct iovec one = {&byte, 1};
    byte = 'y';
    printf("flags %#o\n", fcntl(fd, F_GETFL));
    fflush(stdout);
    /* These are not aligned, which only a plain file rejects. */
    if (!(fcntl(fd, F_GETFL) & O_DIRECT)) {
        SHOW(read(fd, &byte, 1));
        SHOW(pread(fd, &byte, 1, 5));
        SHOW(readv(fd, &one, 1));
        SHOW(write(fd, "x", 1));
        SHOW(pwrite(fd, "x", 1, 5));
        SHOW(writev(fd, &one, 1));
    }
    SHOW(ftruncate(fd, 1 << 20));
    SHOW(posix_fallocate(fd, 0, 10));
    SHOW(fsync(fd));
    SHOW(fchmod(fd, 0644));
    SHOW(futimens(fd, NULL));
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("shared mapping: %s\n", map == MAP_FAILED ? failed(-1) : "ok");
    printf("at %ld\n", (long)lseek(fd, 0, SEEK_CUR));
    fflush(stdout);
}

static void direct(void)
{
    for (size_t i = 0; i < FLAGS; i++) {
        int fd = open(path, flags_tried[i]);
        use(fd);
        int other = dup(fd);
        use(other);
        close(fd);
        SHOW(fcntl(other, F_SETFL, O_APPEND));
        use(other);
        close(other);
    }
}

static void forked(void)
{
    for (size_t i = 0; i < FLAGS; i++) {
        int fd = open(path, flags_tried[i]);
        fflush(stdout);
        if (fork() == 0) {
            use(fd);
            _exit(0);
        }
        wait(NULL);
        close(fd);
    }
}

/* The program executes itself with the descriptor and knows nothing else about it. */
static void executed(void)
{
    for (size_t i = 0; i < FLAGS; i++) {
        int fd = open(path, flags_tried[i]);
        char number[16];
        sprintf(number, "%d", fd);
        fflush(stdout);
        if (fork() == 0) {
            execl(self, self, "use", number, NULL);
            _exit(1);
        }
        wait(NULL);
        close(fd);
    }
}

/* The same with a child that borrows its parent's memory. */
static void vforked(void)
{
    for (size_t i = 0; i < FLAGS; i++) {
        fflush(stdout);
        if (vfork() == 0) {
            if (dup2(open(path, flags_tried[i]), 77) < 0)
                _exit(1);
            execl(self, self, "use", "77", NULL);
            _exit(1);
        }
        wait(NULL);
    }
}

/* The same with libc opening the file in the child. */
static void spawned(void)
{
    for (size_t i = 0; i < FLAGS; i++) {
        posix_spawn_file_actions_t actions;
        pid_t child;
        char *arguments[] = {(char *)self, "use", "77", NULL};
        posix_spawn_file_actions_init(&actions);
        SHOW(posix_spawn_file_actions_addopen(&actions, 77, path, flags_tried[i], 0));
        fflush(stdout);
        SHOW(posix_spawn(&child, self, &actions, NULL, arguments, environ));
        wait(NULL);
        posix_spawn_file_actions_destroy(&actions);
    }
}

static void send_one(int socket, int fd)
{
    char byte = 'a', room[CMSG_SPACE(sizeof fd)] = "";
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1)
        abort();
}

static int receive_one(int socket)
{
    int fd;
    char byte, room[CMSG_SPACE(sizeof fd)];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(socket, &message, 0) != 1)
        abort();
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void sent(void)
{
    int ends[2];
    for (size_t i = 0; i < FLAGS; i++) {
        fflush(stdout);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
            abort();
        if (fork() == 0) {
            send_one(ends[0], open(path, flags_tried[i]));
            _exit(0);
        }
        close(ends[0]);
        int fd = receive_one(ends[1]);
        wait(NULL);
        use(fd);
        close(fd);
    }
}

/* A process that may only read cannot make others write by the mark it sets on its descriptor. */
static void forged(void)
{
    int ends[2], fd;
    for (int owner = 0; owner < 2; owner++) {
        fflush(stdout);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
            abort();
        if (fork() == 0) {
            if (setgid(1234) < 0 || setuid(1234) < 0 || (fd = open(path, O_RDONLY)) < 0)
                abort();
            for (int signal = 60; signal <= 64; signal++)
                SHOW(fcntl(fd, F_SETSIG, signal));
            /* Bypasses the library. */
            if (syscall(SYS_fcntl, fd, F_SETSIG, 62L) < 0 || (owner && syscall(SYS_fcntl, fd, F_SETOWN, 1L) < 0))
                abort();
            fflush(stdout);
            send_one(ends[0], fd);
            _exit(0);
        }
        close(ends[0]);
        fd = receive_one(ends[1]);
        wait(NULL);
        SHOW(write(fd, "x", 1));
        SHOW(ftruncate(fd, 0));
        printf("flags %#o\n", fcntl(fd, F_GETFL));
        close(fd);
    }
}

static void signals(void)
{
    int fd = open(path, O_RDWR);
    printf("%d\n", fcntl(fd, F_GETSIG));
    SHOW(fcntl(fd, F_SETSIG, 65));
    SHOW(fcntl(fd, F_SETSIG, 10));
    printf("%d\n", fcntl(fd, F_GETSIG));
    SHOW(fcntl(fd, F_SETFL, O_APPEND | O_ASYNC));
    use(fd);
    SHOW(fcntl(fd, F_SETSIG, 0));
    use(dup(fd));
}

static int set(int fd, int command, int type, int whence, long start, long len)
{
    struct flock lock = {.l_type = (short)type, .l_whence = (short)whence, .l_start = start, .l_len = len};
    return fcntl(fd, command, &lock);
}

/* The conflicting lock that another process, or another description, sees. */
static void probe(int command)
{
    fflush(stdout);
    if (fork() == 0) {
        int fd = open(path, O_RDWR);
        for (long at = 0; at < 60; at += 10) {
            struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 10};
            if (fcntl(fd, command, &lock) < 0)
                puts(failed(-1));
            else if (lock.l_type != F_UNLCK)
                printf("at %ld: type %d, %ld of %ld\n", at, lock.l_type, (long)lock.l_start, (long)lock.l_len);
        }
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

static void record_locks(void)
{
    for (size_t i = 0; i < 3; i++) {
        int fd = open(path, flags_tried[i]), other = open(path, O_RDWR);
        for (int type = 0; type < 3; type++)
            printf("%zu %d: %s\n", i, type, failed(set(fd, F_SETLK, type, SEEK_SET, 10, 10)));
        lseek(fd, 20, SEEK_SET);
        printf("%s\n", failed(set(fd, F_SETLK, i == 0 ? F_RDLCK : F_WRLCK, SEEK_CUR, 0, 10)));
        probe(F_GETLK);
        printf("%s\n", failed(set(fd, F_SETLKW, F_UNLCK, SEEK_CUR, 5, 1)));
        probe(F_GETLK);
        printf("%s\n", failed(set(other, F_SETLKW, F_WRLCK, SEEK_END, -(1 << 20), 5)));
        probe(F_GETLK);
        /* An open drops no locks; closing any descriptor drops all. */
        int third = open(path, O_RDWR);
        probe(F_GETLK);
        SHOW(close(third));
        probe(F_GETLK);
        SHOW(fcntl(fd, F_SETLK, 8));
        SHOW(lockf(fd, F_TLOCK, 7));
        SHOW(lockf(fd, F_TEST, 7));
        probe(F_GETLK);
        SHOW(lockf(fd, F_ULOCK, 0));
        SHOW(lockf(fd, 9, 0));
        close(fd);
        close(other);
    }
}

static void description_locks(void)
{
    for (size_t i = 0; i < 3; i++) {
        int fd = open(path, flags_tried[i]), other = open(path, O_RDWR);
        for (int type = 0; type < 3; type++)
            printf("%zu %d: %s\n", i, type, failed(set(fd, F_OFD_SETLK, type, SEEK_SET, 10, 10)));
        int type = i == 0 ? F_RDLCK : F_WRLCK, twin = dup(fd);
        printf("%s\n", failed(set(fd, F_OFD_SETLK, type, SEEK_SET, 20, 10)));
        printf("other description: %s\n", failed(set(other, F_OFD_SETLK, F_WRLCK, SEEK_SET, 25, 1)));
        printf("same description: %s\n", failed(set(twin, F_OFD_SETLK, type, SEEK_SET, 25, 1)));
        close(fd);
        printf("duplicate open: %s\n", failed(set(other, F_OFD_SETLK, F_WRLCK, SEEK_SET, 25, 1)));
        fflush(stdout);
        if (fork() == 0) {
            printf("child: %s\n", failed(set(twin, F_OFD_SETLK, type, SEEK_SET, 25, 1)));
            fflush(stdout);
            _exit(0);
        }
        wait(NULL);
        printf("child gone: %s\n", failed(set(other, F_OFD_SETLK, F_WRLCK, SEEK_SET, 25, 1)));
        probe(F_OFD_GETLK);
        close(twin);
        printf("closed: %s\n", failed(set(other, F_OFD_SETLK, F_WRLCK, SEEK_SET, 25, 1)));
        close(other);
        fd = open(path, flags_tried[i]);
        other = open(path, O_RDWR);
        SHOW(flock(fd, LOCK_EX | LOCK_NB));
        SHOW(flock(other, LOCK_EX | LOCK_NB));
        SHOW(flock(fd, LOCK_UN));
        SHOW(flock(other, LOCK_EX | LOCK_NB));
        SHOW(flock(other, LOCK_UN));
        /* Held until the close, whatever the descriptor was used for before. */
        char byte;
        SHOW(flock(fd, LOCK_EX | LOCK_NB));
        printf("pread %zd\n", pread(fd, &byte, 1, 0));
        SHOW(close(fd));
        SHOW(flock(other, LOCK_EX | LOCK_NB));
        close(other);
    }
}

static void streams(void)
{
    static const char *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};
    for (size_t i = 0; i < 4; i++) {
        for (size_t mode = 0; mode < 6; mode++) {
            int fd = open(path, flags_tried[i]);
            FILE *stream = fdopen(fd, modes[mode]);
            printf("%zu %s: %s\n", i, modes[mode], stream ? "ok" : failed(-1));
            if (stream) {
                printf("%d %d\n", fputs("text", stream) >= 0, fflush(stream));
                printf("flags %#o\n", fcntl(fd, F_GETFL));
                fclose(stream);
            } else
                close(fd);
        }
    }
}

/* By the kernel's names of open files. */
static void reopened(void)
{
    for (size_t i = 0; i < 4; i++) {
        int fd = open(path, flags_tried[i]);
        char name[64];
        for (size_t way = 0; way < 4; way++) {
            sprintf(name, way % 2 ? "/dev/fd/%d" : "/proc/self/fd/%d", fd);
            int other = open(name, flags_tried[way]);
            use(other);
            close(other);
        }
        close(fd);
    }
}

static void permissions(void)
{
    SHOW(chmod(path, 0200));
    for (int user = 0; user < 2; user++) {
        fflush(stdout);
        int held = open(path, O_RDWR);
        if (fork() == 0) {
            if (user && (setgid(1234) < 0 || setuid(1234) < 0))
                abort();
            for (size_t i = 0; i < 3; i++) {
                int fd = open(path, flags_tried[i]);
                printf("user %d, flags %zu: %s\n", user, i, failed(fd));
                if (fd >= 0)
                    SHOW(pwrite(fd, "y", 1, 0));
            }
            fflush(stdout);
            _exit(0);
        }
        wait(NULL);
        struct stat stat;
        SHOW(fstat(held, &stat));
        printf("mode %o\n", stat.st_mode & 07777);
        close(held);
        SHOW(chown(path, 1234, 1234));
    }
    SHOW(chmod(path, 0444));
    fflush(stdout);
    int held = open(path, O_RDWR);
    if (fork() == 0) {
        if (setgid(4321) < 0 || setuid(4321) < 0)
            abort();
        for (size_t i = 0; i < 3; i++)
            printf("read only, flags %zu: %s\n", i, failed(open(path, flags_tried[i])));
        printf("truncates: %s\n", failed(open(path, O_RDONLY | O_TRUNC)));
        SHOW(pwrite(held, "z", 1, 0));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

/* The permissions reported to each user, and those it has. */
static void asked(void)
{
    static const mode_t modes[] = {0644, 0600, 0444, 0666, 0400, 0464, 0755};
    static const int users[] = {0, 1234, 4321};
    SHOW(chown(path, 1234, 1234));
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        SHOW(chmod(path, modes[m]));
        for (size_t u = 0; u < sizeof users / sizeof *users; u++) {
            fflush(stdout);
            if (fork() == 0) {
                if (setgid((gid_t)users[u]) < 0 || setuid((uid_t)users[u]) < 0)
                    abort();
                printf("mode %o, user %d\n", modes[m], users[u]);
                for (int may = F_OK; may <= (R_OK | W_OK | X_OK); may++)
                    printf("%d: %s %s %s\n", may, failed(access(path, may)), failed(eaccess(path, may)),
                           failed(faccessat(AT_FDCWD, path, may, AT_EACCESS)));
                struct stat status;
                SHOW(stat(path, &status));
                /* Whether a file that may not be read is managed is unknown. */
                if (access(path, R_OK) == 0)
                    printf("mode %o\n", status.st_mode);
                for (size_t i = 0; i < 3; i++)
                    printf("flags %zu: %s %s\n", i, failed(open(path, flags_tried[i])), failed(open(path, flags_tried[i] | O_CREAT, 0600)));
                SHOW(truncate(path, 1 << 20));
                fflush(stdout);
                _exit(0);
            }
            wait(NULL);
        }
    }
    SHOW(chown(path, 0, 0));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"direct", direct}, {"forked", forked}, {"executed", executed}, {"vforked", vforked}, {"spawned", spawned}, {"sent", sent},
    {"forged", forged}, {"signals", signals}, {"record_locks", record_locks}, {"description_locks", description_locks},
    {"streams", streams}, {"reopened", reopened}, {"permissions", permissions}, {"asked", asked},
};

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "use") == 0) {
        use(atoi(argv[2]));
        return 0;
    }
    path = argv[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            fflush(stdout);
            return 0;
        }
    }
    return 2;
}
