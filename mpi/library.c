/* Detects the loaded MPI and the preload library. */
#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "built_with.h" /* BUILT_WITH: the first line of MPI_Get_library_version at build time */
#include "shim.h"

/* MPI libraries that were loaded locally for another library, such as a Python module. dlsym does
 * not search these. */
enum { HIDDEN_MAX = 8 };

struct hidden {
    const char *paths[HIDDEN_MAX];
    int count;
};

static int note_hidden(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct hidden *hidden = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (hidden->count < HIDDEN_MAX && strncmp(slash ? slash + 1 : info->dlpi_name, "libmpi", 6) == 0)
        hidden->paths[hidden->count++] = info->dlpi_name;
    return 0;
}

void *find(const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    if (address)
        return address;
    struct hidden hidden = {.count = 0};
    dl_iterate_phdr(note_hidden, &hidden);
    for (int i = 0; i < hidden.count && !address; i++) {
        void *library = dlopen(hidden.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            address = dlsym(library, name);
            dlclose(library);
        }
    }
    return address;
}

void *find_variable(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    return address ? address : find(name);
}

/* The first line of the loaded MPI's version, as in BUILT_WITH; "" where there is no MPI. */
static char version[16384]; /* twice the maximum of any MPI */
static int fits;
static struct stripewise preload;
static const struct stripewise *found;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

/* Whether both versions are of the same library and major version: equal up to and including the
 * first number. */
static int is_same_library(const char *a, const char *b)
{
    size_t before = strcspn(a, "0123456789");
    size_t number = strspn(a + before, "0123456789");
    return before > 0 && strncmp(a, b, before + number) == 0 && !isdigit((unsigned char)b[before + number]);
}

/* Finds all functions of the preload library, or none: a preload library of another version is not
 * used. */
static const struct stripewise *find_preload(void)
{
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"stripewise_note_mpi", &preload.note_mpi},       {"stripewise_file_sync", &preload.file_sync},
        {"stripewise_file_is_shared", &preload.file_is_shared}, {"stripewise_file_exchange", &preload.file_exchange},
        {"stripewise_sieving_pays", &preload.sieving_pays}, {"stripewise_mark_file", &preload.mark_file},
        {"stripewise_mark_begin", &preload.mark_begin},   {"stripewise_mark_end", &preload.mark_end},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = dlsym(RTLD_DEFAULT, functions[i].name);
        if (!address)
            return NULL;
        memcpy(functions[i].function, &address, sizeof address);
    }
    return &preload;
}

static void look(void)
{
    const char *setting = getenv("STRIPEWISE_MPI");
    int (*get_version)(char *, int *) = (int (*)(char *, int *))find("PMPI_Get_library_version");
    int len = 0;
    if (!get_version || (setting && strcmp(setting, "off") == 0))
        return;
    get_version(version, &len);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c; c++)
        if (*c < ' ')
            *c = ' ';
    fits = is_same_library(BUILT_WITH, version);
    found = fits ? find_preload() : NULL;
}

const struct stripewise *ours(void)
{
    pthread_once(&looked, look);
    return found;
}

/* Libraries for several MPIs may be loaded at once, of which at most one fits. Returns whether this
 * one or one behind it fits. */
__attribute__((visibility("default"))) int stripewise_mpi_fits(void)
{
    ours();
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "stripewise_mpi_fits");
    return fits || (next && next());
}

/* Whether this process is rank 0. Of an MPI that this library was not built with, only these two
 * representations of MPI_COMM_WORLD are known. */
static int is_first_rank(void)
{
    word world = (word)find_variable("ompi_mpi_comm_world");
    if (!world && strstr(version, "MPICH"))
        world = 0x44000000;
    int rank = 0;
    function *comm_rank = (function *)find("PMPI_Comm_rank");
    if (world && comm_rank)
        comm_rank(world, (word)&rank, 0, 0, 0, 0, 0, 0);
    return rank == 0;
}

void refuse(void)
{
    ours();
    int (*first)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "stripewise_mpi_fits");
    int is_last = !dlsym(RTLD_NEXT, "stripewise_mpi_fits");
    if (fits || !version[0] || !is_last || (first && first()) || !is_first_rank())
        return;
    fprintf(stderr,
            "stripewise: this program's MPI is %s, and libstripewise_mpi.so was built with %s: it does nothing (build one with "
            "this MPI's mpicc)\n",
            version, BUILT_WITH);
}
