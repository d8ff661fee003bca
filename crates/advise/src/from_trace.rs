//! The facts in a trace: its calls, added up per file.

use rustc_hash::{FxHashMap, FxHashSet};
use stripewise_trace::{FileNames, Flags, Meta, ORIGIN_DXT, Op, ProcessInfo, Request};

use crate::facts::{FILES_MAX, Facts, FileFacts, SMALL_BYTES, Source};
use crate::table::Table;

/// The alignment that requests of a trace are checked for, bytes: that of a page, which every file
/// system has at least.
const ALIGNMENT: u64 = 4096;
/// Maximum number of pairs of process and file whose last offsets are kept.
const STREAMS_MAX: usize = 1 << 20;

/// Adds up the calls of a trace. Memory: that of [`FILES_MAX`] files, and 40 MB for streams.
pub struct TraceFacts {
    facts: Facts,
    table: Table,
    /// By process and file: the ends of the last read and of the last write.
    ends: FxHashMap<(u32, u32), [u64; 2]>,
    /// By file and process: the time of its calls, seconds, and their bytes.
    users: FxHashMap<u32, FxHashMap<u32, (f64, u64)>>,
    outputs: FxHashSet<u32>,
    last_ns: u64,
}

impl TraceFacts {
    /// The facts of a trace with these processes and files, and no calls yet.
    ///
    /// # Errors
    /// The names of the files cannot be read.
    pub fn new<F: FileNames + ?Sized>(
        meta: &Meta,
        processes: &[ProcessInfo],
        files: &F,
    ) -> Result<Self, F::Error> {
        let source = match meta.origin.as_str() {
            "recorded" => Source::Recorded,
            "synthetic" => Source::Synthetic,
            ORIGIN_DXT => Source::Extended,
            _ => Source::Counters,
        };
        let facts = Facts {
            source,
            processes: processes.len().max(1) as u64,
            runtime_s: meta.wall_s.filter(|&wall_s| wall_s > 0.0),
            incomplete: meta.incomplete.clone(),
            ..Facts::default()
        };
        let mut table = Table::default();
        let mut id = 0;
        files.for_each(&mut |name| {
            table.learn(id, name.as_bytes());
            id += 1;
        })?;
        let (ends, users, outputs) = Default::default();
        Ok(TraceFacts { facts, table, ends, users, outputs, last_ns: 0 })
    }

    /// Adds a call, in the order of the trace.
    pub fn add(&mut self, call: &Request) {
        self.last_ns = self.last_ns.max(call.end_ns);
        if call.flags.has(Flags::OUTPUT) {
            self.outputs.insert(call.file);
            return;
        }
        let time_s = match self.facts.source {
            Source::Synthetic => 0.0,
            _ => call.end_ns.saturating_sub(call.start_ns) as f64 / 1e9,
        };
        let is_random = call.op.is_data() && self.is_random(call);
        self.table.update(call.file.into(), |file| add_call(file, call, time_s, is_random));
        if call.op == Op::Mark {
            return;
        }
        if self.users.len() < FILES_MAX || self.users.contains_key(&call.file) {
            let user = self.users.entry(call.file).or_default().entry(call.process).or_default();
            *user = (user.0 + time_s, user.1.saturating_add(call.bytes()));
        }
    }

    /// Whether a call begins before the end of the previous one of its process and kind.
    fn is_random(&mut self, call: &Request) -> bool {
        let key = (call.process, call.file);
        if self.ends.len() >= STREAMS_MAX && !self.ends.contains_key(&key) {
            return false;
        }
        let end = &mut self.ends.entry(key).or_default()[usize::from(call.op == Op::Write)];
        let is_random = call.offset < *end;
        *end = call.offset.saturating_add(call.bytes());
        is_random
    }

