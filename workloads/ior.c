/* An IOR-like MPI program: all ranks write and read a shared file or a file each; see usage(). */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "ior_stream.h"

struct options {
    struct stream stream;
    enum api api;
    enum call call;
    const char *path;
    MPI_Info hints;
    uint64_t seed; /* of the data */
    int write, read;
    int ordered; /* the order has a seed of its own */
    int fsync, reorder, verify, json, dry_run;
};

struct phase {
    enum direction direction;
    double open_s, close_s;
    double elapsed_s; /* slowest rank, between barriers, with fsync */
    double *rank_s;   /* every rank's own I/O, without waiting for others; rank 0 only */
};

struct outcome {
    unsigned long long verified, wrong; /* bytes, all ranks; rank 0 only */
};

enum { MAX_KEPT_BYTES = 1 << 30 };

static int rank, ranks;

static void usage(void)
{
    puts("ior: an IOR-like MPI program\n"
         "\n"
         "usage: mpirun -n RANKS ior --file PATH [options]      sizes take K, M, G (binary)\n"
         "\n"
         "  -o, --file PATH           the file; with -F the rank is appended as .00000000\n"
         "  -a, --api A               how it is accessed: mpiio (default); posix; direct: posix, past the page cache\n"
         "  -F, --file-per-process    a file per rank instead of a shared one\n"
         "  -t, --transfer SIZE       bytes of one request (default 256K)\n"
         "  -b, --block SIZE          contiguous bytes of one rank in a segment (default 1M)\n"
         "  -s, --segments N          segments: each has one block per rank (default 1)\n"
         "      --access A            sequential: a rank's blocks front to back (default);\n"
         "                            random: a seeded permutation of all transfers, each done once by some rank;\n"
         "                            strided: transfers dealt out to the ranks in turn\n"
         "      --op write|read|both  (default both: writes, then reads)\n"
         "      --call CALL           at (default): one call per request; all: the collective one; nonblocking;\n"
         "                            view, view-all: one call over a file view of all the requests\n"
         "      --hint KEY=VALUE      a hint for MPI-IO, when the file is opened (repeatable)\n"
         "  -e, --fsync               make the data durable inside the timed write\n"
         "  -C, --reorder             read what the next rank wrote\n"
         "      --seed N              of the permutation and of the data (default 1)\n"
         "      --order N             of the permutation alone: the same data in another order\n"
         "      --verify              check every byte, outside of the timed phases\n"
         "      --json                the result as JSON\n"
         "      --dry-run             print 'rank op offset length path' of every request and do nothing else\n"
         "  -h, --help\n"
         "\n"
         "Existing files are written in place, never truncated. Exit code 1 if anything fails or a byte is wrong.\n"
         "\n"
         "example: mpirun -n 16 ior -o /scratch/f -t 512K -b 64M --access random --op both --verify --json");
}

/* The index of text in names, a NULL-terminated list in the order of an enum. */
static int choice(const char *flag, const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    fail("%s: '%s' is not known; ior --help lists the choices", flag, text);
}

static const char *const APIS[] = {[API_POSIX] = "posix", [API_MPIIO] = "mpiio", [API_DIRECT] = "direct", NULL};
static const char *const CALLS[] = {"at", "all", "nonblocking", "view", "view-all", NULL};
static const char *const ACCESSES[] = {"sequential", "random", "strided", NULL};
static const char *const OPS[] = {"write", "read", "both", NULL};
static const char *const OP_OF[] = {[FOR_READ] = "read", [FOR_WRITE] = "write"};

enum { OPT_ACCESS = 256, OPT_OP, OPT_CALL, OPT_SEED, OPT_ORDER, OPT_VERIFY, OPT_JSON, OPT_DRY_RUN, OPT_HINT };

static const struct option FLAGS[] = {
    {"file", required_argument, NULL, 'o'},       {"api", required_argument, NULL, 'a'},
    {"file-per-process", no_argument, NULL, 'F'}, {"transfer", required_argument, NULL, 't'},
    {"block", required_argument, NULL, 'b'},      {"segments", required_argument, NULL, 's'},
    {"access", required_argument, NULL, OPT_ACCESS}, {"op", required_argument, NULL, OPT_OP},
    {"call", required_argument, NULL, OPT_CALL},  {"fsync", no_argument, NULL, 'e'},
    {"reorder", no_argument, NULL, 'C'},          {"seed", required_argument, NULL, OPT_SEED},
    {"order", required_argument, NULL, OPT_ORDER},
    {"verify", no_argument, NULL, OPT_VERIFY},    {"json", no_argument, NULL, OPT_JSON},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},  {"hint", required_argument, NULL, OPT_HINT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void add_hint(MPI_Info *hints, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || equals - text > MPI_MAX_INFO_KEY)
        fail("--hint '%s' is not KEY=VALUE", text);
    char key[MPI_MAX_INFO_KEY + 1] = "";
    memcpy(key, text, (size_t)(equals - text));
    if (*hints == MPI_INFO_NULL)
        MPI_Info_create(hints);
    MPI_Info_set(*hints, key, equals + 1);
}

