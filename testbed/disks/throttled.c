/* Disk images that take the time of a disk: a FUSE directory with one file per image, for use under
 * loop devices.
 *
 * A request of s bytes takes T = startup + s / rate. Every disk has one arm: it serves its requests
 * one after the other, in the order in which the kernel sends them. A request that begins where the
 * last one on that disk ended has a separate, smaller startup time, because the arm is there
 * already.
 *
 * Such a request has no startup time at all if it also was waiting before the last one ended, has
 * the same direction, and follows a request as large as a piece of a cut request. Then it is the
 * rest of a request that the kernel cut (a loop device at 128 pieces of memory, FUSE at 1 MiB). It
 * is counted with the first piece, since a disk with a queue continues without a pause.
 *
 * The directory also contains two text files:
 *   statistics   the counters of each disk, a JSON object per line
 *   delay        1 or 0: whether requests are delayed; can be written
 * One thread takes the requests from the kernel, which preserves the kernel's order; one thread per
 * disk answers them. */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_DISKS = 64, MAX_NAME = 32, MAX_TEXT = MAX_DISKS * 512, MAX_TRANSFER = 1 << 20, MAX_WAITING = 256 };
/* Smallest size at which the kernel cuts requests, bytes: 128 pieces of memory, each a page except
 * the first. */
enum { CUT_MIN = 127 * 4096 };
enum { INODE_STATISTICS = FUSE_ROOT_ID + 1, INODE_DELAY, INODE_DISKS };
enum { TIMER_SLACK_NS = 1000 };

enum direction { READ, WRITE, DIRECTIONS };

/* A request in a disk's queue. Writes are executed at once and only their answer is delayed; reads
 * are executed when they are answered. */
struct waiting {
    struct waiting *next;
    fuse_req_t request;
    enum direction direction;
    size_t size;
    off_t offset;
    int64_t done_ns; /* CLOCK_MONOTONIC */
    int error;       /* errno of a write */
};

struct counters {
    uint64_t requests[DIRECTIONS], bytes[DIRECTIONS];
    uint64_t sequential; /* number of sequential requests; the others were random */
    uint64_t continued;  /* number of later pieces of requests that the kernel cut */
    uint64_t busy_ns;
};

struct disk {
    char name[MAX_NAME];
    int fd;
    double random_ns, sequential_ns, ns_per_byte;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t filled;
    struct waiting *first, **last;
    off_t arm;           /* where the last request ended */
    enum direction last_direction;
    size_t last_size;
    int64_t free_ns;     /* when the last request is done */
    struct counters counters;
};

static struct disk disks[MAX_DISKS];
static unsigned disk_count;
static atomic_int delaying;

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    struct timespec time = {.tv_sec = ns / 1000000000LL, .tv_nsec = ns % 1000000000LL};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        ;
}

/* Counts a request and returns the time when it is done, ns. The caller holds the disk's lock. */
static int64_t serve(struct disk *disk, enum direction direction, off_t offset, size_t size)
{
    int64_t now = now_ns();
    int ordered = offset == disk->arm;
    int continued = ordered && direction == disk->last_direction && disk->last_size >= CUT_MIN && now < disk->free_ns;
    double startup_ns = continued ? 0 : ordered ? disk->sequential_ns : disk->random_ns;
    int64_t busy_ns = (int64_t)(startup_ns + (double)size * disk->ns_per_byte);
    disk->arm = offset + (off_t)size;
    disk->last_direction = direction;
    disk->last_size = size;
    if (!atomic_load(&delaying))
        return disk->free_ns = now;
    disk->counters.requests[direction] += !continued;
    disk->counters.bytes[direction] += size;
    disk->counters.continued += continued;
    disk->counters.sequential += ordered && !continued;
    disk->counters.busy_ns += (uint64_t)busy_ns;
    return disk->free_ns = (disk->free_ns > now ? disk->free_ns : now) + busy_ns;
}

static void enqueue(struct disk *disk, struct waiting *waiting)
{
    pthread_mutex_lock(&disk->lock);
    waiting->done_ns = serve(disk, waiting->direction, waiting->offset, waiting->size);
    waiting->next = NULL;
    *disk->last = waiting;
    disk->last = &waiting->next;
    pthread_cond_signal(&disk->filled);
    pthread_mutex_unlock(&disk->lock);
}

static struct waiting *dequeue(struct disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    while (!disk->first)
        pthread_cond_wait(&disk->filled, &disk->lock);
    struct waiting *waiting = disk->first;
    disk->first = waiting->next;
    if (!disk->first)
        disk->last = &disk->first;
    pthread_mutex_unlock(&disk->lock);
    return waiting;
}

static void answer(const struct disk *disk, const struct waiting *waiting)
{
    if (waiting->direction == READ) {
        struct fuse_bufvec data = FUSE_BUFVEC_INIT(waiting->size);
        data.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
        data.buf[0].fd = disk->fd;
        data.buf[0].pos = waiting->offset;
        fuse_reply_data(waiting->request, &data, 0);
    } else if (waiting->error) {
        fuse_reply_err(waiting->request, waiting->error);
    } else {
        fuse_reply_write(waiting->request, waiting->size);
    }
}

