//! The facts in a Darshan log: its counters, added up per file. A log is streamed once.

use std::io::{Read, Seek};

use stripewise_darshan::counters::{
    H5F, MPIIO, MPIIO_TIMES, POSIX, POSIX_TIMES, STDIO, STDIO_TIMES, index_of as at,
};
use stripewise_darshan::{Counters, Error, Log, LustreRecord, Module, Record};

use crate::facts::{self, Facts, FileFacts, MpiUse, Source, Striping, Transfers};
use crate::table::Table;

/// Number of Darshan's counters of sizes below [`crate::facts::SMALL_BYTES`].
const SMALL_BUCKETS: usize = 5;

/// Reads one kind of records into the table; knows the number of processes.
type Part<R> = fn(&mut Log<R>, &mut Table, u64) -> Result<(), Error>;

/// Reads the facts of a log. What lies behind a damaged place is missing, and the facts say so.
///
/// # Errors
/// The job record cannot be read, or the log cannot be read at all.
pub fn facts_of_log<R: Read + Seek>(log: &mut Log<R>) -> Result<Facts, Error> {
    let job = log.job()?;
    let mut facts = Facts {
        processes: u64::try_from(job.processes).unwrap_or(1).max(1),
        runtime_s: job.runtime_s().filter(|&runtime_s| runtime_s > 0.0),
        mounts: job.mounts,
        source: source(log),
        ..Facts::default()
    };
    for info in log.header().modules.iter().filter(|info| info.is_partial) {
        facts.incomplete.push(format!("Darshan ran out of memory for records of module {}", info.name()));
    }
    let mut table = Table::default();
    let parts: [Part<R>; 6] = [names, posix, mpi_io, stdio, hdf5, lustre];
    for part in parts {
        match part(log, &mut table, facts.processes) {
            Err(error) if error.is_of_region() => facts.incomplete.push(error.to_string()),
            other => other?,
        }
    }
    table.finish(&mut facts);
    Ok(facts)
}

/// Whether the log has segments of single calls.
fn source<R: Read + Seek>(log: &Log<R>) -> Source {
    let modules = [Module::DxtPosix, Module::DxtMpiIo];
    let is_extended = modules.iter().any(|module| log.header().module(*module).is_some());
    if is_extended { Source::Extended } else { Source::Counters }
}

fn names<R: Read + Seek>(log: &mut Log<R>, table: &mut Table, _: u64) -> Result<(), Error> {
    let mut names = log.names()?;
    while let Some((id, name)) = names.next_name()? {
        table.learn(id, name);
    }
    Ok(())
}

fn posix<R: Read + Seek>(log: &mut Log<R>, table: &mut Table, processes: u64) -> Result<(), Error> {
    let mut records = log.records(Counters::Posix)?;
    while let Some(record) = records.next_record()? {
        add(table, record, processes, add_posix);
    }
    Ok(())
}

fn mpi_io<R: Read + Seek>(log: &mut Log<R>, table: &mut Table, processes: u64) -> Result<(), Error> {
    let mut records = log.records(Counters::MpiIo)?;
    while let Some(record) = records.next_record()? {
        // Its calls become system calls, which have been counted if there are records of them.
        let has_below = table
            .known(record.id)
            .is_some_and(|file| file.calls() > 0 && file.mpi.is_none_or(|mpi| mpi.has_below));
        let counted_before = table.known(record.id).map_or(0, |file| file.processes);
        add(table, record, processes, |file, record| add_mpi(file, record, has_below));
        if let Some(file) = table.known(record.id).filter(|_| has_below) {
            file.processes = counted_before;
        }
    }
    Ok(())
}

fn stdio<R: Read + Seek>(log: &mut Log<R>, table: &mut Table, processes: u64) -> Result<(), Error> {
    let mut records = log.records(Counters::Stdio)?;
    while let Some(record) = records.next_record()? {
        add(table, record, processes, add_stdio);
    }
    Ok(())
}

fn hdf5<R: Read + Seek>(log: &mut Log<R>, table: &mut Table, _: u64) -> Result<(), Error> {
    const OPENS: usize = at(&H5F, "H5F_OPENS");
    let mut records = log.records(Counters::H5f)?;
    while let Some(record) = records.next_record()? {
        if let Some(file) = table.known(record.id).filter(|_| record.counters[OPENS] > 0) {
            file.is_hdf5 = true;
        }
    }
    Ok(())
}

fn lustre<R: Read + Seek>(log: &mut Log<R>, table: &mut Table, _: u64) -> Result<(), Error> {
    let mut records = log.lustre()?;
    while let Some(record) = records.next_record()? {
        if let (Some(file), Some(striping)) = (table.known(record.id), striping(&record)) {
            file.striping = Some(striping);
        }
    }
    Ok(())
}

