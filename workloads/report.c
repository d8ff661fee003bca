#include "report.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const OP_OF[] = {[FOR_READ] = "read", [FOR_WRITE] = "write"};

char *path_of(const struct workload *w, int owner)
{
    char *path = NULL;
    int rc = w->file_per_process ? asprintf(&path, "%s.%08d", w->options->path, owner)
                                 : asprintf(&path, "%s", w->options->path);
    if (rc < 0)
        fail("no memory for a file name");
    return path;
}

static double mib_per_s(const struct phase *phase)
{
    return (double)phase->bytes / (1 << 20) / phase->elapsed_s;
}

static void print_phase(const struct workload *w, const struct phase *p)
{
    printf("{\"op\": \"%s\", \"elapsed_s\": %.6f, \"open_s\": %.6f, \"close_s\": %.6f, ", OP_OF[p->direction],
           p->elapsed_s, p->open_s, p->close_s);
    if (w->compute_s > 0.0)
        printf("\"compute_s\": %.6f, ", p->compute_s);
    printf("\"bytes\": %llu, \"mib_per_s\": %.3f, \"rank_s\": [", p->bytes, mib_per_s(p));
    for (int r = 0; r < all_ranks; r++)
        printf("%s%.6f", r ? ", " : "", p->rank_s[r]);
    printf("]}");
}

void print_json(const struct workload *w, const struct phase *phases, int count, const struct outcome *outcome)
{
    printf("{\"program\": \"%s\", \"ranks\": %d, \"file\": ", w->program, all_ranks);
    print_json_string(w->options->path);
    printf(", ");
    w->print_shape(w->shape);
    printf("\"seed\": %llu, \"phases\": [", (unsigned long long)w->options->seed);
    for (int i = 0; i < count; i++) {
        printf("%s", i ? ", " : "");
        print_phase(w, &phases[i]);
    }
    printf("], \"verified_bytes\": %llu, \"wrong_bytes\": %llu}\n", outcome->verified, outcome->wrong);
}

void print_text(const struct workload *w, const struct phase *phases, int count, const struct outcome *outcome)
{
    for (int i = 0; i < count; i++) {
        const struct phase *p = &phases[i];
        printf("%-5s  %10.3f MiB/s  %9.4f s  (open %.4f s, close %.4f s", OP_OF[p->direction], mib_per_s(p),
               p->elapsed_s, p->open_s, p->close_s);
        if (w->compute_s > 0.0)
            printf(", computing %.4f s", p->compute_s);
        printf(")\n");
    }
    if (w->options->verify)
        printf("verified %llu bytes, %llu wrong\n", outcome->verified, outcome->wrong);
}

static void print_request(int rank, enum direction direction, struct request r, const char *path)
{
    printf("%d %s %llu %llu %s\n", rank, OP_OF[direction], (unsigned long long)r.offset, (unsigned long long)r.len,
           path);
}

static void print_step(const struct stream *stream, uint64_t step, int joined, int rank, enum direction direction,
                       const char *path)
{
    struct request pending = {0, 0, 0};
    for (uint64_t i = 0; i < stream->count; i++) {
        struct request r = stream->at(stream, step, i);
        if (joined && i > 0 && r.offset == pending.offset + pending.len && r.place == pending.place + pending.len) {
            pending.len += r.len;
            continue;
        }
        if (i > 0)
            print_request(rank, direction, pending, path);
        pending = r;
    }
    if (stream->count > 0)
        print_request(rank, direction, pending, path);
}

void print_requests(const struct workload *w, enum direction direction)
{
    int ranks = w->options->dry_ranks;
    int joined = w->call == CALL_VIEW || w->call == CALL_VIEW_ALL;
    for (int rank = 0; rank < ranks; rank++) {
        int owner = direction == FOR_READ ? (rank + w->read_shift) % ranks : rank;
        struct stream stream = w->stream(w->shape, owner, ranks);
        char *path = path_of(w, owner);
        for (uint64_t step = 0; step < w->steps; step++)
            print_step(&stream, step, joined, rank, direction, path);
        free(path);
        stream_free(&stream);
    }
}
