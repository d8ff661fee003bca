//! The test file that is read and written. It has no name, so nothing is left behind in any case.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use stripewise_random::Random;

use stripewise_sys::{Errno, Fd, Mode, OFlags, Result as SysResult, SysRef};

use crate::report::{CalibrateError, IoMode};

/// Alignment for O_DIRECT, bytes.
const ALIGNMENT: usize = 4096;
/// Number of bytes per write while filling the file.
const CHUNK: usize = 4 << 20;
/// File systems that are the page cache: tmpfs, ramfs.
const MEMORY_FILE_SYSTEMS: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Memory for transfers, aligned for O_DIRECT, filled with bytes that do not compress.
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    pub fn new(len: usize) -> Self {
        let mut memory = vec![0; len + ALIGNMENT];
        let mut random = Random(0x5eed);
        memory.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.next_u64().to_le_bytes()));
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start }
    }

    pub fn bytes(&mut self, len: usize) -> &mut [u8] {
        &mut self.memory[self.start..self.start + len]
    }
}

/// A file of `size` bytes in a directory.
pub(crate) struct TestFile {
    fd: Fd,
    pub mode: IoMode,
    pub size: u64,
}

impl TestFile {
    /// Creates the file and, unless the server is emulated, fills and syncs it.
    ///
    /// # Errors
    /// A missing directory, too little space, any failed call.
    pub fn create(sys: &SysRef, directory: &Path, size: u64, emulated: bool) -> Result<Self, CalibrateError> {
        let fail = |problem: String| CalibrateError::new(directory.display(), problem);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = sys.open(None, directory, flags, Mode::empty()).map_err(|errno| {
            fail(format!("cannot open the server's directory ({errno}); create it, or mount its disk"))
        })?;
        let space = sys.stat_fs(dir.as_fd()).map_err(|errno| fail(errno.to_string()))?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if free < size + size / 8 {
            let text = stripewise_cluster::size::format;
            let (size, free) = (text(size), text(free >> 20 << 20));
            return Err(fail(format!(
                "the test file needs {size} and some reserve, but only {free} are free; use a smaller --file-size"
            )));
        }
        let in_memory = sys.file_system(dir.as_fd()).is_ok_and(|kind| MEMORY_FILE_SYSTEMS.contains(&kind));
        let modes = match (emulated, in_memory) {
            (true, _) => vec![IoMode::Emulated],
            (false, true) => vec![IoMode::Memory],
            (false, false) => vec![IoMode::Direct, IoMode::Buffered],
        };
        let (fd, mode) = open_first(sys, dir.as_fd(), &modes)
            .map_err(|errno| fail(format!("cannot create a test file ({errno}); check the permissions")))?;
        let file = Self { fd, mode, size };
        file.fill(sys).map_err(|errno| fail(format!("cannot write the test file: {errno}")))?;
        Ok(file)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn fill(&self, sys: &SysRef) -> SysResult<()> {
        if self.mode == IoMode::Emulated {
            return sys.truncate(self.fd(), self.size);
        }
        let mut buffer = Buffer::new(CHUNK);
        let mut at = 0;
        while at < self.size {
            let len = (self.size - at).min(CHUNK as u64) as usize;
            sys.write_all_at(self.fd(), buffer.bytes(len), at)?;
            at += len as u64;
        }
        sys.sync(self.fd())
    }
}

/// Opens a new file in the first mode that the file system permits.
fn open_first(sys: &SysRef, dir: BorrowedFd<'_>, modes: &[IoMode]) -> SysResult<(Fd, IoMode)> {
    let mut result = Err(Errno::INVAL);
    for &mode in modes {
        let flags = match mode {
            IoMode::Direct => OFlags::DIRECT,
            IoMode::Buffered => OFlags::DSYNC,
            IoMode::Memory | IoMode::Emulated => OFlags::empty(),
        };
        result = create_nameless(sys, dir, flags).map(|fd| (fd, mode));
        if !matches!(result, Err(Errno::INVAL | Errno::OPNOTSUPP)) {
            break;
        }
    }
    result
}

/// Creates a file that disappears with its last descriptor: O_TMPFILE, or where the file system
/// lacks it, a file whose name is removed at once.
fn create_nameless(sys: &SysRef, dir: BorrowedFd<'_>, flags: OFlags) -> SysResult<Fd> {
    let (access, mode) = (OFlags::RDWR | flags, Mode::RUSR | Mode::WUSR);
    match sys.open(Some(dir), Path::new("."), access | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
        result => return result,
    }
    let name = format!(".stripewise-calibrate-{}", std::process::id());
    let name = Path::new(&name);
    let result = sys.open(Some(dir), name, access | OFlags::CREATE | OFlags::EXCL, mode);
    // Also after a failure: some file systems refuse O_DIRECT only once the file exists.
    if !matches!(result, Err(Errno::EXIST)) {
        let _ = sys.unlink(Some(dir), name);
    }
    result
}
