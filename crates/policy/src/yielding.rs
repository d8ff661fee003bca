//! Decides when background copying yields to requests of other nodes. They cannot be counted, but
//! they cause delay, by which LEDBAT (RFC 6817) yields on networks. The first bytes of each chunk
//! are copied by themselves. If that takes much longer than usual, the chunk waits. How large a
//! chunk is depends on how long the last one took, since requests wait behind it.

use crate::background::{CHUNK_BYTES, pause_under_load_ns};

/// Number of bytes at the start of a chunk whose copying is timed.
pub const PROBE_BYTES: u64 = 64 << 10;

/// Bytes of the first chunk. No chunk has less: it would be little but overhead.
const LEAST_CHUNK_BYTES: u64 = 1 << 20;
/// Time that copying a chunk should not exceed, ns.
const CHUNK_NS: u64 = 500_000_000;

/// Number of requests of which one median is taken: a few may have been served by a server's
/// cache.
const GROUP: usize = 32;
/// The same for the first median, which should be known soon.
const FIRST_GROUP: usize = 8;
/// A request that takes more than this multiple of the usual time has waited for others.
const LONG: u64 = 3;

/// The time that copying the first bytes of a chunk takes. The usual time is the lowest median so
/// far. It never rises, because a load that lasts would otherwise count as usual. Until it is
/// known, no request is long.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    group: [u64; GROUP],
    seen: usize,
    usual_ns: Option<u64>,
}

impl Delays {
    /// Notes a request that took `took_ns`. Returns whether it has waited for others.
    fn is_long(&mut self, took_ns: u64) -> bool {
        let is_long = self.usual_ns.is_some_and(|usual_ns| took_ns > usual_ns.saturating_mul(LONG));
        self.group[self.seen] = took_ns;
        self.seen += 1;
        if self.seen == self.usual_ns.map_or(FIRST_GROUP, |_| GROUP) {
            let group = &mut self.group[..self.seen];
            group.sort_unstable();
            let median_ns = group[group.len() / 2];
            self.seen = 0;
            self.usual_ns = Some(self.usual_ns.map_or(median_ns, |usual_ns| usual_ns.min(median_ns)));
        }
        is_long
    }
}

/// The yielding of one process that copies a file. The caller serializes access.
#[derive(Clone, Copy, Debug)]
pub struct Yielding {
    delays: Delays,
    /// From this time on, ns, a chunk is copied however long its first bytes take. So copying goes
    /// on, with a small share of the servers' time, under a load that never pauses, or if the usual
    /// time is wrong.
    next_ns: u64,
    chunk_bytes: u64,
}

impl Default for Yielding {
    fn default() -> Self {
        Self { delays: Delays::default(), next_ns: 0, chunk_bytes: LEAST_CHUNK_BYTES }
    }
}

impl Yielding {
    /// Maximum bytes of the next chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// The time of the next attempt, ns, if a chunk is not to be copied now, at `now_ns`, because
    /// its first bytes took `took_ns`.
    pub fn until_ns(&mut self, now_ns: u64, took_ns: u64) -> Option<u64> {
        let is_long = self.delays.is_long(took_ns);
        let until_ns = now_ns.saturating_add(pause_under_load_ns(took_ns, 1)).min(self.next_ns);
        (is_long && now_ns < until_ns).then_some(until_ns)
    }

