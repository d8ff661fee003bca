//! The requests of the kernel, each as a call or two of libc.
//!
//! Nothing is cached: neither names nor attributes (their time to live is 0) nor contents (all
//! files are opened for direct I/O). So whoever uses the same files without the mount sees what is
//! done through it, and the reverse.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use libc::statx;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::Mode;

use crate::disk::{Disk, Pinned};
use crate::locks::{Locks, Range};
use crate::opened::{Opened, Table};
use crate::{attributes, calls};

/// Names and attributes are asked for each time.
const TTL: Duration = Duration::ZERO;
/// Flags of an open that say nothing of the open file, or that concern memory of the program.
const NOT_PASSED: i32 =
    libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_TRUNC | libc::O_DIRECT | libc::O_NOFOLLOW;
/// The most requests that the kernel has under way for one process's reads ahead and writes behind.
const BACKGROUND_MAX: u16 = 64;

/// A mounted directory.
pub struct Mounted {
    disk: Disk,
    files: Table,
    directories: Table,
    locks: Arc<Locks>,
}

impl Mounted {
    /// The state of a mount of which the kernel knows nothing yet.
    pub fn new(disk: Disk) -> Self {
        let (files, directories) = (Table::default(), Table::default());
        Self { disk, files, directories, locks: Arc::default() }
    }

    fn file(&self, handle: FileHandle) -> Result<Arc<Opened>, Errno> {
        self.files.get(handle.0)
    }

    fn enter_file(&self, file: File, node: u64) -> FileHandle {
        let opened = Opened::new(file, node);
        self.disk.nodes.add_opened(node, &opened);
        FileHandle(self.files.insert(opened))
    }

    fn create_file(
        &self,
        parent: u64,
        name: &OsStr,
        flags: OFlag,
        mode: u32,
    ) -> Result<(FileHandle, u64, statx), Errno> {
        let flags = flags | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = calls::create(self.disk.pin(parent)?, name, flags, mode)?;
        let found = attributes::opened(&file)?;
        let number = self.disk.nodes.enter(parent, name, attributes::identity(&found));
        Ok((self.enter_file(file, number), number, found))
    }

    /// Makes something of this name in a directory, and looks it up.
    fn make(
        &self,
        parent: INodeNo,
        name: &OsStr,
        make: impl FnOnce(&Pinned) -> Result<(), Errno>,
    ) -> Result<(u64, statx), Errno> {
        make(&self.disk.pin(parent.0)?)?;
        self.disk.look_up(parent.0, name)
    }

    fn remove(&self, parent: INodeNo, name: &OsStr, flags: nix::unistd::UnlinkatFlags) -> Result<(), Errno> {
        nix::unistd::unlinkat(self.disk.pin(parent.0)?, name, flags)?;
        self.disk.nodes.removed(parent.0, name);
        Ok(())
    }

    fn set_attributes(&self, number: u64, handle: Option<FileHandle>, change: &Change) -> Result<statx, Errno> {
        let opened = handle.and_then(|handle| self.file(handle).ok());
        match (change.size, &opened) {
            (Some(size), Some(opened)) => calls::truncate(opened.as_ref(), size)?,
            (Some(size), None) => calls::truncate_named(&self.disk.pin(number)?.path(), size)?,
            (None, _) => {}
        }
        if change.has_more() {
            let pinned = self.disk.pin(number)?;
            if let Some(mode) = change.mode {
                calls::change_mode(&pinned.path(), mode)?;
            }
            if change.owner != (None, None) {
                calls::change_owner(&pinned.path(), change.owner)?;
            }
            if change.times != (None, None) {
                calls::change_times(&pinned.path(), change.times)?;
            }
        }
        match opened {
            Some(opened) => attributes::opened(opened.as_ref()),
            None => self.disk.attributes(number),
        }
    }
}

/// What `setattr` changes.
struct Change {
    size: Option<u64>,
    mode: Option<u32>,
    owner: (Option<u32>, Option<u32>),
    times: (Option<TimeOrNow>, Option<TimeOrNow>),
}

impl Change {
    fn has_more(&self) -> bool {
        self.mode.is_some() || self.owner != (None, None) || self.times != (None, None)
    }
}

/// The kernel's number of an error.
fn code(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error as i32)
}

fn describe((number, found): (u64, statx)) -> (FileAttr, Generation) {
    // A number that was used again is of another generation.
    let generation = Generation(attributes::identity(&found).born_ns);
    (attributes::for_kernel(number, &found), generation)
}

