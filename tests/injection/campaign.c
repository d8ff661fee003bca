/* Every interposed call on a managed file, with each of its system calls failing in turn:
 *
 *   campaign DIRECTORY LABEL few|short|long [CALL|PART/PARTS]
 *                      (LD_PRELOAD and STRIPEWISE_PLAN are set; the plan has a rule for the
 *                      directory)
 *   campaign names     prints the functions that are called
 *
 * Each case is a forked child with a file of its own. The child makes the call, in which the
 * parent makes one system call fail (ptrace), and then uses the file again. In the end another
 * process reads all the files: each must be in a state that the call's result permits. */
#define _GNU_SOURCE
#include "campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES_MAX = 100000, INJECTIONS_MAX = 400, CASE_SECONDS_MAX = 1800 };

/* The result of one case, shared with its child. */
struct outcome {
    const struct call *call;
    int cold, nth, error, ended, later;
    /* The open of the plan, or of the file, failed with an error of missing permission. */
    int plan_refused, file_refused;
    long number, result;
};

static struct outcome *outcomes;
static size_t case_count;
static volatile pid_t child;
static const char *directory, *label;
static int failures;

static unsigned char byte(size_t at, unsigned seed) { return (unsigned char)('a' + (at * 2654435761u / 4096 + at + seed) % 26); }
unsigned char byte_before(size_t at) { return byte(at, 1); }
unsigned char byte_written(size_t at) { return byte(at, 7); }
unsigned char byte_later(size_t at) { return byte(at, 13); }
unsigned char byte_other(size_t at) { return byte(at, 19); }

static const char *path_of(size_t number, const char *end)
{
    static char paths[2][4096];
    char *path = paths[*end != 0];
    const char *place = *end == 0 && outcomes[number].call->way >= ABSENT_UNRULED ? "-without-rule" : "";
    snprintf(path, sizeof paths[0], "%s%s/%zu%s", directory, place, number, end);
    return path;
}

static void must(int done, const char *what)
{
    if (!done) {
        fprintf(stderr, "%s: cannot %s: %s\n", label, what, strerror(errno));
        _exit(3);
    }
}

