//! The shared state: words in a memory-mapped file next to the index, shared by all processes of
//! the node that have joined the map.
//!
//! Its parts are the header, the seqlocks of the segments, the last-use times of the segments, one
//! block per process, and the holds of the node's session. A process owns its block by an OFD lock
//! on a byte of `board.lock`.
//!
//! Header, seqlocks and last-use times have their space allocated when the file is created, each
//! block when it is first claimed. Writing to the mapping of a full file system would be a SIGBUS;
//! so the mapping is written only where space is allocated.

mod blocks;
mod counters;
mod holds;
mod seqlocks;
mod slot;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::{Errno, Fd, Mode, OFlags, SharedMap, SysRef};

use crate::error::io;
use crate::spec::SHARED_FILE;
use crate::{CopyId, MapSpec, Result};

pub(crate) use blocks::{Block, Pin};
pub use counters::Counter;
pub(crate) use holds::Held;
pub(crate) use seqlocks::{Stamp, of_segment, segments};
pub(crate) use slot::{Extent, Met, Slot, SlotState, Working};

/// Version of the layout of the shared state and of the index, and of the meaning of their words.
pub(crate) const VERSION: u64 = 4;
const MAGIC: u64 = u64::from_le_bytes(*b"swboard\0");

/// Name of the lock file in the run directory.
pub(crate) const LOCK: &str = "board.lock";

/// Bytes of `board.lock` that are locked: the copier's, that of a session's commits, that of its
/// use of the log, that of the process that looks at the log in the background, and the first of
/// the blocks'.
pub(crate) const COPIER_BYTE: u64 = 0;
pub(crate) const SYNC_BYTE: u64 = 1;
pub(crate) const NODE_BYTE: u64 = 2;
pub(crate) const POLL_BYTE: u64 = 3;
pub(crate) const FIRST_BLOCK_BYTE: u64 = 64;

const HEADER_WORDS: usize = 64;
const BLOCK_WORDS: usize = 192;
/// Maximum number of holds in the table, the words of each, and the words before the first.
const HOLDS_MAX: usize = 64;
const HOLD_WORDS: usize = 3;
const FIRST_HOLD: usize = 8;

/// Value of [`Word::Opened`].
pub(crate) const OPENED: u64 = 1;
/// Value of [`Word::Opened`] while a change of it is in progress, and after one that failed.
pub(crate) const PERHAPS_OPENED: u64 = 2;

/// Words of the header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Magic,
    Version,
    /// 1 once the index and the shared state are complete.
    Ready,
    Id,
    IdRest,
    Boot,
    BootRest,
    /// Number of seqlocks, which is also the number of last-use times.
    Seqlocks,
    Blocks,
    /// [`OPENED`]: the journal contains this node's write intent. [`PERHAPS_OPENED`]: it may
    /// contain it. 0: it does not.
    Opened,
    /// 1 once the file has lost its last name; the journal is then removed too.
    Unlinked,
    /// The seqlock for changes of more segments than are marked one by one.
    GlobalSeqlock,
    /// Number of evictions, counted before each one punches holes.
    Evictions,
    /// Length of the valid journal in bytes, and the sequence number of its next batch.
    JournalPosition,
    /// Length in bytes of a journal that contains only the current map, as of the rebuild of the
    /// index or the last rewrite of the journal.
    JournalBase,
    /// The journal's inode. Of a session: the device number of the file system, as mounted here.
    JournalInode,
    /// Inode of a new journal that is about to be renamed over the current one.
    JournalNewInode,
    /// 1 after a failed write to the journal: its content on disk is unknown.
    JournalBroken,
    SyncsStarted,
    /// Number of the last successful sync.
    SyncsDone,
    /// Bytes of the index file that have space allocated.
    Allocated,
    /// Number of blocks from the first one to the last that was ever claimed; the rest need not be
    /// examined.
    BlocksUsed,
    /// 1 once a process has mapped the file.
    Mapped,
    SlotState,
    SlotStart,
    SlotEnd,
    /// Number of the destination copy plus 1; 0 if there is none. [`slot::EVERYWHERE`] is added if
    /// the operation covers all bytes of its range.
    SlotCopy,
    /// The first of [`CopyId::LIMIT`] words: bytes of each copy that could be evicted, as of the
    /// last change of the index.
    Clean,
    /// The number of the session of this node; 0 for the one-node protocol.
    Session = 61,
    /// 1 once the session is over: no process of the node writes or commits any more.
    Over,
    /// 1 while a process of the session appends to the log, and if it died then: what this machine
    /// reads at the end of the log may not be on disk.
    Appending,
}

