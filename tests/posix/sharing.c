/* A file, or an open file with its offset, that threads and processes share.
 *
 *   sharing CASE FILE
 *
 * Each case prints its results. The output and the file must be the same on a plain file without
 * the library and on a managed one with it. */
#include "cases.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void *worker(void *argument)
{
    long id = (long)argument;
    static _Thread_local unsigned char out[4000], in[4000];
    for (unsigned i = 0; i < 150; i++) {
        int fd = open(path, O_RDWR);
        CHECK(fd >= 0);
        pattern(out, sizeof out, (unsigned)id * 7 + i);
        off_t at = (off_t)(i * 8 + (unsigned)id) * sizeof out;
        CHECK(pwrite(fd, out, sizeof out, at) == sizeof out);
        int copy = dup(fd);
        CHECK(close(fd) == 0);
        CHECK(pread(copy, in, sizeof in, at) == sizeof in && memcmp(in, out, sizeof in) == 0);
        struct stat s;
        CHECK(fstat(copy, &s) == 0 && s.st_size > at);
        CHECK(close(copy) == 0);
    }
    return 0;
}

static void threads(void)
{
    pthread_t all[8];
    close(fresh());
    for (long i = 0; i < 8; i++)
        pthread_create(&all[i], 0, worker, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], 0);
}

/* Many threads move one descriptor's offset. Every record arrives exactly once. */
static int shared_fd;
static void *appender(void *argument)
{
    char record[100];
    memset(record, 'a' + (int)(long)argument, sizeof record);
    for (int i = 0; i < 100; i++)
        CHECK(write(shared_fd, record, sizeof record) == sizeof record);
    return 0;
}

static void count_records(int fd)
{
    int counts[256] = {0};
    char record[100];
    for (lseek(fd, 0, SEEK_SET); read(fd, record, sizeof record) == sizeof record;) {
        for (int i = 1; i < 100; i++)
            CHECK(record[i] == record[0]);
        counts[(unsigned char)record[0]]++;
    }
    for (int i = 'a'; i < 'i'; i++)
        printf("%c %d\n", i, counts[i]);
}

static void shared_offset(void)
{
    pthread_t all[8];
    shared_fd = fresh();
    for (long i = 0; i < 8; i++)
        pthread_create(&all[i], 0, appender, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], 0);
    count_records(shared_fd);
    CHECK(ftruncate(shared_fd, 0) == 0); /* the order above is chance */
}

/* Two processes move one descriptor's offset at the same time. Every range goes to one write. */
static void shared_offset_of_processes(void)
{
    enum { EACH = 20000, BYTES = 64 };
    unsigned record[BYTES / sizeof(unsigned)] = {0};
    static unsigned char written[2 * EACH];
    shared_fd = fresh();
    CHECK(write(shared_fd, record, 1) == 1 && lseek(shared_fd, 0, SEEK_SET) == 0);
    pid_t child = fork();
    for (unsigned i = 0; i < EACH; i++) {
        record[0] = record[BYTES / sizeof(unsigned) - 1] = 1 + i + (child ? 0 : EACH);
        CHECK(write(shared_fd, record, sizeof record) == sizeof record);
    }
    if (child == 0) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(lseek(shared_fd, 0, SEEK_CUR) == 2L * EACH * BYTES && lseek(shared_fd, 0, SEEK_SET) == 0);
    for (unsigned i = 0; i < 2 * EACH; i++) {
        CHECK(read(shared_fd, record, sizeof record) == sizeof record);
        CHECK(record[0] > 0 && record[0] == record[BYTES / sizeof(unsigned) - 1] && written[record[0] - 1]++ == 0);
    }
    CHECK(ftruncate(shared_fd, 0) == 0); /* the order above is chance */
}

/* Threads of two processes read a file with holes to its end: every byte goes to one of them. */
enum { READERS = 4, BLOCKS = 2048, BLOCK = 4096, WRITTEN = 5 };
static unsigned *received;
static void *reader(void *argument)
{
    unsigned in[BLOCK / sizeof(unsigned)];
    for (ssize_t done; (done = read(shared_fd, in, sizeof in)) > 0;)
        for (size_t i = 0; i < (size_t)done / sizeof *in; i++)
            if (in[i]) __atomic_fetch_add(&received[in[i]], 1, __ATOMIC_RELAXED);
    return argument;
}

static void shared_offset_of_holes(void)
{
    pthread_t all[READERS];
    unsigned out[BLOCK / 2 / sizeof(unsigned)];
    shared_fd = fresh();
    CHECK(ftruncate(shared_fd, BLOCKS * BLOCK) == 0);
    size_t room = (BLOCKS + 1) * sizeof *received;
    received = mmap(0, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 1; i < BLOCKS; i += WRITTEN) {
        for (size_t at = 0; at < sizeof out / sizeof *out; at++)
            out[at] = i;
        CHECK(pwrite(shared_fd, out, sizeof out, (off_t)i * BLOCK) == sizeof out);
    }
    for (int round = 0; round < 30; round++) {
        struct stat s;
        memset(received, 0, room);
        CHECK(fstat(shared_fd, &s) == 0 && s.st_size == BLOCKS * BLOCK && lseek(shared_fd, 0, SEEK_SET) == 0);
        pid_t child = fork();
        for (int i = 0; i < READERS; i++)
            pthread_create(&all[i], 0, reader, 0);
        for (int i = 0; i < READERS; i++)
            pthread_join(all[i], 0);
        if (child == 0) _exit(0);
        CHECK(waitpid(child, 0, 0) == child);
        for (unsigned i = 1; i < BLOCKS; i += WRITTEN)
            CHECK(received[i] == sizeof out / sizeof *out);
    }
}

