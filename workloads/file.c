#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void file_open(struct data_file *file, enum api api, const char *path, MPI_Comm comm, enum direction direction,
               MPI_Info hints)
{
    *file = (struct data_file){.api = api, .path = path, .fd = -1, .comm = comm};
    if (api != API_MPIIO) {
        int flags = api == API_DIRECT ? O_DIRECT : 0;
        file->fd = direction == FOR_WRITE ? open(path, O_RDWR | O_CREAT | flags, 0666) : open(path, O_RDONLY | flags);
        if (file->fd < 0)
            fail_errno("open", path);
        return;
    }
    int mode = direction == FOR_WRITE ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    check_mpi(MPI_File_open(comm, path, mode, hints, &file->mpi), "MPI_File_open", path);
}

void file_sync(struct data_file *file)
{
    if (file->api == API_MPIIO)
        check_mpi(MPI_File_sync(file->mpi), "MPI_File_sync", file->path);
    else if (fsync(file->fd) != 0)
        fail_errno("fsync", file->path);
}

void file_close(struct data_file *file)
{
    if (file->api == API_MPIIO)
        check_mpi(MPI_File_close(&file->mpi), "MPI_File_close", file->path);
    else if (close(file->fd) != 0)
        fail_errno("close", file->path);
}

void file_set_view(struct data_file *file, const struct view *view)
{
    int rc = MPI_File_set_view(file->mpi, view->start, view->element, view->file, "native", MPI_INFO_NULL);
    check_mpi(rc, "MPI_File_set_view", file->path);
}

uint64_t slots_needed(enum call call, uint64_t count)
{
    switch (call) {
    case CALL_VIEW:
    case CALL_VIEW_ALL:
        return count;
    case CALL_NONBLOCKING:
        return count < MAX_IN_FLIGHT ? count : MAX_IN_FLIGHT;
    default:
        return count < 1 ? count : 1;
    }
}

uint64_t job_memory(const struct job *job)
{
    return job->slots == job->stream->count ? job->stream->memory : job->slots * job->stream->largest;
}

unsigned char *job_data(const struct job *job, uint64_t i, struct request r)
{
    return job->buf + (job->slots == job->stream->count ? r.place : i % job->slots * job->stream->largest);
}

void job_fill(const struct job *job)
{
    if (job->direction != FOR_WRITE || job->slots != job->stream->count)
        return;
    for (uint64_t i = 0; i < job->stream->count; i++) {
        struct request r = job->stream->at(job->stream, job->step, i);
        pattern_fill(job_data(job, i, r), r.len, r.offset, job->key);
    }
}

/* The buffer of request i; contains the data if the job writes. */
static unsigned char *buffer_of(const struct job *job, uint64_t i, struct request r)
{
    unsigned char *buf = job_data(job, i, r);
    if (job->direction == FOR_WRITE && job->slots != job->stream->count)
        pattern_fill(buf, r.len, r.offset, job->key);
    return buf;
}

static void posix_request(const struct data_file *file, const struct job *job, uint64_t i)
{
    struct request left = job->stream->at(job->stream, job->step, i);
    unsigned char *buf = buffer_of(job, i, left);
    while (left.len > 0) {
        ssize_t done = job->direction == FOR_WRITE ? pwrite(file->fd, buf, left.len, (off_t)left.offset)
                                                   : pread(file->fd, buf, left.len, (off_t)left.offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            fail_errno(job->direction == FOR_WRITE ? "write" : "read", file->path);
        if (done == 0)
            fail("'%s' ends at byte %llu; write it first, with the same sizes and ranks", file->path,
                 (unsigned long long)left.offset);
        buf += done;
        left.offset += (uint64_t)done;
        left.len -= (uint64_t)done;
    }
}

/* Fails unless the call moved all of len bytes. */
static void check_count(const struct data_file *file, MPI_Status *status, uint64_t len)
{
    int count = 0;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count < 0 || (uint64_t)count != len)
        fail("'%s': %d of %llu bytes transferred; write it first, with the same sizes and ranks", file->path, count,
             (unsigned long long)len);
}

