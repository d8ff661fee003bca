//! The files of a job while its log or trace is read: which of them hold data, in bounded memory.

use rustc_hash::FxHashMap;
use stripewise_trace::scope::is_data;

use crate::facts::{Excluded, FILES_MAX, Facts, FileFacts, RANKS_MAX};

/// Files by the id that the log gives them.
#[derive(Default)]
pub(crate) struct Table {
    names: FxHashMap<u64, String>,
    numbers: FxHashMap<u64, usize>,
    files: Vec<FileFacts>,
    /// A file of which only the totals are kept.
    other: FileFacts,
    beyond: Excluded,
    rank_s: Vec<f64>,
    rank_bytes: Vec<u64>,
}

impl Table {
    /// Notes the name of a file.
    pub fn learn(&mut self, id: u64, name: &[u8]) {
        if self.names.len() < FILES_MAX && !name.is_empty() {
            self.names.entry(id).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Adds to a file's facts. Of files beyond the limit, the totals are added up.
    pub fn update(&mut self, id: u64, add: impl FnOnce(&mut FileFacts)) {
        if let Some(&number) = self.numbers.get(&id) {
            return add(&mut self.files[number]);
        }
        if self.files.len() >= FILES_MAX {
            self.other = FileFacts::default();
            add(&mut self.other);
            return self.beyond.add(&self.other);
        }
        let name = self.names.remove(&id).unwrap_or_default();
        let mut file = FileFacts { name, ..FileFacts::default() };
        add(&mut file);
        self.numbers.insert(id, self.files.len());
        self.files.push(file);
    }

    /// The file with this id, if it is kept.
    pub fn known(&mut self, id: u64) -> Option<&mut FileFacts> {
        self.numbers.get(&id).map(|&number| &mut self.files[number])
    }

    /// Whether a file may hold data by what is known of its name.
    pub fn is_data(&self, id: u64) -> bool {
        let name = match self.numbers.get(&id) {
            Some(&number) => Some(&self.files[number].name),
            None => self.names.get(&id),
        };
        name.is_some_and(|name| may_hold_data(name))
    }

    /// Adds to the time and the bytes of a process in files of its own, seconds.
    pub fn add_rank(&mut self, rank: i64, time_s: f64, bytes: u64) {
        let Some(rank) = usize::try_from(rank).ok().filter(|rank| *rank < RANKS_MAX) else { return };
        if self.rank_s.len() <= rank {
            self.rank_s.resize(rank + 1, 0.0);
            self.rank_bytes.resize(rank + 1, 0);
        }
        self.rank_s[rank] += time_s;
        self.rank_bytes[rank] = self.rank_bytes[rank].saturating_add(bytes);
    }

    /// Moves the files into the facts, those without data apart.
    pub fn finish(self, facts: &mut Facts) {
        let (files, others): (Vec<_>, Vec<_>) =
            self.files.into_iter().partition(|file| may_hold_data(&file.name));
        others.iter().for_each(|file| facts.left_out.add(file));
        facts.files = files;
        facts
            .files
            .iter_mut()
            .for_each(|file| file.processes = file.processes.clamp(1, facts.processes.max(1)));
        facts.beyond = self.beyond;
        facts.rank_s = self.rank_s;
        facts.rank_bytes = self.rank_bytes;
        facts.leave_out_waits();
    }
}

/// Whether a file may hold data. Darshan's names of files are absolute paths; others are those of
/// standard streams, and numbers that stand for them in logs without names.
fn may_hold_data(name: &str) -> bool {
    name.starts_with('/') && is_data(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_data_are_apart() {
        let mut table = Table::default();
        for (id, name) in [(1, "/scratch/a.h5"), (2, "<STDOUT>"), (3, "/scratch/run.log"), (4, "/etc/x")] {
            table.learn(id, name.as_bytes());
            table.update(id, |file| file.data[0].bytes = 1 << 20);
        }
        assert!(table.is_data(1) && !table.is_data(2));
        let mut facts = Facts { processes: 1, ..Facts::default() };
        table.finish(&mut facts);
        assert_eq!((facts.files.len(), facts.left_out.files), (1, 3));
        assert_eq!(facts.files[0].name, "/scratch/a.h5");
    }

    #[test]
    fn a_file_without_a_name_is_left_out() {
        let mut table = Table::default();
        table.update(9, |file| file.data[1].bytes = 1);
        let mut facts = Facts::default();
        table.finish(&mut facts);
        assert_eq!((facts.files.len(), facts.left_out.bytes), (0, 1));
    }
}
