//! Replays the requests of a trace any number of times.

use std::collections::HashMap;

use stripewise_sim::{Outcome, Queued, Streams};
use stripewise_trace::{FileNames, Request, Trace, TraceError};

/// Facts about a trace that must be known before its requests are replayed.
pub struct Recorded {
    /// Files that were read or written.
    pub files: Vec<String>,
    /// Index in `files` of each file of the trace; `u32::MAX` for a file without data requests.
    number: Vec<u32>,
    /// Node of each process, and number of its requests that moved bytes.
    nodes: Vec<u32>,
    counts: Vec<u64>,
}

impl Recorded {
    /// Reads the trace once.
    pub fn of(trace: &Trace) -> Result<Self, TraceError> {
        let (mut counts, mut used) = (vec![0; trace.processes().len()], vec![false; trace.count()]);
        let mut requests = trace.requests()?;
        while let Some(batch) = requests.next_batch()? {
            for request in batch.iter().filter(|request| request.bytes() > 0) {
                counts[request.process as usize] += 1;
                used[request.file as usize] = true;
            }
        }
        let (mut files, mut number) = (Vec::new(), Vec::with_capacity(used.len()));
        trace.for_each(&mut |name| {
            let is_used = used[number.len()];
            number.push(if is_used { files.len() as u32 } else { u32::MAX });
            files.extend(is_used.then(|| name.to_owned()));
        })?;
        let mut known: HashMap<&str, u32> = HashMap::new();
        let nodes = trace.processes().iter().map(|process| {
            let next = known.len() as u32;
            *known.entry(&process.node).or_insert(next)
        });
        Ok(Self { files, number, nodes: nodes.collect(), counts })
    }

    /// Returns the number of reads and writes that moved bytes.
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the number of processes with such requests, and the largest number of them on one
    /// node.
    pub fn concurrency(&self) -> (u32, u32) {
        let mut per_node: HashMap<u32, u32> = HashMap::new();
        let busy = self.nodes.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        let procs = busy.map(|(node, _)| *per_node.entry(*node).or_default() += 1).count();
        (procs as u32, per_node.into_values().max().unwrap_or(1))
    }

    pub fn replay(
        &self,
        trace: &Trace,
        compute: bool,
        run: impl FnOnce(&mut dyn Streams) -> Outcome,
    ) -> Result<Outcome, TraceError> {
        let (mut requests, mut error) = (trace.requests()?, None);
        let mut batch = Vec::<Request>::new().into_iter();
        // The stream ends at an error.
        let reading = std::iter::from_fn(|| {
            loop {
                if let Some(request) = batch.next() {
                    let file = self.number.get(request.file as usize).copied().unwrap_or(u32::MAX);
                    return Some(Request { file, ..request });
                }
                match requests.next_batch() {
                    Ok(next) => batch = Vec::from(next?).into_iter(),
                    Err(failure) => {
                        error = Some(failure);
                        return None;
                    }
                }
            }
        });
        let mut streams = Queued::new(reading, self.nodes.clone(), self.counts.clone(), compute);
        let outcome = run(&mut streams);
        drop(streams);
        error.map_or(Ok(outcome), Err)
    }
}
