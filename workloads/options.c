#include "options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { OPT_OP = 256, OPT_SEED, OPT_VERIFY, OPT_JSON, OPT_DRY_RUN, OPT_HINT };

static const struct option SHARED[] = {
    {"file", required_argument, NULL, 'o'},
    {"op", required_argument, NULL, OPT_OP},
    {"hint", required_argument, NULL, OPT_HINT},
    {"fsync", no_argument, NULL, 'e'},
    {"seed", required_argument, NULL, OPT_SEED},
    {"verify", no_argument, NULL, OPT_VERIFY},
    {"json", no_argument, NULL, OPT_JSON},
    {"dry-run", optional_argument, NULL, OPT_DRY_RUN},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char SHARED_HELP[] =
    "  -o, --file PATH           the file (needed)\n"
    "      --op write|read|both  (default both: writes, then reads)\n"
    "      --hint KEY=VALUE      a hint for MPI-IO, when the file is opened (repeatable)\n"
    "  -e, --fsync               make the data durable inside the timed write\n"
    "      --seed N              of the data (default 1)\n"
    "      --verify              check every byte, outside of the timed phases\n"
    "      --json                the result as JSON\n"
    "      --dry-run[=RANKS]     print 'rank op offset length path' of every request (of a call over a file view:\n"
    "                            of every contiguous piece) and do nothing else; of that many ranks, without\n"
    "                            starting them\n"
    "  -h, --help\n"
    "\n"
    "Existing files are written in place, never truncated. Exit code 1 if anything fails or a byte is wrong.";

enum { MAX_FLAGS = 64 };

static void print_help(const struct command *command)
{
    printf("%s: %s\n\nusage: mpirun -n RANKS %s --file PATH [options]      sizes take K, M, G (binary)\n\n",
           command->program, command->about, command->program);
    printf("%s%s\n\n%s\n", command->own, SHARED_HELP, command->examples);
}

static void add_hint(MPI_Info *hints, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || equals - text > MPI_MAX_INFO_KEY || strlen(equals + 1) >= MPI_MAX_INFO_VAL)
        fail("--hint '%s' is not KEY=VALUE", text);
    char key[MPI_MAX_INFO_KEY + 1] = "";
    memcpy(key, text, (size_t)(equals - text));
    if (*hints == MPI_INFO_NULL)
        MPI_Info_create(hints);
    MPI_Info_set(*hints, key, equals + 1);
}

/* Sets a hint unless --hint did. */
static void default_hint(struct options *options, const char *key, const char *value)
{
    char found[MPI_MAX_INFO_VAL + 1];
    int is_set = 0;
    if (options->hints == MPI_INFO_NULL)
        MPI_Info_create(&options->hints);
    MPI_Info_get(options->hints, key, MPI_MAX_INFO_VAL, found, &is_set);
    if (!is_set)
        MPI_Info_set(options->hints, key, value);
}

void no_data_sieving(struct options *options)
{
    default_hint(options, "romio_ds_read", "disable");
    default_hint(options, "romio_ds_write", "disable");
}

void no_data_sieving_environment(void)
{
    setenv("OMPI_MCA_fbtl_posix_read_datasieving", "0", 0);
    setenv("OMPI_MCA_fbtl_posix_write_datasieving", "0", 0);
}

void always_two_phase(struct options *options)
{
    default_hint(options, "romio_cb_read", "enable");
    default_hint(options, "romio_cb_write", "enable");
}

static int parse_ranks(const char *text)
{
    uint64_t ranks = parse_size("--dry-run", text);
    if (ranks == 0 || ranks > INT_MAX)
        fail("--dry-run=%s: give a number of ranks from 1 on", text);
    return (int)ranks;
}

/* Returns 0 if the flag is not one of the shared ones. */
static int set_shared(struct options *o, int flag, const char *value, const struct command *command)
{
    static const char *const ops[] = {"write", "read", "both", NULL};
    switch (flag) {
    case 'o': o->path = value; break;
    case 'e': o->fsync = 1; break;
    case OPT_SEED: o->seed = parse_size("--seed", value); break;
    case OPT_VERIFY: o->verify = 1; break;
    case OPT_JSON: o->json = 1; break;
    case OPT_HINT: add_hint(&o->hints, value); break;
    case OPT_DRY_RUN:
        o->dry_run = 1;
        o->dry_ranks = value ? parse_ranks(value) : all_ranks;
        break;
    case OPT_OP: {
        int op = parse_choice("--op", value, ops);
        o->write = op != 1;
        o->read = op != 0;
        break;
    }
    case 'h':
        if (my_rank == 0)
            print_help(command);
        MPI_Finalize();
        exit(0);
    case '?':
    case ':': fail("unknown or incomplete option; %s --help lists them", command->program);
    default: return 0;
    }
    return 1;
}

/* Appends flags to table[at...], returns the new end. */
static int append(struct option *table, int at, const struct option *flags)
{
    for (; flags->name; flags++) {
        if (at == MAX_FLAGS)
            abort(); /* more flags than the table has places: enlarge it */
        table[at++] = *flags;
    }
    return at;
}

void parse_options(int argc, char **argv, const struct command *command, void *shape, struct options *options)
{
    *options = (struct options){.hints = MPI_INFO_NULL, .seed = 1, .write = 1, .read = 1, .dry_ranks = all_ranks};
    struct option table[MAX_FLAGS + 1] = {{NULL, 0, NULL, 0}};
    append(table, append(table, 0, command->flags), SHARED);
    char letters[64];
    snprintf(letters, sizeof letters, "o:eh%s", command->letters);
    opterr = my_rank == 0;
    all_ranks_fail_alike = 1;
    for (int flag; (flag = getopt_long(argc, argv, letters, table, NULL)) != -1;)
        if (!set_shared(options, flag, optarg, command))
            command->set(shape, flag, optarg);
    if (optind < argc)
        fail("'%s' is no option; %s --help lists them", argv[optind], command->program);
    if (!options->path)
        fail("--file is missing; name the file to write or read");
}
