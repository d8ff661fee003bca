! Makes every collective call of MPI-IO once from Fortran, each with another count, and prints the
! mark that each should leave, like mpi_shim.c. With -DF08 through the module mpi_f08, else through
! mpi.
#ifdef F08
#define HANDLE(kind) type(MPI_/**/kind)
#define STATUS_T type(MPI_Status)
#else
#define HANDLE(kind) integer
#define STATUS_T integer, dimension(MPI_STATUS_SIZE)
#endif
program shim
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, numbers(4096), ierror, n
  HANDLE(File) :: file
  HANDLE(Request) :: request
  STATUS_T :: status
  character(len=500) :: path
  integer(kind=MPI_OFFSET_KIND) :: at, size

  numbers = 7
  n = 100
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call get_command_argument(1, path)
  at = rank * 4096
  size = 65536
  call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, ierror)
  call other('open')
  call MPI_File_set_size(file, size, ierror)
  call other('set_size')
  call MPI_File_preallocate(file, size, ierror)
  call other('preallocate')
  size = 0
  call MPI_File_set_view(file, size, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierror)
  call other('set_view')
  n = n + 1; call MPI_File_write_at_all(file, at, numbers, n, MPI_INTEGER, status, ierror)
  call data('write_at_all')
  n = n + 1; call MPI_File_read_at_all(file, at, numbers, n, MPI_INTEGER, status, ierror)
  call data('read_at_all')
  n = n + 1; call MPI_File_write_all(file, numbers, n, MPI_INTEGER, status, ierror)
  call data('write_all')
  n = n + 1; call MPI_File_read_all(file, numbers, n, MPI_INTEGER, status, ierror)
  call data('read_all')
  n = n + 1; call MPI_File_write_ordered(file, numbers, n, MPI_INTEGER, status, ierror)
  call data('write_ordered')
  n = n + 1; call MPI_File_read_ordered(file, numbers, n, MPI_INTEGER, status, ierror)
  call data('read_ordered')
  n = n + 1; call MPI_File_write_at_all_begin(file, at, numbers, n, MPI_INTEGER, ierror)
  call data('write_at_all_begin')
  call MPI_File_write_at_all_end(file, numbers, status, ierror)
  call other('write_at_all_end')
  n = n + 1; call MPI_File_read_all_begin(file, numbers, n, MPI_INTEGER, ierror)
  call data('read_all_begin')
  call MPI_File_read_all_end(file, numbers, status, ierror)
  call other('read_all_end')
  n = n + 1; call MPI_File_write_ordered_begin(file, numbers, n, MPI_INTEGER, ierror)
  call data('write_ordered_begin')
  call MPI_File_write_ordered_end(file, numbers, status, ierror)
  call other('write_ordered_end')
  n = n + 1; call MPI_File_iwrite_at_all(file, at, numbers, n, MPI_INTEGER, request, ierror)
  call data('iwrite_at_all')
  call MPI_Wait(request, status, ierror)
  n = n + 1; call MPI_File_iread_all(file, numbers, n, MPI_INTEGER, request, ierror)
  call data('iread_all')
  call MPI_Wait(request, status, ierror)
  call MPI_File_sync(file, ierror)
  call other('sync')
  call MPI_File_close(file, ierror)
  call other('close')
  call MPI_Finalize(ierror)

contains

  subroutine data(name)
    character(len=*), intent(in) :: name
    call say(name, 4 * n)
  end subroutine

  subroutine other(name)
    character(len=*), intent(in) :: name
    call say(name, 0)
  end subroutine

  subroutine say(name, bytes)
    character(len=*), intent(in) :: name
    integer, intent(in) :: bytes
    integer :: ignored
    if (ierror /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
    if (rank == 0) print '(a,1x,i0)', name, bytes
  end subroutine
end program