static void set_option(struct options *o, int flag, const char *value)
{
    switch (flag) {
    case 'o': o->path = value; break;
    case 'a': o->api = (enum api)choice("--api", value, APIS); break;
    case 'F': o->stream.file_per_process = 1; break;
    case 't': o->stream.transfer = parse_size("--transfer", value); break;
    case 'b': o->stream.block = parse_size("--block", value); break;
    case 's': o->stream.segments = parse_size("--segments", value); break;
    case 'e': o->fsync = 1; break;
    case 'C': o->reorder = 1; break;
    case OPT_ACCESS: o->stream.access = (enum access)choice("--access", value, ACCESSES); break;
    case OPT_CALL: o->call = (enum call)choice("--call", value, CALLS); break;
    case OPT_SEED: o->seed = parse_size("--seed", value); break;
    case OPT_ORDER:
        o->stream.seed = parse_size("--order", value);
        o->ordered = 1;
        break;
    case OPT_VERIFY: o->verify = 1; break;
    case OPT_JSON: o->json = 1; break;
    case OPT_DRY_RUN: o->dry_run = 1; break;
    case OPT_HINT: add_hint(&o->hints, value); break;
    case OPT_OP: {
        int op = choice("--op", value, OPS);
        o->write = op != 1;
        o->read = op != 0;
        break;
    }
    case 'h':
        if (rank == 0)
            usage();
        MPI_Finalize();
        exit(0);
    default: fail("unknown or incomplete option; ior --help lists them");
    }
}

static void check_options(const struct options *o)
{
    const struct stream *s = &o->stream;
    if (!o->path)
        fail("--file is missing; name the file to write or read");
    if (s->transfer == 0 || s->transfer > INT_MAX)
        fail("--transfer must be between 1 byte and 2G - 1");
    if (s->block == 0 || s->block % s->transfer != 0)
        fail("--block %llu must be a multiple of --transfer %llu, and not 0", (unsigned long long)s->block,
             (unsigned long long)s->transfer);
    if (s->segments == 0 || s->block > (uint64_t)INT64_MAX / s->segments / (uint64_t)ranks)
        fail("--segments must be at least 1 and ranks * block * segments below 2^63");
    if (s->access == ACCESS_STRIDED && s->file_per_process)
        fail("--access strided needs a shared file; leave out --file-per-process");
    if (o->api == API_DIRECT && s->transfer % DIRECT_BYTES != 0)
        fail("--api direct needs a --transfer that is a multiple of %d bytes", DIRECT_BYTES);
    if (o->api != API_MPIIO && o->call != CALL_AT)
        fail("--call %s needs --api mpiio", CALLS[o->call]);
    int view = o->call == CALL_VIEW || o->call == CALL_VIEW_ALL;
    if (view && s->access == ACCESS_RANDOM)
        fail("--call %s needs ascending offsets: --access sequential or strided", CALLS[o->call]);
    uint64_t bytes = stream_count(s) * s->transfer;
    if ((o->verify || view) && bytes > MAX_KEPT_BYTES)
        fail("%llu bytes per rank are kept in memory to %s; at most 1G: fewer segments or a smaller block",
             (unsigned long long)bytes, view ? "make a view" : "verify them");
}

static struct options parse_options(int argc, char **argv)
{
    struct options o = {
        .stream = {.transfer = 256 << 10, .block = 1 << 20, .segments = 1},
        .seed = 1,
        .api = API_MPIIO,
        .hints = MPI_INFO_NULL,
        .write = 1,
        .read = 1,
    };
    opterr = rank == 0;
    all_ranks_fail_alike = 1;
    for (int flag; (flag = getopt_long(argc, argv, "o:a:Ft:b:s:eCh", FLAGS, NULL)) != -1;)
        set_option(&o, flag, optarg);
    if (optind < argc)
        fail("'%s' is no option; ior --help lists them", argv[optind]);
    if (!o.ordered)
        o.stream.seed = o.seed;
    check_options(&o);
    all_ranks_fail_alike = 0;
    return o;
}

