/* The flags that all MPI programs share, and the interface for a program's own flags. */
#ifndef WORKLOADS_OPTIONS_H
#define WORKLOADS_OPTIONS_H

#include <getopt.h>
#include <mpi.h>
#include <stdint.h>

struct options {
    const char *path;
    MPI_Info hints; /* the values of --hint, or MPI_INFO_NULL */
    uint64_t seed;  /* seed of the data */
    int write, read, fsync, verify, json, dry_run;
    int dry_ranks; /* number of ranks in the dry run */
};

/* The flags and texts of one program. Texts are for --help. */
struct command {
    const char *program;
    const char *about;       /* description, one or several lines */
    const char *own;         /* lines for its own flags */
    const char *examples;
    const struct option *flags; /* its own, ended by zeros; values from OWN_FLAG on, or letters */
    const char *letters;        /* its own short flags, in getopt's syntax */
    void (*set)(void *shape, int flag, const char *value);
};

/* The first value for a program's own flags that are not letters. */
enum { OWN_FLAG = 512 };

/* Reads the command line into options and, through command->set, into shape. --help prints the help
 * and ends the program; an error ends it with one line. Until all_ranks_fail_alike is cleared,
 * fail() prints on rank 0 only: the program checks its shape, then clears it. */
void parse_options(int argc, char **argv, const struct command *command, void *shape, struct options *options);

/* Switches data sieving off, so that every contiguous piece of a view is a separate request, as on
 * parallel file systems for which MPI-IO has a driver. For ROMIO this sets hints, which --hint
 * overrides; for Open MPI's OMPIO it sets environment variables before MPI_Init, unless they exist.
 * */
void no_data_sieving(struct options *options);
void no_data_sieving_environment(void);

/* Makes collective calls exchange data even where ROMIO's heuristics would not. */
void always_two_phase(struct options *options);

#endif
