//! Logs of jobs whose trouble is known: the advice names it first, and its commands fit the file
//! system.

#[path = "../../darshan/tests/common/mod.rs"]
mod common;

use std::io::Cursor;

use common::{LogWriter, USUAL, lustre, record};
use stripewise_advise::{Advice, Confidence, Severity, Storage, facts_of_log, layouts, spec};
use stripewise_darshan::{CALLS_MAX, Counters, Log, Module, trace_from_log};
use stripewise_plan::{Collector, Workload};
use stripewise_trace::Trace;
use stripewise_trace::scope::is_data;

const G: f64 = 1e9;
const MIB: f64 = (1 << 20) as f64;

/// A job that is written to a log: its files are those of `common`'s mounts, `/scratch` on Lustre.
#[derive(Default)]
struct Scenario<'a> {
    processes: i64,
    runtime_s: i64,
    files: Vec<File<'a>>,
    cut: usize,
}

/// Counters and times by name; others are 0.
type Values<'a> = Vec<(&'a str, f64)>;

/// A file: its records by module.
#[derive(Default, Clone)]
struct File<'a> {
    name: &'a str,
    records: Vec<(Counters, i64, Values<'a>)>,
    stripes: Option<(i64, i64)>,
}

impl Scenario<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut log = LogWriter::new(Cursor::new(Vec::new()), USUAL);
        log.job(1_700_000_000, 1_700_000_000 + self.runtime_s, self.processes);
        let id = |index: usize| index as u64 + 100;
        let names: Vec<(u64, &str)> =
            self.files.iter().enumerate().map(|(index, file)| (id(index), file.name)).collect();
        log.names(&names);
        for (of, version) in
            [(Counters::Posix, 4), (Counters::MpiIo, 3), (Counters::H5f, 3), (Counters::Stdio, 2)]
        {
            if of == Counters::Stdio {
                let mut bytes = log.bytes();
                for (index, file) in self.files.iter().enumerate() {
                    if let Some(stripes) = file.stripes {
                        lustre(&mut bytes, 1, (id(index), -1), &[stripes]);
                    }
                }
                log.module(Module::Lustre, 1, [bytes.bytes]);
            }
            let mut bytes = log.bytes();
            for (index, file) in self.files.iter().enumerate() {
                for (_, rank, values) in file.records.iter().filter(|(counters, ..)| *counters == of) {
                    record(&mut bytes, of, version, (id(index), *rank), values);
                }
            }
            log.module(of.module(), version, [bytes.bytes]);
        }
        let mut bytes = log.finish().into_inner();
        bytes.truncate(bytes.len() - self.cut);
        bytes
    }

    fn advice(&self, fs: Option<&str>) -> Advice {
        let mut log = Log::open(Cursor::new(self.bytes())).unwrap();
        let facts = facts_of_log(&mut log).unwrap();
        let storage = match fs {
            Some(text) => spec::parse(text).unwrap(),
            None => Storage::deduced(&facts),
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        trace_from_log(&mut log, &path, CALLS_MAX, &mut |_| ()).unwrap();
        let planned = layouts(workload(&path), &facts, &storage, &|name| name.contains("gone")).unwrap();
        Advice::new(&facts, &storage, planned, Vec::new())
    }
}

fn workload(path: &std::path::Path) -> Workload {
    let trace = Trace::open(path).unwrap();
    let mut collector =
        Collector::only(trace.processes(), &trace, |name| is_data(name.as_bytes()), 512).unwrap();
    let mut requests = trace.requests().unwrap();
    while let Some(batch) = requests.next_batch().unwrap() {
        batch.iter().for_each(|request| collector.add(request));
    }
    collector.finish()
}