static void mpi_request(const struct data_file *file, const struct job *job, uint64_t i)
{
    struct request r = job->stream->at(job->stream, job->step, i);
    unsigned char *buf = buffer_of(job, i, r);
    MPI_Offset offset = (MPI_Offset)r.offset;
    int len = (int)r.len;
    MPI_Status status;
    int rc;
    if (job->direction == FOR_WRITE)
        rc = job->call == CALL_AT ? MPI_File_write_at(file->mpi, offset, buf, len, MPI_BYTE, &status)
                                  : MPI_File_write_at_all(file->mpi, offset, buf, len, MPI_BYTE, &status);
    else
        rc = job->call == CALL_AT ? MPI_File_read_at(file->mpi, offset, buf, len, MPI_BYTE, &status)
                                  : MPI_File_read_at_all(file->mpi, offset, buf, len, MPI_BYTE, &status);
    check_mpi(rc, "MPI-IO on", file->path);
    check_count(file, &status, r.len);
}

static void mpi_nonblocking(const struct data_file *file, const struct job *job)
{
    MPI_Request in_flight[MAX_IN_FLIGHT];
    uint64_t lens[MAX_IN_FLIGHT];
    MPI_Status status;
    for (uint64_t i = 0; i < job->stream->count + MAX_IN_FLIGHT; i++) {
        if (i >= MAX_IN_FLIGHT && i - MAX_IN_FLIGHT < job->stream->count) {
            check_mpi(MPI_Wait(&in_flight[i % MAX_IN_FLIGHT], &status), "MPI-IO on", file->path);
            check_count(file, &status, lens[i % MAX_IN_FLIGHT]);
        }
        if (i >= job->stream->count)
            continue;
        struct request r = job->stream->at(job->stream, job->step, i);
        unsigned char *buf = buffer_of(job, i, r);
        MPI_Offset offset = (MPI_Offset)r.offset;
        MPI_Request *request = &in_flight[i % MAX_IN_FLIGHT];
        int rc = job->direction == FOR_WRITE
                     ? MPI_File_iwrite_at(file->mpi, offset, buf, (int)r.len, MPI_BYTE, request)
                     : MPI_File_iread_at(file->mpi, offset, buf, (int)r.len, MPI_BYTE, request);
        check_mpi(rc, "MPI-IO on", file->path);
        lens[i % MAX_IN_FLIGHT] = r.len;
    }
}

/* Makes all requests of the step with one call, through the current view. */
static void mpi_view(const struct data_file *file, const struct job *job)
{
    const struct view *view = job->view;
    MPI_Offset first = (MPI_Offset)job->step * view->step_elements;
    MPI_Status status;
    int rc;
    if (job->direction == FOR_WRITE)
        rc = (job->call == CALL_VIEW ? MPI_File_write_at : MPI_File_write_at_all)(
            file->mpi, first, job->buf, view->memory_count, view->memory, &status);
    else
        rc = (job->call == CALL_VIEW ? MPI_File_read_at : MPI_File_read_at_all)(
            file->mpi, first, job->buf, view->memory_count, view->memory, &status);
    check_mpi(rc, "MPI-IO on", file->path);
    check_count(file, &status, job->stream->bytes);
}

void file_transfer(struct data_file *file, const struct job *job)
{
    if (file->api == API_MPIIO && job->call == CALL_NONBLOCKING) {
        mpi_nonblocking(file, job);
        return;
    }
    if (file->api == API_MPIIO && (job->call == CALL_VIEW || job->call == CALL_VIEW_ALL)) {
        mpi_view(file, job);
        return;
    }
    for (uint64_t i = 0; i < job->stream->count; i++) {
        if (file->api != API_MPIIO)
            posix_request(file, job, i);
        else
            mpi_request(file, job, i);
    }
}
