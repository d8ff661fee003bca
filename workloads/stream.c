#include "stream.h"

#include <limits.h>
#include <stdlib.h>

#include "common.h"

void stream_free(struct stream *stream)
{
    free(stream->list);
    stream->list = NULL;
}

static int is_named(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

void view_commit(struct view *view)
{
    MPI_Datatype *all[] = {&view->element, &view->file, &view->memory};
    for (int i = 0; i < 3; i++)
        if (!is_named(*all[i]))
            MPI_Type_commit(all[i]);
}

void view_free(struct view *view)
{
    if (view->memory != view->element && !is_named(view->memory))
        MPI_Type_free(&view->memory);
    if (view->file != view->element && !is_named(view->file))
        MPI_Type_free(&view->file);
    if (!is_named(view->element))
        MPI_Type_free(&view->element);
}

struct view view_of_requests(const struct stream *stream)
{
    MPI_Aint *places = need_memory(stream->count * sizeof *places, "a view of the requests");
    int *lens = need_memory(stream->count * sizeof *lens, "a view of the requests");
    for (uint64_t i = 0; i < stream->count; i++) {
        struct request r = stream->at(stream, 0, i);
        places[i] = (MPI_Aint)r.offset;
        lens[i] = (int)r.len;
    }
    struct view view = {
        .element = MPI_BYTE,
        .memory = MPI_BYTE,
        .memory_count = (int)stream->bytes,
        .step_elements = (MPI_Offset)stream->bytes,
    };
    MPI_Type_create_hindexed((int)stream->count, lens, places, MPI_BYTE, &view.file);
    view_commit(&view);
    free(places);
    free(lens);
    return view;
}
