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
    KIND_VIEW,  /* file, displacement, etype, filetype, name, info */
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
        static __typeof__(&PMPI_##name) pmpi;                                                                        \
        if (!__atomic_load_n(&pmpi, __ATOMIC_RELAXED))                                                               \
            __atomic_store_n(&pmpi, (__typeof__(pmpi))find("PMPI_" #name), __ATOMIC_RELAXED);                        \
        pmpi;                                                                                                        \
    })

/* What is variables and functions of the library in Open MPI, and numbers in MPICH. */
#ifdef OPEN_MPI
#define SHIM_COMM_WORLD ((MPI_Comm)find_variable("ompi_mpi_comm_world"))
#define SHIM_INFO_NULL ((MPI_Info)find_variable("ompi_mpi_info_null"))
#define SHIM_INT ((MPI_Datatype)find_variable("ompi_mpi_int"))
#define SHIM_COMM_F2C(comm) PMPI(Comm_f2c)(comm)
#define SHIM_TYPE_F2C(type) PMPI(Type_f2c)(type)
#define SHIM_INFO_F2C(info) PMPI(Info_f2c)(info)
#define SHIM_INFO_C2F(info) PMPI(Info_c2f)(info)
#else
#define SHIM_COMM_WORLD MPI_COMM_WORLD
#define SHIM_INFO_NULL MPI_INFO_NULL
#define SHIM_INT MPI_INT
#define SHIM_COMM_F2C(comm) ((MPI_Comm)(comm))
#define SHIM_TYPE_F2C(type) ((MPI_Datatype)(type))
#define SHIM_INFO_F2C(info) ((MPI_Info)(info))
#define SHIM_INFO_C2F(info) ((MPI_Fint)(info))
#endif

/* The preload library, if there is something to do: it is there, and MPI is the one that this library was built with. */
const struct stripewise *ours(void);

/* Once MPI is initialised: if it is the wrong one, rank 0 says so. */
void refuse(void);

/* job.c: tells the preload library where this process is. `collectively`: all ranks are calling this now. */
void learn_job(const struct stripewise *stripewise, int collectively);
int job_is_known(void);

/* file.c: the open files. */

struct file {
    MPI_File handle;
    char *path;    /* absolute; NULL: none */
    int is_written; /* it was opened for writing, and stays when it is closed */
    uint32_t mark; /* its number for marks */
    int processes; /* that have opened it together */
    unsigned unsieved; /* the ways of access whose data sieving this library has switched off: hints.c */
    struct file *next;
};

/* file.c: makes a call on a file, which is collective, and marks it in the trace. */
word collective_call(const struct stripewise *stripewise, const struct invocation *invocation);

/* hints.c: the info to make a view with, in place of `given`: with hints on data sieving where they are known to help and nobody has
 * given any. To be freed if it is another one. Notes in the file what was changed. */
MPI_Info hints_for_view(const struct stripewise *stripewise, struct file *file, MPI_Datatype filetype, MPI_Info given);

/* strided.c: how a filetype cuts the file into pieces, on average. 0: it does not, or that is not known. */
struct strided {
    int64_t piece_bytes;
    int64_t stride_bytes; /* from one piece's start to the next one's */
};
int is_strided(MPI_Datatype filetype, struct strided *strided);

/* entry.c */
word pass_on(const struct invocation *invocation);

#endif
