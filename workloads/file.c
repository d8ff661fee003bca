#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
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

size_t slots_needed(enum call call, size_t count)
{
    switch (call) {
    case CALL_VIEW:
    case CALL_VIEW_ALL:
        return count;
    case CALL_NONBLOCKING:
        return count < MAX_IN_FLIGHT ? count : MAX_IN_FLIGHT;
    default:
        return 1;
    }
}

/* The buffer of request i, filled if the job writes. */
static unsigned char *slot_of(const struct job *job, size_t i)
{
    unsigned char *slot = job->buf + (i % job->slots) * job->slot_bytes;
    if (job->direction == FOR_WRITE)
        pattern_fill(slot, job->requests[i].len, job->requests[i].offset, job->key);
    return slot;
}

static void posix_request(const struct data_file *file, const struct job *job, size_t i)
{
    unsigned char *buf = slot_of(job, i);
    struct request left = job->requests[i];
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

static void mpi_request(const struct data_file *file, const struct job *job, size_t i)
{
    unsigned char *buf = slot_of(job, i);
    MPI_Offset offset = (MPI_Offset)job->requests[i].offset;
    int len = (int)job->requests[i].len;
    MPI_Status status;
    int rc;
    if (job->direction == FOR_WRITE)
        rc = job->call == CALL_AT ? MPI_File_write_at(file->mpi, offset, buf, len, MPI_BYTE, &status)
                                  : MPI_File_write_at_all(file->mpi, offset, buf, len, MPI_BYTE, &status);
    else
        rc = job->call == CALL_AT ? MPI_File_read_at(file->mpi, offset, buf, len, MPI_BYTE, &status)
                                  : MPI_File_read_at_all(file->mpi, offset, buf, len, MPI_BYTE, &status);
    check_mpi(rc, "MPI-IO on", file->path);
    check_count(file, &status, job->requests[i].len);
}

static void mpi_nonblocking(const struct data_file *file, const struct job *job)
{
    MPI_Request in_flight[MAX_IN_FLIGHT];
    MPI_Status status;
    for (size_t i = 0; i < job->count + MAX_IN_FLIGHT; i++) {
        if (i >= MAX_IN_FLIGHT && i - MAX_IN_FLIGHT < job->count) {
            check_mpi(MPI_Wait(&in_flight[i % MAX_IN_FLIGHT], &status), "MPI-IO on", file->path);
            check_count(file, &status, job->requests[i - MAX_IN_FLIGHT].len);
        }
        if (i >= job->count)
            continue;
        unsigned char *buf = slot_of(job, i);
        MPI_Offset offset = (MPI_Offset)job->requests[i].offset;
        int len = (int)job->requests[i].len;
        MPI_Request *request = &in_flight[i % MAX_IN_FLIGHT];
        int rc = job->direction == FOR_WRITE
                     ? MPI_File_iwrite_at(file->mpi, offset, buf, len, MPI_BYTE, request)
                     : MPI_File_iread_at(file->mpi, offset, buf, len, MPI_BYTE, request);
        check_mpi(rc, "MPI-IO on", file->path);
    }
}

/* The requests as one file type; the memory is contiguous, since every slot is full. */
static void mpi_view(const struct data_file *file, const struct job *job)
{
    MPI_Aint *places = malloc(job->count * sizeof *places);
    int *lens = malloc(job->count * sizeof *lens);
    if (!places || !lens)
        fail("no memory for a view of %zu requests", job->count);
    for (size_t i = 0; i < job->count; i++) {
        places[i] = (MPI_Aint)job->requests[i].offset;
        lens[i] = (int)job->requests[i].len;
        slot_of(job, i);
    }
    MPI_Datatype view;
    MPI_Type_create_hindexed((int)job->count, lens, places, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    check_mpi(MPI_File_set_view(file->mpi, 0, MPI_BYTE, view, "native", MPI_INFO_NULL), "MPI_File_set_view", file->path);
    int total = (int)(job->count * job->slot_bytes);
    MPI_Status status;
    int rc;
    if (job->direction == FOR_WRITE)
        rc = job->call == CALL_VIEW ? MPI_File_write_at(file->mpi, 0, job->buf, total, MPI_BYTE, &status)
                                    : MPI_File_write_at_all(file->mpi, 0, job->buf, total, MPI_BYTE, &status);
    else
        rc = job->call == CALL_VIEW ? MPI_File_read_at(file->mpi, 0, job->buf, total, MPI_BYTE, &status)
                                    : MPI_File_read_at_all(file->mpi, 0, job->buf, total, MPI_BYTE, &status);
    check_mpi(rc, "MPI-IO on", file->path);
    check_count(file, &status, (uint64_t)total);
    MPI_Type_free(&view);
    free(places);
    free(lens);
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
    for (size_t i = 0; i < job->count; i++) {
        if (file->api != API_MPIIO)
            posix_request(file, job, i);
        else
            mpi_request(file, job, i);
    }
}
