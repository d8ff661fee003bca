//! When the components of a file's copies were changed last, as of when it was closed last: one that is older now is not what the
//! map believes it to be, but was put back from a backup.
//!
//! `ID.extents.times` beside the journal. What it says are lower bounds, so it need not be as new as the file, nor be synced: every
//! write of ours makes components newer. Only who sets a time removes it.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use stripewise_extents::MapSpec;
use stripewise_sys::SysRef;
use stripewise_target::TargetError;

use super::super::{LogicalFile, OpenCopy};
use super::Overlay;
use crate::trouble::Trouble;

const MAGIC: &str = "stripewise times 1";
const BYTES_MAX: usize = 1 << 20;
const SUFFIX: &str = ".times";

/// (copy, component): seconds since 1970, whole, as some backups keep no more.
pub(crate) type Times = BTreeMap<(usize, usize), i64>;

/// The text, with its checksum as the last line.
fn text_of(times: &Times) -> String {
    let mut text = format!("{MAGIC}\n");
    for ((copy, component), seconds) in times {
        text.push_str(&format!("{copy} {component} {seconds}\n"));
    }
    let sum = crc32fast::hash(text.as_bytes());
    text + &format!("{sum:08x}\n")
}

/// `None`: damaged, or of another version.
fn parse(text: &str) -> Option<Times> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = &text[..body.len() + 1];
    if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(body.as_bytes()) {
        return None;
    }
    let mut lines = body.lines();
    if lines.next()? != MAGIC {
        return None;
    }
    let entry = |line: &str| {
        let mut words = line.split(' ');
        let key = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((key, words.next()?.parse().ok()?))
    };
    lines.map(entry).collect()
}

impl Overlay {
    /// What is known of the components; nothing, if that cannot be read.
    pub(crate) fn known_times(&self) -> Times {
        let sys = &self.surroundings.sys;
        let file = self.spec().open_beside(sys, SUFFIX);
        let bytes = file.and_then(|file| sys.read_start(file.as_fd(), BYTES_MAX));
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| parse(&text)).unwrap_or_default()
    }

    /// What cannot be written is not known then.
    fn write_times(&self, now: &Times) {
        let sys = &self.surroundings.sys;
        // Of copies that are lost just now, what was known.
        let times: Times = self.known_times().into_iter().chain(now.clone()).collect();
        if let Ok(file) = self.spec().create_beside(sys, SUFFIX) {
            let _ = sys.write_all_at(file.as_fd(), text_of(&times).as_bytes(), 0);
        }
    }

    /// Before and after times are set, and when the file is removed.
    pub(in super::super) fn forget_times(&self) {
        forget_times(&self.surroundings.sys, self.spec());
    }
}

/// Of a file that is removed.
pub(crate) fn forget_times(sys: &SysRef, spec: &MapSpec) {
    let _ = spec.remove_beside(sys, SUFFIX);
}

/// Says which component of a copy is older than it was.
///
/// # Errors
/// One is.
pub(crate) fn check_times(times: &Times, copy: &OpenCopy) -> std::result::Result<(), Trouble> {
    // Most files have none, and are not looked at.
    if times.is_empty() {
        return Ok(());
    }
    let set = copy.components();
    for ((index, stat), target) in set.stats()?.into_iter().enumerate().zip(set.targets()) {
        if times.get(&(copy.number(), index)).is_some_and(|&known| stat.st_mtime < known) {
            let path = target.path().join(format!("{}.{index}", set.id()));
            let problem = "is older than when its file was closed, put back from a backup or a snapshot; its bytes are not used: \
                           put back what was there, or let `stripewise fsck --repair` say what only it had";
            return Err(TargetError::Unusable { path, problem: problem.into() }.into());
        }
    }
    Ok(())
}

impl LogicalFile {
    /// Notes the times as they were when the file was closed. Whoever removes the file or sets its times forgets them after that: what
    /// is noted later than that is seen here.
    pub(crate) fn note_times(&self, overlay: &Overlay, times: Times) {
        overlay.write_times(&times);
        let removed = self.sys().stat(self.anchor()).is_ok_and(|stat| stat.st_nlink == 0);
        let now = self.times_now();
        let older =
            |(component, then): (&(usize, usize), &i64)| now.get(component).is_some_and(|now| now < then);
        if removed || times.iter().any(older) {
            overlay.forget_times();
        }
    }

    /// The times of the components that can be asked.
    pub(crate) fn times_now(&self) -> Times {
        let of_copy = |copy: &OpenCopy| {
            let stats = copy.components().stats().unwrap_or_default();
            let number = copy.number();
            stats.into_iter().enumerate().map(move |(index, stat)| ((number, index), stat.st_mtime))
        };
        self.present().flat_map(of_copy).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(times in prop::collection::btree_map((0..8usize, 0..50usize), any::<i64>(), 0..30)) {
            prop_assert_eq!(parse(&text_of(&times)), Some(times));
        }

        #[test]
        fn anything_else_is_not_believed(
            times in prop::collection::btree_map((0..8usize, 0..50usize), any::<i64>(), 1..30),
            at in any::<prop::sample::Index>(),
            byte in 0u8..128,
            cut in any::<bool>(),
        ) {
            let text = text_of(&times);
            let at = at.index(text.len());
            let mut bytes = text.clone().into_bytes();
            bytes[at] = byte;
            let changed = if cut { text[..at].to_owned() } else { String::from_utf8(bytes).unwrap() };
            prop_assume!(!changed.eq_ignore_ascii_case(&text));
            prop_assert_eq!(parse(&changed), None);
        }

        #[test]
        fn nothing_makes_it_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
