//! Where CephFS puts the objects of a file.
//!
//! Every object lies in a placement group of its pool, which a hash of its name chooses, and every
//! group on servers that the cluster can tell. (Ceph `src/common/ceph_hash.cc`,
//! `src/include/rados.h`: `ceph_stable_mod`, `src/osd/osd_types.cc`: `pg_pool_t::hash_key`;
//! verified on Ceph 16.2 with `ceph osd map`.)

use stripewise_layout::Stripe as Piece;

/// Most stripes of a cycle. A longer file begins it anew. 2048 objects of 4M in stripes of 1M.
const STRIPES_MAX: u64 = 1 << 13;

/// Probability from which on larger counts of objects on a server do not matter.
const NEGLIGIBLE: f64 = 1e-9;
/// Objects per server from which on servers count as equally full: of a thousand servers, the
/// fullest has 3 % more.
const EVEN_FROM: f64 = 16384.0;

/// The objects of a file whose places are chosen one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Bytes of an object, more than 0.
    pub size: u64,
    /// Their names; `None` of a file that does not exist.
    pub names: Option<Names>,
}

/// The names of the objects of a file that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The inode number of the file.
    pub inode: u64,
    /// The pool's namespace of the file's objects; empty: the default one.
    pub namespace: String,
}

impl Names {
    /// The placement group, of `groups` of the pool, of the object with this index.
    pub(crate) fn group(&self, object: u64, groups: u32) -> u32 {
        let name = format!("{:x}.{object:08x}", self.inode);
        let hashed = match &*self.namespace {
            "" => hash(name.as_bytes()),
            namespace => hash(format!("{namespace}\x1f{name}").as_bytes()),
        };
        // While the number of groups is no power of two, some groups are twice as large as others.
        let mask = groups.max(1).checked_next_power_of_two().map_or(u32::MAX, |power| power - 1);
        if hashed & mask < groups { hashed & mask } else { hashed & (mask >> 1) }
    }
}

/// How the bytes of a file go to its objects: stripes of `width` bytes in turn to `count` objects
/// of `size` bytes, then to the next `count`.
#[derive(Clone, Copy)]
pub(crate) struct Sets {
    pub width: u64,
    pub count: u64,
    pub size: u64,
}

impl Sets {
    /// Number of objects of a file of `len` bytes.
    pub fn objects(self, len: u64) -> u64 {
        let set = self.size.saturating_mul(self.count);
        (len / set) * self.count + (len % set).div_ceil(self.width).min(self.count)
    }

    /// The stripes of the sets that a file of `len` bytes has, at least one, as a cycle.
    /// `target_of` gives the target of an object by its index. `None`: a set has too many stripes.
    pub fn cycle(self, len: u64, target_of: impl Fn(u64) -> u32) -> Option<Vec<Piece>> {
        // In a set of one object, neighboring stripes are one.
        let width = if self.count == 1 { self.size } else { self.width };
        let rounds = (self.size / width).max(1);
        let stripes = rounds.checked_mul(self.count).filter(|&stripes| stripes <= STRIPES_MAX)?;
        let sets = len.div_ceil(stripes * width).clamp(1, STRIPES_MAX / stripes);
        let set = |set: u64| {
            let targets: Vec<u32> =
                (0..self.count).map(|object| target_of(set * self.count + object)).collect();
            (0..rounds).flat_map(move |_| targets.clone()).map(move |target| Piece { target, width })
        };
        Some((0..sets).flat_map(set).collect())
    }
}

/// How full the fullest of `servers` is on average, as a multiple of an even share, if each of
/// `objects` lies on one of them at random. 1 for one object, which is wherever it is whole.
///
/// The counts of servers are taken as independent and Poisson; their sum is then right on average
/// only. The result is within 6 % of the average over all placements.
pub(crate) fn fullest(objects: u64, servers: u32) -> f64 {
    if objects <= 1 || servers <= 1 {
        return 1.0;
    }
    let mean = objects as f64 / f64::from(servers);
    if mean > EVEN_FROM {
        return 1.0;
    }
    // The probability of a count is a product, by its logarithm since e^-mean may be 0.
    let (mut log, mut below, mut most, mut count) = (-mean, 0.0, 0.0, 0.0);
    loop {
        below += f64::exp(log);
        let above = 1.0 - f64::min(below, 1.0).powf(f64::from(servers));
        most += above;
        count += 1.0;
        log += f64::ln(mean / count);
        if count > mean && above < NEGLIGIBLE {
            return f64::max(most, 1.0) / mean;
        }
    }
}

/// One of `servers` for an object of a file whose names or whose pool's groups are not known, by
/// the same hash: object by object as likely as any other. `turn` distinguishes files.
pub(crate) fn drawn(turn: usize, object: u64, servers: usize) -> usize {
    let draw = hash(format!("{turn:x}.{object:08x}").as_bytes());
    draw as usize % servers.max(1)
}

