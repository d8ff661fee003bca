//! Compares the engines for one request over several servers: io_uring, threads, serial.
//!
//! `cargo bench -p stripewise-target --bench fanout [-- DIRECTORY]` prints the tables of
//! `bench/results.d/fanout.md`. All objects are on the disk of DIRECTORY (default: the temporary
//! directory), so the tables show the engines' overhead and how deep they keep one disk's queue,
//! not the sum of several disks.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stripewise_sys::{Action, Mode, OFlags, Real, SysRef};
use stripewise_target::{Access, Engine, FanOut, FileId, ObjectSet, Objects, Opening, Piece, Target};

const SERVERS: usize = 8;
const PIECE_BYTES_MAX: usize = 4 << 20;
/// Alignment for O_DIRECT, bytes.
const ALIGNMENT: usize = 4096;
const ENGINES: [(&str, Engine); 4] = [
    ("serial", Engine::Serial),
    ("threads", Engine::Threads),
    ("uring", Engine::Uring),
    ("auto", Engine::Auto),
];

/// The state of the storage for a measurement.
#[derive(Clone, Copy, PartialEq)]
enum Storage {
    /// In the page cache.
    Cached,
    /// Not in the page cache (dropped before every request, outside the measured time).
    Cold,
    /// O_DIRECT.
    Direct,
    /// In the page cache, then all objects synced.
    Synced,
}

fn main() {
    let base = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let base = base.unwrap_or_else(std::env::temp_dir);
    let dir = tempfile::tempdir_in(base).expect("a directory");
    let sys: SysRef = Arc::new(Real);
    let targets: Vec<_> = (0..SERVERS).map(|index| target(&sys, dir.path(), index)).collect();
    let id = FileId::random(sys.as_ref()).expect("random bytes");
    let of = Objects { id, owner: sys.user() };
    let mode = Mode::RUSR | Mode::WUSR;
    let cached = ObjectSet::create(&sys, targets.clone(), of, &Access::of_mode(mode)).expect("objects");
    let direct = Opening { read_only: false, flags: OFlags::DIRECT };
    let direct = ObjectSet::open(&sys, targets, of, direct).expect("O_DIRECT");
    let mut memory = vec![1u8; SERVERS * PIECE_BYTES_MAX + ALIGNMENT];
    let aligned = memory.as_ptr().align_offset(ALIGNMENT);
    let memory = &mut memory[aligned..];
    let fan_out = FanOut::new(sys, Engine::Serial);
    let all = pieces(memory, SERVERS, PIECE_BYTES_MAX);
    request(&fan_out, &cached, true, &all);
    cached.sync(&fan_out, false).expect("synced");
    for (name, storage, set, write) in [
        ("page cache, read", Storage::Cached, &cached, false),
        ("page cache, write", Storage::Cached, &cached, true),
        ("write and fsync of all objects", Storage::Synced, &cached, true),
        ("not cached, read", Storage::Cold, &cached, false),
        ("O_DIRECT, read", Storage::Direct, &direct, false),
        ("O_DIRECT, write", Storage::Direct, &direct, true),
    ] {
        println!("\n{name}: median µs of one request\n");
        println!("| pieces | of | serial | threads | uring | auto |\n|---|---|---|---|---|---|");
        for count in [1, 2, 4, 8] {
            for len in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
                let pieces = pieces(memory, count, len);
                let row: Vec<String> = ENGINES
                    .iter()
                    .map(|&(_, engine)| {
                        let fan_out = FanOut::new(Arc::new(Real), engine);
                        format!("{:.1}", median_us(&fan_out, set, write, storage, &pieces))
                    })
                    .collect();
                println!("| {count} | {} KiB | {} |", len >> 10, row.join(" | "));
            }
        }
    }
}

fn target(sys: &SysRef, dir: &Path, index: usize) -> Arc<Target> {
    let path = dir.join(format!("t{index}"));
    std::fs::create_dir(&path).expect("a new directory");
    Arc::new(Target::prepare(sys, &path, &format!("t/{index}")).expect("a target"))
}

fn pieces(memory: &mut [u8], count: usize, len: usize) -> Vec<Piece> {
    let base = memory.as_mut_ptr();
    (0..count)
        .map(|index| Piece { object: index as u32, offset: 0, base: base.wrapping_add(index * len), len })
        .collect()
}

fn request(fan_out: &FanOut, set: &ObjectSet, write: bool, pieces: &[Piece]) {
    // SAFETY: the pieces lie in the memory of `main`.
    let outcomes = unsafe { fan_out.transfer(if write { Action::Write } else { Action::Read }, set, pieces) };
    assert!(outcomes.iter().zip(pieces).all(|(outcome, piece)| outcome.done == piece.len));
}

fn median_us(fan_out: &FanOut, set: &ObjectSet, write: bool, storage: Storage, pieces: &[Piece]) -> f64 {
    request(fan_out, set, write, pieces);
    let mut times_us = Vec::new();
    let began = Instant::now();
    while times_us.len() < 5 || began.elapsed() < Duration::from_millis(100) {
        if storage == Storage::Cold {
            (0..set.len()).for_each(|index| drop_cache(set.fd(index).expect("open")));
        }
        let request_began = Instant::now();
        request(fan_out, set, write, pieces);
        if storage == Storage::Synced {
            set.sync(fan_out, false).expect("synced");
        }
        times_us.push(request_began.elapsed().as_secs_f64() * 1e6);
    }
    times_us.sort_by(f64::total_cmp);
    times_us[times_us.len() / 2]
}

fn drop_cache(fd: BorrowedFd<'_>) {
    // SAFETY: advice about an open file.
    unsafe { libc::posix_fadvise(fd.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}
