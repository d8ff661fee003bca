/* Shared declarations of the errno campaign. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include <stddef.h>

/* Bytes of a file before the call; the range that calls write, and the part of it that lies in one
 * object; where a later use writes. */
enum { SIZE = 40000, WRITE_AT = 4000, WRITE_LEN = 12000, PIECE_LEN = 64 };
enum { TRUNCATE_TO = 20000, LATER_AT = 100, LATER_LEN = 64 };

/* The possible effects of a call on the file. */
enum effect { NOTHING, WRITES, APPENDS, SHORTENS, LENGTHENS, EMPTIES, CREATES, REMOVES, REPLACES };

/* How the file is prepared: open by the library; open, but unknown to the library; closed;
 * absent. The last three are outside of the plan's rules: absent; closed and plain; closed, and
 * a managed file that was moved there. */
enum way { OPENED, INHERITED, CLOSED, ABSENT, ABSENT_UNRULED, PLAIN_UNRULED, MOVED_UNRULED };

/* One case, as its process finds it. */
struct subject {
    const char *path;  /* the file */
    const char *other; /* another managed file, or a name that is free */
    int fd;            /* an open descriptor of the file */
};

/* The call's result is its return value, or minus errno. These stand for a wrong result, and for
 * the anchor's size instead of the file's. */
enum { WRONG = -100000, MANIFESTS_SIZE = -100001 };

struct call {
    const char *names; /* the C functions, with all their aliases */
    const char *label;
    enum effect effect;
    enum way way;
    long (*run)(struct subject *);
    int refused; /* always fails */
};

extern const struct call calls[];
extern const size_t call_count;

/* The bytes of a file before the call; those that calls write; those that a later use writes. */
unsigned char byte_before(size_t at);
unsigned char byte_written(size_t at);
unsigned char byte_later(size_t at);
unsigned char byte_other(size_t at);

/* A descriptor for reading and writing that the library has not seen, as if another process with
 * the library had passed it on. */
int opened_elsewhere(const char *path);

/* The system calls between the two are those of the interposed call. */
void window_begin(void);
void window_end(void);

/* One run of a traced child: makes its system call number `nth` (-1: none) fail with errno
 * number `which` of that call's list. */
struct injection {
    int nth;
    int which;
    /* The outcome: the system call and the errno (0: the window has fewer calls), the length of
     * the errno list, and how many errnos at its end mean missing permission. */
    long number;
    int error;
    int listed, refusals;
    char path[4096]; /* of an open that failed */
    int status;      /* exit status of the child, from waitpid */
};
void inject(int pid, struct injection *injection);
const char *system_call_name(long number);

#endif
