/* BT-IO of the NAS Parallel Benchmarks (NPB 3.3 and 3.4,
 * https://www.nas.nasa.gov/software/npb.html; Wong and Wijngaart, "NAS Parallel Benchmarks I/O
 * Version 2.4", NAS report 03-002): a solver on a cube of points that writes its solution, five
 * doubles per point, every five time steps, and reads everything back at the end to verify it.
 *
 * The file is a sequence of dumps; in a dump, x is fastest, then y, then z. Subtype full: one
 * collective call writes all cells of a rank, through a view made of a subarray per cell
 * (BT/full_mpiio.f90). Subtype simple: an independent call for each row in x of each cell, cells
 * in order of z, in a cell y before z (BT/simple_mpiio.f90). This program solves nothing: it
 * spends the time steps between dumps sleeping or busy. */
#include <limits.h>
#include <stdio.h>

#include "btio_cells.h"
#include "run.h"

static const uint64_t UNSET = UINT64_MAX;

enum { POINT_BYTES = 5 * sizeof(double), LEAST_CELL = 3 };

static const struct class {
    const char *name;
    uint64_t points, time_steps;
} CLASSES[] = {{"S", 12, 60},   {"W", 24, 200},  {"A", 64, 200},  {"B", 102, 200},
               {"C", 162, 200}, {"D", 408, 250}, {"E", 1020, 250}};

static const char *const CLASS_NAMES[] = {"S", "W", "A", "B", "C", "D", "E", NULL};
static const char *const SUBTYPES[] = {"full", "simple", NULL};
static const char *const PAUSES[] = {"sleep", "busy", NULL};

struct shape {
    int class;                     /* index into CLASSES */
    uint64_t points;               /* points of the cube in each direction; UNSET: the class's */
    uint64_t time_steps, interval; /* number; time steps between dumps; UNSET: the class's */
    double compute_s;              /* computing time per time step, seconds */
    enum pause pause;
    int simple;
};

enum { OPT_CLASS = OWN_FLAG, OPT_SUBTYPE, OPT_GRID, OPT_STEPS, OPT_INTERVAL, OPT_COMPUTE, OPT_COMPUTE_BY };

static const struct option FLAGS[] = {
    {"class", required_argument, NULL, OPT_CLASS},       {"subtype", required_argument, NULL, OPT_SUBTYPE},
    {"grid", required_argument, NULL, OPT_GRID},         {"steps", required_argument, NULL, OPT_STEPS},
    {"interval", required_argument, NULL, OPT_INTERVAL}, {"compute", required_argument, NULL, OPT_COMPUTE},
    {"compute-by", required_argument, NULL, OPT_COMPUTE_BY},
    {NULL, 0, NULL, 0},
};

static const char OWN_HELP[] =
    "      --class CLASS         size as in NPB: S (12 points in each direction, 60 time steps; default), W (24, 200),\n"
    "                            A (64, 200), B (102, 200), C (162, 200), D (408, 250), E (1020, 250)\n"
    "      --grid N              N points in each direction instead of the class's\n"
    "      --steps N             time steps instead of the class's\n"
    "      --interval N          time steps between dumps (default 5); the last time step is dumped in any case\n"
    "      --subtype full|simple full (default): a collective call per dump; simple: an independent call per row\n"
    "      --compute SECONDS     what a time step takes to compute (default 0)\n"
    "      --compute-by HOW      sleep (default: leaves the processors to others) or busy (uses so much CPU time)\n";

static const char EXAMPLES[] =
    "The number of ranks must be a square (1, 4, 9, ...), and every cell at least 3 points wide. The read phase is\n"
    "BT-IO's read-back of all dumps; with --verify every byte of it is checked. Results tell the time that went into\n"
    "computing.\n"
    "\n"
    "examples:\n"
    "  mpirun -n 4 btio -o /scratch/f --class A --compute 0.01 --verify --json\n"
    "  mpirun -n 16 btio -o /scratch/f --class C --subtype full --op write";

static void set(void *of, int flag, const char *value)
{
    struct shape *s = of;
    switch (flag) {
    case OPT_CLASS: s->class = parse_choice("--class", value, CLASS_NAMES); break;
    case OPT_SUBTYPE: s->simple = parse_choice("--subtype", value, SUBTYPES); break;
    case OPT_GRID: s->points = parse_size("--grid", value); break;
    case OPT_STEPS: s->time_steps = parse_size("--steps", value); break;
    case OPT_INTERVAL: s->interval = parse_size("--interval", value); break;
    case OPT_COMPUTE: s->compute_s = parse_seconds("--compute", value); break;
    case OPT_COMPUTE_BY: s->pause = (enum pause)parse_choice("--compute-by", value, PAUSES); break;
    }
}

/* Checks the flags against each other and the ranks, and fills in the class's values. */
static void check(struct shape *s, const struct options *o)
{
    s->points = s->points == UNSET ? CLASSES[s->class].points : s->points;
    s->time_steps = s->time_steps == UNSET ? CLASSES[s->class].time_steps : s->time_steps;
    int q = square_root(o->dry_ranks);
    if (q == 0)
        fail("%d ranks: BT-IO needs a square number; start 1, 4, 9, 16, ...", o->dry_ranks);
    if (s->points / (uint64_t)q < LEAST_CELL)
        fail("%llu points in %d cells: cells must be at least %d points wide; choose fewer ranks, a larger --class or "
             "--grid",
             (unsigned long long)s->points, q, LEAST_CELL);
    if (s->time_steps == 0 || s->interval == 0 || s->time_steps > INT_MAX || s->interval > INT_MAX)
        fail("--steps %llu and --interval %llu must be between 1 and 2G - 1", (unsigned long long)s->time_steps,
             (unsigned long long)s->interval);
    if (s->points > INT_MAX ||
        (double)s->points * (double)s->points * (double)s->points * POINT_BYTES * (double)s->time_steps > 0x1p62)
        fail("--grid %llu makes a file of more than 2^62 bytes; choose less", (unsigned long long)s->points);
}