/// The layout of a record; of several components, that of the last, where large files end.
fn striping(record: &LustreRecord) -> Option<Striping> {
    let last = record.components.last()?;
    let width = u64::try_from(last.stripe_bytes).ok().filter(|&width| width > 0)?;
    let count = usize::try_from(last.stripes).unwrap_or(0).min(record.osts.len());
    let osts = &record.osts[record.osts.len() - count..];
    let osts: Vec<u32> = osts.iter().filter_map(|&ost| u32::try_from(ost).ok()).collect();
    let is_composite = record.components.len() > 1;
    let striping = Striping { width, osts, pool: last.pool.clone(), is_composite, all_osts: record.all_osts };
    (!striping.osts.is_empty()).then_some(striping)
}

/// Adds a record to its file, and its time to its process. A record of rank -1 is one of all
/// processes.
fn add(table: &mut Table, record: &Record, processes: u64, of: impl FnOnce(&mut FileFacts, &Record)) {
    let (mut time_s, mut bytes, mut is_waiting) = (0.0, 0, false);
    table.update(record.id, |file| {
        file.processes += if record.rank < 0 { processes } else { 1 };
        let before = (file.time_s(), file.bytes(), file.opens, file.meta_s);
        of(file, record);
        (time_s, bytes) = (file.time_s() - before.0, file.bytes().saturating_sub(before.1));
        is_waiting = facts::is_waiting(bytes, file.opens.saturating_sub(before.2), file.meta_s - before.3);
    });
    if record.rank >= 0 && !is_waiting && table.is_data(record.id) {
        table.add_rank(record.rank, time_s, bytes);
    }
}

/// A counter; one that is missing or wrong is 0.
fn count(record: &Record, index: usize) -> u64 {
    record.counters[index].max(0) as u64
}

/// A time, seconds; one that is missing or wrong is 0.
fn time(record: &Record, index: usize) -> f64 {
    let time_s = record.times[index];
    if time_s.is_finite() { time_s.max(0.0) } else { 0.0 }
}

fn add_posix(file: &mut FileFacts, record: &Record) {
    const READ: [usize; 6] = [
        at(&POSIX, "POSIX_READS"),
        at(&POSIX, "POSIX_BYTES_READ"),
        at(&POSIX, "POSIX_SIZE_READ_0_100"),
        at(&POSIX, "POSIX_SEQ_READS"),
        at(&POSIX, "POSIX_MAX_BYTE_READ"),
        at(&POSIX_TIMES, "POSIX_F_READ_TIME"),
    ];
    const WRITE: [usize; 6] = [
        at(&POSIX, "POSIX_WRITES"),
        at(&POSIX, "POSIX_BYTES_WRITTEN"),
        at(&POSIX, "POSIX_SIZE_WRITE_0_100"),
        at(&POSIX, "POSIX_SEQ_WRITES"),
        at(&POSIX, "POSIX_MAX_BYTE_WRITTEN"),
        at(&POSIX_TIMES, "POSIX_F_WRITE_TIME"),
    ];
    let processes = file.processes;
    for (data, indices) in file.data.iter_mut().zip([READ, WRITE]) {
        let [calls, bytes, sizes, sequential, last, time_s] = indices;
        let calls = count(record, calls);
        let small =
            (sizes..sizes + SMALL_BUCKETS).fold(0, |sum: u64, at| sum.saturating_add(count(record, at)));
        // The first call of each process follows none, and does not count as sequential.
        let random = calls.saturating_sub(count(record, sequential)).saturating_sub(first(record, processes));
        let extent = if count(record, bytes) > 0 { count(record, last).saturating_add(1) } else { 0 };
        let more = Transfers {
            calls,
            bytes: count(record, bytes),
            small,
            random,
            extent,
            time_s: time(record, time_s),
        };
        join(data, &more);
    }
    file.opens = file.opens.saturating_add(count(record, at(&POSIX, "POSIX_OPENS")));
    file.stats = file.stats.saturating_add(count(record, at(&POSIX, "POSIX_STATS")));
    file.meta_s += time(record, at(&POSIX_TIMES, "POSIX_F_META_TIME"));
    file.unaligned = file.unaligned.saturating_add(count(record, at(&POSIX, "POSIX_FILE_NOT_ALIGNED")));
    file.alignment = file.alignment.max(count(record, at(&POSIX, "POSIX_FILE_ALIGNMENT")));
    let slowest_s = time(record, at(&POSIX_TIMES, "POSIX_F_SLOWEST_RANK_TIME"));
    slowest(file, slowest_s, count(record, at(&POSIX, "POSIX_SLOWEST_RANK_BYTES")));
    file.is_renamed |= count(record, at(&POSIX, "POSIX_RENAME_SOURCES")) > 0;
}

/// Number of processes of a record.
fn first(record: &Record, processes: u64) -> u64 {
    if record.rank < 0 { processes } else { 1 }
}

fn join(data: &mut Transfers, more: &Transfers) {
    data.calls = data.calls.saturating_add(more.calls);
    data.bytes = data.bytes.saturating_add(more.bytes);
    data.small = data.small.saturating_add(more.small);
    data.random = data.random.saturating_add(more.random);
    data.extent = data.extent.max(more.extent);
    data.time_s += more.time_s;
}

