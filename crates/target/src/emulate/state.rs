//! The file with the state of a user's emulated servers: attaching, emptying, and the layout of a
//! server's words.
//!
//! Every attached process holds a shared OFD lock on the file; the lock dies with the process (a
//! forked child keeps it). A process that gets the exclusive lock is alone and empties the file. A
//! state of an earlier boot, whose clock differs, or of killed processes therefore cannot make any
//! process wait. While other processes are attached, a killed process leaves reservations of one
//! request per thread, and they wait for these as they would behind a real server.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::{Errno, Fd, LockKind, Mode, OFlags, Result, SharedMap, SysRef};

/// Maximum number of servers in a state.
const SLOTS: usize = 1 << 14;
/// Words of a slot: a cache line, so that servers do not slow each other down.
const SLOT_WORDS: usize = 8;
/// Words before the first slot.
const HEADER_WORDS: usize = 8;
/// First word of a valid state; changes with its format.
const MAGIC: u64 = u64::from_le_bytes(*b"swemul01");
const WORDS: usize = HEADER_WORDS + SLOTS * SLOT_WORDS;

/// Index of a word within a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// Hash of the server's name; 0: the slot is free.
    Key,
    /// End of the last reservation, CLOCK_MONOTONIC, ns.
    BusyUntil,
    Requests,
    Bytes,
    BusyNs,
}

/// The shared state of all emulated servers of a user on this node.
#[derive(Debug)]
pub struct Emulation {
    map: SharedMap,
    /// Holds the shared lock.
    _file: Fd,
}

/// Default path of the state of user `uid`: in memory, off the disks.
pub fn default_path(uid: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/stripewise-emulation-{uid}"))
}

impl Emulation {
    /// Attaches to the state in `path` (`None`: [`default_path`] of the calling user). Creates the
    /// file if it is absent, and empties it if no other process is attached. The file must not be
    /// removed while a process is attached.
    ///
    /// # Errors
    /// As open(2) and mmap(2); EPERM when the file is another user's; EINVAL when a process is
    /// attached with another version of the library.
    pub fn attach(sys: &SysRef, path: Option<&Path>) -> Result<Arc<Self>> {
        let uid = sys.user();
        let path = path.map_or_else(|| default_path(uid), Path::to_owned);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
        let file = sys.open(None, &path, flags, Mode::RUSR | Mode::WUSR)?;
        if sys.stat(file.as_fd())?.st_uid != uid {
            return Err(Errno::PERM);
        }
        // Try again: the process that was alone may have been killed while it emptied the state.
        for _ in 0..3 {
            if let Some(map) = enter(sys, &file)? {
                return Ok(Arc::new(Self { map, _file: file }));
            }
            sys.unlock(file.as_fd(), 0, 1)?;
        }
        Err(Errno::INVAL)
    }

    /// The slot of the server called `name`, allocated now if it has none.
    pub(super) fn slot(&self, name: &str) -> Result<usize> {
        let key = key(name);
        for probe in 0..SLOTS {
            let slot = (key as usize).wrapping_add(probe) % SLOTS;
            let word = self.word(slot, Word::Key);
            match word.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(slot),
                Err(taken) if taken == key => return Ok(slot),
                Err(_) => {}
            }
        }
        Err(Errno::NOSPC)
    }

    pub(super) fn word(&self, slot: usize, word: Word) -> &AtomicU64 {
        &self.map.words()[HEADER_WORDS + slot * SLOT_WORDS + word as usize]
    }
}

/// Takes the shared lock on a valid state, after emptying it if no other process holds the lock.
/// `None`: the state is not valid.
fn enter(sys: &SysRef, file: &Fd) -> Result<Option<SharedMap>> {
    let fd = file.as_fd();
    let bytes = (WORDS * size_of::<u64>()) as u64;
    if sys.try_lock(fd, 0, 1, LockKind::Exclusive)? {
        sys.truncate(fd, 0)?;
        sys.truncate(fd, bytes)?;
        let map = sys.map_shared(fd, WORDS)?;
        map.words()[0].store(MAGIC, Ordering::Release);
        sys.lock(fd, 0, 1, LockKind::Shared)?;
        return Ok(Some(map));
    }
    sys.lock(fd, 0, 1, LockKind::Shared)?;
    if (sys.stat(fd)?.st_size as u64) < bytes {
        return Ok(None);
    }
    let map = sys.map_shared(fd, WORDS)?;
    let valid = map.words()[0].load(Ordering::Acquire) == MAGIC;
    Ok(valid.then_some(map))
}

/// FNV-1a, never 0: the same in every process and version.
fn key(name: &str) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix).max(1)
}
