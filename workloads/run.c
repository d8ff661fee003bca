#include "run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"

enum { MAX_KEPT_BYTES = 1 << 30 };

/* The results of one rank in a phase. */
struct own {
    double io_s, compute_s;
    unsigned long long bytes, verified, wrong;
};

static int is_view(enum call call)
{
    return call == CALL_VIEW || call == CALL_VIEW_ALL;
}

static int reading_owner(const struct workload *w)
{
    return (my_rank + w->read_shift) % all_ranks;
}

/* Busy waiting counts this process's CPU time, so that it does the same work on a crowded node as
 * alone. */
static void compute(enum pause how, double seconds)
{
    struct timespec now, left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)(1e9 * (seconds - (double)left.tv_sec));
    if (how == PAUSE_SLEEP) {
        while (nanosleep(&left, &left) != 0)
            ;
        return;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    double end = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec < end);
}

/* Checks the data that a step's reads stored in the job's memory. */
static void verify(const char *program, const char *path, const struct job *job, struct own *own)
{
    uint64_t first_bad = 0, found = 0;
    unsigned long long wrong = 0;
    for (uint64_t i = 0; i < job->stream->count; i++) {
        struct request r = job->stream->at(job->stream, job->step, i);
        uint64_t bad = pattern_check(job_data(job, i, r), r.len, r.offset, job->key, &found);
        if (bad > 0 && wrong == 0)
            first_bad = found;
        own->verified += r.len;
        wrong += bad;
    }
    own->wrong += wrong;
    if (wrong > 0)
        fprintf(stderr, "%s: rank %d: %llu wrong bytes in '%s', the first at byte %llu\n", program, my_rank, wrong,
                path, (unsigned long long)first_bad);
}

/* Runs all steps of one direction. The time for filling and checking memory does not count. */
static void do_steps(const struct workload *w, struct data_file *file, struct job *job, int keep, struct own *own)
{
    int computing = job->direction == FOR_WRITE && w->compute_s > 0.0;
    for (job->step = 0; job->step < w->steps; job->step++) {
        job_fill(job);
        double start = now_s();
        if (computing)
            compute(w->compute_by, job->step + 1 < w->steps ? w->compute_s : w->last_compute_s);
        double computed = now_s();
        file_transfer(file, job);
        own->compute_s += computed - start;
        own->io_s += now_s() - computed;
        own->bytes += job->stream->bytes;
        if (keep) {
            verify(w->program, file->path, job, own);
            quiet_barrier(MPI_COMM_WORLD); /* one rank's check must not prolong the next step */
        }
    }
}

static double most(double value)
{
    double result = value;
    MPI_Reduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return result;
}