/// Adds what MPI-IO counts. Its time is that of the file if it is longer than that of the system
/// calls below, if there are records of these.
fn add_mpi(file: &mut FileFacts, record: &Record, has_below: bool) {
    let sum = |names: &[usize]| names.iter().fold(0, |sum: u64, &at| sum.saturating_add(count(record, at)));
    let below_s = [file.data[0].time_s, file.data[1].time_s, file.meta_s];
    let mpi = file.mpi.get_or_insert_with(|| MpiUse { below_s, has_below, ..MpiUse::default() });
    let independent = [
        sum(&[at(&MPIIO, "MPIIO_INDEP_READS"), at(&MPIIO, "MPIIO_NB_READS")]),
        sum(&[at(&MPIIO, "MPIIO_INDEP_WRITES"), at(&MPIIO, "MPIIO_NB_WRITES")]),
    ];
    let collective = [
        sum(&[at(&MPIIO, "MPIIO_COLL_READS"), at(&MPIIO, "MPIIO_SPLIT_READS")]),
        sum(&[at(&MPIIO, "MPIIO_COLL_WRITES"), at(&MPIIO, "MPIIO_SPLIT_WRITES")]),
    ];
    const SIDES: [[usize; 3]; 2] = [
        [
            at(&MPIIO, "MPIIO_BYTES_READ"),
            at(&MPIIO, "MPIIO_SIZE_READ_AGG_0_100"),
            at(&MPIIO_TIMES, "MPIIO_F_READ_TIME"),
        ],
        [
            at(&MPIIO, "MPIIO_BYTES_WRITTEN"),
            at(&MPIIO, "MPIIO_SIZE_WRITE_AGG_0_100"),
            at(&MPIIO_TIMES, "MPIIO_F_WRITE_TIME"),
        ],
    ];
    for (side, [bytes, sizes, time_s]) in SIDES.into_iter().enumerate() {
        mpi.independent[side] = mpi.independent[side].saturating_add(independent[side]);
        mpi.collective[side] = mpi.collective[side].saturating_add(collective[side]);
        mpi.bytes[side] = mpi.bytes[side].saturating_add(count(record, bytes));
        mpi.time_s[side] += time(record, time_s);
        if !has_below {
            let small =
                (sizes..sizes + SMALL_BUCKETS).fold(0, |sum: u64, at| sum.saturating_add(count(record, at)));
            let calls = independent[side].saturating_add(collective[side]);
            join(
                &mut file.data[side],
                &Transfers { calls, bytes: count(record, bytes), small, ..Transfers::default() },
            );
        }
        file.data[side].time_s = mpi.time_s[side].max(mpi.below_s[side]);
    }
    mpi.time_s[2] += time(record, at(&MPIIO_TIMES, "MPIIO_F_META_TIME"));
    file.meta_s = mpi.time_s[2].max(mpi.below_s[2]);
    let slowest_s = time(record, at(&MPIIO_TIMES, "MPIIO_F_SLOWEST_RANK_TIME"));
    slowest(file, slowest_s, count(record, at(&MPIIO, "MPIIO_SLOWEST_RANK_BYTES")));
}

/// Notes the slowest process of a record.
fn slowest(file: &mut FileFacts, time_s: f64, bytes: u64) {
    if time_s > file.slowest_s {
        (file.slowest_s, file.slowest_bytes) = (time_s, bytes);
    }
}

fn add_stdio(file: &mut FileFacts, record: &Record) {
    const SIDES: [[usize; 4]; 2] = [
        [
            at(&STDIO, "STDIO_READS"),
            at(&STDIO, "STDIO_BYTES_READ"),
            at(&STDIO, "STDIO_MAX_BYTE_READ"),
            at(&STDIO_TIMES, "STDIO_F_READ_TIME"),
        ],
        [
            at(&STDIO, "STDIO_WRITES"),
            at(&STDIO, "STDIO_BYTES_WRITTEN"),
            at(&STDIO, "STDIO_MAX_BYTE_WRITTEN"),
            at(&STDIO_TIMES, "STDIO_F_WRITE_TIME"),
        ],
    ];
    for (side, [calls, bytes, last, time_s]) in SIDES.into_iter().enumerate() {
        let (calls, bytes) = (count(record, calls), count(record, bytes));
        let extent = if bytes > 0 { count(record, last).saturating_add(1) } else { 0 };
        // Sizes are those that the program passes. The library joins them in its buffer.
        let small = if calls > 0 && bytes / calls < crate::facts::SMALL_BYTES { calls } else { 0 };
        let more = Transfers { calls, bytes, small, random: 0, extent, time_s: time(record, time_s) };
        join(&mut file.data[side], &more);
        file.stdio_bytes = file.stdio_bytes.saturating_add(bytes);
    }
    file.opens = file.opens.saturating_add(count(record, at(&STDIO, "STDIO_OPENS")));
    file.meta_s += time(record, at(&STDIO_TIMES, "STDIO_F_META_TIME"));
    let slowest_s = time(record, at(&STDIO_TIMES, "STDIO_F_SLOWEST_RANK_TIME"));
    slowest(file, slowest_s, count(record, at(&STDIO, "STDIO_SLOWEST_RANK_BYTES")));
}