/// First word of the node's name: its length in bytes (0 if an earlier version created the shared
/// state), followed by the bytes. It is the name that the creating process computed; other
/// processes of this boot may see other devices or another host name in namespaces of their own.
const NODE_NAME: usize = Word::Clean as usize + CopyId::LIMIT;
const NODE_NAME_WORDS: usize = 25;

const _: () = assert!(NODE_NAME + 1 + NODE_NAME_WORDS <= Word::Session as usize);
const _: () = assert!((Word::Appending as usize) < HEADER_WORDS);

/// Size of the shared state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Number of seqlocks, a power of 2.
    pub seqlocks: usize,
    /// Number of blocks: the maximum number of processes.
    pub blocks: usize,
}

/// The memory-mapped shared state.
#[derive(Debug)]
pub(crate) struct SharedState {
    words: SharedMap,
    file: Fd,
    geometry: Geometry,
}

/// Result of [`SharedState::open`].
#[derive(Debug)]
pub(crate) enum Opened {
    Ready(SharedState),
    /// No shared state exists, or it belongs to another boot, or its creation did not complete.
    None,
    /// The shared state belongs to another file, or has another version.
    Other {
        version: u64,
    },
}

fn halves(bytes: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(bytes);
    [(whole >> 64) as u64, whole as u64]
}

impl Geometry {
    fn is_possible(self) -> bool {
        self.seqlocks.is_power_of_two() && self.seqlocks <= 1 << 24 && self.blocks <= 1 << 16
    }

    fn words_before_blocks(self) -> usize {
        HEADER_WORDS + 2 * self.seqlocks
    }

    fn words_before_holds(self) -> usize {
        self.words_before_blocks() + self.blocks * BLOCK_WORDS
    }

    fn words(self) -> usize {
        self.words_before_holds() + FIRST_HOLD + HOLDS_MAX * HOLD_WORDS
    }

    fn bytes(self) -> u64 {
        (self.words() * size_of::<u64>()) as u64
    }
}

impl Geometry {
    fn allocate_holds(self, sys: &SysRef, file: &Fd) -> stripewise_sys::Result<()> {
        let first = (self.words_before_holds() * size_of::<u64>()) as u64;
        sys.allocate(file.as_fd(), first, self.bytes() - first, true)
    }
}

