//! The files of a log by their ids.

use rustc_hash::FxHashMap;
use stripewise_trace::TraceWriter;

/// Maximum number of ids whose names are known, which bounds memory.
const NAMES_MAX: usize = 4 << 20;

/// Numbers in the trace, by id in the log.
#[derive(Default)]
pub(super) struct Files {
    numbers: FxHashMap<u64, u32>,
    /// Ids of the standard streams.
    standard: Vec<(u64, Standard)>,
    unnamed: u64,
    beyond: u64,
}

/// A standard stream, which Darshan counts as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    Input,
    /// Output or error.
    Output,
}

/// Maximum number of ids of standard streams. Darshan gives each one.
const STANDARD_MAX: usize = 3;

impl Files {
    /// Takes a name record. Of several with one id, the first that is not empty counts.
    pub(super) fn learn(&mut self, id: u64, name: &[u8], writer: &mut TraceWriter) {
        if name.is_empty() || self.numbers.contains_key(&id) {
            return;
        }
        if name.len() > stripewise_trace::spool::NAME_BYTES_MAX || self.numbers.len() >= NAMES_MAX {
            self.beyond += 1;
            return;
        }
        let standard = match name {
            b"<STDIN>" => Some(Standard::Input),
            b"<STDOUT>" | b"<STDERR>" => Some(Standard::Output),
            _ => None,
        };
        self.standard.extend(standard.filter(|_| self.standard.len() < STANDARD_MAX).map(|of| (id, of)));
        let number = writer.file_id(&String::from_utf8_lossy(name));
        self.numbers.insert(id, number);
    }

    /// Which standard stream has this id, if any.
    pub(super) fn standard(&self, id: u64) -> Option<Standard> {
        self.standard.iter().find(|(of, _)| *of == id).map(|(_, standard)| *standard)
    }

    /// The number of the file with this id. One without a name gets one of its id.
    pub(super) fn number(&mut self, id: u64, writer: &mut TraceWriter) -> u32 {
        if let Some(&number) = self.numbers.get(&id) {
            return number;
        }
        self.unnamed += 1;
        let number = writer.file_id(&format!("darshan-record-{id:016x}"));
        if self.numbers.len() < NAMES_MAX {
            self.numbers.insert(id, number);
        }
        number
    }

    pub(super) fn odd(&self) -> impl Iterator<Item = String> {
        let unnamed = (self.unnamed > 0).then(|| {
            format!(
                "{} files have no name in the log: they are called darshan-record- and their id",
                self.unnamed
            )
        });
        let beyond = (self.beyond > 0)
            .then(|| format!("{} names are left out: too long, or more than {NAMES_MAX}", self.beyond));
        unnamed.into_iter().chain(beyond)
    }
}
