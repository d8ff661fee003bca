/* Declarations that the source files of the library share. See README.md. */
#ifndef SHIM_H
#define SHIM_H

#include <mpi.h>
#include <stdint.h>

#include "stripewise.h"

/* An argument or a result of an MPI function, whatever its type. Under the 64-bit calling
 * conventions of Linux every such value is passed in a register or in 8 bytes of stack. A call can
 * therefore be passed on without knowing its types, even to an MPI that this library was not built
 * for. Surplus arguments have arbitrary values. */
typedef uintptr_t word;
enum { ARGUMENTS = 8 };
typedef word function(word, word, word, word, word, word, word, word);

/* The calling convention of a function. */
enum form {
    FORM_C,
    FORM_C_LARGE, /* counts have 64 bits */
    FORM_FORTRAN, /* arguments by address, handles as numbers; error code after the C arguments */
};

enum kind {
    KIND_INIT,
    KIND_OPEN,  /* comm, name, amode, info, &file */
    KIND_CLOSE, /* &file */
    KIND_VIEW,  /* file, displacement, etype, filetype, name, info */
    KIND_FILE,  /* file, ... */
    KIND_SYNC,  /* file */
    KIND_ALLOCATION, /* file, size */
    KIND_ATOMICITY, /* file, flag */
    KIND_DATA,  /* file, ..., count, datatype, ... */
    KIND_BEGIN, /* the same; ended by KIND_END */
    KIND_NONBLOCKING, /* the same; ended by MPI_Wait */
    KIND_END,   /* file, ... */
};

/* An MPI function, in any form. */
struct call {
    const char *name; /* without MPI_File_ */
    enum kind kind;
    int count;     /* KIND_DATA: index of the count argument; the datatype follows it */
    int arguments; /* number of arguments of the C function */
};

/* A call of an MPI function. */
struct invocation {
    const struct call *call;
    enum form form;
    function *real;
    const word *arguments;
};

/* library.c: the loaded libraries. */

/* The function of this name behind this library, wherever it is loaded; NULL: there is none. */
void *find(const char *name);

/* The variable of this name. The linker may have moved it into the program, which precedes this
 * library in the search order. */
void *find_variable(const char *name);

/* A PMPI function with its own type. It is looked up, because this library must load without MPI.
 * Use it only where `ours()` is not NULL. */
#define PMPI(name)                                                                                                   \
    ({                                                                                                               \
        static __typeof__(&PMPI_##name) pmpi;                                                                        \
        if (!__atomic_load_n(&pmpi, __ATOMIC_RELAXED))                                                               \
            __atomic_store_n(&pmpi, (__typeof__(pmpi))find("PMPI_" #name), __ATOMIC_RELAXED);                        \
        pmpi;                                                                                                        \
    })

/* Constants and conversions that are variables and functions of the library in Open MPI, and
 * numbers in MPICH. */
#ifdef OPEN_MPI
#define SHIM_COMM_WORLD ((MPI_Comm)find_variable("ompi_mpi_comm_world"))
#define SHIM_INFO_NULL ((MPI_Info)find_variable("ompi_mpi_info_null"))
#define SHIM_INT ((MPI_Datatype)find_variable("ompi_mpi_int"))
#define SHIM_MAX ((MPI_Op)find_variable("ompi_mpi_op_max"))
#define SHIM_COMM_F2C(comm) PMPI(Comm_f2c)(comm)
#define SHIM_TYPE_F2C(type) PMPI(Type_f2c)(type)
#define SHIM_INFO_F2C(info) PMPI(Info_f2c)(info)
#define SHIM_INFO_C2F(info) PMPI(Info_c2f)(info)
#else
#define SHIM_COMM_WORLD MPI_COMM_WORLD
#define SHIM_INFO_NULL MPI_INFO_NULL
#define SHIM_INT MPI_INT
#define SHIM_MAX MPI_MAX
#define SHIM_COMM_F2C(comm) ((MPI_Comm)(comm))
#define SHIM_TYPE_F2C(type) ((MPI_Datatype)(type))
#define SHIM_INFO_F2C(info) ((MPI_Info)(info))
#define SHIM_INFO_C2F(info) ((MPI_Fint)(info))
#endif

/* The preload library, if it is loaded and the program's MPI is the one that this library was built
 * with; otherwise NULL. */
const struct stripewise *ours(void);

/* Called once MPI is initialized: rank 0 warns if no loaded library fits the program's MPI. */
void refuse(void);

/* job.c: reports rank and node of this process to the preload library. `collectively`: all ranks
 * are making this call now. */
void learn_job(const struct stripewise *stripewise, int collectively);
int job_is_known(void);

/* The number of this process's node; -1: not known. */
int own_node(void);

/* file.c: the open files. */

struct file {
    MPI_File handle;
    char *path;    /* absolute; NULL: none */
    int is_written; /* opened for writing, and not deleted on close */
    uint32_t mark; /* its number in marks */
    int processes; /* number of processes that opened it together */
    unsigned unsieved; /* bit per direction: this library switched data sieving off (hints.c) */
    int is_shared;     /* shared.c; then `comm` is this library's own communicator of its processes */
    int is_deleted_on_close;
    MPI_Comm comm;
    struct file *next;
};

/* file.c: makes a collective call on a file and marks it in the trace. */
word collective_call(const struct stripewise *stripewise, const struct invocation *invocation);

/* shared.c: files with several copies that nodes share. */

/* After a file was opened on `comm`: finds out whether nodes share it. Collective. */
void learn_sharing(const struct stripewise *stripewise, MPI_Comm comm, struct file *file);

/* Around a call on a shared file: all nodes commit, and acquire what the others have committed.
 * Collective. Returns 0 or an errno. */
int meet_before(const struct stripewise *stripewise, const struct call *call, const struct file *file);
int meet_after(const struct stripewise *stripewise, const struct call *call, const struct file *file);

/* After a shared file was closed: waits until all processes have closed it. Collective. */
void end_sharing(struct file *file);

/* Whether atomic mode must be refused on a shared file; rank 0 says why. */
int refuses_atomicity(const struct file *file);

/* hints.c: the info that replaces `given` when a view is set. Contains hints on data sieving where
 * they help and the user has given none, and records the change in `file`. The caller frees it if
 * it differs from `given`. */
MPI_Info hints_for_view(const struct stripewise *stripewise, struct file *file, MPI_Datatype filetype, MPI_Info given);

/* file.c: MPI_File_set_atomicity. */
word set_atomicity(const struct invocation *invocation);

/* strided.c: how a filetype cuts the file into pieces, on average. Returns 0 if it does not, or if
 * that is unknown. */
struct strided {
    int64_t piece_bytes;
    int64_t stride_bytes; /* from one piece's start to the next one's */
};
int is_strided(MPI_Datatype filetype, struct strided *strided);

/* entry.c */
word pass_on(const struct invocation *invocation);

#endif
