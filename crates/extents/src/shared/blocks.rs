//! Blocks: the pins and counters of one process in the shared state.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use stripewise_sys::{Fd, LockKind, SysRef};

use super::counters::{COUNTERS, Counter};
use super::{BLOCK_WORDS, FIRST_BLOCK_BYTE, SharedState, Word};

/// Number of pins of a process. The last one is reserved for [`SharedState::pin_everything`].
const PINS: usize = 64;
const EVERYTHING: usize = PINS - 1;
/// Words of a block: the owner's process id, then the pins (start, end; an end of 0 means free),
/// then the counters.
const FIRST_PIN: usize = 8;
const FIRST_COUNTER: usize = FIRST_PIN + 2 * PINS;

/// The block of a process.
pub(crate) struct Block {
    sys: SysRef,
    /// The open file description of `board.lock` whose lock owns the block.
    pub lock: Fd,
    number: usize,
    /// Pins that threads of this process have reserved: bit n is pin n.
    taken: AtomicU64,
    /// Counter values left by earlier owners of the block.
    before: [u64; COUNTERS],
}

/// A pin that a thread has reserved and set.
#[derive(Debug)]
pub(crate) struct Pin(usize);

/// A set pin, as [`SharedState::pins`] found it.
#[derive(Debug)]
pub(crate) struct Seen {
    block: usize,
    pin: usize,
    range: Range<u64>,
}

impl Seen {
    pub fn range(&self) -> &Range<u64> {
        &self.range
    }
}

impl SharedState {
    fn block_word(&self, block: usize, word: usize) -> &AtomicU64 {
        &self.words.words()[self.geometry.words_before_blocks() + block * BLOCK_WORDS + word]
    }

    fn blocks_used(&self) -> usize {
        (self.get(Word::BlocksUsed) as usize).min(self.geometry.blocks)
    }

    /// Claims a free block for the process that owns the open file description `lock` of
    /// `board.lock`; `None` if no block is free. Only one process at a time may call this.
    pub fn claim(&self, sys: &SysRef, lock: Fd) -> stripewise_sys::Result<Option<Block>> {
        for number in 0..self.geometry.blocks {
            if !sys.try_lock(lock.as_fd(), FIRST_BLOCK_BYTE + number as u64, 1, LockKind::Exclusive)? {
                continue;
            }
            let first = (self.geometry.words_before_blocks() + number * BLOCK_WORDS) * size_of::<u64>();
            let bytes = (BLOCK_WORDS * size_of::<u64>()) as u64;
            sys.allocate(self.file.as_fd(), first as u64, bytes, true)?;
            // The last owner may have left pins set. Its counters stay, because they are part of
            // the sums.
            self.clear_block(number);
            self.block_word(number, 0).store(u64::from(stripewise_sys::process::id()), Ordering::Release);
            self.word(Word::BlocksUsed).fetch_max(number as u64 + 1, Ordering::AcqRel);
            let before =
                std::array::from_fn(|counter| self.counter_word(number, counter).load(Ordering::Relaxed));
            let taken = AtomicU64::new(1 << EVERYTHING);
            return Ok(Some(Block { sys: sys.clone(), lock, number, taken, before }));
        }
        Ok(None)
    }

    fn clear_block(&self, number: usize) {
        (0..PINS).for_each(|pin| self.pin_words(number, pin).1.store(0, Ordering::Release));
        self.block_word(number, 0).store(0, Ordering::Release);
    }

    /// Releases the block.
    pub fn release(&self, block: &Block) {
        self.clear_block(block.number);
        let _ = block.sys.unlock(block.lock.as_fd(), FIRST_BLOCK_BYTE + block.number as u64, 1);
    }

    /// Whether the owner of a block is alive; a dead owner's block is cleared. `own` is the block
    /// of the calling process.
    fn is_alive(&self, own: &Block, number: usize) -> bool {
        if number == own.number {
            return true;
        }
        let (byte, lock) = (FIRST_BLOCK_BYTE + number as u64, own.lock.as_fd());
        match own.sys.try_lock(lock, byte, 1, LockKind::Exclusive) {
            Ok(true) => {
                self.clear_block(number);
                let _ = own.sys.unlock(lock, byte, 1);
                false
            }
            // An error proves nothing, so the process counts as alive.
            Ok(false) | Err(_) => true,
        }
    }

    /// Number of live processes that own a block.
    pub fn living(&self, own: &Block) -> usize {
        let claimed = |&number: &usize| self.block_word(number, 0).load(Ordering::Acquire) != 0;
        let alive = |&number: &usize| self.is_alive(own, number);
        (0..self.blocks_used()).filter(claimed).filter(alive).count()
    }