static void *answer_all(void *argument)
{
    struct disk *disk = argument;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    for (;;) {
        struct waiting *waiting = dequeue(disk);
        sleep_until(waiting->done_ns);
        answer(disk, waiting);
        free(waiting);
    }
    return NULL;
}

static struct disk *disk_of(fuse_ino_t inode)
{
    return inode >= INODE_DISKS && inode < INODE_DISKS + disk_count ? &disks[inode - INODE_DISKS] : NULL;
}

static size_t statistics(char *text, size_t room)
{
    size_t used = 0;
    for (unsigned i = 0; i < disk_count; i++) {
        pthread_mutex_lock(&disks[i].lock);
        struct counters c = disks[i].counters;
        pthread_mutex_unlock(&disks[i].lock);
        used += (size_t)snprintf(text + used, room - used,
                                 "{\"disk\": \"%s\", \"reads\": %llu, \"read_bytes\": %llu, \"writes\": %llu, "
                                 "\"written_bytes\": %llu, \"sequential\": %llu, \"continued\": %llu, \"busy_ns\": %llu}\n",
                                 disks[i].name, (unsigned long long)c.requests[READ],
                                 (unsigned long long)c.bytes[READ], (unsigned long long)c.requests[WRITE],
                                 (unsigned long long)c.bytes[WRITE], (unsigned long long)c.sequential,
                                 (unsigned long long)c.continued, (unsigned long long)c.busy_ns);
    }
    return used;
}

static int attributes(fuse_ino_t inode, struct stat *stat)
{
    memset(stat, 0, sizeof *stat);
    struct disk *disk = disk_of(inode);
    if (disk) {
        if (fstat(disk->fd, stat) != 0)
            return errno;
        stat->st_mode = S_IFREG | 0600;
    } else if (inode == FUSE_ROOT_ID) {
        stat->st_mode = S_IFDIR | 0755;
        stat->st_nlink = 2;
    } else {
        stat->st_mode = S_IFREG | (inode == INODE_DELAY ? 0644 : 0444);
        stat->st_nlink = 1;
    }
    stat->st_ino = inode;
    return 0;
}

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.attr_timeout = 1.0, .entry_timeout = 1.0};
    if (parent == FUSE_ROOT_ID && strcmp(name, "statistics") == 0)
        entry.ino = INODE_STATISTICS;
    else if (parent == FUSE_ROOT_ID && strcmp(name, "delay") == 0)
        entry.ino = INODE_DELAY;
    for (unsigned i = 0; parent == FUSE_ROOT_ID && i < disk_count; i++)
        if (strcmp(name, disks[i].name) == 0)
            entry.ino = INODE_DISKS + i;
    int error = entry.ino ? attributes(entry.ino, &entry.attr) : ENOENT;
    error ? fuse_reply_err(request, error) : fuse_reply_entry(request, &entry);
}

static void do_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
    (void)file;
    struct stat stat;
    int error = attributes(inode, &stat);
    error ? fuse_reply_err(request, error) : fuse_reply_attr(request, &stat, 1.0);
}

/* `echo 0 >delay` truncates first. */
static void do_setattr(fuse_req_t request, fuse_ino_t inode, struct stat *to, int what, struct fuse_file_info *file)
{
    (void)to;
    if (inode != INODE_DELAY || what & ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME))
        fuse_reply_err(request, EPERM);
    else
        do_getattr(request, inode, file);
}

static void do_readdir(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *file)
{
    (void)file;
    char *text = malloc(size);
    size_t used = 0;
    for (fuse_ino_t entry = INODE_STATISTICS + (fuse_ino_t)offset; text && entry < INODE_DISKS + disk_count; entry++) {
        struct stat stat;
        struct disk *disk = disk_of(entry);
        const char *name = disk ? disk->name : entry == INODE_DELAY ? "delay" : "statistics";
        if (attributes(entry, &stat) != 0)
            continue;
        size_t len = fuse_add_direntry(request, text + used, size - used, name, &stat, (off_t)(entry - FUSE_ROOT_ID));
        if (len > size - used)
            break;
        used += len;
    }
    inode == FUSE_ROOT_ID && text ? fuse_reply_buf(request, text, used) : fuse_reply_err(request, ENOTDIR);
    free(text);
}

static void do_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
    (void)inode;
    file->direct_io = 1;
    fuse_reply_open(request, file);
}