/// A POSIX record of writes of equal size by 16 processes, with more counters.
fn writes<'a>(calls: f64, size: f64, seconds: f64, more: &[(&'a str, f64)]) -> Values<'a> {
    let bucket = match size {
        s if s < 1e5 => "POSIX_SIZE_WRITE_10K_100K",
        s if s < MIB => "POSIX_SIZE_WRITE_100K_1M",
        _ => "POSIX_SIZE_WRITE_4M_10M",
    };
    let mut values = vec![
        ("POSIX_OPENS", 16.0),
        ("POSIX_WRITES", calls),
        ("POSIX_BYTES_WRITTEN", calls * size),
        ("POSIX_MAX_BYTE_WRITTEN", calls * size - 1.0),
        ("POSIX_CONSEC_WRITES", calls - 16.0),
        ("POSIX_SEQ_WRITES", calls - 16.0),
        ("POSIX_FILE_ALIGNMENT", MIB),
        (bucket, calls),
        ("POSIX_F_OPEN_START_TIMESTAMP", 0.1),
        ("POSIX_F_WRITE_START_TIMESTAMP", 0.5),
        ("POSIX_F_WRITE_END_TIMESTAMP", 0.5 + seconds / 16.0),
        ("POSIX_F_CLOSE_END_TIMESTAMP", 1.0 + seconds / 16.0),
        ("POSIX_F_WRITE_TIME", seconds),
    ];
    values.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
    values.extend(more);
    values
}

fn shared<'a>(name: &'a str, values: Values<'a>, stripes: Option<(i64, i64)>) -> File<'a> {
    File { name, records: vec![(Counters::Posix, -1, values)], stripes }
}

