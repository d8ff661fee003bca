/* An IOR-like MPI program: all ranks write and read a shared file or a file each.
 * IOR's documentation: https://ior.readthedocs.io (options -a -b -t -s -F -z -e -C -c). */
#include <limits.h>
#include <stdio.h>

#include "ior_stream.h"
#include "run.h"

struct shape {
    struct ior_shape ior; /* must be first: streams are created from it */
    enum api api;
    enum call call;
    int ordered; /* whether the order has a separate seed */
    uint64_t reorder; /* a rank reads the data of the rank this many after it */
};

static const char *const APIS[] = {[API_POSIX] = "posix", [API_MPIIO] = "mpiio", [API_DIRECT] = "direct", NULL};
static const char *const CALLS[] = {"at", "all", "nonblocking", "view", "view-all", NULL};
static const char *const ACCESSES[] = {"sequential", "random", "strided", NULL};
static const char *const WITHINS[] = {"even", "file", "block", NULL};

enum { OPT_ACCESS = OWN_FLAG, OPT_WITHIN, OPT_CALL, OPT_ORDER };

static const struct option FLAGS[] = {
    {"api", required_argument, NULL, 'a'},           {"file-per-process", no_argument, NULL, 'F'},
    {"transfer", required_argument, NULL, 't'},      {"block", required_argument, NULL, 'b'},
    {"segments", required_argument, NULL, 's'},      {"access", required_argument, NULL, OPT_ACCESS},
    {"random-within", required_argument, NULL, OPT_WITHIN}, {"call", required_argument, NULL, OPT_CALL},
    {"reorder", optional_argument, NULL, 'C'},       {"order", required_argument, NULL, OPT_ORDER},
    {NULL, 0, NULL, 0},
};

static const char OWN_HELP[] =
    "  -a, --api A               how the file is accessed: mpiio (default); posix; direct: posix, past the page cache\n"
    "  -F, --file-per-process    a file per rank instead of a shared one: the rank is appended as .00000000\n"
    "  -t, --transfer SIZE       bytes of one request (default 256K)\n"
    "  -b, --block SIZE          contiguous bytes of one rank in a segment (default 1M)\n"
    "  -s, --segments N          segments: each has one block per rank (default 1)\n"
    "      --access A            sequential: a rank's blocks front to back (default);\n"
    "                            random: in an order by chance, see --random-within;\n"
    "                            strided: transfers dealt out to the ranks in turn\n"
    "      --random-within W     even: a seeded permutation of all transfers, equally many for each rank (default);\n"
    "                            file: as IOR -z: the transfers of a segment are dealt out to the ranks by chance\n"
    "                            (some get more), with the C library's random(), then shuffled by each;\n"
    "                            block: each rank shuffles its own blocks\n"
    "      --call CALL           at (default): one call per request; all: the collective one; nonblocking;\n"
    "                            view, view-all: one call over a file view of all the requests\n"
    "  -C, --reorder[=N]         read what the next rank wrote, or the Nth after (IOR -C -Q 1: ranks of a node)\n"
    "      --order N             seed of the random order alone, otherwise --seed: the same data in another order\n";

static const char EXAMPLES[] =
    "examples:\n"
    "  mpirun -n 16 ior -o /scratch/f -t 512K -b 64M --access random --op both --verify --json\n"
    "  mpirun -n 8 ior -o /scratch/f -F -a posix -t 64K -b 64M -e        a file of 64M per process, made durable";

static void set(void *of, int flag, const char *value)
{
    struct shape *s = of;
    switch (flag) {
    case 'a': s->api = (enum api)parse_choice("--api", value, APIS); break;
    case 'F': s->ior.file_per_process = 1; break;
    case 't': s->ior.transfer = parse_size("--transfer", value); break;
    case 'b': s->ior.block = parse_size("--block", value); break;
    case 's': s->ior.segments = parse_size("--segments", value); break;
    case 'C': s->reorder = value ? parse_size("--reorder", value) : 1; break;
    case OPT_ACCESS: s->ior.access = (enum access)parse_choice("--access", value, ACCESSES); break;
    case OPT_WITHIN: s->ior.within = (enum within)parse_choice("--random-within", value, WITHINS); break;
    case OPT_CALL: s->call = (enum call)parse_choice("--call", value, CALLS); break;
    case OPT_ORDER:
        s->ior.seed = parse_size("--order", value);
        s->ordered = 1;
        break;
    }
}

