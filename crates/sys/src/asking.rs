//! Asking again and again for what cannot be waited for.

use rustix::thread::nanosleep;
use rustix::time::Timespec;

use crate::Result;

const FIRST_NS: i64 = 200_000;
const LONGEST_NS: i64 = 20_000_000;

/// Asks until the answer is yes, with pauses that grow from [`FIRST_NS`] to [`LONGEST_NS`].
///
/// # Errors
/// Those of asking.
pub(crate) fn until(mut ask: impl FnMut() -> Result<bool>) -> Result<()> {
    let mut pause_ns = FIRST_NS;
    while !ask()? {
        // A signal only makes it ask earlier.
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: pause_ns });
        pause_ns = (pause_ns * 2).min(LONGEST_NS);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;

    #[test]
    fn it_asks_until_yes_or_an_error() {
        let mut left = 3;
        let mut count = || {
            left -= 1;
            Ok(left == 0)
        };
        assert_eq!(until(&mut count), Ok(()));
        assert_eq!(left, 0);
        assert_eq!(until(|| Err(Errno::BADF)), Err(Errno::BADF));
    }
}
