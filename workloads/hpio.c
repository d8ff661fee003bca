/* HPIO, the "high-performance I/O" benchmark of A. Ching et al. ("Evaluating I/O characteristics
 * and methods for storing structured scientific data", IPDPS 2006; version 1.55,
 * http://users.eecs.northwestern.edu/~aching/research_webpage/hpio.html): regions of one size
 * with spacing between them, contiguous or not in memory and in the file.
 *
 * Where HPIO puts them: in a noncontiguous file, rank r's region i starts at (i * ranks + r) *
 * (size + spacing); in a contiguous file, rank r has regions * size bytes from r * regions *
 * size on. One MPI call makes all of a rank's requests, through a file view. In noncontiguous
 * memory, regions lie size + spacing apart. */
#include <limits.h>
#include <stdio.h>

#include "run.h"

struct shape {
    uint64_t regions, size; /* number per rank; bytes of a region */
    uint64_t spacing;       /* bytes, as given */
    uint64_t file_gap, memory_gap; /* bytes between regions: spacing or 0 */
    int interleaved, scattered;    /* the ranks' regions take turns in the file; regions lie apart in memory */
    int type;                      /* index into TYPES or -1 */
    int by_region, collective;
};

static const char *const TYPES[] = {"c-c", "nc-c", "c-nc", "nc-nc", NULL};
static const char *const MEMORIES[] = {"contiguous", "noncontiguous", NULL};
static const char *const CALLS[] = {"view", "region", NULL};

enum { OPT_REGIONS = OWN_FLAG, OPT_SIZE, OPT_SPACING, OPT_INTERLEAVED, OPT_MEMORY, OPT_TYPE, OPT_CALL, OPT_COLLECTIVE };

static const struct option FLAGS[] = {
    {"regions", required_argument, NULL, OPT_REGIONS},
    {"region-size", required_argument, NULL, OPT_SIZE},
    {"spacing", required_argument, NULL, OPT_SPACING},
    {"interleaved", no_argument, NULL, OPT_INTERLEAVED},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"type", required_argument, NULL, OPT_TYPE},
    {"call", required_argument, NULL, OPT_CALL},
    {"collective", no_argument, NULL, OPT_COLLECTIVE},
    {NULL, 0, NULL, 0},
};

static const char OWN_HELP[] =
    "      --regions N           regions of each rank (default 4096)\n"
    "      --region-size SIZE    bytes of a region (default 16K)\n"
    "      --spacing SIZE        bytes between regions (default 0)\n"
    "      --interleaved         the ranks' regions take turns in the file, as in HPIO's noncontiguous files;\n"
    "                            otherwise each rank has a part of its own\n"
    "      --memory M            contiguous (default), or noncontiguous: regions lie the spacing apart\n"
    "      --type TYPE           HPIO's -n, memory-file: c-c, nc-c (file: own parts without spacing), c-nc, nc-nc\n"
    "                            (file: --interleaved, with spacing); instead of --interleaved and --memory\n"
    "      --call CALL           view (default): one call for all regions of a rank, as HPIO does;\n"
    "                            region: one call per region\n"
    "      --collective          collective calls (two-phase I/O)\n";

static const char EXAMPLES[] =
    "MPI-IO's data sieving is off, so that every contiguous piece is a request, as on parallel file systems; it is back\n"
    "with --hint romio_ds_write=automatic (Open MPI: OMPI_MCA_fbtl_posix_write_datasieving=1; and likewise _read).\n"
    "\n"
    "examples:\n"
    "  mpirun -n 32 hpio -o /scratch/f --regions 4096 --region-size 16K --spacing 1K --type c-nc --verify\n"
    "  mpirun -n 32 hpio -o /scratch/f --regions 1024 --region-size 64K --interleaved --collective --json";

static void set(void *of, int flag, const char *value)
{
    struct shape *s = of;
    switch (flag) {
    case OPT_REGIONS: s->regions = parse_size("--regions", value); break;
    case OPT_SIZE: s->size = parse_size("--region-size", value); break;
    case OPT_SPACING: s->spacing = parse_size("--spacing", value); break;
    case OPT_INTERLEAVED: s->interleaved = 1; break;
    case OPT_MEMORY: s->scattered = parse_choice("--memory", value, MEMORIES); break;
    case OPT_TYPE: s->type = parse_choice("--type", value, TYPES); break;
    case OPT_CALL: s->by_region = parse_choice("--call", value, CALLS); break;
    case OPT_COLLECTIVE: s->collective = 1; break;
    }
}

