/* Collective calls on files, which are marked in the trace from their begin to their end. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

static struct file *files[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct file **place_of(MPI_File handle)
{
    struct file **place = &files[((word)handle >> 4) % (sizeof files / sizeof files[0])];
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

/* A copy of a file's record; zeros if there is none. Its path is valid until the file is closed. */
static struct file look_up(MPI_File handle)
{
    struct file copy = {0};
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(handle);
    if (file)
        copy = *file;
    pthread_mutex_unlock(&lock);
    return copy;
}

static void remember(const struct file *file)
{
    pthread_mutex_lock(&lock);
    struct file **place = place_of(file->handle);
    struct file *next = *place ? (*place)->next : NULL;
    if (!*place)
        *place = malloc(sizeof **place);
    else
        free((*place)->path); /* closed by a call that this library did not see */
    if (*place) {
        **place = *file;
        (*place)->next = next;
    } else {
        free(file->path);
    }
    pthread_mutex_unlock(&lock);
}

static void note_unsieved(const struct file *changed)
{
    pthread_mutex_lock(&lock);
    struct file *file = *place_of(changed->handle);
    if (file)
        file->unsieved = changed->unsieved;
    pthread_mutex_unlock(&lock);
}

static void forget(MPI_File handle)
{
    pthread_mutex_lock(&lock);
    struct file **place = place_of(handle), *file = *place;
    if (file) {
        *place = file->next;
        free(file->path);
        free(file);
    }
    pthread_mutex_unlock(&lock);
}

/* Access to the arguments of a call, in any form. */

static MPI_File file_of(const struct invocation *invocation, int argument)
{
    word value = invocation->arguments[argument];
    if (invocation->form == FORM_FORTRAN)
        return PMPI(File_f2c)(*(const MPI_Fint *)value);
    /* Passed by address where MPI may change it. */
    int by_address = invocation->call->kind == KIND_OPEN || invocation->call->kind == KIND_CLOSE;
    return by_address ? *(const MPI_File *)value : (MPI_File)value;
}

static int64_t bytes_of(const struct invocation *invocation)
{
    const word *count = &invocation->arguments[invocation->call->count];
    MPI_Count size = 0;
    if (invocation->form == FORM_FORTRAN) {
        PMPI(Type_size_x)(SHIM_TYPE_F2C(*(const MPI_Fint *)count[1]), &size);
        return (int64_t)*(const MPI_Fint *)count[0] * size;
    }
    PMPI(Type_size_x)((MPI_Datatype)count[1], &size);
    return (invocation->form == FORM_C_LARGE ? (int64_t)count[0] : (int64_t)(int)count[0]) * size;
}

static int has_buffer(const struct call *call)
{
    return call->kind == KIND_DATA || call->kind == KIND_BEGIN || call->kind == KIND_NONBLOCKING;
}

static int mode_of(const struct invocation *invocation)
{
    word mode = invocation->arguments[2];
    return invocation->form == FORM_FORTRAN ? *(const MPI_Fint *)mode : (int)mode;
}

static int failed(const struct invocation *invocation, word result)
{
    if (invocation->form != FORM_FORTRAN)
        return (int)result != MPI_SUCCESS;
    const MPI_Fint *error = (const MPI_Fint *)invocation->arguments[invocation->call->arguments];
    return error && *error != MPI_SUCCESS;
}

/* Turns a successful call into a failed one. */
static word failing(const struct invocation *invocation, int code)
{
    MPI_Fint *error = (MPI_Fint *)invocation->arguments[invocation->call->arguments];
    if (invocation->form == FORM_FORTRAN && error)
        *error = code;
    return (word)code;
}

/* The name of the opened file; the caller frees it. In Fortran its length follows the other
 * arguments, and the name is padded with blanks. */
static char *name_of(const struct invocation *invocation)
{
    const char *name = (const char *)invocation->arguments[1];
    if (invocation->form != FORM_FORTRAN)
        return strdup(name);
    size_t len = (uint32_t)invocation->arguments[invocation->call->arguments + 1];
    while (len > 0 && *name == ' ')
        name++, len--;
    while (len > 0 && name[len - 1] == ' ')
        len--;
    return strndup(name, len);
}

/* The absolute path of the opened file; the caller frees it. NULL: it has none. The name may begin
 * with the kind of file system: "ufs:/path". */
static char *path_of(const struct invocation *invocation)
{
    char *name = name_of(invocation);
    char *path = name ? realpath(name, NULL) : NULL;
    char *colon = name ? strchr(name, ':') : NULL;
    if (!path && colon)
        path = realpath(colon + 1, NULL);
    free(name);
    return path;
}

static MPI_Comm comm_of(const struct invocation *invocation)
{
    word first = invocation->arguments[0];
    return invocation->form == FORM_FORTRAN ? SHIM_COMM_F2C(*(const MPI_Fint *)first) : (MPI_Comm)first;
}

