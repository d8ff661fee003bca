//! Permissions of a managed file: those of object 0.
//!
//! The anchor has the same permissions without any write permission, so that a program without this
//! library cannot open it for writing. (A process with CAP_DAC_OVERRIDE can.)

const WRITE: u32 = 0o222;
const ALL: u32 = 0o777;

pub(crate) fn of_anchor(mode: u32) -> u32 {
    mode & !WRITE
}

pub(crate) fn is_protected(anchor: u32) -> bool {
    anchor & WRITE == 0
}

/// The permissions of the file whose anchor and object 0 have these modes. They differ from the
/// object's if a program without this library changed those of the anchor. If the anchor then has
/// write permission, its permissions apply as they are. Without, each class that keeps read
/// permission also keeps its write permission.
pub(crate) fn of_file(anchor: u32, object: u32) -> u32 {
    let (anchor, object) = (anchor & ALL, object & ALL);
    if anchor == of_anchor(object) {
        object
    } else if is_protected(anchor) {
        let readers = anchor & 0o444;
        anchor | object & readers >> 1
    } else {
        anchor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_tells_what_chmod_without_this_library_meant() {
        // (permissions before, of the anchor after chmod, permissions now)
        for (before, anchor, now) in [
            (0o644, 0o444, 0o644),
            (0o644, 0o400, 0o600),
            (0o664, 0o440, 0o660),
            (0o644, 0o555, 0o755),
            (0o600, 0o440, 0o640),
            (0o444, 0o644, 0o644),
            (0o644, 0o600, 0o600),
            (0o644, 0o666, 0o666),
            (0o666, 0o000, 0o000),
            (0o200, 0o000, 0o200),
        ] {
            assert_eq!(of_file(anchor, before), now, "{before:o} {anchor:o}");
        }
    }

    #[test]
    fn what_was_not_changed_stays() {
        for mode in 0..=ALL {
            assert!(is_protected(of_anchor(mode)));
            assert_eq!(of_file(of_anchor(mode), mode), mode);
            assert_eq!(of_file(mode | WRITE, mode), mode | WRITE);
        }
    }
}
