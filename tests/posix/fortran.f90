! Fortran I/O without MPI (formatted, direct access, stream) on one file, and MPI-IO from Fortran on
! another.
!
!   fortran FILE
program fortran
  use mpi
  implicit none
  integer, parameter :: records = 200, values = 250
  character(len=4096) :: path
  integer :: rank, ranks, ierror, i, unit, handle, got
  integer :: buffer(values), status(MPI_STATUS_SIZE)
  integer(kind=MPI_OFFSET_KIND) :: offset, size
  character(len=80) :: line

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, path)

  if (rank == 0) then
    open(newunit=unit, file=trim(path)//'.direct', access='direct', form='unformatted', recl=4*values, status='replace')
    do i = records, 1, -1
      buffer = i * 1000 + [(got, got = 1, values)]
      write(unit, rec=i) buffer
    end do
    do i = 1, records
      read(unit, rec=i) buffer
      if (any(buffer /= i * 1000 + [(got, got = 1, values)])) stop 'direct access: wrong values'
    end do
    close(unit)
    open(newunit=unit, file=trim(path)//'.text', form='formatted', status='replace')
    do i = 1, records
      write(unit, '(a,i0,f12.3)') 'record ', i, i / 3.0
    end do
    rewind(unit)
    do i = 1, records
      read(unit, '(a)') line
    end do
    backspace(unit)
    write(unit, '(a)') 'the last record again'
    close(unit)
    open(newunit=unit, file=trim(path)//'.text', form='formatted', position='append', status='old')
    write(unit, '(a)') 'appended'
    close(unit)
    open(newunit=unit, file=trim(path)//'.stream', access='stream', form='unformatted', status='replace')
    write(unit, pos=100001) buffer
    write(unit, pos=1) buffer
    inquire(unit, size=got)
    print '(a,i0)', 'stream size ', got
    close(unit)
  end if
  call MPI_Barrier(MPI_COMM_WORLD, ierror)

  call MPI_File_open(MPI_COMM_WORLD, trim(path), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, handle, ierror)
  call check(ierror, 'open')
  do i = 0, 19
    buffer = i * ranks + rank
    offset = int(i * ranks + rank, MPI_OFFSET_KIND) * values * 4
    if (mod(i, 2) == 0) then
      call MPI_File_write_at(handle, offset, buffer, values, MPI_INTEGER, status, ierror)
    else
      call MPI_File_write_at_all(handle, offset, buffer, values, MPI_INTEGER, status, ierror)
    end if
    call check(ierror, 'write')
  end do
  call MPI_File_sync(handle, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  do i = 0, 19
    offset = int(i * ranks + mod(rank + 1, ranks), MPI_OFFSET_KIND) * values * 4
    call MPI_File_read_at(handle, offset, buffer, values, MPI_INTEGER, status, ierror)
    if (any(buffer /= i * ranks + mod(rank + 1, ranks))) call check(1, 'read: wrong values')
  end do
  call MPI_File_get_size(handle, size, ierror)
  if (size /= 20_MPI_OFFSET_KIND * ranks * values * 4) call check(1, 'size')
  call MPI_File_close(handle, ierror)
  if (rank == 0) print '(a)', 'fortran: ok'
  call MPI_Finalize(ierror)

contains

  subroutine check(code, what)
    integer, intent(in) :: code
    character(len=*), intent(in) :: what
    integer :: ignored
    if (code == MPI_SUCCESS) return
    print '(2a)', what, ' failed'
    call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
  end subroutine
end program
