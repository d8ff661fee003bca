//! Compares calls on a managed file with the same calls on a plain file, with everything in the
//! page cache.
//!
//! `cargo bench -p stripewise-datapath --bench calls [-- DIRECTORY]` prints the table in
//! `bench/results.d/datapath.md`. Only create and remove wait for disks, so the other rows show the
//! data path's own time.

use std::hint::black_box;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use stripewise_cluster::Spread;
use stripewise_cluster::{Cluster, Driver, Plan, Rule, Tier};
use stripewise_datapath::{IoOptions, LogicalFile, Opened, Runtime};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_sys::fd::close_public;
use stripewise_sys::{Fd, IoVec, Mode, OFlags, Real, SysRef};

const SERVERS: u32 = 8;
const FILE_BYTES: u64 = 64 << 20;
/// Number of runs; their median is reported.
const RUNS: usize = 9;

fn main() {
    let base = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let dir = tempfile::tempdir_in(base.unwrap_or_else(std::env::temp_dir)).expect("a directory");
    let plain = plain_file(dir.path());
    let all: Vec<u32> = (0..SERVERS).collect();
    let one = managed(dir.path(), "one", on_one(0).expect("valid"));
    let eight = managed(dir.path(), "eight", striped(&all, 64 << 10).expect("valid"));
    println!("| call, ns | plain | one server | 8 servers, 64 KiB |\n|---|---|---|---|");
    for (name, len, write) in [
        ("read 4 KiB", 4 << 10, false),
        ("write 4 KiB", 4 << 10, true),
        ("read 512 KiB", 512 << 10, false),
        ("write 512 KiB", 512 << 10, true),
    ] {
        let mut memory = vec![1; len];
        let mut time =
            |file: &Subject| median(2000 * 4096 / len.max(40960), |i| file.call(&mut memory, i, write));
        println!("| {name} | {} | {} | {} |", time(&plain), time(&one), time(&eight));
    }
    let size = |file: &Subject| median(2000, |_| file.size());
    println!("| size | {} | {} | {} |", size(&plain), size(&one), size(&eight));
    let append = |file: &Subject| median(200, |_| file.append());
    println!("| append 4 KiB | {} | {} | {} |", append(&plain), append(&one), append(&eight));
    let plain = create_and_remove(dir.path(), "plain", on_one(0).expect("valid"));
    let one = create_and_remove(dir.path(), "one", on_one(0).expect("valid"));
    let eight = create_and_remove(dir.path(), "eight", striped(&all, 64 << 10).expect("valid"));
    println!("| create | {} | {} | {} |", plain.0, one.0, eight.0);
    println!("| remove | {} | {} | {} |", plain.1, one.1, eight.1);
}

enum Subject {
    Plain(SysRef, Fd),
    Managed(Arc<LogicalFile>),
}

impl Subject {
    /// Makes one request at an offset that depends on `number`.
    fn call(&self, memory: &mut [u8], number: usize, write: bool) {
        let requests = FILE_BYTES as usize / memory.len();
        let offset = (number * 7919 % requests * memory.len()) as u64;
        let vector = [IoVec { base: memory.as_mut_ptr(), len: memory.len() }];
        // SAFETY: the buffer is borrowed exclusively.
        let done = unsafe {
            match (self, write) {
                (Self::Plain(sys, fd), false) => sys.preadv(fd.as_fd(), &vector, offset),
                (Self::Plain(sys, fd), true) => sys.pwritev(fd.as_fd(), &vector, offset),
                (Self::Managed(file), false) => file.read_at(&vector, offset, IoOptions::default()),
                (Self::Managed(file), true) => file.write_at(&vector, offset, IoOptions::default()),
            }
        };
        assert_eq!(done, Ok(memory.len()));
    }

    fn size(&self) {
        match self {
            Self::Plain(sys, fd) => drop(black_box(sys.stat(fd.as_fd()))),
            Self::Managed(file) => drop(black_box(file.size())),
        }
    }

    fn append(&self) {
        let memory = [1; 4096];
        let vector = [IoVec { base: memory.as_ptr().cast_mut(), len: memory.len() }];
        // SAFETY: the buffer is only read.
        unsafe {
            match self {
                Self::Plain(sys, fd) => {
                    let end = sys.stat(fd.as_fd()).map_or(0, |stat| stat.st_size as u64);
                    let _ = sys.pwritev(fd.as_fd(), &vector, end);
                }
                Self::Managed(file) => drop(black_box(file.append(&vector, IoOptions::default()))),
            }
        }
    }
}

