#include "ior_stream.h"

#include <stdlib.h>

uint64_t stream_count(const struct stream *stream)
{
    return stream->segments * (stream->block / stream->transfer);
}

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

/* All ranks shuffle the whole file's transfers alike, and each takes its part of the result: so equally many
 * each, all of the file once, and any rank anywhere. */
static void random_requests(const struct stream *stream, int rank, int ranks, struct request *out)
{
    uint64_t count = stream_count(stream);
    uint64_t total = stream->file_per_process ? count : count * (uint64_t)ranks;
    uint64_t first = stream->file_per_process ? 0 : count * (uint64_t)rank;
    uint64_t seed = stream->file_per_process ? pattern_key(stream->seed, (uint64_t)rank) : stream->seed;
    uint64_t *numbers = malloc(total * sizeof *numbers);
    if (!numbers)
        fail("no memory to shuffle %llu transfers", (unsigned long long)total);
    permutation(numbers, total, seed);
    for (uint64_t i = 0; i < count; i++)
        out[i] = (struct request){numbers[first + i] * stream->transfer, stream->transfer};
    free(numbers);
}

void stream_requests(const struct stream *stream, int rank, int ranks, struct request *out)
{
    if (stream->access == ACCESS_RANDOM) {
        random_requests(stream, rank, ranks, out);
        return;
    }
    uint64_t per_block = stream->block / stream->transfer;
    uint64_t in_segment = stream->file_per_process ? 1 : (uint64_t)ranks;
    uint64_t place = stream->file_per_process ? 0 : (uint64_t)rank;
    for (uint64_t i = 0; i < stream_count(stream); i++) {
        uint64_t block = i / per_block * in_segment + place;
        uint64_t offset = stream->access == ACCESS_STRIDED
                              ? (i * in_segment + place) * stream->transfer
                              : block * stream->block + i % per_block * stream->transfer;
        out[i] = (struct request){offset, stream->transfer};
    }
}