    /// Whether a live process has pinned a byte of `ranges`, which are sorted.
    /// `but_own_everything`: ignore this process's own pin of everything.
    pub fn is_pinned(&self, own: &Block, ranges: &[Range<u64>], but_own_everything: bool) -> bool {
        fence(Ordering::SeqCst);
        let overlaps = |number: usize, pin: usize| {
            let pinned = self.pinned(number, pin);
            if pinned.end == 0 || (but_own_everything && (number, pin) == (own.number, EVERYTHING)) {
                return false;
            }
            let first = ranges.partition_point(|range| range.end <= pinned.start);
            ranges.get(first).is_some_and(|range| range.start < pinned.end)
        };
        let pinned = |&number: &usize| (0..PINS).any(|pin| overlaps(number, pin));
        (0..self.blocks_used()).filter(pinned).any(|number| self.is_alive(own, number))
    }

    fn pin_words(&self, block: usize, pin: usize) -> (&AtomicU64, &AtomicU64) {
        let word = FIRST_PIN + 2 * pin;
        (self.block_word(block, word), self.block_word(block, word + 1))
    }

    fn set_pin(&self, block: &Block, pin: usize, range: &Range<u64>) {
        let (start, end) = self.pin_words(block.number, pin);
        start.store(range.start, Ordering::Relaxed);
        end.store(range.end, Ordering::SeqCst);
        // A copier that does not see this pin has already set its slot, which this thread sees
        // after the fence.
        fence(Ordering::SeqCst);
    }

    /// Pins a non-empty range; `None` if all pins of the process are taken.
    pub fn pin(&self, block: &Block, range: &Range<u64>) -> Option<Pin> {
        let mut taken = block.taken.load(Ordering::Relaxed);
        let pin = loop {
            let free = taken.trailing_ones();
            if free as usize >= PINS {
                return None;
            }
            let new = taken | 1 << free;
            match block.taken.compare_exchange_weak(taken, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break free as usize,
                Err(now) => taken = now,
            }
        };
        self.set_pin(block, pin, range);
        Some(Pin(pin))
    }

    pub fn unpin(&self, block: &Block, pin: &Pin) {
        self.pin_words(block.number, pin.0).1.store(0, Ordering::Release);
        block.taken.fetch_and(!(1 << pin.0), Ordering::Release);
    }

    /// Sets or releases the process's pin of everything. No copier operation begins while it is
    /// set.
    pub fn pin_everything(&self, block: &Block, set: bool) {
        if set {
            self.set_pin(block, EVERYTHING, &(0..u64::MAX));
        } else {
            self.pin_words(block.number, EVERYTHING).1.store(0, Ordering::Release);
        }
    }

    /// Whether a live process has pinned everything. The caller must hold a pin itself.
    pub fn is_everything_pinned(&self, own: &Block) -> bool {
        if self.get(Word::Mapped) == 0 {
            return false;
        }
        let set = |&number: &usize| self.pin_words(number, EVERYTHING).1.load(Ordering::SeqCst) != 0;
        (0..self.blocks_used()).filter(set).any(|number| self.is_alive(own, number))
    }

    /// All pins of threads that are set, in all blocks.
    pub fn pins(&self) -> Vec<Seen> {
        let all = (0..self.blocks_used()).flat_map(|block| (0..EVERYTHING).map(move |pin| (block, pin)));
        let seen = all.map(|(block, pin)| Seen { block, pin, range: self.pinned(block, pin) });
        seen.filter(|seen| seen.range.end != 0).collect()
    }

    /// Whether a pin is still set to the same range, and its process is alive.
    pub fn is_still_set(&self, own: &Block, seen: &Seen) -> bool {
        self.pinned(seen.block, seen.pin) == seen.range && self.is_alive(own, seen.block)
    }

    /// The pinned range; its end is 0 if the pin is not set.
    fn pinned(&self, block: usize, pin: usize) -> Range<u64> {
        let (start, end) = self.pin_words(block, pin);
        let end = end.load(Ordering::SeqCst);
        start.load(Ordering::SeqCst)..end
    }

    fn counter_word(&self, block: usize, counter: usize) -> &AtomicU64 {
        self.block_word(block, FIRST_COUNTER + counter)
    }
}

const _: () = assert!(FIRST_COUNTER + COUNTERS <= BLOCK_WORDS);

impl SharedState {
    /// Adds to a counter of the process that owns `block`; no other process writes that word.
    pub fn count(&self, block: &Block, counter: Counter, by: u64) {
        self.counter_word(block.number, counter.index()).fetch_add(by, Ordering::Relaxed);
    }

    pub fn counted(&self, counter: Counter) -> u64 {
        let of = |block| self.counter_word(block, counter.index()).load(Ordering::Relaxed);
        (0..self.blocks_used()).map(of).fold(0, u64::wrapping_add)
    }

    /// The value that the owner of `block` has added to a counter.
    pub fn counted_by(&self, block: &Block, counter: Counter) -> u64 {
        let now = self.counter_word(block.number, counter.index()).load(Ordering::Relaxed);
        now.wrapping_sub(block.before[counter.index()])
    }
}
