/* Finds how a filetype cuts the file into pieces. */
#include <stdlib.h>

#include "shim.h"

/* Types with more integers than this are not examined. */
enum { INTEGERS_MAX = 1 << 20 };
enum { UNKNOWN = -1 };

static int64_t pieces_of(MPI_Datatype type);

/* Whether the type's bytes are contiguous, also when it is repeated. */
static int is_dense(MPI_Datatype type)
{
    MPI_Count size, lower, extent, true_lower, true_extent;
    PMPI(Type_size_x)(type, &size);
    PMPI(Type_get_extent_x)(type, &lower, &extent);
    PMPI(Type_get_true_extent_x)(type, &true_lower, &true_extent);
    return size == extent && size == true_extent;
}

/* Number of pieces of `repeats` blocks, each of `length` elements of the type. */
static int64_t of_blocks(MPI_Datatype type, int64_t repeats, int64_t length)
{
    if (is_dense(type))
        return repeats;
    int64_t inner = pieces_of(type);
    return inner == UNKNOWN ? UNKNOWN : repeats * length * inner;
}

static int64_t of_lengths(const int *lengths, int count, MPI_Datatype type)
{
    int64_t blocks = 0, elements = 0;
    for (int i = 0; i < count; i++) {
        blocks += lengths[i] > 0;
        elements += lengths[i];
    }
    return is_dense(type) ? blocks : of_blocks(type, elements, 1);
}

static int64_t of_struct(const int *lengths, int count, const MPI_Datatype *types)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        int64_t pieces = lengths[i] > 0 ? of_blocks(types[i], 1, lengths[i]) : 0;
        if (pieces == UNKNOWN)
            return UNKNOWN;
        sum += pieces;
    }
    return sum;
}

/* Number of pieces of a subarray. Contents: dimensions, sizes, subsizes, starts, order. */
static int64_t of_subarray(const int *contents, MPI_Datatype type)
{
    int dimensions = contents[0];
    const int *sizes = contents + 1, *subsizes = sizes + dimensions;
    int is_c = contents[1 + 3 * dimensions] == MPI_ORDER_C;
    int64_t rows = 1, row = 1;
    int contiguous = 1;
    for (int i = 0; i < dimensions; i++) {
        int dimension = is_c ? dimensions - 1 - i : i; /* the fastest-varying one first */
        if (contiguous)
            row *= subsizes[dimension];
        else
            rows *= subsizes[dimension];
        contiguous = contiguous && subsizes[dimension] == sizes[dimension];
    }
    return of_blocks(type, rows, row);
}

static int64_t of_contents(int combiner, const int *integers, const MPI_Datatype *types)
{
    switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return pieces_of(types[0]);
    case MPI_COMBINER_CONTIGUOUS: return of_blocks(types[0], 1, integers[0]);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: return of_blocks(types[0], integers[0], integers[1]);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED: return of_lengths(integers + 1, integers[0], types[0]);
    case MPI_COMBINER_STRUCT: return of_struct(integers + 1, integers[0], types);
    case MPI_COMBINER_SUBARRAY: return of_subarray(integers, types[0]);
    default: return UNKNOWN;
    }
}

static void free_derived(MPI_Datatype *types, int count)
{
    for (int i = 0; i < count; i++) {
        int integers, addresses, inner, combiner;
        PMPI(Type_get_envelope)(types[i], &integers, &addresses, &inner, &combiner);
        if (combiner != MPI_COMBINER_NAMED)
            PMPI(Type_free)(&types[i]);
    }
}

/* Number of contiguous pieces of one element of the type; adjacent neighbors count as two. UNKNOWN:
 * too complicated. */
static int64_t pieces_of(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    if (is_dense(type))
        return 1;
    PMPI(Type_get_envelope)(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED || integers > INTEGERS_MAX)
        return UNKNOWN;
    int *integer = malloc(((size_t)integers + 1) * sizeof *integer);
    MPI_Aint *address = malloc(((size_t)addresses + 1) * sizeof *address);
    MPI_Datatype *inner = malloc(((size_t)types + 1) * sizeof *inner);
    int64_t pieces = UNKNOWN;
    if (integer && address && inner) {
        PMPI(Type_get_contents)(type, integers, addresses, types, integer, address, inner);
        pieces = of_contents(combiner, integer, inner);
        free_derived(inner, types);
    }
    free(integer);
    free(address);
    free(inner);
    return pieces;
}

int is_strided(MPI_Datatype filetype, struct strided *strided)
{
    MPI_Count size, lower, extent;
    if (is_dense(filetype))
        return 0;
    int64_t pieces = pieces_of(filetype);
    PMPI(Type_size_x)(filetype, &size);
    PMPI(Type_get_extent_x)(filetype, &lower, &extent);
    if (pieces <= 0 || size <= 0 || extent <= size)
        return 0;
    strided->piece_bytes = size / pieces > 0 ? size / pieces : 1;
    strided->stride_bytes = extent / pieces;
    return strided->stride_bytes > strided->piece_bytes;
}
