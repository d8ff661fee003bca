//! Methods for implementations of [`Sys`](stripewise_sys::Sys) that intercept calls.

/// Overrides the calls for which a file system may lack a feature, or for which the kernel has a
/// shortcut: features are missing, and shortcuts are not taken.
#[macro_export]
macro_rules! without_features {
    () => {
        fn identity(&self, _fd: ::std::os::fd::BorrowedFd<'_>) -> $crate::sys::Result<$crate::sys::Identity> {
            Ok($crate::sys::Identity::default())
        }
        fn exists(
            &self,
            _dir: ::std::os::fd::BorrowedFd<'_>,
            _identity: &$crate::sys::Identity,
        ) -> $crate::sys::Result<Option<bool>> {
            Ok(None)
        }
        fn open_public(
            &self,
            dir: $crate::sys::Dir<'_>,
            path: &::std::path::Path,
            flags: $crate::sys::OFlags,
            mode: $crate::sys::Mode,
        ) -> $crate::sys::Result<::std::os::fd::RawFd> {
            let fd = self.open(dir, path, flags, mode)?;
            let public = ::std::os::fd::AsFd::as_fd(&fd).try_clone_to_owned();
            public.map(::std::os::fd::IntoRawFd::into_raw_fd).map_err(|_| $crate::sys::Errno::MFILE)
        }
        unsafe fn preadv_cached(
            &self,
            _fd: ::std::os::fd::BorrowedFd<'_>,
            _vectors: &[$crate::sys::IoVec],
            _offset: u64,
        ) -> $crate::sys::Result<usize> {
            Err($crate::sys::Errno::OPNOTSUPP)
        }
        fn drop_cached(&self, _fd: ::std::os::fd::BorrowedFd<'_>) -> $crate::sys::Result<()> {
            Ok(())
        }
        fn direct_alignment(&self, _fd: ::std::os::fd::BorrowedFd<'_>) -> u64 {
            $crate::sys::DIRECT_ALIGNMENT_MOST
        }
        fn may_write(&self, _fd: ::std::os::fd::BorrowedFd<'_>, _effective: bool) -> $crate::sys::Result<()> {
            Ok(())
        }
        fn file_system(&self, _fd: ::std::os::fd::BorrowedFd<'_>) -> $crate::sys::Result<u64> {
            Err($crate::sys::Errno::NOSYS)
        }
    };
}

/// Calls `self.$before("call")?` before the kernel's call, for the calls on files that the
/// protocols of the upper layers consist of. `except sync` leaves out the syncs.
#[macro_export]
macro_rules! delegate {
    ($before:ident) => {
        $crate::delegate!($before, except sync);
        $crate::intercept! {
            $before("fsync") fn sync(fd: ::std::os::fd::BorrowedFd<'_>) -> ();
            $before("fsync") fn sync_data(fd: ::std::os::fd::BorrowedFd<'_>) -> ();
        }
    };
    ($before:ident, except sync) => {
        $crate::without_features!();
        $crate::intercept! {
            $before("open") fn open(dir: $crate::sys::Dir<'_>, path: &::std::path::Path,
                flags: $crate::sys::OFlags, mode: $crate::sys::Mode) -> $crate::sys::Fd;
            $before("ftruncate") fn truncate(fd: ::std::os::fd::BorrowedFd<'_>, size: u64) -> ();
            $before("allocate") fn allocate(fd: ::std::os::fd::BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> ();
            $before("punch") fn punch_hole(fd: ::std::os::fd::BorrowedFd<'_>, offset: u64, len: u64) -> ();
            $before("rename") fn rename(old_dir: $crate::sys::Dir<'_>, old: &::std::path::Path,
                new_dir: $crate::sys::Dir<'_>, new: &::std::path::Path) -> ();
            $before("unlink") fn unlink(dir: $crate::sys::Dir<'_>, path: &::std::path::Path) -> ();
            $before("try lock") fn try_lock(fd: ::std::os::fd::BorrowedFd<'_>, start: u64, len: u64,
                kind: $crate::sys::LockKind) -> bool;
            $before("unlock") fn unlock(fd: ::std::os::fd::BorrowedFd<'_>, start: u64, len: u64) -> ();
        }
        // Each component of the path is opened by `open`.
        fn open_beneath(
            &self,
            dir: ::std::os::fd::BorrowedFd<'_>,
            path: &::std::path::Path,
            flags: $crate::sys::OFlags,
            mode: $crate::sys::Mode,
        ) -> $crate::sys::Result<$crate::sys::Fd> {
            $crate::sys::stepwise(&|dir, path, flags, mode| self.open(Some(dir), path, flags, mode), dir, path, flags, mode)
        }
        fn stat_beneath(
            &self,
            dir: ::std::os::fd::BorrowedFd<'_>,
            path: &::std::path::Path,
        ) -> $crate::sys::Result<$crate::sys::Stat> {
            let fd = self.open_beneath(dir, path, $crate::sys::OFlags::PATH, $crate::sys::Mode::empty())?;
            self.stat(::std::os::fd::AsFd::as_fd(&fd))
        }
        fn sync_file_system(&self, fd: ::std::os::fd::BorrowedFd<'_>) -> $crate::sys::Result<()> {
            self.sync(fd)
        }
        unsafe fn pread(
            &self,
            fd: ::std::os::fd::BorrowedFd<'_>,
            buffer: *mut u8,
            len: usize,
            offset: u64,
        ) -> $crate::sys::Result<usize> {
            self.$before("pread")?;
            // SAFETY: as the caller promises.
            unsafe { $crate::sys::Real.pread(fd, buffer, len, offset) }
        }
        unsafe fn pwrite(
            &self,
            fd: ::std::os::fd::BorrowedFd<'_>,
            buffer: *const u8,
            len: usize,
            offset: u64,
        ) -> $crate::sys::Result<usize> {
            self.$before("pwrite")?;
            // SAFETY: as the caller promises.
            unsafe { $crate::sys::Real.pwrite(fd, buffer, len, offset) }
        }
        unsafe fn preadv(
            &self,
            fd: ::std::os::fd::BorrowedFd<'_>,
            vectors: &[$crate::sys::IoVec],
            offset: u64,
        ) -> $crate::sys::Result<usize> {
            self.$before("pread")?;
            // SAFETY: as the caller promises.
            unsafe { $crate::sys::Real.preadv(fd, vectors, offset) }
        }
        unsafe fn pwritev(
            &self,
            fd: ::std::os::fd::BorrowedFd<'_>,
            vectors: &[$crate::sys::IoVec],
            offset: u64,
        ) -> $crate::sys::Result<usize> {
            self.$before("pwrite")?;
            // SAFETY: as the caller promises.
            unsafe { $crate::sys::Real.pwritev(fd, vectors, offset) }
        }
    };
}

/// Methods that call `self.$before(...)?` and then the kernel. A row is that call and the method's
/// signature without `&self`; the result is what the kernel's call returns on success.
#[macro_export]
macro_rules! intercept {
    ($($before:ident($($said:expr),*) fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> $crate::sys::Result<$result> {
            self.$before($($said),*)?;
            $crate::sys::Real.$name($($argument),*)
        })*
    };
}
