//! Pseudo-random numbers that a seed reproduces on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014), from this state on.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which must not be 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// An index into `len` items, of which there must be one.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True or false.
    pub fn coin(&mut self) -> bool {
        self.next_u64() & 1 == 1
    }

    /// Puts the items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

/// xorshift64* (Vigna 2016), from this state on, which must not be 0.
#[derive(Clone, Debug)]
pub struct Noise(pub u64);

impl Noise {
    /// The next number, from -1 to below 1.
    #[inline]
    pub fn next_unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        bits as f64 / f64::from(1u32 << 31) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_those_of_the_generators_authors() {
        // The first outputs of Vigna's splitmix64.c for the state 1234567.
        let mut random = Random(1_234_567);
        let numbers = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers.map(|_| random.next_u64()), numbers);
        // xorshift64* for the state 1: 5180492295206395165, 12380297144915551517.
        let mut noise = Noise(1);
        let unit = |number: u64| (number >> 32) as f64 / f64::from(1u32 << 31) - 1.0;
        let numbers = [5_180_492_295_206_395_165, 12_380_297_144_915_551_517].map(unit);
        assert_eq!(numbers.map(|_| noise.next_unit()), numbers);
    }
}
