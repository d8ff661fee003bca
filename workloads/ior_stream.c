#include "ior_stream.h"

#include <stdlib.h>

/* numbers[i] = i for all i < count, then shuffled (Fisher-Yates). */
static void permutation(uint64_t *numbers, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = i;
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = next_random(&seed) % i;
        uint64_t swap = numbers[i - 1];
        numbers[i - 1] = numbers[j];
        numbers[j] = swap;
    }
}

/* All ranks compute the same shuffle of the whole file's transfers, and each takes its share of the
 * result. Every rank gets equally many, the whole file is covered once, and a rank's transfers may
 * lie anywhere. */
static struct request even_at(const struct stream *stream, uint64_t step, uint64_t i)
{
    const struct ior_shape *shape = stream->shape;
    (void)step;
    return (struct request){stream->list[i] * shape->transfer, shape->transfer, i * shape->transfer};
}

static void deal_evenly(struct stream *stream)
{
    const struct ior_shape *shape = stream->shape;
    uint64_t total = shape->file_per_process ? stream->count : stream->count * (uint64_t)stream->ranks;
    uint64_t first = shape->file_per_process ? 0 : stream->count * (uint64_t)stream->rank;
    uint64_t seed = shape->file_per_process ? pattern_key(shape->seed, (uint64_t)stream->rank) : shape->seed;
    uint64_t *numbers = need_memory(total * sizeof *numbers, "an order of the transfers");
    permutation(numbers, total, seed);
    stream->list = need_memory(stream->count * sizeof *numbers, "an order of the transfers");
    for (uint64_t i = 0; i < stream->count; i++)
        stream->list[i] = numbers[first + i];
    free(numbers);
    stream->at = even_at;
}

/* As in IOR's -z, the list has the offsets of one segment, and every segment repeats them. */
static struct request segment_at(const struct stream *stream, uint64_t step, uint64_t i)
{
    const struct ior_shape *shape = stream->shape;
    uint64_t in_list = stream->count / shape->segments;
    uint64_t blocks = shape->file_per_process ? 1 : (uint64_t)stream->ranks;
    uint64_t offset = i / in_list * blocks * shape->block + stream->list[i % in_list] * shape->transfer;
    (void)step;
    return (struct request){offset, shape->transfer, i * shape->transfer};
}

/* IOR's shuffle: swaps every place with one drawn from all places. */
static void shuffle(uint64_t *list, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t j = (uint64_t)random() % count;
        uint64_t swap = list[i];
        list[i] = list[j];
        list[j] = swap;
    }
}

/* IOR -z (GetOffsetArrayRandom of hpc/ior, versions 3 and 4): in a shared file, all ranks draw
 * the owner of each transfer of a segment from the C library's generator with the same seed.
 * Each rank then shuffles its own transfers with the same generator, in the state after the
 * draws. In a file of its own, or in its own block, a rank shuffles all transfers, with the seed
 * plus its rank. */
static void deal_as_ior(struct stream *stream, int whole_segment)
{
    const struct ior_shape *shape = stream->shape;
    uint64_t per_block = shape->block / shape->transfer, own = 0;
    uint64_t all = whole_segment ? per_block * (uint64_t)stream->ranks : per_block;
    uint64_t first = whole_segment || shape->file_per_process ? 0 : per_block * (uint64_t)stream->rank;
    stream->list = need_memory(all * sizeof *stream->list, "an order of the transfers");
    srandom((unsigned)(shape->seed + (whole_segment ? 0 : (uint64_t)stream->rank)));
    for (uint64_t i = 0; i < all; i++)
        if (!whole_segment || random() % stream->ranks == stream->rank)
            stream->list[own++] = first + i;
    shuffle(stream->list, own);
    stream->count = own * shape->segments;
    stream->at = segment_at;
}

static struct request ordered_at(const struct stream *stream, uint64_t step, uint64_t i)
{
    const struct ior_shape *shape = stream->shape;
    uint64_t per_block = shape->block / shape->transfer;
    uint64_t in_segment = shape->file_per_process ? 1 : (uint64_t)stream->ranks;
    uint64_t place = shape->file_per_process ? 0 : (uint64_t)stream->rank;
    uint64_t block = i / per_block * in_segment + place;
    uint64_t offset = shape->access == ACCESS_STRIDED ? (i * in_segment + place) * shape->transfer
                                                      : block * shape->block + i % per_block * shape->transfer;
    (void)step;
    return (struct request){offset, shape->transfer, i * shape->transfer};
}

struct stream ior_stream(const void *of, int rank, int ranks)
{
    const struct ior_shape *shape = of;
    struct stream stream = {
        .at = ordered_at,
        .count = shape->segments * (shape->block / shape->transfer),
        .largest = shape->transfer,
        .shape = shape,
        .rank = rank,
        .ranks = ranks,
    };
    if (shape->access == ACCESS_RANDOM && shape->within == WITHIN_EVEN)
        deal_evenly(&stream);
    else if (shape->access == ACCESS_RANDOM)
        deal_as_ior(&stream, shape->within == WITHIN_FILE && !shape->file_per_process);
    stream.bytes = stream.memory = stream.count * shape->transfer;
    return stream;
}
