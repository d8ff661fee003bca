//! The file through which nodes share the space of a server, or of a pool: each is handed a part
//! of it, uses that without asking, and gives back what becomes free. `docs/formats/nodes.md`,
//! "Space of caches".

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use stripewise_sys::{Errno, Fd, LockKind, SysRef};

use crate::{Result, notice};

const MAGIC: u64 = u64::from_le_bytes(*b"swgrant1");
/// Bytes of the file that are locked: `VISIT` during a change, `USING` as long as a process has
/// the file open.
const VISIT: u64 = 0;
const USING: u64 = 1;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handed {
    /// Bytes that are used or that a node may use.
    pub bytes: u64,
    /// Differs after each count of the space: what nodes had been handed before it is void.
    pub count: u64,
}

/// The file, open. Visits of one node must exclude each other: its processes may have inherited
/// the descriptor, and then share its locks.
pub(super) struct Ledger {
    sys: SysRef,
    file: Fd,
    target: PathBuf,
}

impl Ledger {
    /// `target`: the directory of the target that has the file, for messages.
    pub fn new(sys: &SysRef, file: Fd, target: PathBuf) -> Self {
        Self { sys: sys.clone(), file, target }
    }

    /// Takes the file into use. If no other process of any node uses it, the space is counted:
    /// `count` gets the bytes that the file says, if any.
    pub fn count_if_alone(&self, count: impl FnOnce(Option<u64>) -> u64) -> Result<Handed> {
        self.change(|known| {
            let is_alone = self.sys.try_lock(self.file(), USING, 1, LockKind::Exclusive)?;
            let handed = match known {
                Some(known) if !is_alone => known,
                _ => Handed {
                    bytes: count(known.map(|known| known.bytes)),
                    count: known.map_or(self.sys.wall_ns(), |known| known.count.wrapping_add(1)),
                },
            };
            self.sys.lock(self.file(), USING, 1, LockKind::Shared)?;
            Ok(handed)
        })
    }

    /// Whether a process of any node uses the file.
    pub fn is_used(&self) -> Result<bool> {
        let is_alone = self.sys.try_lock(self.file(), USING, 1, LockKind::Exclusive)?;
        if is_alone {
            self.sys.unlock(self.file(), USING, 1)?;
        }
        Ok(!is_alone)
    }

    /// Changes the handed bytes. Returns what the file then says.
    ///
    /// # Errors
    /// EIO: the file is damaged. Errors of the file system, such as those of a node that was cut
    /// off.
    pub fn visit(&self, change: impl FnOnce(Handed) -> u64) -> Result<Handed> {
        self.change(|known| {
            let known = known.ok_or(Errno::IO)?;
            Ok(Handed { bytes: change(known), ..known })
        })
    }

    /// Logs why a visit failed. Returns the error.
    pub fn failed(&self, error: Errno) -> Errno {
        notice::warn_once(&format!(
            "{}: the space of caches there cannot be shared with other nodes ({error}); nothing more is \
             cached there for now",
            self.target.display()
        ));
        error
    }

    fn change(&self, change: impl FnOnce(Option<Handed>) -> Result<Handed>) -> Result<Handed> {
        self.sys.lock(self.file(), VISIT, 1, LockKind::Exclusive)?;
        let changed = self.read().and_then(|known| {
            let handed = change(known)?;
            if known != Some(handed) {
                self.write(handed)?;
            }
            Ok(handed)
        });
        self.sys.unlock(self.file(), VISIT, 1)?;
        changed
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn read(&self) -> Result<Option<Handed>> {
        let mut words = [[0; size_of::<u64>()]; 3];
        let read = self.sys.read_at(self.file(), words.as_flattened_mut(), 0)?;
        let [magic, bytes, count] = words.map(u64::from_le_bytes);
        Ok((read == size_of_val(&words) && magic == MAGIC).then_some(Handed { bytes, count }))
    }

    fn write(&self, handed: Handed) -> Result<()> {
        let words = [MAGIC, handed.bytes, handed.count].map(u64::to_le_bytes);
        self.sys.write_all_at(self.file(), words.as_flattened(), 0)
    }
}
