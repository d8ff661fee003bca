//! A hash for small keys of numbers.

use std::hash::{BuildHasherDefault, Hasher};

/// Hash builder of [`Mixer`].
pub type FastHash = BuildHasherDefault<Mixer>;

/// A fast hash for a few numbers (multiply and fold). It does not resist chosen input, whose worst
/// effect is that the chooser's own requests or plans are slow.
#[derive(Clone, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}
