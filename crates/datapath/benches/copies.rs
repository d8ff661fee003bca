//! Compares requests on files with and without a cache, with everything in memory.
//!
//! `cargo bench -p stripewise-datapath --bench copies [-- EXTENTS]` prints a table of 512-byte
//! requests that miss, while EXTENTS (default: a million) extents of 512 bytes are cached, all of
//! them dirty, and the cache is full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use stripewise_cluster::Spread;
use stripewise_cluster::{
    CacheAdmission, CacheMode, Cluster, CopySpec, Driver, Durability, Overlay, OverlayKind, Plan, Rule, Tier,
};
use stripewise_datapath::{IoOptions, LogicalFile, Opened, Runtime};
use stripewise_layout::constructors::striped;
use stripewise_model::{ByAccess, ClassParams, Service};
use stripewise_sys::fd::close_public;
use stripewise_sys::{IoVec, Mode, OFlags, Real};

/// Bytes of a request.
const LEN: u64 = 512;
/// Number of requests per run and number of runs; the median is reported.
const REQUESTS: u64 = 100_000;
const RUNS: usize = 9;

fn main() {
    let extents = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let subjects = [("no copies", None), ("off", Some(CacheMode::Off)), ("sla", Some(CacheMode::Sla))];
    println!("| 512 bytes that miss, ns | no copies | off | sla, full |\n|---|---|---|---|");
    let files = subjects.map(|(name, mode)| filled(dir.path(), name, mode, extents));
    for (name, write) in [("write", true), ("read", false)] {
        let mut times = [const { Vec::new() }; 3];
        for run in 0..=RUNS as u64 {
            for (file, times) in files.iter().zip(&mut times) {
                let start = Instant::now();
                (0..REQUESTS).for_each(|number| {
                    // A random place between the cached extents.
                    let piece = (run * REQUESTS + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) % extents;
                    call(file, piece * 2 * LEN + LEN, write);
                });
                if run > 0 {
                    times.push(start.elapsed().as_nanos() as u64 / REQUESTS);
                }
            }
        }
        let median = times.map(|mut times| {
            times.sort_unstable();
            times[RUNS / 2]
        });
        println!("| {name} | {} | {} | {} |", median[0], median[1], median[2]);
    }
}

fn call(file: &LogicalFile, offset: u64, write: bool) {
    let mut memory = [1; LEN as usize];
    let vector = [IoVec { base: memory.as_mut_ptr(), len: memory.len() }];
    // SAFETY: the buffer is borrowed exclusively.
    let done = unsafe {
        if write {
            file.write_at(&vector, offset, IoOptions::default())
        } else {
            file.read_at(&vector, offset, IoOptions::default())
        }
    };
    assert_eq!(done, Ok(memory.len()));
}

/// A file in which every second 512-byte extent was written; with a cache, they went to the cache.
fn filled(dir: &Path, name: &str, mode: Option<CacheMode>, extents: u64) -> Arc<LogicalFile> {
    let dir = dir.join(name);
    std::fs::create_dir(&dir).expect("a directory");
    let runtime = runtime(&dir, mode, extents);
    let path = dir.join("f");
    let flags = OFlags::RDWR | OFlags::CREATE;
    let Ok(Opened::Managed(raw, file)) = runtime.open(None, &path, flags, Mode::RUSR | Mode::WUSR) else {
        panic!("not managed")
    };
    close_public(raw);
    (0..extents).for_each(|piece| call(&file, piece * 2 * LEN, true));
    file
}

fn runtime(dir: &Path, mode: Option<CacheMode>, extents: u64) -> Arc<Runtime> {
    let servers = |name: &str, count: usize| -> Vec<PathBuf> {
        let servers: Vec<PathBuf> = (0..count).map(|n| dir.join(format!("{name}{n}"))).collect();
        servers.iter().for_each(|server| std::fs::create_dir(server).expect("a directory"));
        servers
    };
    let tier = |name: &str, servers| Tier {
        name: name.into(),
        class: name.into(),
        driver: Driver::Dirs { servers },
        capacity_per_server: 1 << 40,
        emulate: false,
    };
    let copies = |mode| Overlay {
        kind: OverlayKind::Cache {
            mode,
            admission: CacheAdmission::AsPrinted,
            capacity_per_server: extents * LEN / 4,
        },
        copies: vec![CopySpec {
            name: "1-DH".into(),
            layouts: vec![striped(&[8, 9, 10, 11], 64 << 10).expect("valid")],
            spread: Spread::default(),
            groups: 1,
        }],
        lazy_close: false,
        durability: Durability::Sync,
        background: None,
        procs: 32,
        procs_per_node: 32,
    };
    let rule = Rule {
        pattern: format!("{}/*", dir.display()),
        scheme: "bench".into(),
        reason: String::new(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts: vec![striped(&(0..8).collect::<Vec<_>>(), 64 << 10).expect("valid")],
        spread: Spread::default(),
        overlay: mode.map(copies),
    };
    let class = |startup_s: f64, per_byte_s: f64| {
        let service = Service { startup_s, per_byte_s };
        let both = ByAccess { random: service, sequential: service };
        ClassParams { read: both, write: both }
    };
    let cluster = Cluster {
        tiers: vec![tier("slow", servers("slow", 8)), tier("fast", servers("fast", 4))],
        classes: [("slow".to_owned(), class(1e-3, 1e-8)), ("fast".to_owned(), class(1e-5, 1e-9))].into(),
        ..Cluster::default()
    };
    let plan = Plan { scheme: "bench".into(), cluster, rules: vec![rule] };
    let runtime = Runtime::new(Arc::new(Real), Some(&plan));
    runtime.set_procs(32, 32);
    runtime
}