/* Checks the flags against each other and applies --type. */
static void check(struct shape *s, const struct options *o)
{
    if (s->regions == 0 || s->regions > INT_MAX || s->size == 0 || s->size > INT_MAX)
        fail("--regions %llu and --region-size %llu must be between 1 and 2G - 1", (unsigned long long)s->regions,
             (unsigned long long)s->size);
    if (s->spacing > INT_MAX ||
        s->size + s->spacing > (uint64_t)INT64_MAX / s->regions / (uint64_t)o->dry_ranks)
        fail("--spacing %llu makes a file of more than 2^63 bytes; choose less", (unsigned long long)s->spacing);
    if (s->type >= 0 && (s->interleaved || s->scattered))
        fail("--type %s says it all; leave out --interleaved and --memory", TYPES[s->type]);
    int contiguous_file = s->type == 0 || s->type == 1;
    if (s->type >= 0) {
        s->interleaved = !contiguous_file;
        s->scattered = s->type == 1 || s->type == 3;
    }
    s->file_gap = contiguous_file ? 0 : s->spacing;
    s->memory_gap = s->scattered ? s->spacing : 0;
}

static uint64_t file_stride(const struct shape *s, int ranks)
{
    return (s->size + s->file_gap) * (s->interleaved ? (uint64_t)ranks : 1);
}

static struct request at(const struct stream *stream, uint64_t step, uint64_t i)
{
    const struct shape *s = stream->shape;
    uint64_t before = (uint64_t)stream->rank * (s->interleaved ? 1 : s->regions);
    uint64_t offset = before * (s->size + s->file_gap) + i * file_stride(s, stream->ranks);
    (void)step;
    return (struct request){offset, s->size, i * (s->size + s->memory_gap)};
}

static struct stream stream_of(const void *of, int rank, int ranks)
{
    const struct shape *s = of;
    return (struct stream){
        .at = at,
        .count = s->regions,
        .bytes = s->regions * s->size,
        .memory = s->regions * s->size + (s->regions - 1) * s->memory_gap,
        .largest = s->size,
        .shape = s,
        .rank = rank,
        .ranks = ranks,
    };
}

static struct view view_of(const struct stream *stream)
{
    const struct shape *s = stream->shape;
    struct view view = {
        .start = (MPI_Offset)at(stream, 0, 0).offset,
        .element = MPI_BYTE,
        .memory_count = 1,
        .step_elements = (MPI_Offset)stream->bytes,
    };
    MPI_Aint in_file = (MPI_Aint)file_stride(s, stream->ranks), in_memory = (MPI_Aint)(s->size + s->memory_gap);
    MPI_Type_create_hvector((int)s->regions, (int)s->size, in_file, MPI_BYTE, &view.file);
    MPI_Type_create_hvector((int)s->regions, (int)s->size, in_memory, MPI_BYTE, &view.memory);
    view_commit(&view);
    return view;
}

static void print_shape(const void *of)
{
    const struct shape *s = of;
    printf("\"regions\": %llu, \"region_size\": %llu, \"spacing\": %llu, ", (unsigned long long)s->regions,
           (unsigned long long)s->size, (unsigned long long)s->spacing);
    printf("\"file_spacing\": %llu, \"interleaved\": %s, \"memory\": \"%s\", \"call\": \"%s\", \"collective\": %s, ",
           (unsigned long long)s->file_gap, s->interleaved ? "true" : "false", MEMORIES[s->scattered],
           CALLS[s->by_region], s->collective ? "true" : "false");
}

int main(int argc, char **argv)
{
    no_data_sieving_environment();
    start(&argc, &argv);
    struct options options;
    struct shape shape = {.regions = 4096, .size = 16 << 10, .type = -1};
    const struct command command = {
        .program = "hpio",
        .about = "an HPIO-like MPI program: regions of one size with spacing between them",
        .own = OWN_HELP,
        .examples = EXAMPLES,
        .flags = FLAGS,
        .letters = "",
        .set = set,
    };
    parse_options(argc, argv, &command, &shape, &options);
    check(&shape, &options);
    all_ranks_fail_alike = 0;
    no_data_sieving(&options);
    if (shape.collective)
        always_two_phase(&options); /* as HPIO does */
    int rc = run_workload(&(struct workload){
        .program = "hpio",
        .options = &options,
        .shape = &shape,
        .api = API_MPIIO,
        .call = shape.by_region ? (shape.collective ? CALL_AT_ALL : CALL_AT)
                                : (shape.collective ? CALL_VIEW_ALL : CALL_VIEW),
        .steps = 1,
        .stream = stream_of,
        .view = view_of,
        .print_shape = print_shape,
    });
    MPI_Finalize();
    return rc;
}