    /// Notes that a whole chunk was copied at `now_ns`, in `took_ns`.
    pub fn copied(&mut self, now_ns: u64, took_ns: u64) {
        self.next_ns = now_ns.saturating_add(pause_under_load_ns(took_ns, 1));
        if took_ns > CHUNK_NS {
            self.chunk_bytes = (self.chunk_bytes / 2).max(LEAST_CHUNK_BYTES);
        } else if took_ns < CHUNK_NS / 2 {
            self.chunk_bytes = (self.chunk_bytes * 2).min(CHUNK_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use stripewise_random::Random;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn usual_times_vary() {
        let mut delays = Delays::default();
        let mut random = Random(1);
        // A disk: seeks of 2 to 10 ms, and a cache that serves a fifth of the requests in 0.1 ms.
        let mut took = || if random.below(5) == 0 { 100_000 } else { 2_000_000 + random.below(8_000_000) };
        let long = (0..10_000).filter(|_| delays.is_long(took())).count();
        assert!(long < 2_500, "{long} of 10000 requests seem to wait for others");
        let waits = (0..1000).filter(|_| delays.is_long(took() + 40_000_000)).count();
        assert_eq!(waits, 1000);
    }

    /// The sizes of 30 chunks from a server of this speed.
    fn chunks(bytes_per_second: u64) -> Vec<u64> {
        let mut yielding = Yielding::default();
        let chunks = (0..30).map(|_| {
            let bytes = yielding.chunk_bytes();
            yielding.copied(0, bytes * SECOND_NS / bytes_per_second);
            bytes
        });
        chunks.collect()
    }

    #[test]
    fn chunks_are_as_large_as_the_servers_are_fast() {
        assert_eq!(chunks(1 << 30)[..3], [1 << 20, 2 << 20, 4 << 20]);
        let last = |bytes_per_second| *chunks(bytes_per_second).last().unwrap();
        assert_eq!(
            [1 << 30, 9 << 20, 6 << 20, 2 << 20, 1000].map(last),
            [CHUNK_BYTES, CHUNK_BYTES, 2 << 20, LEAST_CHUNK_BYTES, LEAST_CHUNK_BYTES]
        );
    }

    /// A server that serves one request after the other, in the order in which they arrive.
    struct Server {
        free_ns: u64,
    }

    impl Server {
        fn serve(&mut self, now_ns: u64, bytes: u64) -> u64 {
            let start_ns = now_ns.max(self.free_ns);
            // 1 ms and 25 MB/s.
            self.free_ns = start_ns + 1_000_000 + bytes * 40;
            self.free_ns
        }
    }

    /// The requests of 1 MiB that a program completes in a minute, and the bytes that the copier
    /// copies meanwhile. The program waits for `think_ns` after each.
    fn minute(with_program: bool, think_ns: u64, copies: bool) -> (u64, u64) {
        let (mut server, mut yielding) = (Server { free_ns: 0 }, Yielding::default());
        let (mut requests, mut copied) = (0, 0);
        let start_ns = 20 * SECOND_NS;
        let mut program_ns = if with_program { start_ns } else { u64::MAX };
        let mut copier_ns = if copies { 0 } else { u64::MAX };
        let mut rest_of_chunk = None;
        loop {
            let now_ns = program_ns.min(copier_ns);
            if now_ns > start_ns + 60 * SECOND_NS {
                return (requests, copied);
            }
            if now_ns == program_ns {
                program_ns = server.serve(now_ns, 1 << 20) + think_ns;
                requests += 1;
                continue;
            }
            match rest_of_chunk.take() {
                None => {
                    copier_ns = server.serve(now_ns, PROBE_BYTES);
                    rest_of_chunk = Some(now_ns);
                }
                Some(begun_ns) => match yielding.until_ns(now_ns, now_ns - begun_ns) {
                    Some(until_ns) => copier_ns = until_ns,
                    None => {
                        let bytes = yielding.chunk_bytes();
                        copier_ns = server.serve(now_ns, bytes - PROBE_BYTES);
                        yielding.copied(copier_ns, copier_ns - begun_ns);
                        copied += if now_ns > start_ns { bytes } else { 0 };
                    }
                },
            }
        }
    }

    #[test]
    fn a_copier_takes_what_others_leave() {
        let (alone, _) = minute(true, 0, false);
        let (beside, copied) = minute(true, 0, true);
        assert!(beside * 100 > alone * 88, "{beside} requests of {alone}, {copied} bytes copied");
        assert!(copied > 0, "it stands still");
        let (_, idle) = minute(false, 0, true);
        assert!(idle > 60 * 22_000_000, "{idle} bytes copied while nobody else was there");
        // A program that computes most of the time.
        let (alone, _) = minute(true, SECOND_NS / 2, false);
        let (beside, copied) = minute(true, SECOND_NS / 2, true);
        assert!(beside * 100 > alone * 90 && copied > idle / 4, "{beside} of {alone}, {copied} of {idle}");
    }
}