static uint64_t points_of(struct cell cell)
{
    return cell.size[0] * cell.size[1] * cell.size[2];
}

/* Requests of the simple subtype, in its order; at the same time the contiguous pieces of the
 * full one. */
static struct request at(const struct stream *stream, uint64_t step, uint64_t row)
{
    const struct shape *s = stream->shape;
    int q = square_root(stream->ranks), layer = 0;
    uint64_t n = s->points, before = 0; /* points of this rank in previous cells */
    struct cell cell = cell_of(n, q, stream->rank, layer);
    while (row >= cell.size[1] * cell.size[2]) {
        row -= cell.size[1] * cell.size[2];
        before += points_of(cell);
        cell = cell_of(n, q, stream->rank, ++layer);
    }
    uint64_t y = row % cell.size[1], z = row / cell.size[1];
    uint64_t point = ((step * n + cell.low[2] + z) * n + cell.low[1] + y) * n + cell.low[0];
    return (struct request){point * POINT_BYTES, cell.size[0] * POINT_BYTES,
                            (before + row * cell.size[0]) * POINT_BYTES};
}

static struct stream stream_of(const void *of, int rank, int ranks)
{
    const struct shape *s = of;
    struct stream stream = {.at = at, .shape = s, .rank = rank, .ranks = ranks};
    int q = square_root(ranks);
    for (int layer = 0; layer < q; layer++) {
        struct cell cell = cell_of(s->points, q, rank, layer);
        stream.count += cell.size[1] * cell.size[2];
        stream.bytes += points_of(cell) * POINT_BYTES;
        if (cell.size[0] * POINT_BYTES > stream.largest)
            stream.largest = cell.size[0] * POINT_BYTES;
    }
    stream.memory = stream.bytes;
    return stream;
}

/* A cell as a subarray of the cube of elements. */
static MPI_Datatype subarray_of(struct cell cell, uint64_t points, MPI_Datatype element)
{
    int whole[3] = {(int)points, (int)points, (int)points}, part[3], from[3];
    for (int axis = 0; axis < 3; axis++) {
        part[2 - axis] = (int)cell.size[axis]; /* C's order: x, the fastest, is the last */
        from[2 - axis] = (int)cell.low[axis];
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(3, whole, part, from, MPI_ORDER_C, element, &type);
    return type;
}

static struct view view_of(const struct stream *stream)
{
    const struct shape *s = stream->shape;
    int q = square_root(stream->ranks);
    struct view view = {
        .memory_count = (int)(stream->bytes / POINT_BYTES),
        .step_elements = (MPI_Offset)(stream->bytes / POINT_BYTES),
    };
    MPI_Datatype cells[q];
    MPI_Aint places[q];
    int ones[q];
    MPI_Type_contiguous(POINT_BYTES / sizeof(double), MPI_DOUBLE, &view.element);
    for (int layer = 0; layer < q; layer++) {
        cells[layer] = subarray_of(cell_of(s->points, q, stream->rank, layer), s->points, view.element);
        places[layer] = 0;
        ones[layer] = 1;
    }
    MPI_Type_create_struct(q, ones, places, cells, &view.file);
    for (int layer = 0; layer < q; layer++)
        MPI_Type_free(&cells[layer]);
    view.memory = view.element;
    view_commit(&view);
    return view;
}

static void print_shape(const void *of)
{
    const struct shape *s = of;
    printf("\"class\": \"%s\", \"subtype\": \"%s\", \"grid\": %llu, \"steps\": %llu, \"interval\": %llu, ",
           CLASSES[s->class].name, SUBTYPES[s->simple], (unsigned long long)s->points,
           (unsigned long long)s->time_steps, (unsigned long long)s->interval);
    printf("\"compute\": %.9g, \"compute_by\": \"%s\", ", s->compute_s, PAUSES[s->pause]);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    struct options options;
    struct shape shape = {.points = UNSET, .time_steps = UNSET, .interval = 5};
    const struct command command = {
        .program = "btio",
        .about = "a BT-IO-like MPI program: a solution in three dimensions, written every few time steps",
        .own = OWN_HELP,
        .examples = EXAMPLES,
        .flags = FLAGS,
        .letters = "",
        .set = set,
    };
    parse_options(argc, argv, &command, &shape, &options);
    check(&shape, &options);
    all_ranks_fail_alike = 0;
    uint64_t dumps = (shape.time_steps + shape.interval - 1) / shape.interval;
    uint64_t last = shape.time_steps - (dumps - 1) * shape.interval; /* time steps before the last dump */
    int rc = run_workload(&(struct workload){
        .program = "btio",
        .options = &options,
        .shape = &shape,
        .api = API_MPIIO,
        .call = shape.simple ? CALL_AT : CALL_VIEW_ALL,
        .steps = dumps,
        .compute_s = shape.compute_s * (double)shape.interval,
        .last_compute_s = shape.compute_s * (double)last,
        .compute_by = shape.pause,
        .stream = stream_of,
        .view = view_of,
        .print_shape = print_shape,
    });
    MPI_Finalize();
    return rc;
}
