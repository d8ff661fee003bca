/* Asynchronous I/O of POSIX (aio_*, lio_listio) and of the kernel (libaio).
 *
 *   asynchronous CASE FILE
 *
 * Each case prints its results, which are the same on a plain file without the library and on a
 * managed one with it. */
#include "cases.h"

#include <aio.h>
#include <libaio.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>

enum { REQUESTS = 40, LENGTH = 30000 };

static unsigned char out[REQUESTS][LENGTH], in[REQUESTS][LENGTH];
static struct aiocb blocks[REQUESTS];

static struct aiocb *request(int i, int fd, void *buffer, off_t offset)
{
    struct aiocb *block = &blocks[i];
    memset(block, 0, sizeof *block);
    block->aio_fildes = fd;
    block->aio_buf = buffer;
    block->aio_nbytes = LENGTH;
    block->aio_offset = offset;
    block->aio_sigevent.sigev_notify = SIGEV_NONE;
    return block;
}

static void finish(struct aiocb *block)
{
    const struct aiocb *list[] = {0, block};
    while (aio_error(block) == EINPROGRESS)
        CHECK(aio_suspend(list, 2, 0) == 0 || errno == EINTR);
}

static void plain_and_back(void)
{
    int fd = fresh();
    for (int i = 0; i < REQUESTS; i++) {
        pattern(out[i], LENGTH, i);
        CHECK(aio_write(request(i, fd, out[i], (off_t)(i * 7 % REQUESTS) * LENGTH)) == 0);
    }
    for (int i = 0; i < REQUESTS; i++) {
        finish(&blocks[i]);
        CHECK(aio_error(&blocks[i]) == 0 && aio_return(&blocks[i]) == LENGTH);
    }
    struct aiocb sync;
    memset(&sync, 0, sizeof sync);
    sync.aio_fildes = fd;
    CHECK(aio_fsync(O_SYNC, &sync) == 0);
    finish(&sync);
    CHECK(aio_return(&sync) == 0);
    for (int i = 0; i < REQUESTS; i++)
        CHECK(aio_read(request(i, fd, in[i], (off_t)(i * 7 % REQUESTS) * LENGTH)) == 0);
    for (int i = 0; i < REQUESTS; i++) {
        finish(&blocks[i]);
        CHECK(aio_return(&blocks[i]) == LENGTH && memcmp(in[i], out[i], LENGTH) == 0);
    }
    CHECK(aio_read(request(0, fd, in[0], (off_t)REQUESTS * LENGTH - 100)) == 0);
    finish(&blocks[0]);
    printf("at the end %zd\n", aio_return(&blocks[0]));
}

static void errors(void)
{
    close(fresh());
    int fd = open(path, O_RDONLY);
    CHECK(aio_write(request(0, fd, out[0], 0)) == 0);
    finish(&blocks[0]);
    int error = aio_error(&blocks[0]);
    printf("%s %zd\n", strerror(error), aio_return(&blocks[0]));
    request(0, fd, in[0], -5);
    int started = aio_read(&blocks[0]);
    if (started == 0) finish(&blocks[0]);
    printf("%s\n", strerror(started ? errno : aio_error(&blocks[0])));
    request(0, fd, in[0], 0)->aio_reqprio = 1000;
    printf("%d %s\n", aio_read(&blocks[0]), strerror(errno));
    printf("cancel %d\n", aio_cancel(fd, 0) == AIO_ALLDONE);
    CHECK(aio_fsync(99, request(0, fd, 0, 0)) == -1 && errno == EINVAL);
}

static void appends(void)
{
    close(fresh());
    int fd = open(path, O_WRONLY | O_APPEND);
    for (int i = 0; i < 10; i++) {
        memset(out[i], '0' + i, LENGTH);
        CHECK(aio_write(request(i, fd, out[i], 12345)) == 0);
    }
    for (int i = 0; i < 10; i++)
        finish(&blocks[i]);
}

