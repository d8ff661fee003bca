//! What a record counts of the calls of one operation, by the names of the counters.

use stripewise_trace::{Flags, Op};

use super::sizes;
use super::transfers::Transfers;
use crate::counters::{MPIIO, MPIIO_TIMES, POSIX, POSIX_TIMES, STDIO, STDIO_TIMES, index_of as at};
use crate::{Counters, Record};

/// Where a record has what it counts of its reads, or of its writes.
struct Indices {
    op: Op,
    /// Their sum is the number of calls.
    calls: &'static [usize],
    /// Those of them that are collective.
    collective: Option<usize>,
    bytes: usize,
    /// Highest offset.
    last: Option<usize>,
    /// Consecutive calls, and sequential ones.
    order: Option<(usize, usize)>,
    /// First of ten counters of sizes.
    sizes: Option<usize>,
    start: usize,
    end: usize,
    busy: usize,
}

/// The indices of the reads or the writes of a module: what all modules have, by the module's name.
macro_rules! data {
    ($op:ident, $names:ident, $times:ident, $module:literal, $verb:literal, $past:literal,
     calls: [$($calls:literal),*], collective: $collective:expr, last: $last:expr,
     order: $order:expr, sizes: $sizes:expr) => {
        Indices {
            op: Op::$op,
            calls: &[$(at(&$names, concat!($module, $calls))),*],
            collective: $collective,
            bytes: at(&$names, concat!($module, "_BYTES_", $past)),
            last: $last,
            order: $order,
            sizes: $sizes,
            start: at(&$times, concat!($module, "_F_", $verb, "_START_TIMESTAMP")),
            end: at(&$times, concat!($module, "_F_", $verb, "_END_TIMESTAMP")),
            busy: at(&$times, concat!($module, "_F_", $verb, "_TIME")),
        }
    };
}

const POSIX_DATA: [Indices; 2] = [
    data!(Read, POSIX, POSIX_TIMES, "POSIX", "READ", "READ", calls: ["_READS"], collective: None,
        last: Some(at(&POSIX, "POSIX_MAX_BYTE_READ")),
        order: Some((at(&POSIX, "POSIX_CONSEC_READS"), at(&POSIX, "POSIX_SEQ_READS"))),
        sizes: Some(at(&POSIX, "POSIX_SIZE_READ_0_100"))),
    data!(Write, POSIX, POSIX_TIMES, "POSIX", "WRITE", "WRITTEN", calls: ["_WRITES"], collective: None,
        last: Some(at(&POSIX, "POSIX_MAX_BYTE_WRITTEN")),
        order: Some((at(&POSIX, "POSIX_CONSEC_WRITES"), at(&POSIX, "POSIX_SEQ_WRITES"))),
        sizes: Some(at(&POSIX, "POSIX_SIZE_WRITE_0_100"))),
];

const MPIIO_DATA: [Indices; 2] = [
    data!(Read, MPIIO, MPIIO_TIMES, "MPIIO", "READ", "READ",
        calls: ["_INDEP_READS", "_COLL_READS", "_SPLIT_READS", "_NB_READS"],
        collective: Some(at(&MPIIO, "MPIIO_COLL_READS")), last: None, order: None,
        sizes: Some(at(&MPIIO, "MPIIO_SIZE_READ_AGG_0_100"))),
    data!(Write, MPIIO, MPIIO_TIMES, "MPIIO", "WRITE", "WRITTEN",
        calls: ["_INDEP_WRITES", "_COLL_WRITES", "_SPLIT_WRITES", "_NB_WRITES"],
        collective: Some(at(&MPIIO, "MPIIO_COLL_WRITES")), last: None, order: None,
        sizes: Some(at(&MPIIO, "MPIIO_SIZE_WRITE_AGG_0_100"))),
];