static unsigned long long sum(unsigned long long value)
{
    unsigned long long result = value;
    MPI_Reduce(&value, &result, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    return result;
}

/* Opens the file, runs all steps and closes it. The barriers separate one rank's open or close from
 * another's I/O. */
static void timed(const struct workload *w, const char *path, struct job *job, int keep, struct phase *phase,
                  struct own *own)
{
    struct data_file file;
    MPI_Comm comm = w->file_per_process ? MPI_COMM_SELF : MPI_COMM_WORLD;
    quiet_barrier(MPI_COMM_WORLD);
    double before_open = now_s();
    file_open(&file, w->api, path, comm, job->direction, w->options->hints);
    if (job->view)
        file_set_view(&file, job->view);
    double opened = now_s();
    quiet_barrier(MPI_COMM_WORLD);
    do_steps(w, &file, job, keep, own);
    double before_sync = now_s();
    if (w->options->fsync && job->direction == FOR_WRITE) {
        if (w->api == API_MPIIO)
            quiet_barrier(comm); /* MPI_File_sync may wait for the others by spinning */
        file_sync(&file);
    }
    double synced = now_s();
    quiet_barrier(MPI_COMM_WORLD);
    double before_close = now_s();
    file_close(&file);
    phase->close_s = most(now_s() - before_close);
    phase->open_s = most(opened - before_open);
    phase->elapsed_s = most(own->compute_s + own->io_s + synced - before_sync);
    phase->compute_s = most(own->compute_s);
}

/* Runs one phase, the requests in one direction. With verification, a read keeps its bytes and
 * checks them. */
static void run_phase(const struct workload *w, struct phase *phase, struct outcome *outcome)
{
    int whose = phase->direction == FOR_READ ? reading_owner(w) : my_rank;
    int keep = w->options->verify && phase->direction == FOR_READ;
    char *path = path_of(w, whose);
    struct stream stream = w->stream(w->shape, whose, all_ranks);
    struct view view;
    struct own own = {0};
    struct job job = {
        .direction = phase->direction,
        .call = w->call,
        .stream = &stream,
        .slots = keep ? stream.count : slots_needed(w->call, stream.count),
        .key = pattern_key(w->options->seed, w->file_per_process ? (uint64_t)whose + 1 : 0),
    };
    if (is_view(w->call)) {
        view = w->view ? w->view(&stream) : view_of_requests(&stream);
        job.view = &view;
    }
    job.buf = need_memory(job_memory(&job), "data");
    memset(job.buf, 0xa5, job_memory(&job)); /* page faults now, not in the timed phase */
    timed(w, path, &job, keep, phase, &own);
    MPI_Gather(&own.io_s, 1, MPI_DOUBLE, phase->rank_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    phase->bytes = sum(own.bytes);
    outcome->verified += sum(own.verified);
    outcome->wrong += sum(own.wrong);
    if (job.view)
        view_free(&view);
    free(job.buf);
    stream_free(&stream);
    free(path);
}

/* Fails on all ranks alike if a rank would need too much memory, or a call would exceed MPI's
 * counts. */
static void check_memory(const struct workload *w)
{
    struct stream stream = w->stream(w->shape, my_rank, all_ranks);
    unsigned long long here[2] = {stream.memory, stream.bytes}, worst[2];
    stream_free(&stream);
    MPI_Allreduce(here, worst, 2, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    all_ranks_fail_alike = 1;
    if ((w->options->verify || is_view(w->call)) && (worst[0] > MAX_KEPT_BYTES || worst[1] > INT_MAX))
        fail("%llu bytes per rank are kept in memory to %s; at most 1G: use more ranks or less data", worst[0],
             is_view(w->call) ? "do them with one call" : "verify them");
    all_ranks_fail_alike = 0;
}

static void dry_run(const struct workload *w)
{
    if (my_rank != 0)
        return;
    if (w->options->write)
        print_requests(w, FOR_WRITE);
    if (w->options->read)
        print_requests(w, FOR_READ);
}

int run_workload(const struct workload *w)
{
    struct phase phases[2];
    struct outcome outcome = {0, 0};
    int count = 0;
    if (w->options->dry_run) {
        dry_run(w);
        return 0;
    }
    check_memory(w);
    for (int direction = FOR_WRITE; direction >= FOR_READ; direction--) {
        if (!(direction == FOR_WRITE ? w->options->write : w->options->read))
            continue;
        phases[count] = (struct phase){.direction = direction, .rank_s = calloc((size_t)all_ranks, sizeof(double))};
        run_phase(w, &phases[count++], &outcome);
    }
    if (w->options->verify && !w->options->read) {
        struct phase untold = {.direction = FOR_READ, .rank_s = calloc((size_t)all_ranks, sizeof(double))};
        run_phase(w, &untold, &outcome);
        free(untold.rank_s);
    }
    if (my_rank == 0)
        (w->options->json ? print_json : print_text)(w, phases, count, &outcome);
    for (int i = 0; i < count; i++)
        free(phases[i].rank_s);
    MPI_Bcast(&outcome.wrong, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    return outcome.wrong == 0 ? 0 : 1;
}