    /// The facts of all calls that were added.
    pub fn finish(mut self) -> Facts {
        for (file, users) in std::mem::take(&mut self.users) {
            let count = users.len() as u64;
            let slowest = users.values().copied().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
            let mut waits = false;
            if let Some(file) = self.table.known(file.into()) {
                file.processes = count;
                if count > 1 {
                    (file.slowest_s, file.slowest_bytes) = slowest;
                }
                waits = file.waits();
            }
            if count == 1 && !waits && self.table.is_data(file.into()) {
                for (&process, &(time_s, bytes)) in &users {
                    self.table.add_rank(process.into(), time_s, bytes);
                }
            }
        }
        self.table.finish(&mut self.facts);
        self.facts.left_out.files += self.outputs.len() as u64;
        if self.facts.runtime_s.is_none() && self.facts.source == Source::Recorded {
            self.facts.runtime_s = Some(self.last_ns as f64 / 1e9).filter(|&end_s| end_s > 0.0);
        }
        self.facts
    }
}

fn add_call(file: &mut FileFacts, call: &Request, time_s: f64, is_random: bool) {
    match call.op {
        Op::Read | Op::Write => {
            let side = usize::from(call.op == Op::Write);
            let data = &mut file.data[side];
            data.calls += 1;
            data.bytes = data.bytes.saturating_add(call.bytes());
            data.small += u64::from(call.size < SMALL_BYTES);
            data.random += u64::from(is_random);
            data.extent = data.extent.max(call.offset.saturating_add(call.bytes()));
            data.time_s += time_s;
            file.alignment = ALIGNMENT;
            file.unaligned += u64::from(!call.offset.is_multiple_of(ALIGNMENT));
            if call.flags.has(Flags::COLLECTIVE) {
                file.mpi.get_or_insert_default().collective[side] += 1;
            }
        }
        Op::Open => {
            file.opens += 1;
            file.meta_s += time_s;
        }
        Op::Stat => {
            file.stats += 1;
            file.meta_s += time_s;
        }
        Op::Close | Op::Seek | Op::Resize | Op::Unlink => file.meta_s += time_s,
        Op::Sync => file.data[1].time_s += time_s,
        Op::Map | Op::Mark => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(process: u32, op: Op, offset: u64, size: u64, ms: u64) -> Request {
        let (start_ns, end_ns) = (1_000_000_000, 1_000_000_000 + ms * 1_000_000);
        let result = size as i64;
        Request { process, tid: 0, file: 0, op, flags: Flags::NONE, offset, size, result, start_ns, end_ns }
    }

    fn facts(calls: &[Request]) -> Facts {
        let processes = vec![ProcessInfo::default(); 2];
        let meta = Meta { origin: "recorded".into(), wall_s: Some(10.0), ..Meta::default() };
        let names = ["/scratch/x.dat"];
        let Ok(mut facts) = TraceFacts::new(&meta, &processes, &names[..]);
        calls.iter().for_each(|call| facts.add(call));
        facts.finish()
    }

    #[test]
    fn calls_are_added_up() {
        let facts = facts(&[
            call(0, Op::Open, 0, 0, 5),
            call(0, Op::Write, 0, 4096, 10),
            call(0, Op::Write, 4096, 4096, 10),
            call(1, Op::Write, 100, 2 << 20, 20),
            call(1, Op::Write, 0, 100, 20),
        ]);
        let file = &facts.files[0];
        let write = file.data[1];
        assert_eq!((write.calls, write.small, write.random, file.unaligned), (4, 3, 1, 1));
        assert_eq!((file.processes, file.opens, write.extent), (2, 1, (2 << 20) + 100));
        assert!((facts.time_s() - 0.065).abs() < 1e-9 && (file.slowest_s - 0.04).abs() < 1e-9);
        assert_eq!(facts.runtime_s, Some(10.0));
    }

    #[test]
    fn standard_output_is_left_out() {
        let facts = facts(&[Request { flags: Flags::OUTPUT, ..call(0, Op::Write, 0, 100, 1) }]);
        assert!(!facts.has_io());
        assert_eq!(facts.left_out.files, 1);
    }
}
