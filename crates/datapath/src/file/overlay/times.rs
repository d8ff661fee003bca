//! Modification times of the objects of a file's copies, recorded at the last close. An object that
//! is older now was restored from a backup, so its contents do not match the map.
//!
//! The record is `ID.extents.times`, next to the journal. Its times are lower bounds, so it needs
//! neither to be up to date nor to be synced: every write makes objects newer. A call that sets
//! times removes the record, as does the removal of the file.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use stripewise_extents::MapSpec;
use stripewise_sys::SysRef;
use stripewise_target::TargetError;

use super::state::Overlay;
use crate::error::FileResult;
use crate::file::LogicalFile;
use crate::file::copy::OpenCopy;

const MAGIC: &str = "stripewise times 1";
const BYTES_MAX: usize = 1 << 20;
const SUFFIX: &str = ".times";

/// Seconds since 1970 per (copy, object). Whole seconds, because some backups keep no more.
pub(crate) type Times = BTreeMap<(usize, usize), i64>;

/// The text of the record, with its checksum as the last line.
fn text_of(times: &Times) -> String {
    let mut text = format!("{MAGIC}\n");
    for ((copy, object), seconds) in times {
        text.push_str(&format!("{copy} {object} {seconds}\n"));
    }
    let sum = crc32fast::hash(text.as_bytes());
    text + &format!("{sum:08x}\n")
}

/// Parses the text; `None` if it is damaged or of another version.
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
    /// The recorded times; empty if the record cannot be read.
    pub(crate) fn known_times(&self) -> Times {
        let sys = &self.context.sys;
        let file = self.spec().open_beside(sys, SUFFIX);
        let bytes = file.and_then(|file| sys.read_start(file.as_fd(), BYTES_MAX));
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| parse(&text)).unwrap_or_default()
    }

    /// Writes the record. If that fails, the times are unknown later.
    fn write_times(&self, now: &Times) {
        let sys = &self.context.sys;
        // Keeps the earlier times of copies that are lost now.
        let times: Times = self.known_times().into_iter().chain(now.clone()).collect();
        if let Ok(file) = self.spec().create_beside(sys, SUFFIX) {
            let _ = sys.write_all_at(file.as_fd(), text_of(&times).as_bytes(), 0);
        }
    }

    /// Removes the record: before and after times are set, and when the file is removed.
    pub(crate) fn forget_times(&self) {
        forget_times(&self.context.sys, self.spec());
    }
}

pub(crate) fn forget_times(sys: &SysRef, spec: &MapSpec) {
    let _ = spec.remove_beside(sys, SUFFIX);
}

/// Checks that no object of a copy is older than its recorded time.
pub(crate) fn check_times(times: &Times, copy: &OpenCopy) -> FileResult<()> {
    // Most files have no record, and their objects need not be queried.
    if times.is_empty() {
        return Ok(());
    }
    let set = copy.objects();
    for ((index, stat), target) in set.stats()?.into_iter().enumerate().zip(set.targets()) {
        if times.get(&(copy.number().index(), index)).is_some_and(|&known| stat.st_mtime < known) {
            let path = target.path().join(format!("{}.{index}", set.id()));
            let problem = "is older than when its file was closed, put back from a backup or a snapshot; its bytes are not used: \
                           put back what was there, or let `stripewise fsck --repair` say what only it had";
            return Err(TargetError::Unusable { path, problem: problem.into() }.into());
        }
    }
    Ok(())
}

impl LogicalFile {
    /// Records the times as of the close. A process that removes the file or sets its times removes
    /// the record afterwards. If this record is written after that, the check below notices the
    /// removal or the older times and removes it again.
    pub(crate) fn note_times(&self, times: &Times) {
        let Some(overlay) = self.overlay() else { return };
        overlay.write_times(times);
        let removed = self.sys().stat(self.anchor()).is_ok_and(|stat| stat.st_nlink == 0);
        let now = self.times_now();
        let older = |(object, then): (&(usize, usize), &i64)| now.get(object).is_some_and(|now| now < then);
        if removed || times.iter().any(older) {
            overlay.forget_times();
        }
    }

    pub(crate) fn times_now(&self) -> Times {
        let of_copy = |copy: &OpenCopy| {
            let stats = copy.objects().stats().unwrap_or_default();
            let number = copy.number().index();
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