impl SharedState {
    /// Creates a shared state that is not yet ready. An old one in the directory must have been
    /// removed.
    pub fn create(sys: &SysRef, spec: &MapSpec, geometry: Geometry) -> Result<Self> {
        let path = spec.run_dir.join(SHARED_FILE);
        let made = (|| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            let file = sys.open(None, &path, flags, Mode::RUSR | Mode::WUSR)?;
            sys.truncate(file.as_fd(), geometry.bytes())?;
            sys.allocate(file.as_fd(), 0, (geometry.words_before_blocks() * size_of::<u64>()) as u64, true)?;
            geometry.allocate_holds(sys, &file)?;
            let words = sys.map_shared(file.as_fd(), geometry.words())?;
            Ok(Self { words, file, geometry })
        })();
        let shared = made.map_err(io(&path, "create"))?;
        let [id, id_rest] = halves(spec.id);
        let [boot, boot_rest] = halves(spec.node.boot);
        let values = [
            (Word::Magic, MAGIC),
            (Word::Version, VERSION),
            (Word::Id, id),
            (Word::IdRest, id_rest),
            (Word::Boot, boot),
            (Word::BootRest, boot_rest),
            (Word::Seqlocks, geometry.seqlocks as u64),
            (Word::Blocks, geometry.blocks as u64),
        ];
        values.iter().for_each(|&(word, value)| shared.set(word, value));
        shared.set_node_name(&spec.node.name);
        Ok(shared)
    }

    /// Maps the existing shared state.
    pub fn open(sys: &SysRef, spec: &MapSpec) -> Result<Opened> {
        let path = spec.run_dir.join(SHARED_FILE);
        match sys.open(None, &path, OFlags::RDWR, Mode::empty()) {
            Err(Errno::NOENT) => Ok(Opened::None),
            file => file.and_then(|file| Self::map(sys, file, spec)).map_err(io(&path, "open")),
        }
    }

    fn map(sys: &SysRef, file: Fd, spec: &MapSpec) -> stripewise_sys::Result<Opened> {
        let header_bytes = HEADER_WORDS * size_of::<u64>();
        // A single read may return fewer bytes than the header.
        let header = sys.read_start(file.as_fd(), header_bytes)?;
        if header.len() < header_bytes {
            return Ok(Opened::None);
        }
        let word = |word: Word| {
            let at = word as usize * size_of::<u64>();
            u64::from_ne_bytes(header[at..at + size_of::<u64>()].try_into().unwrap_or_default())
        };
        let same = |first, rest, bytes| [word(first), word(rest)] == halves(bytes);
        if word(Word::Magic) != MAGIC
            || word(Word::Ready) != 1
            || !same(Word::Boot, Word::BootRest, spec.node.boot)
        {
            return Ok(Opened::None);
        }
        if word(Word::Version) != VERSION || !same(Word::Id, Word::IdRest, spec.id) {
            return Ok(Opened::Other { version: word(Word::Version) });
        }
        let geometry =
            Geometry { seqlocks: word(Word::Seqlocks) as usize, blocks: word(Word::Blocks) as usize };
        let size = sys.stat(file.as_fd())?.st_size as u64;
        if !geometry.is_possible() || size < (geometry.words_before_holds() * size_of::<u64>()) as u64 {
            return Ok(Opened::None);
        }
        if size < geometry.bytes() {
            // An earlier version created it, without the holds.
            sys.truncate(file.as_fd(), geometry.bytes())?;
            geometry.allocate_holds(sys, &file)?;
        }
        let words = sys.map_shared(file.as_fd(), geometry.words())?;
        Ok(Opened::Ready(Self { words, file, geometry }))
    }

    /// The descriptor of the shared state's file.
    pub fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The (device, inode) of the shared state's file.
    pub fn identity(&self, sys: &SysRef) -> stripewise_sys::Result<(u64, u64)> {
        sys.stat(self.file.as_fd()).map(|stat| (stat.st_dev, stat.st_ino))
    }

    pub fn word(&self, word: Word) -> &AtomicU64 {
        &self.words.words()[word as usize]
    }

    pub fn get(&self, word: Word) -> u64 {
        self.word(word).load(Ordering::Acquire)
    }

    pub fn set(&self, word: Word, value: u64) {
        self.word(word).store(value, Ordering::Release);
    }

    pub fn is(&self, word: Word) -> bool {
        self.get(word) != 0
    }

    /// Stores the node's name. A name that is too long is left out.
    fn set_node_name(&self, name: &str) {
        if name.len() > NODE_NAME_WORDS * size_of::<u64>() {
            return;
        }
        let words = &self.words.words()[NODE_NAME..];
        for (word, bytes) in words[1..].iter().zip(name.as_bytes().chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(whole), Ordering::Relaxed);
        }
        words[0].store(name.len() as u64, Ordering::Release);
    }

    /// The node's name as computed by the process that created the shared state.
    pub fn node_name(&self) -> Option<String> {
        let words = &self.words.words()[NODE_NAME..];
        let len = words[0].load(Ordering::Acquire) as usize;
        let words = words[1..].iter().take(NODE_NAME_WORDS);
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let name = bytes.get(..len).filter(|name| !name.is_empty())?;
        String::from_utf8(name.to_vec()).ok()
    }

    /// Bytes of a copy that could be evicted; a hint.
    pub fn clean(&self, copy: CopyId) -> u64 {
        self.words.words()[Word::Clean as usize + copy.index()].load(Ordering::Relaxed)
    }

    /// Sets the evictable bytes of all copies. The caller holds the index writer lock and has not
    /// committed yet. A process that dies in between leaves slightly wrong numbers until the next
    /// change.
    pub fn set_clean(&self, clean: &[u64; CopyId::LIMIT]) {
        let words = &self.words.words()[Word::Clean as usize..];
        words.iter().zip(clean).for_each(|(word, &clean)| word.store(clean, Ordering::Relaxed));
    }

    pub fn slot(&self) -> Slot<'_> {
        Slot(self)
    }

    fn seqlock_words(&self) -> &[AtomicU64] {
        &self.words.words()[HEADER_WORDS..][..self.geometry.seqlocks]
    }

    fn last_use_words(&self) -> &[AtomicU64] {
        &self.words.words()[HEADER_WORDS + self.geometry.seqlocks..][..self.geometry.seqlocks]
    }
}
