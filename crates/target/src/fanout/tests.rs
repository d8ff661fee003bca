use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use stripewise_sys::fd;

use super::*;
use crate::tests::{real, set};

const ENGINES: [Engine; 4] = [Engine::Auto, Engine::Uring, Engine::Threads, Engine::Serial];

/// Pieces over one buffer: (object, offset, length), in the order of the buffer.
fn pieces(buffer: &mut [u8], runs: &[(u32, u64, usize)]) -> Vec<Piece> {
    let mut base = buffer.as_mut_ptr();
    let piece = |&(object, offset, len): &(u32, u64, usize)| {
        let piece = Piece { object, offset, base, len };
        base = base.wrapping_add(len);
        piece
    };
    runs.iter().map(piece).collect()
}

fn write(fan_out: &FanOut, set: &ObjectSet, buffer: &mut [u8], runs: &[(u32, u64, usize)]) -> Few<Outcome> {
    // SAFETY: the pieces lie in the buffer, to which this function has the only reference.
    unsafe { fan_out.transfer(Action::Write, set, &pieces(buffer, runs)) }
}

fn read(fan_out: &FanOut, set: &ObjectSet, buffer: &mut [u8], runs: &[(u32, u64, usize)]) -> Few<Outcome> {
    // SAFETY: as in `write`.
    unsafe { fan_out.transfer(Action::Read, set, &pieces(buffer, runs)) }
}

fn complete(runs: &[(u32, u64, usize)]) -> Few<Outcome> {
    runs.iter().map(|&(_, _, done)| Outcome { done, error: None }).collect()
}

/// Round-robin stripes over the objects.
fn stripes(objects: u32, width: usize, count: usize) -> Vec<(u32, u64, usize)> {
    let run = |index: usize| {
        let turn = (index / objects as usize) as u64;
        (index as u32 % objects, turn * width as u64, width)
    };
    (0..count).map(run).collect()
}

#[test]
fn every_engine_moves_every_byte() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 5));
        // More stripes per object than one system call takes vectors.
        let runs = stripes(5, 3, 5 * 1500 + 2);
        let mut data: Vec<u8> = (0..runs.len() * 3).map(|index| (index * 7 % 251) as u8).collect();
        assert_eq!(write(&fan_out, &set, &mut data, &runs), complete(&runs), "{engine:?}");
        let mut back = vec![0; data.len()];
        assert_eq!(read(&fan_out, &set, &mut back, &runs), complete(&runs), "{engine:?}");
        assert!(data == back, "{engine:?}");
        assert_eq!(set.sizes().unwrap(), [4503, 4503, 4500, 4500, 4500]);
        set.sync(&fan_out, true).unwrap();
    }
}

/// Pieces of one object that lie between those of others are in one job, and the objects come in
/// the order of their first pieces: requests of several processes that start on different servers
/// spread the load.
#[test]
fn interleaved_pieces_are_one_job_of_their_object() {
    let mut buffer = vec![0; 40];
    let pieces = pieces(&mut buffer, &[(2, 0, 10), (0, 0, 10), (2, 10, 10), (0, 10, 10)]);
    let mut gathered = Gathered::new(&pieces);
    let mut jobs = Vec::new();
    gathered.add_jobs(&mut jobs, Action::Read, |_| Ok(0));
    let found: Vec<_> = jobs.iter().map(|job| (job.object, job.offset, job.len)).collect();
    assert_eq!(found, [(2, 0, 20), (0, 0, 20)]);
    drop(jobs);
    let outcomes = gathered.outcomes(&pieces, &[(15, None), (20, None)]);
    assert_eq!(outcomes.iter().map(|outcome| outcome.done).collect::<Vec<_>>(), [10, 10, 5, 10]);
}

#[test]
fn the_end_of_an_object_cuts_its_pieces_only() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 3));
        write(&fan_out, &set, &mut [1; 30], &[(0, 0, 10), (1, 0, 4), (2, 0, 16)]);
        let runs = [(0, 0, 5), (1, 0, 3), (2, 0, 3), (0, 5, 5), (1, 3, 3), (1, 6, 3), (2, 3, 0), (2, 20, 9)];
        let mut back = [0; 31];
        let done: Vec<usize> =
            read(&fan_out, &set, &mut back, &runs).iter().map(|outcome| outcome.done).collect();
        assert_eq!(done, [5, 3, 3, 5, 1, 0, 0, 0], "{engine:?}");
    }
}