/* Queues one request of the kernel to a disk; `data` are the bytes of a write. */
static void transfer(fuse_req_t request, struct disk *disk, enum direction direction, const char *data, size_t size,
                     off_t offset)
{
    struct waiting *waiting = malloc(sizeof *waiting);
    if (!waiting) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    *waiting = (struct waiting){.request = request, .direction = direction, .size = size, .offset = offset};
    for (size_t done = 0; direction == WRITE && done < size && !waiting->error;) {
        ssize_t written = pwrite(disk->fd, data + done, size - done, offset + (off_t)done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            waiting->error = written == 0 ? EIO : errno;
    }
    enqueue(disk, waiting);
}

static void do_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *file)
{
    (void)file;
    struct disk *disk = disk_of(inode);
    if (disk) {
        transfer(request, disk, READ, NULL, size, offset);
        return;
    }
    char text[MAX_TEXT];
    size_t all = inode == INODE_DELAY ? (size_t)snprintf(text, sizeof text, "%d\n", atomic_load(&delaying))
                                      : statistics(text, sizeof text);
    size_t from = (size_t)offset < all ? (size_t)offset : all;
    fuse_reply_buf(request, text + from, all - from < size ? all - from : size);
}

static void do_write(fuse_req_t request, fuse_ino_t inode, const char *data, size_t size, off_t offset,
                     struct fuse_file_info *file)
{
    (void)file;
    struct disk *disk = disk_of(inode);
    if (disk) {
        transfer(request, disk, WRITE, data, size, offset);
    } else if (inode == INODE_DELAY && size > 0 && (data[0] == '0' || data[0] == '1')) {
        atomic_store(&delaying, data[0] == '1');
        fuse_reply_write(request, size);
    } else {
        fuse_reply_err(request, EINVAL);
    }
}

/* A flush takes no time, because a write is answered only when it is on the disk. */
static void do_fsync(fuse_req_t request, fuse_ino_t inode, int data_only, struct fuse_file_info *file)
{
    (void)inode, (void)data_only, (void)file;
    fuse_reply_err(request, 0);
}

/* Handles discards, which release the image's memory. */
static void do_fallocate(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset, off_t length,
                         struct fuse_file_info *file)
{
    (void)file;
    struct disk *disk = disk_of(inode);
    int error = !disk || !(mode & FALLOC_FL_KEEP_SIZE) ? EOPNOTSUPP
                : fallocate(disk->fd, mode, offset, length) ? errno : 0;
    fuse_reply_err(request, error);
}

/* Lets requests wait in this process instead of the kernel: the disk decides when they are done. */
static void do_init(void *data, struct fuse_conn_info *connection)
{
    (void)data;
    connection->max_write = MAX_TRANSFER;
    connection->max_read = MAX_TRANSFER;
    connection->max_background = MAX_WAITING;
    connection->congestion_threshold = MAX_WAITING;
}

static const struct fuse_lowlevel_ops OPERATIONS = {
    .init = do_init, .lookup = do_lookup, .getattr = do_getattr, .setattr = do_setattr, .readdir = do_readdir,
    .open = do_open, .read = do_read,     .write = do_write,     .fsync = do_fsync,     .fallocate = do_fallocate,
};

static void usage(void)
{
    fputs("usage: throttled-disk MOUNTPOINT NAME=IMAGE:RANDOM_US:SEQUENTIAL_US:MIB_PER_S...\n"
          "Serves disk images that take the time of a disk, until MOUNTPOINT is unmounted; it begins without delays.\n",
          stderr);
    exit(2);
}

static void add_disk(const char *text)
{
    double random_us, sequential_us, mib_per_s;
    char image[4096];
    struct disk *disk = &disks[disk_count];
    if (disk_count == MAX_DISKS ||
        sscanf(text, "%31[^=]=%4095[^:]:%lf:%lf:%lf", disk->name, image, &random_us, &sequential_us, &mib_per_s) != 5 ||
        !(random_us >= 0) || !(sequential_us >= 0) || !(mib_per_s > 0))
        usage();
    disk->random_ns = random_us * 1e3;
    disk->sequential_ns = sequential_us * 1e3;
    disk->ns_per_byte = 1e9 / (mib_per_s * (1 << 20));
    disk->arm = -1;
    disk->last = &disk->first;
    disk->fd = open(image, O_RDWR | O_CLOEXEC);
    if (disk->fd < 0) {
        fprintf(stderr, "throttled-disk: cannot open the image '%s': %s\n", image, strerror(errno));
        exit(1);
    }
    pthread_mutex_init(&disk->lock, NULL);
    pthread_cond_init(&disk->filled, NULL);
    disk_count++;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        usage();
    for (int i = 2; i < argc; i++)
        add_disk(argv[i]);
    char *words[] = {argv[0], "-o", "fsname=stripewise-throttled,max_read=1048576", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
    struct fuse_session *session = fuse_session_new(&arguments, &OPERATIONS, sizeof OPERATIONS, NULL);
    if (!session || fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, argv[1]) != 0)
        return 1;
    for (unsigned i = 0; i < disk_count; i++)
        if (pthread_create(&disks[i].thread, NULL, answer_all, &disks[i]) != 0)
            return 1;
    int status = fuse_session_loop(session);
    fuse_session_unmount(session);
    return status == 0 ? 0 : 1;
}
