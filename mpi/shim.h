/* What the parts of the library share. See README.md. */
#ifndef SHIM_H
#define SHIM_H

#include <mpi.h>
#include <stdint.h>

#include "stripewise.h"

/* An argument or a result of an MPI function, whatever its type. On the 64-bit calling conventions of Linux every such value is
 * passed in a register or in 8 bytes of stack, so a function can be passed on without knowing its types: those of an MPI that this library
 * was not built for, too. Arguments that the function does not have are whatever lies there. */
typedef uintptr_t word;
enum { ARGUMENTS = 8 };
typedef word function(word, word, word, word, word, word, word, word);

/* How a function is called. */
enum form {
    FORM_C,
    FORM_C_LARGE, /* counts have 64 bits */
    FORM_FORTRAN, /* arguments by address, handles as numbers; the error code behind the C function's arguments */
};

enum kind {
    KIND_INIT,
    KIND_OPEN,  /* comm, name, amode, info, &file */
    KIND_CLOSE, /* &file */
    KIND_FILE,  /* file, ... */
    KIND_DATA,  /* file, ..., count, datatype, ... */
};

/* An MPI function, in whatever form. */
struct call {
    const char *name; /* without MPI_File_ */
    enum kind kind;
    int count;     /* KIND_DATA: the number of the argument; the next one is the datatype */
    int arguments; /* of the C function */
};

/* A call of one. */
struct invocation {
    const struct call *call;
    enum form form;
    function *real;
    const word *arguments;
};

/* library.c: what is loaded. */

/* The function of this name behind this library, wherever it was loaded from; NULL: there is none. */
void *find(const char *name);

/* The variable of this name. The linker may have moved it into the program, which is in front of this library. */
void *find_variable(const char *name);

/* A PMPI function, by its own type. Looked up, because this library must load without MPI; only where `ours()` is not NULL. */
#define PMPI(name)                                                                                                   \
    ({                                                                                                               \
        static __typeof__(&PMPI_##name) address;                                                                     \
        if (!__atomic_load_n(&address, __ATOMIC_RELAXED))                                                            \
            __atomic_store_n(&address, (__typeof__(address))find("PMPI_" #name), __ATOMIC_RELAXED);                  \
        address;                                                                                                     \
    })

/* What is variables and functions of the library in Open MPI, and numbers in MPICH. */
#ifdef OPEN_MPI
#define SHIM_COMM_WORLD ((MPI_Comm)find_variable("ompi_mpi_comm_world"))
#define SHIM_INFO_NULL ((MPI_Info)find_variable("ompi_mpi_info_null"))
#define SHIM_INT ((MPI_Datatype)find_variable("ompi_mpi_int"))
#define SHIM_COMM_F2C(comm) PMPI(Comm_f2c)(comm)
#define SHIM_TYPE_F2C(type) PMPI(Type_f2c)(type)
#else
#define SHIM_COMM_WORLD MPI_COMM_WORLD
#define SHIM_INFO_NULL MPI_INFO_NULL
#define SHIM_INT MPI_INT
#define SHIM_COMM_F2C(comm) ((MPI_Comm)(comm))
#define SHIM_TYPE_F2C(type) ((MPI_Datatype)(type))
#endif

/* The preload library, if there is something to do: it is there, and MPI is the one that this library was built with. */
const struct stripewise *ours(void);

/* Once MPI is initialised: if it is the wrong one, rank 0 says so. */
void refuse(void);

/* job.c: tells the preload library where this process is. `collectively`: all ranks are calling this now. */
void learn_job(const struct stripewise *stripewise, int collectively);
int job_is_known(void);

/* file.c: makes a call on a file, which is collective, and marks it in the trace. */
word collective_call(const struct stripewise *stripewise, const struct invocation *invocation);

/* entry.c */
word pass_on(const struct invocation *invocation);

#endif