static void check(const struct shape *shape, const struct options *o)
{
    const struct ior_shape *s = &shape->ior;
    if (s->transfer == 0 || s->transfer > INT_MAX)
        fail("--transfer must be between 1 byte and 2G - 1");
    if (s->block == 0 || s->block % s->transfer != 0)
        fail("--block %llu must be a multiple of --transfer %llu, and not 0", (unsigned long long)s->block,
             (unsigned long long)s->transfer);
    if (s->segments == 0 || s->block > (uint64_t)INT64_MAX / s->segments / (uint64_t)o->dry_ranks)
        fail("--segments must be at least 1 and ranks * block * segments below 2^63");
    if (s->access == ACCESS_STRIDED && s->file_per_process)
        fail("--access strided needs a shared file; leave out --file-per-process");
    if (shape->api == API_DIRECT && shape->ior.transfer % PAGE_BYTES != 0)
        fail("--api direct needs a --transfer that is a multiple of %d bytes", PAGE_BYTES);
    if (shape->api != API_MPIIO && shape->call != CALL_AT)
        fail("--call %s needs --api mpiio", CALLS[shape->call]);
    int view = shape->call == CALL_VIEW || shape->call == CALL_VIEW_ALL;
    if (view && s->access == ACCESS_RANDOM)
        fail("--call %s needs ascending offsets: --access sequential or strided", CALLS[shape->call]);
    if (shape->call == CALL_AT_ALL && s->access == ACCESS_RANDOM && s->within == WITHIN_FILE && !s->file_per_process)
        fail("--call all needs equally many requests per rank: --random-within even or block, or --call at");
}

static void print_shape(const void *of)
{
    const struct shape *shape = of;
    const struct ior_shape *s = &shape->ior;
    printf("\"api\": \"%s\", \"call\": \"%s\", \"file_per_process\": %s, \"access\": \"%s\", ", APIS[shape->api],
           CALLS[shape->call], s->file_per_process ? "true" : "false", ACCESSES[s->access]);
    if (s->access == ACCESS_RANDOM)
        printf("\"random_within\": \"%s\", ", WITHINS[s->within]);
    printf("\"transfer\": %llu, \"block\": %llu, \"segments\": %llu, \"order\": %llu, ",
           (unsigned long long)s->transfer, (unsigned long long)s->block, (unsigned long long)s->segments,
           (unsigned long long)s->seed);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct options options;
    struct shape shape = {
        .ior = {.transfer = 256 << 10, .block = 1 << 20, .segments = 1},
        .api = API_MPIIO,
    };
    const struct command command = {
        .program = "ior",
        .about = "an IOR-like MPI program: blocks of transfers, in one shared file or in a file per process",
        .own = OWN_HELP,
        .examples = EXAMPLES,
        .flags = FLAGS,
        .letters = "a:Ft:b:s:C",
        .set = set,
    };
    parse_options(argc, argv, &command, &shape, &options);
    if (!shape.ordered)
        shape.ior.seed = options.seed;
    check(&shape, &options);
    all_ranks_fail_alike = 0;
    int rc = run_workload(&(struct workload){
        .program = "ior",
        .options = &options,
        .shape = &shape,
        .api = shape.api,
        .call = shape.call,
        .file_per_process = shape.ior.file_per_process,
        .read_shift = (int)(shape.reorder % (uint64_t)options.dry_ranks),
        .steps = 1,
        .stream = ior_stream,
        .print_shape = print_shape,
    });
    MPI_Finalize();
    return rc;
}