static volatile int values;
static void arrived(int signal, siginfo_t *info, void *context)
{
    (void)context;
    if (signal == SIGRTMIN + 1 && info->si_code == SI_ASYNCIO) values += info->si_value.sival_int;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int called;
static void by_thread(union sigval value)
{
    pthread_mutex_lock(&mutex);
    called += value.sival_int;
    pthread_mutex_unlock(&mutex);
}

static int count_of(int *counter)
{
    pthread_mutex_lock(&mutex);
    int count = *counter;
    pthread_mutex_unlock(&mutex);
    return count;
}

static void notifications(void)
{
    int fd = fresh();
    struct sigaction action = {.sa_sigaction = arrived, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN + 1, &action, 0);
    for (int i = 0; i < 10; i++) {
        request(i, fd, out[i], (off_t)i * LENGTH);
        blocks[i].aio_sigevent.sigev_notify = i % 2 ? SIGEV_THREAD : SIGEV_SIGNAL;
        blocks[i].aio_sigevent.sigev_signo = SIGRTMIN + 1;
        blocks[i].aio_sigevent.sigev_value.sival_int = 1 << i;
        if (i % 2) blocks[i].aio_sigevent.sigev_notify_function = by_thread;
        CHECK(aio_write(&blocks[i]) == 0);
    }
    for (int i = 0; i < 10; i++)
        finish(&blocks[i]);
    for (int i = 0; i < 1000000 && (values != 0x155 || count_of(&called) != 0x2aa); i++)
        usleep(1000);
    printf("signals %x, threads %x\n", values, count_of(&called));
}

/* One list with both kinds of files. */
static void lists(void)
{
    char name[] = "/tmp/asynchronous.XXXXXX";
    int fd = fresh(), other = mkstemp(name);
    unlink(name);
    struct aiocb *list[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        pattern(out[i], LENGTH, i);
        list[i] = request(i, i % 3 ? fd : other, out[i], (off_t)i * LENGTH);
        list[i]->aio_lio_opcode = LIO_WRITE;
    }
    list[5]->aio_lio_opcode = LIO_NOP;
    list[6] = 0;
    CHECK(lio_listio(LIO_WAIT, list, REQUESTS, 0) == 0);
    for (int i = 0; i < REQUESTS; i++)
        if (i != 5 && i != 6) CHECK(aio_error(list[i]) == 0 && aio_return(list[i]) == LENGTH);
    for (int i = 0; i < REQUESTS; i++) {
        list[i] = request(i, i % 3 ? fd : other, in[i], (off_t)i * LENGTH);
        list[i]->aio_lio_opcode = LIO_READ;
    }
    struct sigaction action = {.sa_sigaction = arrived, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN + 1, &action, 0);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 7};
    CHECK(lio_listio(LIO_NOWAIT, list, REQUESTS, &event) == 0);
    for (int i = 0; i < 1000000 && values != 7; i++)
        usleep(1000);
    for (int i = 0; i < REQUESTS; i++)
        if (i != 5 && i != 6)
            CHECK(aio_error(list[i]) == 0 && aio_return(list[i]) == LENGTH && memcmp(in[i], out[i], LENGTH) == 0);
    printf("notified %d\n", values);
}

static void after_fork(void)
{
    int fd = fresh();
    for (int i = 0; i < 8; i++)
        CHECK(aio_write(request(i, fd, out[i], (off_t)i * LENGTH)) == 0);
    pid_t child = fork();
    if (child == 0) {
        pattern(out[9], LENGTH, 9);
        CHECK(aio_write(request(9, fd, out[9], 9 * LENGTH)) == 0);
        finish(&blocks[9]);
        _exit(aio_return(&blocks[9]) == LENGTH ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    for (int i = 0; i < 8; i++)
        finish(&blocks[i]);
    printf("child %d\n", status);
}

static void kernel_requests(void)
{
    char name[] = "/tmp/asynchronous.XXXXXX";
    int fd = fresh(), other = mkstemp(name), ready = eventfd(0, 0);
    unlink(name);
    io_context_t context = 0;
    CHECK(io_setup(REQUESTS, &context) == 0);
    struct iocb all[REQUESTS], *list[REQUESTS];
    struct io_event events[REQUESTS];
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < REQUESTS; i++) {
            int file = i % 4 == 3 ? other : fd;
            if (pass == 0) pattern(out[i], LENGTH, i);
            if (pass == 0) io_prep_pwrite(&all[i], file, out[i], LENGTH, (long long)i * LENGTH);
            else io_prep_pread(&all[i], file, in[i], LENGTH, (long long)i * LENGTH);
            all[i].data = (void *)(long)(i + 1);
            if (i % 5 == 0) io_set_eventfd(&all[i], ready);
            list[i] = &all[i];
        }
        int submitted = 0;
        while (submitted < REQUESTS) {
            int n = io_submit(context, REQUESTS - submitted, list + submitted);
            CHECK(n > 0);
            submitted += n;
        }
        unsigned long seen = 0;
        for (int got = 0; got < REQUESTS;) {
            int n = io_getevents(context, 1, REQUESTS, events, 0);
            CHECK(n > 0);
            for (int i = 0; i < n; i++) {
                CHECK((long)events[i].res == LENGTH && events[i].obj == &all[(long)events[i].data - 1]);
                seen |= 1ul << (long)events[i].data;
            }
            got += n;
        }
        CHECK(seen == ((1ul << (REQUESTS + 1)) - 2));
    }
    CHECK(memcmp(in, out, sizeof in) == 0);
    unsigned long long count = 0;
    CHECK(read(ready, &count, 8) == 8);
    printf("events %llu\n", count);
    struct timespec soon = {0, 20000000};
    printf("nothing more %d\n", io_getevents(context, 1, 1, events, &soon));
    int reader = open(path, O_RDONLY);
    io_prep_pwrite(&all[0], reader, out[0], 10, 0);
    printf("not writable %d\n", io_submit(context, 1, list));
    struct iovec vectors[2] = {{in[0], 100}, {in[1], 200}};
    io_prep_preadv(&all[0], fd, vectors, 2, 50);
    io_prep_fsync(&all[1], fd);
    printf("submit %d, ", io_submit(context, 2, list));
    printf("get %d, ", io_getevents(context, 2, 5, events, 0));
    printf("results %lu\n", events[0].res + events[1].res);
    CHECK(memcmp(in[0], out[0] + 50, 100) == 0 && memcmp(in[1], out[0] + 150, 200) == 0);
    printf("destroy %d\n", io_destroy(context));
    printf("gone %d\n", io_submit(context, 1, list));
}

static const struct test tests[] = {
    {"plain_and_back", plain_and_back}, {"errors", errors}, {"appends", appends}, {"notifications", notifications},
    {"lists", lists}, {"after_fork", after_fork}, {"kernel_requests", kernel_requests},
};

int main(int argc, char **argv)
{
    return run_case(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
