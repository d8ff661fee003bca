//! Cached free space of the destinations of copies, so that it is not queried for every file. (On
//! CephFS each query goes to a monitor.)

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::forked::ForkSafe;

/// An answer is valid for this time. Writes of other programs meanwhile show as ENOSPC.
const KNOWN_NS: u64 = 1_000_000_000;

/// Per directory, the free space of its file system at the last query, less the space reserved
/// since. Shareable between threads.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace(ForkSafe<HashMap<PathBuf, Known>>);

#[derive(Clone, Copy, Debug)]
struct Known {
    left_bytes: u64,
    asked_ns: u64,
}

impl FreeSpace {
    /// Reserves `need_bytes` at `place` at time `now_ns`; queries the free space with `ask` if the
    /// known value is too old or too small. Returns the free bytes as inner error if they are not
    /// enough.
    ///
    /// # Errors
    /// The errors of `ask`.
    pub fn promise<E>(
        &self,
        place: &Path,
        need_bytes: u64,
        now_ns: u64,
        ask: impl FnOnce() -> Result<u64, E>,
    ) -> Result<Result<(), u64>, E> {
        let is_recent = |known: &&mut Known| now_ns.saturating_sub(known.asked_ns) < KNOWN_NS;
        if let Some(known) = self.0.lock().get_mut(place).filter(is_recent)
            && let Some(left_bytes) = known.left_bytes.checked_sub(need_bytes)
        {
            known.left_bytes = left_bytes;
            return Ok(Ok(()));
        }
        let free_bytes = ask()?;
        let Some(left_bytes) = free_bytes.checked_sub(need_bytes) else { return Ok(Err(free_bytes)) };
        self.0.lock().insert(place.to_owned(), Known { left_bytes, asked_ns: now_ns });
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_is_asked_when_an_answer_is_old_or_used_up() {
        let (space, asked, free) = (FreeSpace::default(), Cell::new(0), Cell::new(100));
        let promise = |place: &str, need, now_ns| {
            space.promise::<()>(Path::new(place), need, now_ns, || {
                asked.set(asked.get() + 1);
                Ok(free.get())
            })
        };
        for (place, need, now_ns, expected, asked_so_far) in [
            ("a", 60, 0, Ok(()), 1),
            ("a", 40, KNOWN_NS - 1, Ok(()), 1),
            // Reserved space may be free again, because the copy replaced a file.
            ("a", 1, KNOWN_NS - 1, Ok(()), 2),
            ("b", 101, KNOWN_NS - 1, Err(100), 3),
            ("a", 101, KNOWN_NS, Err(100), 4),
            ("a", 1, 2 * KNOWN_NS - 2, Ok(()), 4),
            ("a", 1, 2 * KNOWN_NS - 1, Ok(()), 5),
        ] {
            assert_eq!((promise(place, need, now_ns), asked.get()), (Ok(expected), asked_so_far));
        }
        assert_eq!(space.promise(Path::new("c"), 1, 0, || Err("broken")), Err("broken"));
    }
}