fn job(files: Vec<File<'_>>) -> Scenario<'_> {
    Scenario { processes: 16, runtime_s: 100, files, cut: 0 }
}

fn codes(advice: &Advice) -> Vec<&str> {
    advice.findings.iter().map(|finding| finding.code).collect()
}

fn typed(advice: &Advice) -> Vec<&str> {
    advice.findings.iter().flat_map(|finding| &finding.commands).map(|command| &*command.text).collect()
}

#[test]
fn a_large_shared_file_on_one_server_gets_stripes() {
    let large = shared("/scratch/u/field.dat", writes(2048.0, 8.0 * MIB, 1000.0, &[]), Some((1 << 20, 1)));
    let advice = job(vec![large]).advice(None);
    assert_eq!(advice.storage.servers, 6, "the record says 4, and the file is on OST 5");
    let first = &advice.findings[0];
    assert_eq!((first.code, first.severity), ("large-file-on-one-server", Severity::High));
    assert!(first.speedup.unwrap() > 2.0 && first.at_most_share.unwrap() <= 0.63, "{first:?}");
    assert!(advice.verdict.todo.starts_with("lfs setstripe -S "), "{}", advice.verdict.todo);
    assert!(advice.verdict.todo.ends_with(" -c 6 /scratch/u"), "{}", advice.verdict.todo);
    // It is only written, so the next run makes it anew.
    assert!(!typed(&advice).iter().any(|text| text.contains("migrate")), "{:?}", typed(&advice));
}

#[test]
fn a_layout_that_is_there_is_not_advised() {
    for stripes in [(1 << 20, 4), (4 << 20, 4), (16 << 20, 4)] {
        let large = shared("/scratch/u/field.dat", writes(2048.0, 8.0 * MIB, 1000.0, &[]), Some(stripes));
        let advice = job(vec![large]).advice(Some("lustre:4"));
        assert!(typed(&advice).is_empty() && advice.layouts[0].proposed.is_none(), "{:?}", typed(&advice));
    }
}

#[test]
fn a_file_that_is_read_again_is_migrated_if_it_exists() {
    let read = |name| {
        let values = vec![
            ("POSIX_OPENS", 16.0),
            ("POSIX_READS", 2048.0),
            ("POSIX_BYTES_READ", 2048.0 * 8.0 * MIB),
            ("POSIX_MAX_BYTE_READ", 2048.0 * 8.0 * MIB - 1.0),
            ("POSIX_SEQ_READS", 2032.0),
            ("POSIX_CONSEC_READS", 2032.0),
            ("POSIX_SIZE_READ_4M_10M", 2048.0),
            ("POSIX_F_READ_START_TIMESTAMP", 0.5),
            ("POSIX_F_READ_END_TIMESTAMP", 60.0),
            ("POSIX_F_READ_TIME", 900.0),
        ];
        shared(name, values, Some((1 << 20, 1)))
    };
    let has = |name| {
        let advice = job(vec![read(name)]).advice(None);
        typed(&advice).iter().any(|text| text.starts_with("lfs migrate ") && text.ends_with(name))
    };
    assert!(has("/scratch/u/input.dat") && !has("/scratch/u/gone.dat"));
}

#[test]
fn pools_are_named_only_if_they_were_given() {
    let large =
        || vec![shared("/scratch/u/field.dat", writes(2048.0, 8.0 * MIB, 1000.0, &[]), Some((1 << 20, 1)))];
    let advice = job(large()).advice(Some("lustre:ost=12,pool=flash:4:nvme"));
    assert!(typed(&advice)[0].contains(" -p flash "), "{:?}", typed(&advice));
    let advice = job(large()).advice(Some("lustre:12"));
    assert!(!typed(&advice).is_empty() && !typed(&advice).iter().any(|text| text.contains(" -p ")));
}

#[test]
fn every_file_system_has_its_own_commands() {
    let large = || vec![shared("/scratch/u/field.dat", writes(2048.0, 8.0 * MIB, 1000.0, &[]), None)];
    // Their default layouts use few targets, or all of them.
    let advice = job(large()).advice(Some("beegfs:32"));
    assert!(typed(&advice)[0].starts_with("beegfs entry set --num-targets="), "{:?}", typed(&advice));
    for fs in ["cephfs:12", "orangefs:12", "local"] {
        let advice = job(large()).advice(Some(fs));
        assert!(!typed(&advice).iter().any(|text| text.contains("lfs") || text.contains("beegfs")), "{fs}");
    }
}

#[test]
fn small_independent_writes_get_collective_calls() {
    let (calls, size) = (100_000.0, 64.0 * 1024.0);
    let mut file = shared("/scratch/u/x.h5", writes(calls, size, 1200.0, &[]), Some((1 << 20, 4)));
    let mpi = vec![
        ("MPIIO_COLL_OPENS", 16.0),
        ("MPIIO_INDEP_WRITES", calls),
        ("MPIIO_BYTES_WRITTEN", calls * size),
        ("MPIIO_F_WRITE_TIME", 1210.0),
    ];
    file.records.push((Counters::MpiIo, -1, mpi));
    file.records.push((Counters::H5f, -1, vec![("H5F_OPENS", 16.0)]));
    let advice = job(vec![file]).advice(Some("lustre:4"));
    assert!(codes(&advice).contains(&"small-writes") && codes(&advice).contains(&"independent-writes"));
    assert!(
        advice.verdict.todo.contains("romio_cb_write") || advice.verdict.todo.contains("H5FD_MPIO_COLLECTIVE")
    );
    let all = typed(&advice).join("\n");
    assert!(all.contains("romio_cb_write enable") && !all.contains("lfs "), "{all}");
}

#[test]
fn what_mpi_io_reads_back_is_data_sieving() {
    let more = [("POSIX_BYTES_READ", 30.0 * G), ("POSIX_READS", 4000.0), ("POSIX_F_READ_TIME", 300.0)];
    let mut file = shared("/scratch/u/x.dat", writes(5000.0, 6e6, 600.0, &more), Some((1 << 20, 4)));
    let mpi = vec![
        ("MPIIO_INDEP_WRITES", 900_000.0),
        ("MPIIO_BYTES_WRITTEN", 9.0 * G),
        ("MPIIO_F_WRITE_TIME", 950.0),
    ];
    file.records.push((Counters::MpiIo, -1, mpi));
    let advice = job(vec![file]).advice(None);
    assert!(codes(&advice).contains(&"data-sieving"), "{:?}", codes(&advice));
    assert!(typed(&advice).join("\n").contains("romio_ds_write disable"));
}

#[test]
fn random_and_misaligned_requests_are_told() {
    let more = [("POSIX_SEQ_WRITES", 100.0), ("POSIX_CONSEC_WRITES", 0.0), ("POSIX_FILE_NOT_ALIGNED", 3900.0)];
    let file = shared("/scratch/u/x.dat", writes(4000.0, 8.0 * MIB, 900.0, &more), Some((1 << 20, 4)));
    let advice = job(vec![file]).advice(None);
    assert!(codes(&advice).contains(&"random-writes") && codes(&advice).contains(&"misaligned-requests"));
    assert!(!codes(&advice).contains(&"small-writes"));
}

#[test]
fn one_process_that_writes_everything_is_a_straggler() {
    let mut file = shared("/scratch/u/x.dat", writes(4000.0, 8.0 * MIB, 80.0, &[]), Some((1 << 20, 4)));
    file.records[0].1 = 3;
    let advice = job(vec![file]).advice(None);
    let first = advice.findings.iter().find(|finding| finding.code == "stragglers").unwrap();
    assert!(first.remedy.contains("share") && first.at_most_share.unwrap() > 0.7, "{first:?}");
}

#[test]
fn opens_that_take_the_time_are_metadata() {
    let more = [("POSIX_OPENS", 3_000_000.0), ("POSIX_STATS", 9e5), ("POSIX_F_META_TIME", 1100.0)];
    let file = shared("/scratch/u/x.dat", writes(32.0, 8.0 * MIB, 2.0, &more), Some((1 << 20, 4)));
    let advice = job(vec![file]).advice(None);
    assert_eq!(codes(&advice)[0], "metadata");
    assert!(advice.verdict.slow.starts_with("opens, closes and stats: 69 s"), "{}", advice.verdict.slow);
}

#[test]
fn a_stream_that_moves_the_data_is_told() {
    let values = vec![
        ("STDIO_OPENS", 16.0),
        ("STDIO_WRITES", 4e6),
        ("STDIO_BYTES_WRITTEN", 40.0 * G),
        ("STDIO_MAX_BYTE_WRITTEN", 40.0 * G),
        ("STDIO_F_WRITE_TIME", 640.0),
    ];
    let file = File { name: "/scratch/u/x.txt", records: vec![(Counters::Stdio, -1, values)], stripes: None };
    let advice = job(vec![file]).advice(None);
    assert!(codes(&advice).contains(&"c-streams"), "{:?}", codes(&advice));
}

#[test]
fn files_without_data_are_nothing_to_advise() {
    let log = shared("/scratch/u/run.log", writes(40_000.0, 100.0, 1.0, &[]), None);
    let advice = job(vec![log]).advice(None);
    assert_eq!((advice.verdict.todo.as_str(), advice.job.left_out.files), ("nothing to advise", 1));
    let advice = job(vec![]).advice(None);
    assert_eq!(advice.verdict.todo, "nothing to advise");
}

#[test]
fn a_job_of_no_duration_has_no_shares() {
    let file = shared("/scratch/u/x.dat", writes(2048.0, 8.0 * MIB, 1000.0, &[]), Some((1 << 20, 1)));
    let advice = Scenario { runtime_s: -5, ..job(vec![file]) }.advice(None);
    assert_eq!((advice.job.runtime_s, advice.job.io_share), (None, None));
    assert!(advice.verdict.gain.contains("not known"), "{}", advice.verdict.gain);
}

#[test]
fn a_log_that_is_cut_off_is_of_low_confidence() {
    let files = ["/scratch/u/a.dat", "/scratch/u/b.dat"];
    let file = |name| shared(name, writes(2048.0, 8.0 * MIB, 300.0, &[]), Some((1 << 20, 1)));
    let advice = Scenario { cut: 60, ..job(files.map(file).to_vec()) }.advice(None);
    assert_eq!(advice.verdict.confidence, Confidence::Low);
    assert!(advice.verdict.sure.contains("incomplete"), "{}", advice.verdict.sure);
}

#[test]
fn a_directory_with_odd_letters_is_quoted() {
    let file = shared("/scratch/my $run/f.dat", writes(2048.0, 8.0 * MIB, 1000.0, &[]), Some((1 << 20, 1)));
    let advice = job(vec![file]).advice(None);
    assert!(typed(&advice)[0].ends_with("'/scratch/my $run'"), "{:?}", typed(&advice));
}

#[test]
fn lines_are_five_of_at_most_80_columns() {
    let name = format!("/scratch/{}/field.dat", "long".repeat(50));
    let file = shared(&name, writes(2048.0, 8.0 * MIB, 1000.0, &[]), Some((1 << 20, 1)));
    let advice = job(vec![file]).advice(None);
    assert!(advice.lines.iter().all(|line| line.chars().count() <= 80), "{:?}", advice.lines);
    assert!(typed(&advice)[0].contains(&"long".repeat(50)), "commands are whole");
}
