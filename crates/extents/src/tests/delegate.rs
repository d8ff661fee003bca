//! Implementations of [`Sys`](stripewise_sys::Sys) that intercept the calls of another one.

/// Generates the methods of [`Sys`](stripewise_sys::Sys) for a type with a field `sys: SysRef`.
/// Methods that deal with files first call `self.$before("call")?`.
macro_rules! delegate {
    (clock) => {
        fn now_ns(&self) -> u64 {
            self.sys.now_ns()
        }
        fn sleep_until_ns(&self, until_ns: u64) {
            self.sys.sleep_until_ns(until_ns);
        }
    };
    ($before:ident) => {
        delegate!($before, except clock);
        delegate!(clock);
    };
    ($before:ident, except clock) => {
        delegate!($before, except sync lock clock);
        fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
            self.$before("fsync")?;
            self.sys.sync(fd)
        }
        fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()> {
            self.$before("fsync")?;
            self.sys.sync_data(fd)
        }
        fn lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<()> {
            self.sys.lock(fd, start, len, kind)
        }
    };
    ($before:ident, except sync lock) => {
        delegate!($before, except sync lock clock);
        delegate!(clock);
    };
    ($before:ident, except sync lock clock) => {
        fn is_real(&self) -> bool {
            self.sys.is_real()
        }
        fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
            self.$before("open")?;
            self.sys.open(dir, path, flags, mode)
        }
        unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize> {
            self.$before("pread")?;
            unsafe { self.sys.pread(fd, buffer, len, offset) }
        }
        unsafe fn pwrite(
            &self,
            fd: BorrowedFd<'_>,
            buffer: *const u8,
            len: usize,
            offset: u64,
        ) -> Result<usize> {
            self.$before("pwrite")?;
            unsafe { self.sys.pwrite(fd, buffer, len, offset) }
        }
        unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
            self.$before("pread")?;
            unsafe { self.sys.preadv(fd, vectors, offset) }
        }
        unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
            self.$before("pwrite")?;
            unsafe { self.sys.pwritev(fd, vectors, offset) }
        }
        fn seek(&self, fd: BorrowedFd<'_>, to: SeekFrom) -> Result<u64> {
            self.sys.seek(fd, to)
        }
        fn truncate(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
            self.$before("ftruncate")?;
            self.sys.truncate(fd, size)
        }
        fn grow(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
            self.sys.grow(fd, size)
        }
        fn allocate(&self, fd: BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> Result<()> {
            self.$before("allocate")?;
            self.sys.allocate(fd, offset, len, keep_size)
        }
        fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
            self.$before("punch")?;
            self.sys.punch_hole(fd, offset, len)
        }
        fn stat(&self, fd: BorrowedFd<'_>) -> Result<Stat> {
            self.sys.stat(fd)
        }
        fn is_open_elsewhere(&self, fd: BorrowedFd<'_>) -> Result<bool> {
            self.sys.is_open_elsewhere(fd)
        }
        fn stat_at(&self, dir: Dir<'_>, path: &Path, follow: bool) -> Result<Stat> {
            self.sys.stat_at(dir, path, follow)
        }
        fn stat_fs(&self, fd: BorrowedFd<'_>) -> Result<StatVfs> {
            self.sys.stat_fs(fd)
        }
        fn link(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
            self.sys.link(old_dir, old, new_dir, new)
        }
        fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
            self.$before("rename")?;
            self.sys.rename(old_dir, old, new_dir, new)
        }
        fn rename_noreplace(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
            self.sys.rename_noreplace(old_dir, old, new_dir, new)
        }
        fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
            self.$before("unlink")?;
            self.sys.unlink(dir, path)
        }
        fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()> {
            self.sys.mkdir(dir, path, mode)
        }
        fn rmdir(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
            self.sys.rmdir(dir, path)
        }
        fn read_link(&self, dir: Dir<'_>, path: &Path) -> Result<OsString> {
            self.sys.read_link(dir, path)
        }
        fn list(&self, dir: BorrowedFd<'_>) -> Result<Vec<Listed>> {
            self.sys.list(dir)
        }
        fn try_lock(&self, fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> Result<bool> {
            self.$before("try lock")?;
            self.sys.try_lock(fd, start, len, kind)
        }
        fn unlock(&self, fd: BorrowedFd<'_>, start: u64, len: u64) -> Result<()> {
            self.$before("unlock")?;
            self.sys.unlock(fd, start, len)
        }
        fn set_times(&self, of: Kind<'_>, times: &Timestamps) -> Result<()> {
            self.sys.set_times(of, times)
        }
        fn set_mode(&self, of: Kind<'_>, mode: Mode) -> Result<()> {
            self.sys.set_mode(of, mode)
        }
        fn xattr(&self, of: Kind<'_>, name: &std::ffi::OsStr) -> Result<Vec<u8>> {
            self.sys.xattr(of, name)
        }
        fn list_xattr(&self, of: Kind<'_>) -> Result<Vec<OsString>> {
            self.sys.list_xattr(of)
        }
        fn set_xattr(&self, of: Kind<'_>, name: &std::ffi::OsStr, value: &[u8]) -> Result<()> {
            self.sys.set_xattr(of, name, value)
        }
        fn remove_xattr(&self, of: Kind<'_>, name: &std::ffi::OsStr) -> Result<()> {
            self.sys.remove_xattr(of, name)
        }
        fn set_owner(&self, of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> Result<()> {
            self.sys.set_owner(of, user, group)
        }
        fn wall_ns(&self) -> u64 {
            self.sys.wall_ns()
        }
        fn user(&self) -> u32 {
            self.sys.user()
        }
        fn say(&self, line: &[u8]) {
            self.sys.say(line);
        }
        fn random(&self, buffer: &mut [u8]) -> Result<()> {
            self.sys.random(buffer)
        }
        fn map_shared(&self, fd: BorrowedFd<'_>, words: usize) -> Result<SharedMap> {
            self.sys.map_shared(fd, words)
        }
    };
}

pub(crate) use delegate;
