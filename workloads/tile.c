/* mpi-tile-io of the Parallel I/O Benchmarking Consortium (R. Ross,
 * https://www.mcs.anl.gov/research/projects/pio-benchmark/): a dense two-dimensional array of
 * elements in a file, row by row, of which every rank has a tile; neighboring tiles may overlap,
 * as the displays of a video wall do.
 *
 * The array has tiles_x * tile_x - (tiles_x - 1) * overlap_x elements in x, and likewise in y.
 * Ranks are numbered along x first; a rank's tile starts (tile - overlap) elements after its
 * neighbor's. One call makes a rank's requests, through a view that is a subarray of elements,
 * after the header. */
#include <limits.h>
#include <stdio.h>

#include "run.h"

struct shape {
    uint64_t tiles[2], tile[2], overlap[2]; /* number; elements; elements; each in x and y */
    uint64_t element, header;               /* bytes */
    int by_row, collective;
};

static const char *const CALLS[] = {"view", "row", NULL};

/* Flags for x; the flag for y is the next one. */
enum { OPT_TILES = OWN_FLAG, OPT_TILE = OPT_TILES + 2, OPT_OVERLAP = OPT_TILE + 2 };
enum { OPT_ELEMENT = OPT_OVERLAP + 2, OPT_HEADER, OPT_CALL, OPT_COLLECTIVE };

/* Each flag also has mpi-tile-io's name. */
static const struct option FLAGS[] = {
    {"tiles-x", required_argument, NULL, OPT_TILES},       {"nr_tiles_x", required_argument, NULL, OPT_TILES},
    {"tiles-y", required_argument, NULL, OPT_TILES + 1},   {"nr_tiles_y", required_argument, NULL, OPT_TILES + 1},
    {"elements-x", required_argument, NULL, OPT_TILE},     {"sz_tile_x", required_argument, NULL, OPT_TILE},
    {"elements-y", required_argument, NULL, OPT_TILE + 1}, {"sz_tile_y", required_argument, NULL, OPT_TILE + 1},
    {"element-size", required_argument, NULL, OPT_ELEMENT}, {"sz_element", required_argument, NULL, OPT_ELEMENT},
    {"overlap-x", required_argument, NULL, OPT_OVERLAP},   {"overlap_x", required_argument, NULL, OPT_OVERLAP},
    {"overlap-y", required_argument, NULL, OPT_OVERLAP + 1}, {"overlap_y", required_argument, NULL, OPT_OVERLAP + 1},
    {"header", required_argument, NULL, OPT_HEADER},       {"header_bytes", required_argument, NULL, OPT_HEADER},
    {"call", required_argument, NULL, OPT_CALL},           {"collective", no_argument, NULL, OPT_COLLECTIVE},
    {NULL, 0, NULL, 0},
};

static const char OWN_HELP[] =
    "      --tiles-x N           tiles in x (default 1); mpi-tile-io's names work as well: --nr_tiles_x,\n"
    "      --tiles-y N           tiles in y (default 1)                                     --nr_tiles_y,\n"
    "      --elements-x N        elements of a tile in x (default 1024)                     --sz_tile_x,\n"
    "      --elements-y N        elements of a tile in y (default 1024)                     --sz_tile_y,\n"
    "      --element-size SIZE   bytes of an element (default 3)                            --sz_element,\n"
    "      --overlap-x N         elements that neighbours in x share (default 0)            --overlap_x,\n"
    "      --overlap-y N         elements that neighbours in y share (default 0)            --overlap_y,\n"
    "      --header SIZE         bytes before the array (default 0)                         --header_bytes\n"
    "      --call CALL           view (default): one call for a tile, as mpi-tile-io does; row: one call per row\n"
    "      --collective          collective calls (two-phase I/O)\n";

static const char EXAMPLES[] =
    "There are as many ranks as tiles. Shared elements are written by all who have them, with the same bytes.\n"
    "MPI-IO's data sieving is off, so that every contiguous piece is a request, as on parallel file systems; it is back\n"
    "with --hint romio_ds_write=automatic (Open MPI: OMPI_MCA_fbtl_posix_write_datasieving=1; and likewise _read).\n"
    "\n"
    "example: mpirun -n 4 tile -o /scratch/f --tiles-x 2 --tiles-y 2 --elements-x 8 --elements-y 8 --element-size 32K \\\n"
    "             --collective --verify --json";

static void set(void *of, int flag, const char *value)
{
    struct shape *s = of;
    switch (flag) {
    case OPT_TILES: s->tiles[0] = parse_size("--tiles-x", value); break;
    case OPT_TILES + 1: s->tiles[1] = parse_size("--tiles-y", value); break;
    case OPT_TILE: s->tile[0] = parse_size("--elements-x", value); break;
    case OPT_TILE + 1: s->tile[1] = parse_size("--elements-y", value); break;
    case OPT_OVERLAP: s->overlap[0] = parse_size("--overlap-x", value); break;
    case OPT_OVERLAP + 1: s->overlap[1] = parse_size("--overlap-y", value); break;
    case OPT_ELEMENT: s->element = parse_size("--element-size", value); break;
    case OPT_HEADER: s->header = parse_size("--header", value); break;
    case OPT_CALL: s->by_row = parse_choice("--call", value, CALLS); break;
    case OPT_COLLECTIVE: s->collective = 1; break;
    }
}

/* Number of elements of the whole array in x (0) or y (1). */
static uint64_t array(const struct shape *s, int axis)
{
    return s->tiles[axis] * s->tile[axis] - (s->tiles[axis] - 1) * s->overlap[axis];
}