#[test]
fn invalid_memory_and_missing_objects_are_errors_of_their_pieces() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 3));
        write(&fan_out, &set, &mut [1; 12], &[(0, 0, 4), (1, 0, 4), (2, 0, 4)]);
        let mut buffer = [0u8; 4];
        let bad = 16 as *mut u8;
        let pieces = [
            Piece { object: 0, offset: 0, base: bad, len: 4 },
            Piece { object: 1, offset: 0, base: buffer.as_mut_ptr(), len: 4 },
            Piece { object: 9, offset: 0, base: bad, len: 4 },
        ];
        let expected = [
            Outcome { done: 0, error: Some(Errno::FAULT) },
            Outcome { done: 4, error: None },
            Outcome { done: 0, error: Some(Errno::NOENT) },
        ];
        // SAFETY: one valid buffer of this frame; the others are for the kernel to refuse.
        unsafe {
            assert_eq!(fan_out.transfer(Action::Read, &set, &pieces)[..], expected, "{engine:?}");
            assert_eq!(fan_out.transfer(Action::Write, &set, &pieces)[..], expected, "{engine:?}");
        }
        assert_eq!(buffer, [1; 4]);
    }
}

#[test]
fn a_forked_child_has_rings_and_threads_of_its_own() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 4));
        let runs = stripes(4, 8192, 16);
        let mut data = vec![1u8; 16 * 8192];
        write(&fan_out, &set, &mut data, &runs);
        // SAFETY: the child calls only what must work after fork, and _exit.
        let child = unsafe { libc::fork() };
        for round in 0..20u8 {
            let value = if child == 0 { 100 + round } else { round };
            let at = if child == 0 { 1 << 20 } else { 0 };
            let mine: Vec<_> = runs.iter().map(|&(object, offset, len)| (object, offset + at, len)).collect();
            let mut back = vec![0; data.len()];
            data.fill(value);
            let right = write(&fan_out, &set, &mut data, &mine) == complete(&mine)
                && read(&fan_out, &set, &mut back, &mine) == complete(&mine)
                && back == data;
            if child == 0 && !right {
                // SAFETY: ends the child without the test harness.
                unsafe { libc::_exit(1) };
            }
            assert!(right, "{engine:?}");
        }
        if child == 0 {
            let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
            if engine == Engine::Threads && threads < 2 {
                // SAFETY: as above.
                unsafe { libc::_exit(2) };
            }
            drop(fan_out);
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: our child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "{engine:?}: the child read other bytes than it wrote, died, or has no threads");
        let mut back = vec![0; data.len()];
        assert_eq!(read(&fan_out, &set, &mut back, &runs), complete(&runs));
        assert!(back == data, "{engine:?}");
    }
}

/// Stops the threads even when the test fails; otherwise they would run forever.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Children forked while other threads are in the middle of requests: nothing that those threads
/// hold affects the child.
#[test]
fn forked_while_others_are_busy() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 4));
        let stop = AtomicBool::new(false);
        let request = |at: u64, value: u8| {
            let runs: Vec<_> = stripes(4, 4096, 8)
                .into_iter()
                .map(|(object, offset, len)| (object, offset + at, len))
                .collect();
            let (mut data, mut back) = (vec![value; 8 * 4096], vec![0; 8 * 4096]);
            write(&fan_out, &set, &mut data, &runs) == complete(&runs)
                && read(&fan_out, &set, &mut back, &runs) == complete(&runs)
                && set.sync(&fan_out, true).is_ok()
                && back == data
        };
        std::thread::scope(|scope| {
            for thread in 0..3u8 {
                let (request, stop) = (&request, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        assert!(request(u64::from(thread) << 20, thread));
                    }
                });
            }
            let _stop = StopOnDrop(&stop);
            for round in 0..20u8 {
                // SAFETY: the child calls only what must work after fork, and _exit.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: a child that hangs is killed.
                    unsafe { libc::alarm(1800) };
                    let right = (0..3).all(|_| request(u64::from(round + 10) << 20, round));
                    // SAFETY: ends the child without the test harness.
                    unsafe { libc::_exit(i32::from(!right)) };
                }
                let mut status = 0;
                // SAFETY: our child.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(status, 0, "{engine:?}: the child read other bytes than it wrote, or hung");
            }
        });
    }
}

#[test]
fn many_threads_share_one_fan_out() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 4));
        std::thread::scope(|scope| {
            for thread in 0..24u64 {
                let (fan_out, set) = (&fan_out, &set);
                scope.spawn(move || {
                    let at = thread * 65536;
                    let runs: Vec<_> = stripes(4, 1000, 40)
                        .into_iter()
                        .map(|(object, offset, len)| (object, offset + at, len))
                        .collect();
                    let mut data = vec![thread as u8; 40000];
                    let mut back = vec![0; 40000];
                    for _ in 0..10 {
                        assert_eq!(write(fan_out, set, &mut data, &runs), complete(&runs));
                        assert_eq!(read(fan_out, set, &mut back, &runs), complete(&runs));
                        assert!(back == data);
                    }
                });
            }
        });
    }
}

