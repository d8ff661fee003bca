/* The exported names of the interposed functions, in C and Fortran. */
#include <stddef.h>

#include "shim.h"

/* An exported name. */
struct entry {
    const char *symbol;
    const struct call *call;
    enum form form;
    function *real; /* the function behind this library; NULL until the first call */
};

/* Whether this thread is inside a call. A nested call (a Fortran function that calls the C one,
 * MPI-IO on top of MPI-IO) is only passed on. */
static _Thread_local int inside;

word pass_on(const struct invocation *invocation)
{
    const word *a = invocation->arguments;
    return invocation->real(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

static word init(const struct invocation *invocation)
{
    word result = pass_on(invocation);
    const struct stripewise *stripewise = ours();
    if (stripewise)
        learn_job(stripewise, 1);
    refuse();
    return result;
}

static word on_file(const struct invocation *invocation)
{
    const struct stripewise *stripewise = ours();
    if (!stripewise)
        return pass_on(invocation);
    /* MPI was initialized by a call that this library did not see. */
    if (!job_is_known())
        learn_job(stripewise, 0);
    if (invocation->call->kind == KIND_ATOMICITY)
        return set_atomicity(invocation);
    return collective_call(stripewise, invocation);
}

static word enter(struct entry *entry, const word *arguments)
{
    function *real = __atomic_load_n(&entry->real, __ATOMIC_RELAXED);
    if (!real) {
        real = (function *)find(entry->symbol);
        __atomic_store_n(&entry->real, real, __ATOMIC_RELAXED);
    }
    /* A program without MPI found the name and called it. */
    if (!real)
        return MPI_ERR_OTHER;
    struct invocation invocation = {entry->call, entry->form, real, arguments};
    if (inside)
        return pass_on(&invocation);
    inside = 1;
    word result = entry->call->kind == KIND_INIT ? init(&invocation) : on_file(&invocation);
    inside = 0;
    return result;
}

/* Defines a function under another C name and gives it the symbol as its assembler name, because
 * mpi.h declares the symbol with its types. */
#define ENTRY(symbol, call, form)                                                                                \
    word entry_##symbol(word, word, word, word, word, word, word, word) __asm__(#symbol);                            \
    __attribute__((visibility("default"))) word entry_##symbol(word a, word b, word c, word d, word e, word f,       \
                                                                word g, word h)                                      \
    {                                                                                                                \
        static struct entry entry = {#symbol, &call, form, NULL};                                                \
        return enter(&entry, (const word[ARGUMENTS]){a, b, c, d, e, f, g, h});                                       \
    }

#define INIT(name, fortran, arguments) static const struct call call_##name = {#name, KIND_INIT, 0, arguments};
#define CALL(name, kind, count, arguments) static const struct call call_##name = {#name, kind, count, arguments};
#define DATA CALL
#define END CALL
#include "calls.def"
#undef INIT
#undef CALL
#undef DATA
#undef END

/* C */
#define INIT(name, fortran, arguments) ENTRY(MPI_##name, call_##name, FORM_C)
#define CALL(name, kind, count, arguments) ENTRY(MPI_File_##name, call_##name, FORM_C)
#ifdef OPEN_MPI
#define DATA CALL
#else
#define DATA(name, kind, count, arguments)                                                                           \
    ENTRY(MPI_File_##name, call_##name, FORM_C) ENTRY(MPI_File_##name##_c, call_##name, FORM_C_LARGE)
#endif
#define END CALL
#include "calls.def"
#undef INIT
#undef CALL
#undef DATA
#undef END

/* Fortran. Functions that call the C function (MPI_File_open, not PMPI_File_open) need no entry. */
#ifdef OPEN_MPI
/* mpif.h and `use mpi` call the first, `use mpi_f08` the second. */
#define FORTRAN(name, call) ENTRY(mpi_##name##_, call, FORM_FORTRAN) ENTRY(ompi_##name##_f, call, FORM_FORTRAN)
#define INIT(name, fortran, arguments) FORTRAN(fortran, call_##name)
#define CALL(name, kind, count, arguments) FORTRAN(file_##name, call_##name)
#define DATA CALL
#define END CALL
#else
/* mpif.h and `use mpi` call the C function, `use mpi_f08` calls PMPI. */
#define INIT(name, fortran, arguments) ENTRY(mpi_##fortran##_f08_, call_##name, FORM_FORTRAN)
#define CALL(name, kind, count, arguments) ENTRY(mpi_file_##name##_f08_, call_##name, FORM_FORTRAN)
#define DATA(name, kind, count, arguments) ENTRY(mpi_file_##name##_f08ts_, call_##name, FORM_FORTRAN)
#define END DATA
#endif
#include "calls.def"
