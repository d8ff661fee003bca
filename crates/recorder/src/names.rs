//! Numbers of file names, in a table of fixed size. A name that was displaced gets another number.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SLOTS: usize = 1 << 14;
/// Associativity: an entry may be in its own slot or in one of the next `WAYS - 1`.
const WAYS: usize = 4;

/// A lock-free table. All-zero bytes are an empty table.
pub struct Names {
    slots: [Slot; SLOTS],
}

/// Two words that are written one after the other. A reader that sees halves of two entries detects
/// it, because `check ^ id` then differs from the hash that it looks for.
struct Slot {
    id: AtomicU64,
    check: AtomicU64,
}

impl Names {
    /// The number that was set for this hash, if the table still has it.
    pub fn get(&self, hash: u64) -> Option<u32> {
        let ids = self.ways(hash).filter_map(|slot| {
            let id = slot.id.load(Relaxed);
            (id != 0 && slot.check.load(Relaxed) ^ id == hash).then_some(id as u32)
        });
        ids.last()
    }

    /// Sets the number of a hash; it must not be 0.
    pub fn set(&self, hash: u64, id: u32) {
        let id = u64::from(id);
        let slot = self.ways(hash).find(|slot| slot.id.load(Relaxed) == 0);
        // All slots are in use: the low bits of the number choose the entry to displace, as well as
        // chance would.
        let slot = slot.unwrap_or_else(|| self.ways(hash).nth(id as usize % WAYS).expect("within the ways"));
        slot.id.store(id, Relaxed);
        slot.check.store(hash ^ id, Relaxed);
    }

    fn ways(&self, hash: u64) -> impl Iterator<Item = &Slot> {
        (0..WAYS).map(move |way| &self.slots[(hash as usize).wrapping_add(way) % SLOTS])
    }
}

/// Hashes a name to 64 bits (FNV-1a, then mixed so that each bit depends on all others).
pub fn hash(name: &[u8]) -> u64 {
    let fnv = name
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_until_others_push_them_out() {
        let names: Box<Names> =
            Box::new(Names { slots: std::array::from_fn(|_| Slot { id: 0.into(), check: 0.into() }) });
        let name = |i: u32| hash(format!("/data/{i}").as_bytes());
        for i in 1..=1000 {
            names.set(name(i), i);
        }
        assert!((1..=1000).all(|i| names.get(name(i)) == Some(i)));
        assert_eq!(names.get(name(1001)), None);
        for i in 1001..=100_000 {
            names.set(name(i), i);
        }
        let known = (1..=100_000).filter(|i| names.get(name(*i)).is_some()).count();
        assert!((10_000..=SLOTS).contains(&known), "{known}");
        assert!((1..=100_000).all(|i| names.get(name(i)).is_none_or(|id| id == i)));
    }
}