/// Ceph's hash of an object's name (Robert Jenkins, 1996).
fn hash(name: &[u8]) -> u32 {
    const GOLDEN: u32 = 0x9e37_79b9;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
    let mut state = [GOLDEN, GOLDEN, 0];
    let blocks = name.chunks_exact(12);
    let rest = blocks.remainder();
    for block in blocks {
        let words = [word(&block[..4]), word(&block[4..8]), word(&block[8..])];
        state = mix(std::array::from_fn(|index| state[index].wrapping_add(words[index])));
    }
    // The lowest byte of the last word is left to the length.
    let part = |from: usize, to: usize| word(&rest[from.min(rest.len())..to.min(rest.len())]);
    let last = [part(0, 4), part(4, 8), (part(8, 12) << 8).wrapping_add(name.len() as u32)];
    mix(std::array::from_fn(|index| state[index].wrapping_add(last[index])))[2]
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for [first, second, third] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> first);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << second);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> third);
    }
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_16_2_hashes() {
        for (name, hashed) in [
            ("a", 0x29ee_c818),
            ("abcdefghijk", 0xe52b_8e4c),
            ("abcdefghijkl", 0x0b1b_3ea5),
            ("10000000000.0000002a", 0x007e_5e72),
            ("10000000001.00000001", 0xb1e4_64af),
            ("ns\x1fobj", 0x4df6_7843),
        ] {
            assert_eq!(hash(name.as_bytes()), hashed, "{name}");
        }
        let file = Names { inode: 0x100_0000_0001, namespace: String::new() };
        let groups: Vec<u32> = (0..6).map(|object| file.group(object, 32)).collect();
        assert_eq!(groups, [0x7, 0xf, 0x1e, 0xe, 0x1e, 0x1d]);
        let fewer: Vec<u32> = (0..6).map(|object| file.group(object, 12)).collect();
        assert_eq!(fewer, [7, 7, 6, 6, 6, 5], "bits that there is no group for are dropped");
    }

    proptest! {
        /// Against the walk that Ceph's page on file layouts describes.
        #[test]
        fn every_byte_is_in_its_object(rounds in 1u64..5, count in 1u64..6, at in 0u64..4000, len in 0u64..4000) {
            let sets = Sets { width: 10, count, size: 10 * rounds };
            let cycle = sets.cycle(len, |object| object as u32).unwrap();
            prop_assume!(at < len);
            let stripe = at / 10;
            let object = stripe / (rounds * count) * count + stripe % count;
            let mut passed = 0;
            let piece = cycle.iter().find(|piece| { passed += piece.width; at < passed }).unwrap();
            prop_assert_eq!(u64::from(piece.target), object);
            let reached: std::collections::BTreeSet<u64> = (0..len).map(|at| {
                at / 10 / (rounds * count) * count + at / 10 % count
            }).collect();
            prop_assert_eq!(sets.objects(len), reached.len() as u64);
        }

        #[test]
        fn the_fullest_server_is_fuller_than_the_mean_and_less_so_in_longer_files(
            objects in 2u64..5000, servers in 2u32..200,
        ) {
            let (fewer, more) = (fullest(objects, servers), fullest(4 * objects, servers));
            prop_assert!(fewer > 1.0 && more > 1.0 && more < fewer, "{fewer} {more}");
        }
    }

    /// The most objects of `objects` on one of `servers`, on average over all ways to place them.
    fn counted(objects: u32, servers: u32) -> f64 {
        let most = |mut way: u32| {
            let mut held = vec![0; servers as usize];
            for _ in 0..objects {
                held[(way % servers) as usize] += 1;
                way /= servers;
            }
            held.into_iter().max().unwrap()
        };
        let ways = servers.pow(objects);
        f64::from((0..ways).map(most).sum::<u32>()) / f64::from(ways)
    }

    #[test]
    fn endless_files_are_even() {
        assert_eq!(fullest(1 << 60, 4), 1.0);
        assert!((fullest(16_000_000, 1000) - 1.03).abs() < 0.01);
    }

    /// Drawn files are as uneven as files whose objects are placed at random.
    #[test]
    fn the_fullest_server_of_drawn_files_is_as_full_as_chance_has_it() {
        for (objects, servers) in [(2, 2), (2, 4), (2, 16), (3, 16), (4, 4), (8, 4), (4, 2), (8, 3), (5, 7)] {
            let even = f64::from(objects) / f64::from(servers);
            let told = fullest(objects.into(), servers) * even;
            assert!((told / counted(objects, servers) - 1.0).abs() < 0.06, "{objects} on {servers}: {told}");
            let most = |turn: usize| {
                let mut held = vec![0; servers as usize];
                (0..u64::from(objects)).for_each(|object| held[drawn(turn, object, servers as usize)] += 1);
                held.into_iter().max().unwrap()
            };
            let files = 4000;
            let mean = f64::from((0..files).map(most).sum::<u32>()) / files as f64;
            let expected = counted(objects, servers);
            assert!((mean / expected - 1.0).abs() < 0.02, "{objects} on {servers}: {mean} {expected}");
        }
    }
}