static struct file opened(const struct stripewise *stripewise, const struct invocation *invocation)
{
    MPI_Comm comm = comm_of(invocation);
    struct file file = {.handle = file_of(invocation, 4), .path = path_of(invocation)};
    if (file.path)
        file.mark = stripewise->mark_file(file.path);
    file.is_written = (mode_of(invocation) & (MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE)) == 0;
    file.is_deleted_on_close = (mode_of(invocation) & MPI_MODE_DELETE_ON_CLOSE) != 0;
    PMPI(Comm_size)(comm, &file.processes);
    learn_sharing(stripewise, comm, &file);
    remember(&file);
    return file;
}

/* Sets a view with hints. */
static word set_view(const struct stripewise *stripewise, const struct invocation *invocation, struct file *file)
{
    const int filetype = 3, info = 5;
    const word *old = invocation->arguments;
    word arguments[ARGUMENTS];
    memcpy(arguments, old, sizeof arguments);
    int fortran = invocation->form == FORM_FORTRAN;
    MPI_Datatype type = fortran ? SHIM_TYPE_F2C(*(const MPI_Fint *)old[filetype]) : (MPI_Datatype)old[filetype];
    MPI_Info given = fortran ? SHIM_INFO_F2C(*(const MPI_Fint *)old[info]) : (MPI_Info)old[info];
    MPI_Info hints = hints_for_view(stripewise, file, type, given);
    MPI_Fint number = SHIM_INFO_C2F(hints);
    arguments[info] = fortran ? (word)&number : (word)hints;
    struct invocation with_hints = *invocation;
    with_hints.arguments = arguments;
    word result = pass_on(&with_hints);
    if (hints != given) {
        PMPI(Info_free)(&hints);
        note_unsieved(file);
    }
    return result;
}

/* Whether a call turns atomic mode on. */
static int wants_atomicity(const struct invocation *invocation)
{
    word flag = invocation->arguments[1];
    return invocation->form == FORM_FORTRAN ? *(const MPI_Fint *)flag != 0 : (int)flag != 0;
}

word set_atomicity(const struct invocation *invocation)
{
    struct file file = look_up(file_of(invocation, 0));
    if (!file.is_shared || !wants_atomicity(invocation) || !refuses_atomicity(&file))
        return pass_on(invocation);
    PMPI(File_call_errhandler)(file.handle, MPI_ERR_UNSUPPORTED_OPERATION);
    return failing(invocation, MPI_ERR_UNSUPPORTED_OPERATION);
}

/* What must be done before a call so that it finds what was written before, and that what was
 * written survives a close. Returns 0 or an errno. */
static int prepare(const struct stripewise *stripewise, const struct call *call, const struct file *file)
{
    if (file->is_shared && call->kind != KIND_CLOSE)
        return meet_before(stripewise, call, file);
    int is_last = call->kind == KIND_CLOSE && file->path && file->is_written;
    return is_last ? stripewise->file_sync(file->path) : 0;
}

static word made(const struct stripewise *stripewise, const struct invocation *invocation, struct file *file)
{
    const struct call *call = invocation->call;
    int lost = prepare(stripewise, call, file);
    if (lost && call->kind == KIND_CLOSE)
        PMPI(File_call_errhandler)(file->handle, MPI_ERR_IO);
    word result = call->kind == KIND_VIEW ? set_view(stripewise, invocation, file) : pass_on(invocation);
    if (file->is_shared && call->kind == KIND_CLOSE)
        end_sharing(file);
    else if (file->is_shared && meet_after(stripewise, call, file) != 0)
        lost = 1;
    /* ROMIO syncs only what this process has written, and does nothing if that is nothing. */
    if (call->kind == KIND_SYNC && file->path && stripewise->file_exchange(file->path, 0) != 0)
        lost = 1;
    if (lost && call->kind != KIND_CLOSE)
        PMPI(File_call_errhandler)(file->handle, MPI_ERR_IO);
    return lost ? failing(invocation, MPI_ERR_IO) : result;
}

word collective_call(const struct stripewise *stripewise, const struct invocation *invocation)
{
    const struct call *call = invocation->call;
    int64_t bytes = has_buffer(call) ? bytes_of(invocation) : 0;
    struct file file = {0};
    if (call->kind != KIND_OPEN)
        file = look_up(file_of(invocation, 0));
    uint64_t start = stripewise->mark_begin();
    word result = made(stripewise, invocation, &file);
    int has_failed = failed(invocation, result);
    if (call->kind == KIND_OPEN && !has_failed)
        file = opened(stripewise, invocation);
    if (call->kind == KIND_CLOSE)
        forget(file.handle);
    stripewise->mark_end(file.mark, call->name, file.processes, has_failed ? -EIO : bytes, start);
    return result;
}
