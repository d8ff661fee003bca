//! Counters as requests.

use std::io::{Read, Seek};

use stripewise_trace::{Flags, Request};

use super::covered::Covered;
use super::files::Standard;
use super::transfers::{Transfers, share};
use super::usage::{self, Others};
use super::{Making, TraceFromLogError};
use crate::{Counters, Log, Record};

impl Making<'_> {
    /// Takes the calls that have no segments.
    pub(super) fn take_counters<R: Read + Seek>(
        &mut self,
        log: &mut Log<R>,
        covered: &mut Covered,
    ) -> Result<(), TraceFromLogError> {
        for of in Making::COUNTERS {
            let counted = records(log, of, &mut |record| {
                covered.count(record.id, of, usage::calls(of, record));
                Ok(())
            });
            self.tolerate(counted.map(|_| ()))?;
        }
        let made = self.count_calls(log, covered)?;
        self.say_what_is_missing(covered, made);
        let every = self.every(made);
        for of in Making::COUNTERS {
            let taken = records(log, of, &mut |record| self.take_record(of, record, every, covered));
            let left_out = *taken.as_ref().unwrap_or(&0);
            if left_out > 0 {
                self.meta.incomplete.push(format!(
                    "{left_out} records of module POSIX mix system calls with C streams (Darshan 3.0): left out"
                ));
            }
            self.tolerate(taken.map(|_| ()))?;
        }
        Ok(())
    }

    /// Number of calls that will be made of counters.
    fn count_calls<R: Read + Seek>(
        &mut self,
        log: &mut Log<R>,
        covered: &Covered,
    ) -> Result<u128, TraceFromLogError> {
        let mut made = 0;
        for of in Making::COUNTERS {
            let counted = records(log, of, &mut |record| {
                if covered.takes(record.id, of) {
                    let data = if covered.has(record.id, of) { 0 } else { transfers(of, record) };
                    made += data + others(of, record);
                }
                Ok(())
            });
            self.tolerate(counted.map(|_| ()))?;
        }
        Ok(made)
    }

    fn say_what_is_missing(&mut self, covered: &Covered, made: u128) {
        let incomplete = &mut self.meta.incomplete;
        if covered.missing() > 0 {
            incomplete.push(format!(
                "DXT lacks {} reads and writes that Darshan counted: its memory was full, or a filter left them out (run \
                 with a larger DARSHAN_MODMEM)",
                covered.missing()
            ));
        }
        if covered.beyond() > 0 {
            incomplete.push(format!("{} DXT records are left out, of too many files", covered.beyond()));
        }
        if made > self.calls_max.into() {
            let every = self.every(made);
            self.meta.incomplete.push(format!(
                "the log counts {made} calls without telling when they were: one of {every} is in the trace"
            ));
        }
    }

    /// Of how many counted calls one is in the trace.
    fn every(&self, made: u128) -> u64 {
        made.div_ceil(self.calls_max.max(1).into()).clamp(1, u64::MAX.into()) as u64
    }

    fn take_record(
        &mut self,
        of: Counters,
        record: &Record,
        every: u64,
        covered: &Covered,
    ) -> Result<(), TraceFromLogError> {
        if !covered.takes(record.id, of) {
            return Ok(());
        }
        // What comes from the terminal or a pipe is in no file.
        let standard = self.files.standard(record.id);
        if standard == Some(Standard::Input) {
            return Ok(());
        }
        let output = if standard.is_some() { Flags::OUTPUT } else { Flags::NONE };
        let file = self.files.number(record.id, &mut self.writer);
        if !covered.has(record.id, of) {
            for mut transfers in usage::transfers(of, record) {
                transfers.flags = transfers.flags.with(output);
                self.take_transfers(record.rank, file, transfers.thinned(every))?;
            }
        }
        for others in usage::others(of, record) {
            self.take_others(record.rank, file, others, every)?;
        }
        Ok(())
    }

    fn take_transfers(&mut self, rank: i64, file: u32, transfers: Transfers) -> Result<(), TraceFromLogError> {
        let processes = self.processes_of(rank, transfers.calls);
        transfers.for_each(processes, |call| {
            let process = self.process(rank, call.process);
            let (start_ns, end_ns) = (self.clock.at(call.start_s), self.clock.at(call.end_s));
            self.push(Request {
                process,
                tid: 0,
                file,
                op: transfers.op,
                flags: transfers.flags,
                offset: call.offset,
                size: call.size,
                result: call.size.min(i64::MAX as u64) as i64,
                start_ns,
                end_ns: end_ns.max(start_ns),
            })
        })
    }

    fn take_others(&mut self, rank: i64, file: u32, of: Others, every: u64) -> Result<(), TraceFromLogError> {
        let calls = of.calls.div_ceil(every);
        let processes = self.processes_of(rank, calls);
        let span_s = (of.end_s - of.start_s - of.each_s).max(0.0);
        for process in 0..processes {
            let own = share(calls, process, processes);
            let number = self.process(rank, process);
            for call in 0..own {
                let start_s = of.start_s + span_s * call as f64 / own as f64;
                let (start_ns, end_ns) = (self.clock.at(start_s), self.clock.at(start_s + of.each_s));
                let (flags, end_ns) = (Flags::NONE, end_ns.max(start_ns));
                let request = Request {
                    process: number,
                    tid: 0,
                    file,
                    op: of.op,
                    flags,
                    offset: 0,
                    size: 0,
                    result: 0,
                    start_ns,
                    end_ns,
                };
                self.push(request)?;
            }
        }
        Ok(())
    }

    /// How many processes made the calls of a record.
    fn processes_of(&self, rank: i64, calls: u64) -> u64 {
        if rank == -1 { self.processes.sharing(calls) } else { 1 }
    }

    /// A process of a record, in the trace.
    fn process(&mut self, rank: i64, index: u64) -> u32 {
        let rank = if rank == -1 { index as i64 } else { rank };
        self.processes.number(rank, None, &mut self.writer)
    }
}

/// Passes the records of a module on. Returns how many were left out.
fn records<R: Read + Seek>(
    log: &mut Log<R>,
    of: Counters,
    each: &mut dyn FnMut(&Record) -> Result<(), TraceFromLogError>,
) -> Result<u64, TraceFromLogError> {
    let mut records = log.records(of)?;
    while let Some(record) = records.next_record()? {
        each(record)?;
    }
    Ok(records.left_out())
}

/// Number of reads and writes that a record counts.
fn transfers(of: Counters, record: &Record) -> u128 {
    usage::calls(of, record).into_iter().map(u128::from).sum()
}

/// Number of other calls that are made of a record.
fn others(of: Counters, record: &Record) -> u128 {
    usage::others(of, record).iter().map(|others| u128::from(others.calls)).sum()
}