static int make_file(const char *path, unsigned char (*byte_of)(size_t))
{
    unsigned char bytes[SIZE];
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
    must(fd >= 0, "create");
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = byte_of(i);
    must(write(fd, bytes, SIZE) == SIZE, "write");
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Uses the file as if nothing had happened. */
static int use_later(struct subject *s)
{
    unsigned char bytes[LATER_LEN];
    int fd = s->fd >= 0 ? s->fd : open(s->path, O_RDWR);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    for (size_t i = 0; i < LATER_LEN; i++)
        bytes[i] = byte_later(LATER_AT + i);
    long written = pwrite(fd, bytes, LATER_LEN, LATER_AT), synced = written < 0 ? 0 : fsync(fd);
    long got = written < 0 || synced < 0 ? 0 : pread(fd, bytes, LATER_LEN, LATER_AT);
    if (written < 0 || synced < 0 || got < 0)
        return -errno;
    /* The bytes were written and synced and are not all there; errno is meaningless. */
    if (written != LATER_LEN || got != LATER_LEN)
        return -ENODATA;
    for (size_t i = 0; i < LATER_LEN; i++)
        if (bytes[i] != byte_later(LATER_AT + i))
            return -EILSEQ;
    return close(fd) ? -errno : 1;
}

static void make_files(const struct call *call, struct subject *s)
{
    if (call->effect == REPLACES)
        close(make_file(s->other, byte_other));
    /* In a process that has used a managed file, an open where no rule applies goes directly to
     * the kernel. */
    const char *made = call->way >= ABSENT_UNRULED ? s->other : s->path;
    if (call->way != ABSENT)
        s->fd = make_file(made, byte_before);
    if (call->way == OPENED || call->way == ABSENT)
        return;
    close(s->fd);
    s->fd = -1;
    if (call->way == PLAIN_UNRULED)
        close(make_file(s->path, byte_before));
    if (call->way == MOVED_UNRULED)
        must(rename(s->other, s->path) == 0, "move");
}

static void run_child(size_t number, struct outcome *it)
{
    struct subject s = {strdup(path_of(number, "")), strdup(path_of(number, ".other")), -1};
    if (it->cold) {
        int maker = fork(), status;
        if (maker == 0) {
            make_files(it->call, &s);
            _exit(0);
        }
        must(waitpid(maker, &status, 0) == maker && status == 0, "make the file");
    } else {
        make_files(it->call, &s);
    }
    if (it->call->way == INHERITED)
        s.fd = opened_elsewhere(s.path);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    it->result = it->call->run(&s);
    it->ended = 1;
    it->later = use_later(&s);
    _exit(0);
}

static void say(const struct outcome *it, const char *what)
{
    failures++;
    printf("%s: %s%s: call %d (%s) fails with %s: result %ld: %s [file %zu]\n", label, it->call->label, it->cold ? ", new process" : "",
           it->nth, system_call_name(it->number), strerrorname_np(it->error), it->result, what, (size_t)(it - outcomes));
}

/* Ends a child that waits or runs forever, and reports it. */
static void end_child(int signal)
{
    (void)signal;
    kill(child, SIGKILL);
}

/* Runs one case. `injection` selects the failing system call, and then holds what failed. */
static void run_case(const struct call *call, int cold, struct injection *injection)
{
    int nth = injection->nth;
    struct outcome *it = &outcomes[case_count];
    *it = (struct outcome){.call = call, .cold = cold, .nth = nth};
    fflush(stdout);
    int pid = fork();
    if (pid == 0)
        run_child(case_count, it);
    child = pid;
    alarm(CASE_SECONDS_MAX);
    inject(pid, injection);
    alarm(0);
    it->error = injection->error;
    it->number = injection->number;
    int refused = it->error == EACCES || it->error == EPERM;
    it->plan_refused = refused && strcmp(injection->path, getenv("STRIPEWISE_PLAN")) == 0;
    it->file_refused = refused && strcmp(injection->path, path_of(case_count, "")) == 0;
    case_count++;
    int exits = strstr(call->names, "_exit") != NULL;
    if (!WIFEXITED(injection->status) || WEXITSTATUS(injection->status))
        say(it, WIFSIGNALED(injection->status) ? strsignal(WTERMSIG(injection->status)) : "the process did not end well");
    else if (!it->ended && !exits)
        say(it, "the process ended in the call");
    else if (it->result == WRONG || (it->result == MANIFESTS_SIZE && !it->file_refused))
        say(it, "wrong");
    else if (nth == 0 && call->way >= ABSENT_UNRULED && it->number != SYS_openat2)
        say(it, "does not go to the kernel at once");
    else if (it->number == SYS_pwrite64 && it->error != EINTR && call->effect == WRITES && it->result == PIECE_LEN)
        say(it, "succeeds, although the only write failed");
    else if (it->ended && it->later < 0)
        say(it, strerrorname_np(-it->later));
    if (nth < 0 && it->result < 0 && it->result > WRONG && !call->refused)
        say(it, "fails without being made to");
}

/* A permitted state of the file. */
struct state {
    int present;
    size_t base, least, most;      /* leading bytes from before that remain; size range */
    size_t from, done, until;      /* written: certainly up to `done`, perhaps up to `until` */
    unsigned char (*byte_of)(size_t);
};

static int is_in(const struct state *state, const struct outcome *it, const unsigned char *bytes, long size)
{
    if (!state->present || size < 0)
        return !state->present && size < 0;
    size_t later_end = it->later > 0 ? LATER_AT + LATER_LEN : 0;
    size_t least = state->least > later_end ? state->least : later_end, most = state->most > later_end ? state->most : later_end;
    if ((size_t)size < least || (size_t)size > most)
        return 0;
    for (size_t i = 0; i < (size_t)size; i++) {
        unsigned char before = i < state->base ? state->byte_of(i) : 0;
        int in_range = i >= state->from && i < state->until;
        int fits = it->later > 0 && i >= LATER_AT && i < later_end ? bytes[i] == byte_later(i)
                   : in_range && i < state->done                   ? bytes[i] == byte_written(i)
                                                                   : bytes[i] == before || (in_range && bytes[i] == byte_written(i));
        if (!fits)
            return 0;
    }
    return 1;
}

static int is_permitted(const struct outcome *it, const unsigned char *bytes, long size)
{
    struct state old = {1, SIZE, SIZE, SIZE, 0, 0, 0, byte_before}, new = old;
    long r = it->ended ? it->result : -EINTR;
    switch (it->call->effect) {
    case NOTHING: break;
    case WRITES:
        new.from = WRITE_AT, new.until = WRITE_AT + WRITE_LEN, new.done = WRITE_AT + (size_t)(r > 0 ? r : 0);
        return is_in(&new, it, bytes, size);
    case APPENDS:
        new.from = SIZE, new.until = new.most = SIZE + WRITE_LEN, new.least = new.done = SIZE + (size_t)(r > 0 ? r : 0);
        return is_in(&new, it, bytes, size);
    case SHORTENS: new.base = new.least = new.most = TRUNCATE_TO; break;
    case LENGTHENS: new.least = r < 0 ? SIZE : SIZE + WRITE_LEN, new.most = SIZE + WRITE_LEN; break;
    case EMPTIES: new.base = new.least = new.most = 0; break;
    case CREATES: old.present = 0, new.base = new.least = new.most = 0; break;
    case REMOVES: new.present = 0; break;
    case REPLACES: new.byte_of = byte_other; break;
    }
    return is_in(&new, it, bytes, size) || (r < 0 && is_in(&old, it, bytes, size));
}

/* Whether the kernel has the right kind of file there: an anchor, or, where no rule applies, a
 * plain file. If the plan may not be read there is none (the library warns and continues), and
 * new files are plain. */
static int is_as_made(const struct outcome *it, const char *path)
{
    char start[24] = {0};
    int plain = it->call->way == ABSENT_UNRULED || it->call->way == PLAIN_UNRULED;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    if (fd < 0)
        return errno == ENOENT;
    long got = syscall(SYS_read, fd, start, sizeof start);
    syscall(SYS_close, fd);
    int is_anchor = got == sizeof start && memcmp(start, "stripewise file, format ", sizeof start) == 0;
    return is_anchor ? !plain : plain || (it->plan_refused && it->call->way == ABSENT);
}

static void verify(void)
{
    static unsigned char bytes[4 * SIZE];
    for (size_t number = 0; number < case_count; number++) {
        const struct outcome *it = &outcomes[number];
        const char *path = path_of(number, "");
        int fd = open(path, O_RDONLY);
        long size = fd < 0 ? -1 : pread(fd, bytes, sizeof bytes, 0);
        if (fd < 0 && errno != ENOENT)
            say(it, "cannot be opened afterwards");
        else if (fd >= 0 && size < 0)
            say(it, "cannot be read afterwards");
        else if (!is_as_made(it, path))
            say(it, "is a plain file afterwards, or no plain file any more");
        else if (it->result > WRONG && !is_permitted(it, bytes, size))
            say(it, size < 0 ? "is not there" : "wrong bytes, or a wrong size");
        close(fd);
    }
}

/* Calls that touch objects which only files with several copies have. */
static const char *const few[] = {"read", "pread, first use", "write", "write, first use", "write, appending", "ftruncate", "truncate",
                                  "fallocate", "fsync", "fstat", "stat", "open for writing", "open, O_TRUNC", "open, O_CREAT", "close",
                                  "unlink", "rename", "mmap", "open, O_CREAT of a moved file", "open, O_TRUNC of a moved file"};

static int is_one_of_few(const char *label_)
{
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        if (strcmp(few[i], label_) == 0)
            return 1;
    return 0;
}

/* Runs one system call of a call with one errno of its list, or with each. Returns 0 if the call
 * makes fewer system calls. */
static int run_system_call(const struct call *call, int cold, int nth, int is_long)
{
    static int turn;
    struct injection it = {.nth = nth, .which = is_long ? 0 : turn++};
    run_case(call, cold, &it);
    int was_refused = it.error == EACCES || it.error == EPERM;
    if (is_long) {
        for (it.which = 1; it.which < it.listed; it.which++)
            run_case(call, cold, &it);
    } else if (*it.path && !was_refused) {
        /* A file that the kernel refuses to open may be an anchor, so each open fails once like
         * that. */
        it.which = it.listed - 1 - turn % it.refusals;
        run_case(call, cold, &it);
    }
    return it.listed;
}

static void run_call(const struct call *call, int cold, int is_long)
{
    run_case(call, cold, &(struct injection){.nth = -1});
    for (int nth = 0; nth < INJECTIONS_MAX && case_count < CASES_MAX - 16; nth++)
        if (!run_system_call(call, cold, nth, is_long))
            break;
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        for (size_t i = 0; i < call_count; i++)
            puts(calls[i].names);
        return 0;
    }
    directory = argv[1], label = argv[2];
    char place[4096];
    snprintf(place, sizeof place, "%s-without-rule", directory);
    must(mkdir(place, 0755) == 0 || errno == EEXIST, "make a directory");
    size_t part = 0, parts = 1;
    const char *only = argc > 4 && sscanf(argv[4], "%zu/%zu", &part, &parts) != 2 ? argv[4] : NULL;
    int is_long = argc > 3 && strcmp(argv[3], "long") == 0, is_few = argc > 3 && strcmp(argv[3], "few") == 0;
    size_t made = 0, chosen = 0;
    outcomes = mmap(NULL, CASES_MAX * sizeof *outcomes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = end_child, .sa_flags = SA_RESTART}, NULL);
    for (size_t i = 0; i < call_count; i++) {
        if ((only && strcmp(only, calls[i].label)) || (is_few && !is_one_of_few(calls[i].label)))
            continue;
        if (chosen++ % parts != part)
            continue;
        made++;
        /* A write that fails with EINTR may be made again, with any other error not. */
        int has_all_errors = is_long || strstr(calls[i].label, "in one object");
        run_call(&calls[i], 0, has_all_errors);
        /* In a new process, reads that happen once per process can fail, too. */
        if (calls[i].way == INHERITED || calls[i].way == ABSENT || (is_long && calls[i].way == CLOSED))
            run_call(&calls[i], 1, is_long);
    }
    verify();
    printf("%s: %zu cases of %zu calls, %d failures\n", label, case_count, made, failures);
    return failures != 0;
}