#[test]
fn own_threads_block_all_signals_and_are_started_when_needed() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let (fan_out, set) = (FanOut::new(sys.clone(), Engine::Threads), set(&sys, &dir, 3));
    write(&fan_out, &set, &mut [1; 8], &[(0, 0, 8)]);
    assert!(fan_out.threads.is_unused(), "one piece needs no thread");
    write(&fan_out, &set, &mut [1; 8], &[(0, 0, 4), (1, 0, 4)]);
    assert!(!fan_out.threads.is_unused());
    // A thread gets its name a moment after it was started.
    let found = (0..100_000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        blocked_signals_of("stripewise-io")
    });
    // SIGKILL and SIGSTOP cannot be blocked, and the C library keeps 32 and 33 for itself.
    let cannot = [9, 19, 32, 33].iter().fold(0u64, |bits, signal| bits | 1 << (signal - 1));
    assert_eq!(found.map(|blocked| blocked | cannot), Some(u64::MAX));
}

/// The signals that the first thread of this process with that name blocks; bit n - 1 is signal n.
fn blocked_signals_of(name: &str) -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let text = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let of_name = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.unwrap().path();
        let status = text(path.join("status"));
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
        (text(path.join("comm")).trim() == name).then(|| u64::from_str_radix(blocked.trim(), 16).unwrap())
    };
    tasks.filter_map(of_name).next()
}

/// Makes io_uring's calls fail with ENOSYS in this process, as under a container's seccomp filter.
fn deny_uring() {
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let step = |code: u16, jt: u8, k: u32| libc::sock_filter { code, jt, jf: 0, k };
    let mut program = [
        step((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0),
        step(JUMP_IF_EQUAL, 2, libc::SYS_io_uring_setup as u32),
        step(JUMP_IF_EQUAL, 1, libc::SYS_io_uring_enter as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: a valid program; it touches no other calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn a_kernel_that_refuses_io_uring_is_no_trouble() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for (engine, ring_before) in [(Engine::Uring, false), (Engine::Uring, true), (Engine::Auto, true)] {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 4));
        let runs = stripes(4, 8192, 16);
        let mut data = vec![7u8; 16 * 8192];
        // SAFETY: the child calls only what must work after fork, and _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            if ring_before {
                set.sync(&fan_out, false).unwrap();
            }
            deny_uring();
            let mut back = vec![0; data.len()];
            let right = write(&fan_out, &set, &mut data, &runs) == complete(&runs)
                && set.sync(&fan_out, false).is_ok()
                && read(&fan_out, &set, &mut back, &runs) == complete(&runs)
                && back == data;
            // SAFETY: ends the child without the test harness.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut status = 0;
        // SAFETY: our child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "{engine:?} {ring_before}");
    }
}

#[test]
fn a_sync_reports_every_object() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    for engine in ENGINES {
        let (fan_out, set) = (FanOut::new(sys.clone(), engine), set(&sys, &dir, 3));
        assert_eq!(fan_out.sync(&set, false), [Ok(()), Ok(()), Ok(())], "{engine:?}");
    }
}

#[test]
fn engines_have_names() {
    for (name, engine) in ["auto", "uring", "threads", "serial"].iter().zip(ENGINES) {
        assert_eq!(name.parse(), Ok(engine));
    }
    assert!("fast".parse::<Engine>().unwrap_err().contains("uring"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Compares any writes, then any reads, by any engine with a model of plain byte vectors.
    #[test]
    fn like_byte_vectors(
        writes in prop::collection::vec((0u32..4, 0u64..3000, 0usize..2000), 1..12),
        reads in prop::collection::vec((0u32..4, 0u64..5000, 0usize..3000), 1..12),
        engine in 0..4usize,
    ) {
        let (sys, dir) = (real(), tempfile::tempdir().unwrap());
        let (fan_out, set) = (FanOut::new(sys.clone(), ENGINES[engine]), set(&sys, &dir, 4));
        let mut model = vec![Vec::new(); 4];
        for (value, run) in (1u8..).zip(&writes) {
            let &(object, offset, len) = run;
            let bytes: &mut Vec<u8> = &mut model[object as usize];
            let end = offset as usize + len;
            if len > 0 {
                bytes.resize(bytes.len().max(end), 0);
                bytes[offset as usize..end].fill(value);
            }
            prop_assert_eq!(write(&fan_out, &set, &mut vec![value; len], &[*run]), complete(&[*run]));
        }
        let mut back = vec![0xee; reads.iter().map(|run| run.2).sum()];
        let outcomes = read(&fan_out, &set, &mut back, &reads);
        let mut at = 0;
        for (outcome, (object, offset, len)) in outcomes.iter().zip(reads) {
            let bytes = &model[object as usize];
            let there = bytes.get(offset as usize..).unwrap_or_default();
            let there = &there[..there.len().min(len)];
            prop_assert_eq!(outcome, &Outcome { done: there.len(), error: None });
            prop_assert_eq!(&back[at..at + there.len()], there);
            at += len;
        }
    }
}

#[test]
fn descriptors_of_objects_are_private() {
    let (sys, dir) = (real(), tempfile::tempdir().unwrap());
    let set = set(&sys, &dir, 2);
    assert!((0..2).all(|index| fd::is_private(set.fd(index).unwrap().as_fd().as_raw_fd())));
}