/* Whose requests `rank_now` does: its own, or when reading reordered the next rank's. */
static int owner(const struct options *o, enum direction direction, int rank_now)
{
    return o->reorder && direction == FOR_READ ? (rank_now + 1) % ranks : rank_now;
}

static char *path_of(const struct options *o, int owner)
{
    char *path = NULL;
    int rc = o->stream.file_per_process ? asprintf(&path, "%s.%08d", o->path, owner) : asprintf(&path, "%s", o->path);
    if (rc < 0)
        fail("no memory for a file name");
    return path;
}

static struct request *requests_of(const struct options *o, int owner)
{
    struct request *requests = malloc(stream_count(&o->stream) * sizeof *requests);
    if (!requests)
        fail("no memory for %llu requests", (unsigned long long)stream_count(&o->stream));
    stream_requests(&o->stream, owner, ranks, requests);
    return requests;
}

static void dry_run(const struct options *o, enum direction direction)
{
    for (int r = 0; r < ranks; r++) {
        struct request *requests = requests_of(o, owner(o, direction, r));
        char *path = path_of(o, owner(o, direction, r));
        for (uint64_t i = 0; i < stream_count(&o->stream); i++)
            printf("%d %s %llu %llu %s\n", r, OP_OF[direction], (unsigned long long)requests[i].offset,
                   (unsigned long long)requests[i].len, path);
        free(path);
        free(requests);
    }
}

