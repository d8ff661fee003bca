//! The kinds of requests, and which kind a request is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use stripewise_model::{Access, Op};

/// Direction and order of a request, which determine its α and β.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Read or write.
    pub op: Op,
    /// Whether the request continues where its stream's last request ended, as far as the caller
    /// knows.
    pub access: Access,
}

impl Kind {
    /// All kinds, each at its [`Kind::index`].
    pub const ALL: [Self; 4] = [
        Self { op: Op::Read, access: Access::Random },
        Self { op: Op::Read, access: Access::Sequential },
        Self { op: Op::Write, access: Access::Random },
        Self { op: Op::Write, access: Access::Sequential },
    ];
    /// A read of the background work.
    pub(crate) const COPYING: Self = Self { op: Op::Read, access: Access::Sequential };

    pub(crate) fn index(self) -> usize {
        2 * usize::from(self.op == Op::Write) + usize::from(self.access == Access::Sequential)
    }
}

/// Maximum number of concurrent sequential streams, for example threads of one process, that are
/// told apart.
const STREAMS: usize = 16;

/// The end offsets of a process's latest requests to a file. Threads may share it; a race only
/// makes a request count as random.
#[derive(Debug, Default)]
pub struct Streams {
    ends: [AtomicU64; STREAMS],
    next: AtomicUsize,
}

impl Streams {
    /// Classifies a request of `len` bytes at `offset`, and records where it ends.
    pub fn access(&self, offset: u64, len: u64) -> Access {
        let end = offset.saturating_add(len);
        for known in &self.ends {
            if known.load(Ordering::Relaxed) == offset && offset > 0 {
                known.store(end, Ordering::Relaxed);
                return Access::Sequential;
            }
        }
        let place = self.next.fetch_add(1, Ordering::Relaxed) % STREAMS;
        self.ends[place].store(end, Ordering::Relaxed);
        Access::Random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_side_by_side_are_told_apart() {
        let streams = Streams::default();
        let begin = |start| (0..5u64).map(move |step| start + step * 10);
        let order: Vec<_> = begin(0).zip(begin(1000)).flat_map(|(one, other)| [one, other]).collect();
        let access: Vec<_> = order.iter().map(|&offset| streams.access(offset, 10)).collect();
        assert_eq!(access[..2], [Access::Random; 2]);
        assert!(access[2..].iter().all(|&access| access == Access::Sequential), "{access:?}");
        assert_eq!(streams.access(500, 10), Access::Random);
        assert_eq!(streams.access(50, 10), Access::Sequential, "the first stream goes on");
    }
}
