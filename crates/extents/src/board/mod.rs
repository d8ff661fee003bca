//! The board: words in memory that all processes of the node share, beside the index.
//!
//! Header, generations, last uses, blocks. A block belongs to a process, by an OFD lock on its byte of `board.lock`.
//! The whole file has its space from the beginning, each block from when it is first used: a mapping of a file system that is full is
//! written to only where there is space.

mod blocks;
mod counters;
mod generations;
mod slot;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_sys::{Errno, Fd, Mode, OFlags, SharedMap, SysRef};

use crate::CopyId;

pub(crate) use blocks::{Block, Pin};
pub use counters::Counter;
pub(crate) use generations::{Stamp, of_segment, segments};
pub(crate) use slot::{Extent, Met, Slot, SlotState};

/// Changes with the layout of the board or of the index, or with the meaning of a word.
pub(crate) const VERSION: u64 = 4;
const MAGIC: u64 = u64::from_le_bytes(*b"swboard\0");

/// Names in the run directory.
pub(crate) const BOARD: &str = "board";
pub(crate) const LOCK: &str = "board.lock";

/// Bytes of `board.lock` that are locked.
pub(crate) const COPIER_BYTE: u64 = 0;
pub(crate) const FIRST_BLOCK_BYTE: u64 = 64;

const HEADER_WORDS: usize = 64;

/// See [`Word::Opened`].
pub(crate) const OPENED: u64 = 1;
/// A change of that is on its way, or one has failed.
pub(crate) const PERHAPS_OPENED: u64 = 2;

/// Words of the header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Magic,
    Version,
    /// 1 once index and board are complete.
    Ready,
    Id,
    IdRest,
    Boot,
    BootRest,
    /// How many generations and last uses there are.
    Generations,
    Blocks,
    /// [`OPENED`]: the journal says that this node writes the file. [`PERHAPS_OPENED`]: it may. 0: it does not.
    Opened,
    /// 1: the file has no name any more, and the journal is gone with it.
    Unlinked,
    /// Of a change that touches more segments than it would name.
    GlobalGeneration,
    /// Of evictions, counted before they punch.
    Evictions,
    /// Bytes of the journal that are valid, and the sequence number of its next batch.
    JournalPosition,
    /// Bytes of a journal that says the same and nothing else, as of the rebuild or its last
    /// rewriting.
    JournalBase,
    JournalInode,
    /// Inode of a new journal that is about to be renamed over it.
    JournalNewInode,
    /// 1: a write to it failed, so that what the disk has is not known.
    JournalBroken,
    SyncsStarted,
    /// The last one that was successful.
    SyncsDone,
    /// Bytes of the index's file that have their space.
    Allocated,
    /// Blocks that were ever used, so that the rest need not be looked at.
    BlocksUsed,
    /// 1: a process has had the file mapped.
    Mapped,
    SlotState,
    SlotStart,
    SlotEnd,
    /// The destination plus 1; 0: there is none. [`slot::EVERYWHERE`] is added where all of the range is to be left alone.
    SlotCopy,
    /// The first of [`CopyId::LIMIT`]: bytes of each copy that could be evicted, as of the last change of the index.
    Clean,
}

/// Where the node's name lies: the process that made the board saw it, others of this boot may see
/// other devices or another host name, in namespaces of their own. Its length in bytes, then the
/// bytes. 0: made by an earlier version.
const NODE_NAME: usize = Word::Clean as usize + CopyId::LIMIT;
const NODE_NAME_WORDS: usize = 25;

const _: () = assert!(NODE_NAME + 1 + NODE_NAME_WORDS <= HEADER_WORDS);

/// How large a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Power of 2.
    pub generations: usize,
    /// Processes.
    pub blocks: usize,
}

/// A mapped board.
#[derive(Debug)]
pub(crate) struct Board {
    words: SharedMap,
    file: Fd,
    geometry: Geometry,
}

/// Which file, on which boot of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    pub id: [u8; 16],
    pub boot: [u8; 16],
}

/// What there was in place of a board.
#[derive(Debug)]
pub(crate) enum Opened {
    Ready(Board),
    /// None, or one of another boot, or half made.
    None,
    /// Of another file, or another version.
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
        self.generations.is_power_of_two() && self.generations <= 1 << 24 && self.blocks <= 1 << 16
    }

    fn words_before_blocks(self) -> usize {
        HEADER_WORDS + 2 * self.generations
    }

    fn words(self) -> usize {
        self.words_before_blocks() + self.blocks * blocks::WORDS
    }
}