/* Opens, transfers, closes; fills phase. The barriers keep one rank's open or close out of another's I/O. */
static void timed(const struct options *o, const char *path, const struct job *job, int sync, struct phase *phase)
{
    struct data_file file;
    MPI_Comm comm = o->stream.file_per_process ? MPI_COMM_SELF : MPI_COMM_WORLD;
    quiet_barrier(MPI_COMM_WORLD);
    double before_open = now_s();
    file_open(&file, o->api, path, comm, job->direction, o->hints);
    double opened = now_s();
    quiet_barrier(MPI_COMM_WORLD);
    double start = now_s();
    file_transfer(&file, job);
    double own = now_s() - start;
    if (sync) {
        if (o->api == API_MPIIO)
            quiet_barrier(comm); /* MPI_File_sync may wait for the others by spinning */
        file_sync(&file);
    }
    double elapsed = now_s() - start;
    quiet_barrier(MPI_COMM_WORLD);
    double before_close = now_s();
    file_close(&file);
    double closed = now_s() - before_close;
    double opening = opened - before_open;
    MPI_Reduce(&elapsed, &phase->elapsed_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&opening, &phase->open_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&closed, &phase->close_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Gather(&own, 1, MPI_DOUBLE, phase->rank_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/* Checks what a read left in the job's buffer and adds to the outcome. */
static void verify(const char *path, const struct job *job, struct outcome *outcome)
{
    unsigned long long here[2] = {0, 0}, sum[2] = {0, 0};
    uint64_t first_bad = 0, found = 0;
    for (size_t i = 0; i < job->count; i++) {
        const struct request *r = &job->requests[i];
        uint64_t bad = pattern_check(job->buf + i * job->slot_bytes, r->len, r->offset, job->key, &found);
        if (bad > 0 && here[1] == 0)
            first_bad = found;
        here[0] += r->len;
        here[1] += bad;
    }
    if (here[1] > 0)
        fprintf(stderr, "ior: rank %d: %llu wrong bytes in '%s', the first at byte %llu\n", rank, here[1], path,
                (unsigned long long)first_bad);
    MPI_Reduce(here, sum, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    outcome->verified += sum[0];
    outcome->wrong += sum[1];
}

/* One phase: the requests in one direction; a read keeps its bytes and checks them if asked to verify. */
static void run_phase(const struct options *o, struct phase *phase, struct outcome *outcome)
{
    int whose = owner(o, phase->direction, rank);
    char *path = path_of(o, whose);
    struct request *requests = requests_of(o, whose);
    size_t count = stream_count(&o->stream);
    int keep = o->verify && phase->direction == FOR_READ;
    struct job job = {
        .direction = phase->direction,
        .call = o->call,
        .requests = requests,
        .count = count,
        .slots = keep ? count : slots_needed(o->call, count),
        .slot_bytes = o->stream.transfer,
        .key = pattern_key(o->seed, o->stream.file_per_process ? (uint64_t)whose + 1 : 0),
    };
    void *buf = NULL;
    int failed = posix_memalign(&buf, DIRECT_BYTES, job.slots * job.slot_bytes);
    job.buf = buf;
    if (failed)
        fail("no memory for %zu buffers of %zu bytes", job.slots, job.slot_bytes);
    memset(job.buf, 0xa5, job.slots * job.slot_bytes); /* page faults now, not in the timed phase */
    timed(o, path, &job, o->fsync && phase->direction == FOR_WRITE, phase);
    if (keep)
        verify(path, &job, outcome);
    free(job.buf);
    free(requests);
    free(path);
}

static double mib_per_s(const struct options *o, const struct phase *phase)
{
    double bytes = (double)stream_count(&o->stream) * (double)o->stream.transfer * ranks;
    return bytes / (1 << 20) / phase->elapsed_s;
}

static void print_json(const struct options *o, const struct phase *phases, int count, const struct outcome *outcome)
{
    const struct stream *s = &o->stream;
    printf("{\"program\": \"ior\", \"ranks\": %d, \"file\": ", ranks);
    print_json_string(o->path);
    printf(", \"api\": \"%s\", \"call\": \"%s\", \"file_per_process\": %s, \"access\": \"%s\"", APIS[o->api],
           CALLS[o->call], s->file_per_process ? "true" : "false", ACCESSES[s->access]);
    printf(", \"transfer\": %llu, \"block\": %llu, \"segments\": %llu, \"seed\": %llu, \"order\": %llu, \"phases\": [",
           (unsigned long long)s->transfer, (unsigned long long)s->block, (unsigned long long)s->segments,
           (unsigned long long)o->seed, (unsigned long long)s->seed);
    for (int i = 0; i < count; i++) {
        const struct phase *p = &phases[i];
        printf("%s{\"op\": \"%s\", \"elapsed_s\": %.6f, \"open_s\": %.6f, \"close_s\": %.6f, \"bytes\": %llu, "
               "\"mib_per_s\": %.3f, \"rank_s\": [",
               i ? ", " : "", OP_OF[p->direction], p->elapsed_s, p->open_s, p->close_s,
               (unsigned long long)(stream_count(s) * s->transfer) * (unsigned)ranks, mib_per_s(o, p));
        for (int r = 0; r < ranks; r++)
            printf("%s%.6f", r ? ", " : "", p->rank_s[r]);
        printf("]}");
    }
    printf("], \"verified_bytes\": %llu, \"wrong_bytes\": %llu}\n", outcome->verified, outcome->wrong);
}

static void print_text(const struct options *o, const struct phase *phases, int count, const struct outcome *outcome)
{
    for (int i = 0; i < count; i++)
        printf("%-5s  %10.3f MiB/s  %9.4f s  (open %.4f s, close %.4f s)\n", OP_OF[phases[i].direction],
               mib_per_s(o, &phases[i]), phases[i].elapsed_s, phases[i].open_s, phases[i].close_s);
    if (o->verify)
        printf("verified %llu bytes, %llu wrong\n", outcome->verified, outcome->wrong);
}

static int run(const struct options *o)
{
    struct phase phases[2];
    struct outcome outcome = {0, 0};
    int count = 0;
    for (int direction = FOR_WRITE; direction >= FOR_READ; direction--) {
        if (!(direction == FOR_WRITE ? o->write : o->read))
            continue;
        phases[count] = (struct phase){.direction = direction, .rank_s = calloc((size_t)ranks, sizeof(double))};
        run_phase(o, &phases[count++], &outcome);
    }
    if (o->verify && !o->read) {
        struct phase untold = {.direction = FOR_READ, .rank_s = calloc((size_t)ranks, sizeof(double))};
        run_phase(o, &untold, &outcome);
        free(untold.rank_s);
    }
    if (rank == 0)
        (o->json ? print_json : print_text)(o, phases, count, &outcome);
    for (int i = 0; i < count; i++)
        free(phases[i].rank_s);
    MPI_Bcast(&outcome.wrong, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    return outcome.wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct options options = parse_options(argc, argv);
    int rc = 0;
    if (!options.dry_run) {
        rc = run(&options);
    } else if (rank == 0) {
        if (options.write)
            dry_run(&options, FOR_WRITE);
        if (options.read)
            dry_run(&options, FOR_READ);
    }
    MPI_Finalize();
    return rc;
}