/* One thread appends to a file that it has mapped, and another changes each record as soon as it
 * sees it. No change is lost. */
enum { RECORDS = 20000, RECORD = 64 };
static void *changer(void *argument)
{
    for (unsigned i = 0, seen = 0; i < RECORDS; i++, seen = 0) {
        while (seen != i + 1)
            CHECK(pread(shared_fd, &seen, sizeof seen, (off_t)i * RECORD) >= 0);
        CHECK(pwrite(shared_fd, "y", 1, (off_t)i * RECORD + RECORD - 1) == 1);
    }
    return argument;
}

static void written_once(void)
{
    pthread_t other;
    char record[RECORD] = "";
    shared_fd = fresh();
    char *pages = mmap(0, RECORDS * RECORD, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    CHECK(pages != MAP_FAILED && pthread_create(&other, 0, changer, 0) == 0);
    for (unsigned i = 0; i < RECORDS; i++) {
        unsigned stamp = i + 1;
        memcpy(record, &stamp, sizeof stamp);
        CHECK(pwrite(shared_fd, record, sizeof record, (off_t)i * RECORD) == sizeof record);
    }
    pthread_join(other, 0);
    for (unsigned i = 0; i < RECORDS; i++)
        CHECK(pages[i * RECORD + RECORD - 1] == 'y');
}

static void shared_append(void)
{
    close(fresh());
    for (long i = 0; i < 8; i++)
        if (fork() == 0) {
            shared_fd = open(path, O_WRONLY | O_APPEND);
            appender((void *)i);
            _exit(0);
        }
    while (wait(0) > 0)
        ;
    int fd = open(path, O_RDWR);
    count_records(fd);
    CHECK(ftruncate(fd, 0) == 0);
}

/* The status flags belong to the open file, so another process may set them. */
static void flags_of_another(void)
{
    int fd = fresh();
    CHECK(write(fd, "0123456789", 10) == 10 && pwrite(fd, "x", 1, 1) == 1);
    if (fork() == 0)
        _exit(fcntl(fd, F_SETFL, O_APPEND) != 0);
    wait(0);
    printf("pwrite %zd", pwrite(fd, "yy", 2, 1));
    printf(", size %ld\n", (long)lseek(fd, 0, SEEK_END));
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && write(fd, "zz", 2) == 2);
    if (fork() == 0)
        _exit(fcntl(fd, F_SETFL, 0) != 0);
    wait(0);
    CHECK(pwrite(fd, "w", 1, 0) == 1);
}

/* Children are made while another thread reads, close the file at once, and live on. They do not
 * keep its lock. */
static volatile int stop;
static void *rereads(void *argument)
{
    char in[BLOCK];
    while (!stop)
        CHECK(pread(shared_fd, in, sizeof in, 0) == sizeof in);
    return argument;
}

static void lock_after_fork(void)
{
    enum { CHILDREN = 100 };
    int ends[2], closed[2];
    char out[BLOCK] = "x";
    pthread_t other;
    shared_fd = fresh();
    CHECK(write(shared_fd, out, sizeof out) == sizeof out && lseek(shared_fd, 0, SEEK_END) == sizeof out);
    CHECK(pipe(ends) == 0 && pipe(closed) == 0 && flock(shared_fd, LOCK_EX) == 0);
    pthread_create(&other, 0, rereads, 0);
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0) {
            close(ends[1]);
            _exit(close(shared_fd) != 0 || write(closed[1], "", 1) != 1 || read(ends[0], out, 1) != 0);
        }
    for (int i = 0; i < CHILDREN; i++)
        CHECK(read(closed[0], out, 1) == 1);
    stop = 1;
    pthread_join(other, 0);
    CHECK(close(shared_fd) == 0);
    shared_fd = open(path, O_RDWR);
    CHECK(flock(shared_fd, LOCK_EX | LOCK_NB) == 0);
    close(ends[1]);
    for (int i = 0, status; i < CHILDREN; i++)
        CHECK(wait(&status) > 0 && status == 0);
}

static const struct test tests[] = {
    {"threads", threads}, {"shared_offset", shared_offset}, {"shared_offset_of_holes", shared_offset_of_holes},
    {"shared_offset_of_processes", shared_offset_of_processes},
    {"written_once", written_once}, {"shared_append", shared_append}, {"flags_of_another", flags_of_another},
    {"lock_after_fork", lock_after_fork},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