/// The median of the runs' mean times, ns.
fn median(calls: usize, mut call: impl FnMut(usize)) -> u128 {
    let mut run = || {
        let start = Instant::now();
        (0..calls).for_each(&mut call);
        start.elapsed().as_nanos() / calls as u128
    };
    run();
    let mut times: Vec<u128> = (0..RUNS).map(|_| run()).collect();
    times.sort_unstable();
    times[RUNS / 2]
}

fn plain_file(dir: &Path) -> Subject {
    let sys: SysRef = Arc::new(Real);
    let flags = OFlags::RDWR | OFlags::CREATE;
    let fd = sys.open(None, &dir.join("plain"), flags, Mode::RUSR | Mode::WUSR).expect("a file");
    sys.write_all_at(fd.as_fd(), &vec![1; FILE_BYTES as usize], 0).expect("written");
    Subject::Plain(sys, fd)
}

fn managed(dir: &Path, name: &str, layout: Layout) -> Subject {
    let runtime = runtime(dir, name, layout);
    let Subject::Managed(file) = create(&runtime, &dir.join(name).join("f")) else { unreachable!() };
    let bytes = vec![1u8; FILE_BYTES as usize];
    let vector = [IoVec { base: bytes.as_ptr().cast_mut(), len: bytes.len() }];
    // SAFETY: the buffer is only read.
    let done = unsafe { file.write_at(&vector, 0, IoOptions::default()) };
    assert_eq!(done, Ok(bytes.len()));
    Subject::Managed(file)
}

/// A runtime whose plan gives all files in the directory `name` this layout.
fn runtime(dir: &Path, name: &str, layout: Layout) -> Arc<Runtime> {
    let servers: Vec<PathBuf> = (0..SERVERS).map(|n| dir.join(format!("server{n}"))).collect();
    servers.iter().for_each(|server| drop(std::fs::create_dir(server)));
    drop(std::fs::create_dir(dir.join(name)));
    let tier = Tier {
        name: "t".into(),
        class: "c".into(),
        driver: Driver::Dirs { servers },
        capacity_per_server: 1 << 40,
        emulate: false,
    };
    let rule = Rule {
        pattern: format!("{}/*", dir.join(name).display()),
        scheme: "bench".into(),
        reason: String::new(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts: vec![layout],
        spread: Spread::default(),
        overlay: None,
    };
    let cluster = Cluster { tiers: vec![tier], ..Cluster::default() };
    let plan = Plan { scheme: "bench".into(), cluster, rules: vec![rule] };
    Runtime::new(Arc::new(Real), Some(&plan))
}

fn create(runtime: &Runtime, path: &Path) -> Subject {
    let flags = OFlags::RDWR | OFlags::CREATE;
    match runtime.open(None, path, flags, Mode::RUSR | Mode::WUSR).expect("opened") {
        Opened::Plain(raw) => {
            close_public(raw);
            Subject::Plain(
                runtime.sys().clone(),
                runtime.sys().open(None, path, flags, Mode::RUSR).expect("opened"),
            )
        }
        Opened::Managed(raw, file) => {
            close_public(raw);
            Subject::Managed(file)
        }
    }
}

/// The median times for creating and for removing an empty file, ns.
fn create_and_remove(dir: &Path, name: &str, layout: Layout) -> (u128, u128) {
    let runtime = runtime(dir, name, layout);
    // Files outside the directory of the rule are plain.
    let directory = if name == "plain" { dir.to_owned() } else { dir.join(name) };
    let path = |number: usize| directory.join(format!("new{number}"));
    let calls = 20;
    let mut times: (Vec<u128>, Vec<u128>) = Default::default();
    for _ in 0..RUNS {
        let start = Instant::now();
        (0..calls).for_each(|number| drop(create(&runtime, &path(number))));
        times.0.push(start.elapsed().as_nanos() / calls as u128);
        let start = Instant::now();
        (0..calls).for_each(|number| runtime.unlink(None, &path(number)).expect("removed"));
        times.1.push(start.elapsed().as_nanos() / calls as u128);
    }
    times.0.sort_unstable();
    times.1.sort_unstable();
    (times.0[RUNS / 2], times.1[RUNS / 2])
}
