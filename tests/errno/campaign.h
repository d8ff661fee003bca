/* What the parts of the errno campaign share. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include <stddef.h>

/* Bytes of a file before the call; the range that calls write; where a later use writes. */
enum { SIZE = 40000, WRITE_AT = 4000, WRITE_LEN = 12000, TRUNCATE_TO = 20000, LATER_AT = 100, LATER_LEN = 64 };

/* What a call may do to the file. */
enum effect { NOTHING, WRITES, APPENDS, SHORTENS, LENGTHENS, EMPTIES, CREATES, REMOVES, REPLACES };

/* How the file is prepared: open by the library; open, but not known to it; closed; not there. The
 * last three lie where the plan has no rule: not there; closed, and a plain file; closed, and a
 * managed file that was moved there. */
enum way { OPENED, INHERITED, CLOSED, ABSENT, ABSENT_UNRULED, PLAIN_UNRULED, MOVED_UNRULED };

/* One case, as its process finds it. */
struct subject {
    const char *path;  /* the file */
    const char *other; /* another managed file, or a name that is free */
    int fd;            /* where it is open */
};

/* What the call returned, or minus errno; or that it said something wrong; or gave the size of the
 * anchor for that of the file. */
enum { WRONG = -100000, MANIFESTS_SIZE = -100001 };

struct call {
    const char *names; /* of the C functions, with all their aliases */
    const char *label;
    enum effect effect;
    enum way way;
    long (*run)(struct subject *);
    int refused; /* always fails */
};

extern const struct call calls[];
extern const size_t call_count;

/* The bytes of a file before the call, what calls write, what a later use writes. */
unsigned char byte_before(size_t at);
unsigned char byte_written(size_t at);
unsigned char byte_later(size_t at);
unsigned char byte_other(size_t at);

/* A descriptor that the library has not seen, as another process of the library hands it on: for
 * reading and writing. */
int opened_elsewhere(const char *path);

/* Between the two, the system calls are those of the interposed call. */
void window_begin(void);
void window_end(void);

/* One run of a traced child: makes its system call number `nth` fail (-1: none) with the errno `which` of that call's list. */
struct injection {
    int nth;
    int which;
    /* What happened: the system call and the errno (0: the window has fewer calls), how many errnos
     * the list has, how many of them, at its end, say that rights are missing. */
    long number;
    int error;
    int listed, refusals;
    char path[4096]; /* of an open */
    int status;      /* of the child, as waitpid says */
};
void inject(int pid, struct injection *injection);
const char *system_call_name(long number);

#endif