const STDIO_DATA: [Indices; 2] = [
    data!(Read, STDIO, STDIO_TIMES, "STDIO", "READ", "READ", calls: ["_READS"], collective: None,
        last: Some(at(&STDIO, "STDIO_MAX_BYTE_READ")), order: None, sizes: None),
    data!(Write, STDIO, STDIO_TIMES, "STDIO", "WRITE", "WRITTEN", calls: ["_WRITES"], collective: None,
        last: Some(at(&STDIO, "STDIO_MAX_BYTE_WRITTEN")), order: None, sizes: None),
];

/// Most frequent sizes of reads and writes, and how often each came.
const COMMON: [(usize, usize); 2] = [
    (at(&POSIX, "POSIX_ACCESS1_ACCESS"), at(&POSIX, "POSIX_ACCESS1_COUNT")),
    (at(&MPIIO, "MPIIO_ACCESS1_ACCESS"), at(&MPIIO, "MPIIO_ACCESS1_COUNT")),
];
/// Number of these sizes.
const COMMON_SIZES: usize = 4;

/// A counter; one that is missing or wrong is 0.
fn count(record: &Record, index: usize) -> u64 {
    record.counters[index].max(0) as u64
}

fn data(of: Counters) -> &'static [Indices; 2] {
    match of {
        Counters::Posix => &POSIX_DATA,
        Counters::MpiIo => &MPIIO_DATA,
        _ => &STDIO_DATA,
    }
}

/// Number of reads, and number of writes, that a record of these modules counts.
pub(super) fn calls(of: Counters, record: &Record) -> [u64; 2] {
    let [reads, writes] = data(of);
    [reads, writes].map(|indices| calls_of(record, indices))
}

fn calls_of(record: &Record, indices: &Indices) -> u64 {
    indices.calls.iter().fold(0, |sum, &index| sum.saturating_add(count(record, index)))
}

/// The reads and the writes of a record of these modules.
pub(super) fn transfers(of: Counters, record: &Record) -> [Transfers; 2] {
    let data = data(of);
    let common = match of {
        Counters::Posix => Some(COMMON[0]),
        Counters::MpiIo => Some(COMMON[1]),
        _ => None,
    };
    let common = |indices: &Indices| match common {
        Some(common) => common_sizes(record, common, data, indices.op),
        None => Vec::new(),
    };
    [&data[0], &data[1]].map(|indices| of_indices(record, indices, common(indices)))
}

fn of_indices(record: &Record, indices: &Indices, common: Vec<(u64, u64)>) -> Transfers {
    let calls = calls_of(record, indices);
    let bytes = count(record, indices.bytes);
    let collective = indices.collective.map_or(0, |index| count(record, index));
    Transfers {
        op: indices.op,
        flags: if 2 * u128::from(collective) > u128::from(calls) { Flags::COLLECTIVE } else { Flags::NONE },
        calls,
        sizes: sizes::of(calls, bytes, indices.sizes.map(|first| histogram(record, first)), &common),
        // Without counters, calls are in order.
        consecutive: indices.order.map_or(calls, |(index, _)| count(record, index)),
        sequential: indices.order.map_or(calls, |(_, index)| count(record, index)),
        extent: indices.last.map_or(bytes, |index| count(record, index).saturating_add(1)),
        start_s: record.times[indices.start],
        end_s: record.times[indices.end],
        busy_s: record.times[indices.busy],
    }
}

fn histogram(record: &Record, first: usize) -> [u64; sizes::BUCKETS] {
    std::array::from_fn(|bucket| count(record, first + bucket))
}

/// The share of an operation in the most frequent sizes, which Darshan counts for both together.
fn common_sizes(record: &Record, common: (usize, usize), data: &[Indices; 2], op: Op) -> Vec<(u64, u64)> {
    let [reads, writes] = [0, 1].map(|side| histogram(record, data[side].sizes.expect("modules with sizes")));
    let common = (0..COMMON_SIZES).map(|i| (count(record, common.0 + i), count(record, common.1 + i)));
    let share = common.map(|(size, times)| {
        let bucket = sizes::bucket(size);
        let (read, write) = (u128::from(reads[bucket]), u128::from(writes[bucket]));
        let own = if op == Op::Read { read } else { write };
        (size, (u128::from(times) * own / (read + write).max(1)) as u64)
    });
    share.filter(|(_, times)| *times > 0).collect()
}

