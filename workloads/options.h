/* The flags that all the MPI programs have, and how a program adds its own. */
#ifndef WORKLOADS_OPTIONS_H
#define WORKLOADS_OPTIONS_H

#include <getopt.h>
#include <mpi.h>
#include <stdint.h>

struct options {
    const char *path;
    MPI_Info hints; /* MPI_INFO_NULL or what --hint said */
    uint64_t seed;  /* of the data */
    int write, read, fsync, verify, json, dry_run;
    int dry_ranks; /* how many ranks the dry run is of */
};

/* A program's own part. Texts are for --help. */
struct command {
    const char *program;
    const char *about;       /* what it is like, one or several lines */
    const char *own;         /* the lines of its own flags */
    const char *examples;
    const struct option *flags; /* its own, ended by zeros; values from OWN_FLAG on, or letters */
    const char *letters;        /* its own short flags, as getopt wants them */
    void (*set)(void *shape, int flag, const char *value);
};

/* The first value of a flag of a program that is no letter. */
enum { OWN_FLAG = 512 };

/* Reads the command line into options and, by command->set, into shape. --help prints and ends the program; what is
 * wrong ends it with one line. Until all_ranks_fail_alike is cleared, fail() speaks for all ranks: the program
 * checks its shape, then clears it. */
void parse_options(int argc, char **argv, const struct command *command, void *shape, struct options *options);

/* Without data sieving, every contiguous piece of a view is a request of its own, as on the parallel file systems for
 * which MPI-IO knows a better way. For ROMIO that is hints, which --hint overrides; for Open MPI's OMPIO variables of
 * the environment, which are set before MPI_Init unless they are there. */
void no_data_sieving(struct options *options);
void no_data_sieving_environment(void);

/* Collective calls exchange data even where ROMIO would not find that worth while. */
void always_two_phase(struct options *options);

#endif