fn answer_entry(result: Result<(u64, statx), Errno>, reply: ReplyEntry) {
    match result.map(describe) {
        Ok((attributes, generation)) => reply.entry(&TTL, &attributes, generation),
        Err(error) => reply.error(code(error)),
    }
}

fn answer_attributes(number: INodeNo, result: Result<statx, Errno>, reply: ReplyAttr) {
    match result {
        Ok(found) => reply.attr(&TTL, &attributes::for_kernel(number.0, &found)),
        Err(error) => reply.error(code(error)),
    }
}

fn answer_empty(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(code(error)),
    }
}

fn answer_data(result: Result<&[u8], Errno>, reply: ReplyData) {
    match result {
        Ok(data) => reply.data(data),
        Err(error) => reply.error(code(error)),
    }
}

fn answer_written(result: Result<usize, Errno>, reply: ReplyWrite) {
    match result {
        Ok(bytes) => reply.written(bytes as u32),
        Err(error) => reply.error(code(error)),
    }
}

/// The value of an attribute, or its length if the program asks for that with a `size` of 0.
fn answer_attribute(result: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match result {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(code(error)),
    }
}

impl Filesystem for Mounted {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_POSIX_LOCKS,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ];
        for flag in wanted {
            // Without one the mount does less: an older kernel refuses shared mappings (ENODEV).
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer_entry(self.disk.look_up(parent.0, name), reply);
    }

    fn forget(&self, _: &Request, ino: INodeNo, nlookup: u64) {
        self.disk.nodes.forget(ino.0, nlookup);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let opened = handle.and_then(|handle| self.file(handle).ok());
        let result = match opened {
            Some(opened) => attributes::opened(opened.as_ref()),
            None => self.disk.attributes(ino.0),
        };
        answer_attributes(ino, result, reply);
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change { size, mode, owner: (uid, gid), times: (atime, mtime) };
        answer_attributes(ino, self.set_attributes(ino.0, handle, &change), reply);
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let link = self.disk.pin(ino.0).and_then(|pinned| nix::fcntl::readlinkat(pinned, ""));
        answer_data(link.as_ref().map(|link| link.as_bytes()).map_err(|&error| error), reply);
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        answer_entry(self.make(parent, name, |dir| calls::make_node(dir, name, mode, rdev)), reply);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let mode = Mode::from_bits_truncate(mode);
        answer_entry(self.make(parent, name, |dir| nix::sys::stat::mkdirat(dir, name, mode)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(self.remove(parent, name, nix::unistd::UnlinkatFlags::NoRemoveDir), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer_empty(self.remove(parent, name, nix::unistd::UnlinkatFlags::RemoveDir), reply);
    }

    fn symlink(&self, _: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        answer_entry(self.make(parent, name, |dir| nix::unistd::symlinkat(target, dir, name)), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let rename = || {
            let (from, to) = (self.disk.pin(parent.0)?, self.disk.pin(new_parent.0)?);
            calls::rename((&from, name), (&to, new_name), flags.bits())?;
            let is_exchange = flags.bits() & libc::RENAME_EXCHANGE != 0;
            self.disk.nodes.renamed((parent.0, name), (new_parent.0, new_name), is_exchange);
            Ok(())
        };
        answer_empty(rename(), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let link = |dir: &Pinned| {
            let path = self.disk.pin(ino.0)?;
            nix::unistd::linkat(self.disk.root(), path.path().as_c_str(), dir, name, AtFlags::AT_SYMLINK_FOLLOW)
        };
        answer_entry(self.make(parent, name, link), reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.disk.open(ino.0, OFlag::from_bits_retain(flags.0 & !NOT_PASSED)) {
            Ok(file) => reply.opened(self.enter_file(file, ino.0), DIRECT),
            Err(error) => reply.error(code(error)),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = OFlag::from_bits_retain(flags & !libc::O_DIRECT);
        match self.create_file(parent.0, name, flags, mode) {
            Ok((handle, number, found)) => {
                let (attributes, generation) = describe((number, found));
                reply.created(&TTL, &attributes, generation, handle, DIRECT);
            }
            Err(error) => reply.error(code(error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.file(handle) {
            Ok(file) => calls::read(file.as_ref(), offset, size as usize, |read| answer_data(read, reply)),
            Err(error) => reply.error(code(error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        answer_written(self.file(handle).and_then(|file| calls::write(file.as_ref(), data, offset)), reply);
    }

    fn flush(&self, _: &Request, ino: INodeNo, _handle: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        // Any close of a process releases its locks on the file.
        self.locks.release(ino.0, owner.0);
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(opened) = self.files.remove(handle.0) {
            self.disk.nodes.remove_opened(ino.0, &opened);
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, _ino: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        answer_empty(self.file(handle).and_then(|file| calls::sync(file.as_ref(), data_only)), reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let open = || {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let fd = nix::fcntl::openat(self.disk.pin(ino.0)?, ".", flags, Mode::empty())?;
            Ok(Opened::new(File::from(fd), ino.0))
        };
        match open() {
            Ok(opened) => reply.opened(FileHandle(self.directories.insert(opened)), FopenFlags::empty()),
            Err(error) => reply.error(code(error)),
        }
    }

    fn readdir(&self, _: &Request, _ino: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries =
            self.directories.get(handle.0).and_then(|dir| dir.listing.from(dir.as_ref(), offset == 0));
        match entries {
            Ok(entries) => {
                for (number, entry) in entries.iter().enumerate().skip(offset as usize) {
                    if reply.add(INodeNo(entry.ino), number as u64 + 1, entry.kind, &entry.name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(code(error)),
        }
    }

    fn releasedir(&self, _: &Request, _ino: INodeNo, handle: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        drop(self.directories.remove(handle.0));
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _ino: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        answer_empty(
            self.directories.get(handle.0).and_then(|dir| calls::sync(dir.as_ref(), data_only)),
            reply,
        );
    }

    fn statfs(&self, _: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match nix::sys::statvfs::fstatvfs(self.disk.root()) {
            Ok(of) => reply.statfs(
                of.blocks(),
                of.blocks_free(),
                of.blocks_available(),
                of.files(),
                of.files_free(),
                of.block_size() as u32,
                of.name_max() as u32,
                of.fragment_size() as u32,
            ),
            Err(error) => reply.error(code(error)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let set = |pinned: Pinned| calls::set_attribute(&pinned.path(), name, value, flags);
        answer_empty(self.disk.pin(ino.0).and_then(set), reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let get = |pinned: Pinned| calls::attribute(&pinned.path(), name);
        answer_attribute(self.disk.pin(ino.0).and_then(get), size, reply);
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let list = |pinned: Pinned| calls::attribute_names(&pinned.path());
        answer_attribute(self.disk.pin(ino.0).and_then(list), size, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = |pinned: Pinned| calls::remove_attribute(&pinned.path(), name);
        answer_empty(self.disk.pin(ino.0).and_then(remove), reply);
    }

    fn access(&self, _: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let may = |pinned: Pinned| calls::may_access(&pinned.path(), mask.bits());
        answer_empty(self.disk.pin(ino.0).and_then(may), reply);
    }

    fn getlk(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        reply: ReplyLock,
    ) {
        let asked = Range { kind, start, end };
        match self.file(handle).and_then(|file| self.locks.conflicting(&file, owner.0, asked)) {
            // The lock is an open file description's, so no process has it.
            Ok(found) => reply.locked(found.start, found.end, found.kind, 0),
            Err(error) => reply.error(code(error)),
        }
    }

    fn setlk(
        &self,
        request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let asked = Range { kind, start, end };
        let file = match self.file(handle) {
            Ok(file) => file,
            Err(error) => return reply.error(code(error)),
        };
        match self.locks.set(&file, owner.0, asked) {
            Err(Errno::EAGAIN | Errno::EACCES) if sleep => {
                let (locks, thread) = (self.locks.clone(), request.pid());
                // Other requests go on meanwhile; that which releases the lock is one of them.
                let wait = move || answer_empty(locks.wait(&file, owner.0, asked, thread), reply);
                // Without a thread the reply is dropped, which answers EIO.
                drop(std::thread::Builder::new().name("lock".to_owned()).spawn(wait));
            }
            result => answer_empty(result, reply),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocate = |file: Arc<Opened>| calls::allocate(file.as_ref(), mode, offset, length);
        answer_empty(self.file(handle).and_then(allocate), reply);
    }

    fn lseek(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.file(handle).and_then(|file| calls::seek(file.as_ref(), offset, whence)) {
            Ok(offset) => reply.offset(offset),
            Err(error) => reply.error(code(error)),
        }
    }
}

/// How files are opened: see the top of this file.
const DIRECT: FopenFlags = FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