/// Calls that move no data.
pub(super) struct Others {
    pub(super) op: Op,
    pub(super) calls: u64,
    /// The first and the last of them, seconds since the start of the job.
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    /// Time of each, seconds.
    pub(super) each_s: f64,
}

/// The calls of a record that move no data, as far as they are counted.
pub(super) fn others(of: Counters, record: &Record) -> Vec<Others> {
    let time = |index: usize| record.times[index];
    match of {
        Counters::Posix => {
            const OPENS: usize = at(&POSIX, "POSIX_OPENS");
            const STATS: usize = at(&POSIX, "POSIX_STATS");
            const MAPS: usize = at(&POSIX, "POSIX_MMAPS");
            const SYNCS: [usize; 2] = [at(&POSIX, "POSIX_FSYNCS"), at(&POSIX, "POSIX_FDSYNCS")];
            let opens = count(record, OPENS);
            let syncs = count(record, SYNCS[0]).saturating_add(count(record, SYNCS[1]));
            let open = (
                time(at(&POSIX_TIMES, "POSIX_F_OPEN_START_TIMESTAMP")),
                time(at(&POSIX_TIMES, "POSIX_F_OPEN_END_TIMESTAMP")),
            );
            let close = (
                time(at(&POSIX_TIMES, "POSIX_F_CLOSE_START_TIMESTAMP")),
                time(at(&POSIX_TIMES, "POSIX_F_CLOSE_END_TIMESTAMP")),
            );
            let meta_s = time(at(&POSIX_TIMES, "POSIX_F_META_TIME"));
            let (stats, maps) = (count(record, STATS), count(record, MAPS));
            spans(opens, meta_s, open, close, [(Op::Stat, stats), (Op::Sync, syncs), (Op::Map, maps)])
        }
        Counters::Stdio => {
            const OPENS: usize = at(&STDIO, "STDIO_OPENS");
            let open = (
                time(at(&STDIO_TIMES, "STDIO_F_OPEN_START_TIMESTAMP")),
                time(at(&STDIO_TIMES, "STDIO_F_OPEN_END_TIMESTAMP")),
            );
            let close = (
                time(at(&STDIO_TIMES, "STDIO_F_CLOSE_START_TIMESTAMP")),
                time(at(&STDIO_TIMES, "STDIO_F_CLOSE_END_TIMESTAMP")),
            );
            let meta_s = time(at(&STDIO_TIMES, "STDIO_F_META_TIME"));
            spans(count(record, OPENS), meta_s, open, close, [(Op::Stat, 0), (Op::Sync, 0), (Op::Map, 0)])
        }
        _ => Vec::new(),
    }
}

/// Opens, as many closes (if there was one), and other calls between them. Opens, closes and stats
/// share the time of calls for metadata.
fn spans(opens: u64, meta_s: f64, open: (f64, f64), close: (f64, f64), others: [(Op, u64); 3]) -> Vec<Others> {
    let closes = if close.1 > 0.0 { opens } else { 0 };
    let sharing = opens.saturating_add(closes).saturating_add(others[0].1).max(1);
    let each_s = meta_s.max(0.0) / sharing as f64;
    let (last_open, first_close) = (open.1.max(open.0), if close.0 > 0.0 { close.0 } else { close.1 });
    let mut all = vec![
        Others { op: Op::Open, calls: opens, start_s: open.0, end_s: last_open, each_s },
        Others { op: Op::Close, calls: closes, start_s: first_close, end_s: close.1, each_s },
    ];
    let end_s = close.1.max(last_open);
    all.extend(others.map(|(op, calls)| {
        let each_s = if op == Op::Stat { each_s } else { 0.0 };
        Others { op, calls, start_s: open.0, end_s, each_s }
    }));
    all
}