static void check_axis(const struct shape *s, int axis)
{
    char name = "xy"[axis];
    if (s->tiles[axis] == 0 || s->tiles[axis] > INT_MAX || s->tile[axis] == 0 || s->tile[axis] > INT_MAX)
        fail("--tiles-%c %llu and --elements-%c %llu must be between 1 and 2G - 1", name,
             (unsigned long long)s->tiles[axis], name, (unsigned long long)s->tile[axis]);
    if (s->overlap[axis] >= s->tile[axis])
        fail("--overlap-%c %llu: tiles of %llu elements cannot overlap by all of them; choose less", name,
             (unsigned long long)s->overlap[axis], (unsigned long long)s->tile[axis]);
    if (array(s, axis) > INT_MAX)
        fail("%llu elements in %c are more than MPI counts (2G - 1); choose fewer tiles or elements",
             (unsigned long long)array(s, axis), name);
}

static void check(const struct shape *s, const struct options *o)
{
    check_axis(s, 0);
    check_axis(s, 1);
    if (s->element == 0 || s->element > INT_MAX)
        fail("--element-size %llu must be between 1 and 2G - 1", (unsigned long long)s->element);
    if (s->header > INT64_MAX / 2 || s->element > (uint64_t)INT64_MAX / 2 / array(s, 0) / array(s, 1))
        fail("the file would be larger than 2^62 bytes; choose fewer tiles or elements, or a smaller --header");
    if (s->tiles[0] * s->tiles[1] != (uint64_t)o->dry_ranks)
        fail("%llu x %llu tiles need %llu ranks, but there are %d; start as many (mpirun -n %llu)",
             (unsigned long long)s->tiles[0], (unsigned long long)s->tiles[1],
             (unsigned long long)(s->tiles[0] * s->tiles[1]), o->dry_ranks,
             (unsigned long long)(s->tiles[0] * s->tiles[1]));
}

/* The first element of a rank's tile in x (0) or y (1). */
static uint64_t first(const struct shape *s, int rank, int axis)
{
    uint64_t number = axis == 0 ? (uint64_t)rank % s->tiles[0] : (uint64_t)rank / s->tiles[0];
    return number * (s->tile[axis] - s->overlap[axis]);
}

static struct request at(const struct stream *stream, uint64_t step, uint64_t row)
{
    const struct shape *s = stream->shape;
    uint64_t element = (first(s, stream->rank, 1) + row) * array(s, 0) + first(s, stream->rank, 0);
    (void)step;
    return (struct request){s->header + element * s->element, s->tile[0] * s->element, row * s->tile[0] * s->element};
}

static struct stream stream_of(const void *of, int rank, int ranks)
{
    const struct shape *s = of;
    uint64_t bytes = s->tile[0] * s->tile[1] * s->element;
    return (struct stream){
        .at = at,
        .count = s->tile[1],
        .bytes = bytes,
        .memory = bytes,
        .largest = s->tile[0] * s->element,
        .shape = s,
        .rank = rank,
        .ranks = ranks,
    };
}

static struct view view_of(const struct stream *stream)
{
    const struct shape *s = stream->shape;
    int whole[2] = {(int)array(s, 1), (int)array(s, 0)};
    int part[2] = {(int)s->tile[1], (int)s->tile[0]};
    int from[2] = {(int)first(s, stream->rank, 1), (int)first(s, stream->rank, 0)};
    struct view view = {
        .start = (MPI_Offset)s->header,
        .memory_count = (int)(s->tile[0] * s->tile[1]),
        .step_elements = (MPI_Offset)(s->tile[0] * s->tile[1]),
    };
    MPI_Type_contiguous((int)s->element, MPI_BYTE, &view.element);
    MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, view.element, &view.file);
    view.memory = view.element;
    view_commit(&view);
    return view;
}

static void print_shape(const void *of)
{
    const struct shape *s = of;
    printf("\"tiles_x\": %llu, \"tiles_y\": %llu, \"elements_x\": %llu, \"elements_y\": %llu, \"element_size\": %llu, ",
           (unsigned long long)s->tiles[0], (unsigned long long)s->tiles[1], (unsigned long long)s->tile[0],
           (unsigned long long)s->tile[1], (unsigned long long)s->element);
    printf("\"overlap_x\": %llu, \"overlap_y\": %llu, \"header\": %llu, \"call\": \"%s\", \"collective\": %s, ",
           (unsigned long long)s->overlap[0], (unsigned long long)s->overlap[1], (unsigned long long)s->header,
           CALLS[s->by_row], s->collective ? "true" : "false");
}

int main(int argc, char **argv)
{
    no_data_sieving_environment();
    start(&argc, &argv);
    struct options options;
    struct shape shape = {.tiles = {1, 1}, .tile = {1024, 1024}, .element = 3}; /* mpi-tile-io's defaults */
    const struct command command = {
        .program = "tile",
        .about = "an mpi-tile-io-like MPI program: a two-dimensional array of elements, a tile per rank",
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
    int rc = run_workload(&(struct workload){
        .program = "tile",
        .options = &options,
        .shape = &shape,
        .api = API_MPIIO,
        .call = shape.by_row ? (shape.collective ? CALL_AT_ALL : CALL_AT)
                             : (shape.collective ? CALL_VIEW_ALL : CALL_VIEW),
        .steps = 1,
        .stream = stream_of,
        .view = view_of,
        .print_shape = print_shape,
    });
    MPI_Finalize();
    return rc;
}