impl Board {
    /// Makes one that is not ready yet. The directory's old one must be gone.
    pub fn create(
        sys: &SysRef,
        run_dir: &Path,
        whose: Whose,
        geometry: Geometry,
    ) -> stripewise_sys::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = sys.open(None, &run_dir.join(BOARD), flags, Mode::RUSR | Mode::WUSR)?;
        let bytes = (geometry.words() * size_of::<u64>()) as u64;
        sys.truncate(file.as_fd(), bytes)?;
        sys.allocate(file.as_fd(), 0, (geometry.words_before_blocks() * size_of::<u64>()) as u64, true)?;
        let words = sys.map_shared(file.as_fd(), geometry.words())?;
        let board = Self { words, file, geometry };
        let [id, id_rest] = halves(whose.id);
        let [boot, boot_rest] = halves(whose.boot);
        let values = [
            (Word::Magic, MAGIC),
            (Word::Version, VERSION),
            (Word::Id, id),
            (Word::IdRest, id_rest),
            (Word::Boot, boot),
            (Word::BootRest, boot_rest),
            (Word::Generations, geometry.generations as u64),
            (Word::Blocks, geometry.blocks as u64),
        ];
        values.iter().for_each(|&(word, value)| board.set(word, value));
        Ok(board)
    }

    /// Maps the one that is there.
    pub fn open(sys: &SysRef, run_dir: &Path, whose: Whose) -> stripewise_sys::Result<Opened> {
        let file = match sys.open(None, &run_dir.join(BOARD), OFlags::RDWR, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Opened::None),
            Err(error) => return Err(error),
        };
        let header_bytes = HEADER_WORDS * size_of::<u64>();
        // One read may give a part of it.
        let header = sys.read_start(file.as_fd(), header_bytes)?;
        if header.len() < header_bytes {
            return Ok(Opened::None);
        }
        let word = |word: Word| {
            let at = word as usize * size_of::<u64>();
            u64::from_ne_bytes(header[at..at + size_of::<u64>()].try_into().unwrap_or_default())
        };
        let same = |first, rest, bytes| [word(first), word(rest)] == halves(bytes);
        if word(Word::Magic) != MAGIC || word(Word::Ready) != 1 || !same(Word::Boot, Word::BootRest, whose.boot)
        {
            return Ok(Opened::None);
        }
        if word(Word::Version) != VERSION || !same(Word::Id, Word::IdRest, whose.id) {
            return Ok(Opened::Other { version: word(Word::Version) });
        }
        let geometry =
            Geometry { generations: word(Word::Generations) as usize, blocks: word(Word::Blocks) as usize };
        let size = sys.stat(file.as_fd())?.st_size as u64;
        if !geometry.is_possible() || size < (geometry.words() * size_of::<u64>()) as u64 {
            return Ok(Opened::None);
        }
        let words = sys.map_shared(file.as_fd(), geometry.words())?;
        Ok(Opened::Ready(Self { words, file, geometry }))
    }

    /// The descriptor of its file.
    pub fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// (device, inode).
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

    /// Before the board is ready. A name that is too long is left out.
    pub fn set_node_name(&self, name: &str) {
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

    /// The node's name as the process that made the board saw it.
    pub fn node_name(&self) -> Option<String> {
        let words = &self.words.words()[NODE_NAME..];
        let len = words[0].load(Ordering::Acquire) as usize;
        let words = words[1..].iter().take(NODE_NAME_WORDS);
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let name = bytes.get(..len).filter(|name| !name.is_empty())?;
        String::from_utf8(name.to_vec()).ok()
    }

    /// Bytes of a copy that could be evicted: a hint.
    pub fn clean(&self, copy: CopyId) -> u64 {
        self.words.words()[Word::Clean as usize + copy.index()].load(Ordering::Relaxed)
    }

    /// By who holds the writer's lock of the index, before the commit. Who dies in between leaves a number that is a little wrong until
    /// the next change.
    pub fn set_clean(&self, clean: &[u64; CopyId::LIMIT]) {
        let words = &self.words.words()[Word::Clean as usize..];
        words.iter().zip(clean).for_each(|(word, &clean)| word.store(clean, Ordering::Relaxed));
    }

    pub fn slot(&self) -> Slot<'_> {
        Slot(self)
    }

    fn generation_words(&self) -> &[AtomicU64] {
        &self.words.words()[HEADER_WORDS..][..self.geometry.generations]
    }

    fn last_use_words(&self) -> &[AtomicU64] {
        &self.words.words()[HEADER_WORDS + self.geometry.generations..][..self.geometry.generations]
    }
}
