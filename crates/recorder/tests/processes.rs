//! Traces that real processes leave behind, however they end.
//!
//! Every scenario runs in a process of its own: this test program again, with the scenario's name
//! in the environment.
//!
//! Fault model: the process may end between any two instructions, the file system may refuse to
//! extend a file, and signal handlers run anywhere. The kernel itself does not fail.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_recorder::{
    DEFAULT_LIMIT_BYTES, ENV_DIR, ENV_LIMIT, Event, FileId, Flags, Op, Recorder, Settings,
};
use stripewise_trace::{Merged, Meta, Request, Trace, merge};

const ENV_SCENARIO: &str = "STRIPEWISE_TEST_SCENARIO";
const ENV_COUNTER: &str = "STRIPEWISE_TEST_COUNTER";

/// Not a test of its own: the entry point of the scenarios' processes.
#[test]
fn scenario() {
    let Ok(name) = std::env::var(ENV_SCENARIO) else { return };
    let recorder = Recorder::start(&Settings::from_env().unwrap()).unwrap();
    match name.as_str() {
        "endless" => endless(recorder),
        "exit" => {
            calls(recorder, recorder.file_id(b"/data/a"), 0..3000);
            unsafe { libc::_exit(3) }
        }
        "abort" => {
            calls(recorder, recorder.file_id(b"/data/a"), 0..3000);
            std::process::abort()
        }
        "exec" => {
            calls(recorder, recorder.file_id(b"/data/before"), 0..2000);
            let error = command("exit").env(ENV_DIR, std::env::var_os(ENV_DIR).unwrap()).exec();
            panic!("{error}");
        }
        "fork" => fork(recorder),
        "fork_first" => fork_first(recorder),
        "fork_without_dir" => fork_without_dir(recorder),
        "shared_memory_child" => shared_memory_child(recorder),
        "job" => job(recorder),
        "threads" => threads(recorder),
        "late_files" => late_files(recorder),
        "short_threads" => short_threads(recorder),
        "signals" => signals(recorder),
        "file_size_limit" => file_size_limit(recorder),
        other => panic!("no scenario {other}"),
    }
}

fn call(recorder: Recorder, file: FileId, i: u64) {
    let start = recorder.now();
    let event = Event {
        file,
        op: Op::Write,
        flags: Flags::POSITIONAL,
        offset: i * 10,
        size: 10,
        start,
        end: recorder.now(),
        result: 10,
    };
    recorder.record(&event);
}

/// Records an asynchronous call that was submitted with these flags and ends now.
fn asynchronous(recorder: Recorder, file: &[u8], flags: Flags) {
    let (file, now) = (recorder.file_id(file), recorder.now());
    let flags = Flags::ASYNC.with(flags);
    recorder.record(&Event { file, op: Op::Write, flags, offset: 0, size: 1, start: now, end: now, result: 1 });
}

fn calls(recorder: Recorder, file: FileId, range: std::ops::Range<u64>) {
    range.for_each(|i| call(recorder, file, i));
}

/// Records for ever, and counts its records in a file.
fn endless(recorder: Recorder) {
    let counter = std::fs::File::options().write(true).open(std::env::var(ENV_COUNTER).unwrap()).unwrap();
    let file = recorder.file_id(b"/data/a");
    for i in 0.. {
        call(recorder, file, i);
        counter.write_all_at(&(i + 1).to_ne_bytes(), 0).unwrap();
    }
}

fn wait(pid: i32) {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
}

/// A child and a grandchild use a file that the parent opened, without informing the recorder of
/// the forks.
fn fork(recorder: Recorder) {
    let inherited = recorder.file_id(b"/data/inherited");
    calls(recorder, inherited, 0..2000);
    let child = unsafe { libc::fork() };
    if child == 0 {
        calls(recorder, inherited, 2000..2100);
        calls(recorder, recorder.file_id(b"/data/child"), 0..50);
        let grandchild = unsafe { libc::fork() };
        if grandchild == 0 {
            assert_eq!(recorder.file_id(b"/data/inherited"), inherited);
            calls(recorder, inherited, 3000..3010);
            unsafe { libc::_exit(0) }
        }
        wait(grandchild);
        unsafe { libc::_exit(0) }
    }
    calls(recorder, recorder.file_id(b"/data/parent"), 0..70);
    wait(child);
    calls(recorder, inherited, 4000..4005);
}

/// The parent has opened a file but not recorded any call when it forks.
fn fork_first(recorder: Recorder) {
    let file = recorder.file_id(b"/data/a");
    let child = unsafe { libc::fork() };
    if child == 0 {
        calls(recorder, file, 0..5);
        unsafe { libc::_exit(0) }
    }
    wait(child);
    calls(recorder, file, 0..7);
}

fn fork_without_dir(recorder: Recorder) {
    let file = recorder.file_id(b"/data/a");
    calls(recorder, file, 0..10);
    let dir = PathBuf::from(std::env::var_os(ENV_DIR).unwrap());
    let elsewhere = dir.with_extension("moved");
    std::fs::rename(&dir, &elsewhere).unwrap();
    let child = unsafe { libc::fork() };
    if child == 0 {
        calls(recorder, file, 10..20);
        unsafe { libc::_exit(0) }
    }
    wait(child);
    std::fs::rename(&elsewhere, &dir).unwrap();
    calls(recorder, file, 20..30);
}

/// A child that shares the memory, as after vfork, while the thread that made it waits.
fn shared_memory_child(recorder: Recorder) {
    static RECORDER: std::sync::OnceLock<Recorder> = std::sync::OnceLock::new();
    extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
        let recorder = *RECORDER.get().unwrap();
        calls(recorder, recorder.file_id(b"/data/child"), 0..5);
        0
    }
    let _ = RECORDER.set(recorder);
    // First on a thread without a window, then on one with a window.
    for _ in 0..2 {
        let mut stack = vec![0u8; 256 * 1024];
        let top = unsafe { stack.as_mut_ptr().add(stack.len() - 64) };
        let top = (top as usize & !63) as *mut libc::c_void;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = unsafe { libc::clone(child, top, flags, std::ptr::null_mut()) };
        assert!(pid > 0);
        wait(pid);
        calls(recorder, recorder.file_id(b"/data/parent"), 0..5);
    }
}

/// The MPI library's information takes precedence over the environment, also for children. The
/// collective flag is per thread.
fn job(recorder: Recorder) {
    recorder.set_job(3, 8, Some(1));
    stripewise_recorder::set_collective(true);
    calls(recorder, recorder.file_id(b"/data/inside"), 0..5);
    asynchronous(recorder, b"/data/asynchronous", Flags::NONE);
    asynchronous(recorder, b"/data/asynchronous/inside", stripewise_recorder::collective());
    std::thread::spawn(move || calls(recorder, recorder.file_id(b"/data/beside"), 0..5)).join().unwrap();
    stripewise_recorder::set_collective(false);
    calls(recorder, recorder.file_id(b"/data/after"), 0..5);
    let child = unsafe { libc::fork() };
    if child == 0 {
        calls(recorder, recorder.file_id(b"/data/child"), 0..5);
        unsafe { libc::_exit(0) }
    }
    wait(child);
}

fn threads(recorder: Recorder) {
    // A file that is opened when the spool is full gets no number, so its calls could not be
    // counted: all threads open their files first.
    let opened = &std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let file = recorder.file_id(format!("/data/{thread}").as_bytes());
                opened.wait();
                calls(recorder, file, 0..10_000);
            });
        }
    });
}

fn late_files(recorder: Recorder) {
    calls(recorder, recorder.file_id(b"/data/a"), 0..80_000);
    let long = "x".repeat(4000);
    for file in 0..100 {
        calls(recorder, recorder.file_id(format!("/data/{long}{file}").as_bytes()), 0..10);
    }
}

fn short_threads(recorder: Recorder) {
    let file = recorder.file_id(b"/data/a");
    for i in 0..5_000 {
        std::thread::spawn(move || calls(recorder, file, 3 * i..3 * i + 3)).join().unwrap();
    }
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);
static SIGNAL_FILE: std::sync::OnceLock<(Recorder, FileId)> = std::sync::OnceLock::new();

/// The handler of a timer records while its thread does.
fn signals(recorder: Recorder) {
    extern "C" fn handler(_: libc::c_int) {
        let (recorder, file) = *SIGNAL_FILE.get().unwrap();
        call(recorder, file, SIGNALS.fetch_add(1, Ordering::Relaxed));
    }
    let _ = SIGNAL_FILE.set((recorder, recorder.file_id(b"/data/signal")));
    let file = recorder.file_id(b"/data/a");
    let every = libc::timeval { tv_sec: 0, tv_usec: 100 };
    let handler: extern "C" fn(libc::c_int) = handler;
    unsafe {
        libc::signal(libc::SIGALRM, handler as libc::sighandler_t);
        libc::setitimer(
            libc::ITIMER_REAL,
            &libc::itimerval { it_interval: every, it_value: every },
            std::ptr::null_mut(),
        );
    }
    let mut i = 0;
    while SIGNALS.load(Ordering::Relaxed) < 500 {
        call(recorder, file, i);
        i += 1;
        if i.is_multiple_of(100) {
            // A name from time to time, since names go to the log, too.
            recorder.file_id(format!("/data/name/{i}").as_bytes());
        }
    }
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_IGN) };
    let counts = [i, SIGNALS.load(Ordering::Relaxed)].map(u64::to_ne_bytes).concat();
    std::fs::write(std::env::var(ENV_COUNTER).unwrap(), counts).unwrap();
}

fn file_size_limit(recorder: Recorder) {
    let file = recorder.file_id(b"/data/a");
    calls(recorder, file, 0..10);
    let limit = libc::rlimit { rlim_cur: 100_000, rlim_max: 100_000 };
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
    calls(recorder, file, 10..10_000);
}

// Functions that the tests share.

fn command(scenario: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "scenario", "--nocapture"]).env(ENV_SCENARIO, scenario).stdout(Stdio::null());
    command.env("OMPI_COMM_WORLD_RANK", "5").env("SLURM_PROCID", "0");
    for variable in ["PMIX_RANK", "PMI_RANK"] {
        command.env_remove(variable);
    }
    command
}

struct Spool {
    dir: tempfile::TempDir,
}

impl Spool {
    fn new() -> Spool {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("spool")).unwrap();
        std::fs::write(dir.path().join("counter"), [0; 16]).unwrap();
        Spool { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("spool")
    }

    fn command(&self, scenario: &str) -> Command {
        let mut command = command(scenario);
        command.env(ENV_DIR, self.path()).env(ENV_COUNTER, self.dir.path().join("counter"));
        command
    }

    fn start(&self, scenario: &str) -> Child {
        self.command(scenario).spawn().unwrap()
    }

    /// Runs a scenario to its end.
    fn run(&self, scenario: &str) -> std::process::ExitStatus {
        self.start(scenario).wait().unwrap()
    }

    fn counters(&self) -> [u64; 2] {
        let mut bytes = [0; 16];
        std::fs::File::open(self.dir.path().join("counter")).unwrap().read_exact(&mut bytes).unwrap();
        [0, 8].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()))
    }

    fn merge(&self) -> (Merged, Vec<(String, Request)>, Trace) {
        let output = self.dir.path().join("trace");
        let merged = merge(&self.path(), &output, &Meta::default(), &mut |_| {}).unwrap();
        let trace = Trace::open(&output).unwrap();
        (merged, rows(&output), trace)
    }
}

fn rows(path: &Path) -> Vec<(String, Request)> {
    let trace = Trace::open(path).unwrap();
    let (mut requests, names) = (trace.requests().unwrap(), trace.file_names().unwrap());
    let mut all = Vec::new();
    while let Some(batch) = requests.next_batch().unwrap() {
        all.extend(batch.iter().map(|row| (names[row.file as usize].clone(), *row)));
    }
    all
}

/// The call numbers per file and process, sorted.
fn numbers(rows: &[(String, Request)]) -> BTreeMap<(String, u32), Vec<u64>> {
    let mut numbers: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (file, row) in rows {
        assert_eq!((row.op, row.flags, row.size, row.result), (Op::Write, Flags::POSITIONAL, 10, 10));
        numbers.entry((file.clone(), row.process)).or_default().push(row.offset / 10);
    }
    numbers.values_mut().for_each(|list| list.sort_unstable());
    numbers
}

fn range(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn kill_loses_nothing_that_was_recorded() {
    let rounds = if std::env::var_os("STRIPEWISE_LONG").is_some() { 200 } else { 15 };
    for round in 0..rounds {
        let spool = Spool::new();
        let mut child = spool.start("endless");
        // A different moment in every round, from the first window to some later ones.
        while spool.counters()[0] < 1 + round * 391 {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let counted = spool.counters()[0];
        let (merged, rows, _) = spool.merge();
        assert_eq!(merged.incomplete, [""; 0]);
        assert!(merged.calls == counted || merged.calls == counted + 1, "{} {counted}", merged.calls);
        assert_eq!(numbers(&rows)[&("/data/a".into(), 0)], range(0..merged.calls));
    }
}

#[test]
fn exit_without_destructors_and_abort_lose_nothing() {
    for (scenario, code, signal) in [("exit", Some(3), None), ("abort", None, Some(libc::SIGABRT))] {
        let spool = Spool::new();
        let status = spool.run(scenario);
        assert_eq!((status.code(), status.signal()), (code, signal));
        let (merged, rows, trace) = spool.merge();
        assert_eq!(merged.incomplete, [""; 0]);
        assert_eq!(numbers(&rows)[&("/data/a".into(), 0)], range(0..3000));
        let process = &trace.processes()[0];
        assert_eq!(process.rank, 5);
        assert!(process.program.contains("processes") && !process.node.is_empty() && process.pid > 0);
    }
}

#[test]
fn times_are_those_of_the_clock() {
    let spool = Spool::new();
    let now_ns = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let before_ns = now_ns();
    spool.run("exit");
    let after_ns = now_ns();
    let (_, rows, trace) = spool.merge();
    let start_ns = trace.meta().start_unix_ns;
    // Both clocks are the kernel's; the slack allows for the time that their comparison takes.
    let slack_ns = 1_000_000;
    assert!(before_ns < start_ns + slack_ns && start_ns < after_ns, "{before_ns} {start_ns} {after_ns}");
    let (_, last) = rows.last().unwrap();
    assert!(start_ns + last.end_ns < after_ns + slack_ns);
    assert!(last.start_ns > 0 && rows.iter().all(|(_, row)| row.end_ns >= row.start_ns));
}

#[test]
fn exec_starts_a_new_spool_and_keeps_the_old_one() {
    let spool = Spool::new();
    spool.run("exec");
    let (merged, rows, _) = spool.merge();
    assert_eq!(merged.processes, 2);
    let numbers = numbers(&rows);
    // The process before and after exec has the same pid and, here, the same program.
    assert_eq!(numbers[&("/data/before".into(), 0)], range(0..2000));
    assert_eq!(numbers[&("/data/a".into(), 0)], range(0..3000));
}

#[test]
fn forked_children_get_spools_of_their_own_and_keep_their_files() {
    let spool = Spool::new();
    assert!(spool.run("fork").success());
    let (merged, rows, trace) = spool.merge();
    assert_eq!((merged.processes, merged.incomplete.len()), (3, 0));
    assert_eq!(trace.processes().len(), 3);
    let mut of_inherited = Vec::new();
    for ((file, process), list) in numbers(&rows) {
        match file.as_str() {
            "/data/inherited" => of_inherited.push(list),
            "/data/child" => assert_eq!(list, range(0..50)),
            "/data/parent" => assert_eq!(list, range(0..70)),
            other => panic!("{other} {process}"),
        }
    }
    of_inherited.sort();
    let parents: Vec<u64> = (0..2000).chain(4000..4005).collect();
    assert_eq!(of_inherited, [parents, range(2000..2100), range(3000..3010)]);
}

#[test]
fn an_mpi_library_says_rank_node_and_collective_calls() {
    let spool = Spool::new();
    assert!(spool.run("job").success());
    let (merged, rows, trace) = spool.merge();
    assert_eq!(merged.calls, 22);
    let ranks: Vec<i32> = trace.processes().iter().map(|process| process.rank).collect();
    assert_eq!(ranks, [3, 3]);
    assert!(rows.iter().all(|(file, row)| row.flags.has(Flags::COLLECTIVE) == file.ends_with("/inside")));
    assert_eq!(merged.incomplete.len(), 1);
    assert!(
        merged.incomplete[0].starts_with("7 ranks from 0 on of 8 left no spool"),
        "{:?}",
        merged.incomplete
    );
}

#[test]
fn a_child_may_be_forked_before_the_first_record() {
    let spool = Spool::new();
    assert!(spool.run("fork_first").success());
    let (merged, rows, _) = spool.merge();
    assert_eq!((merged.calls, merged.incomplete.len()), (12, 0));
    let mut per_process: Vec<_> = numbers(&rows).into_values().collect();
    per_process.sort();
    assert_eq!(per_process, [range(0..5), range(0..7)]);
}

#[test]
fn a_child_without_a_spool_makes_the_trace_incomplete() {
    let spool = Spool::new();
    assert!(spool.run("fork_without_dir").success());
    let (merged, rows, trace) = spool.merge();
    assert!(trace.incomplete().unwrap().contains("calls of 1 forked process(es) could not be recorded"));
    assert_eq!(merged.calls, 20);
    let expected: Vec<u64> = (0..10).chain(20..30).collect();
    assert_eq!(numbers(&rows)[&("/data/a".into(), 0)], expected);
}

#[test]
fn a_child_that_shares_the_memory_is_recorded_as_its_parent() {
    let spool = Spool::new();
    assert!(spool.run("shared_memory_child").success());
    let (merged, rows, _) = spool.merge();
    assert_eq!((merged.processes, merged.incomplete.len()), (1, 0));
    let numbers = numbers(&rows);
    let twice: Vec<u64> = (0..5).flat_map(|i| [i, i]).collect();
    assert_eq!(numbers[&("/data/child".into(), 0)], twice);
    assert_eq!(numbers[&("/data/parent".into(), 0)], twice);
}

#[test]
fn threads_record_side_by_side() {
    let spool = Spool::new();
    assert!(spool.run("threads").success());
    let (merged, rows, _) = spool.merge();
    assert_eq!(merged.incomplete, [""; 0]);
    for thread in 0..8 {
        assert_eq!(numbers(&rows)[&(format!("/data/{thread}"), 0)], range(0..10_000));
    }
}

#[test]
fn many_short_threads_share_few_windows() {
    let spool = Spool::new();
    assert!(spool.run("short_threads").success());
    let (merged, rows, _) = spool.merge();
    assert_eq!(merged.incomplete, [""; 0]);
    assert_eq!(numbers(&rows)[&("/data/a".into(), 0)], range(0..15_000));
    let live = std::fs::read_dir(spool.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .find(|entry| entry.path().extension().unwrap() == "live");
    // The kernel may still list a thread that was joined when the next thread checks.
    let bytes = live.unwrap().metadata().unwrap().len();
    assert!(bytes < 50 * 64 * 1024, "{bytes}");
}

#[test]
fn signal_handlers_record_without_harm() {
    let spool = Spool::new();
    assert!(spool.run("signals").success());
    let [thread, handler] = spool.counters();
    let (merged, rows, _) = spool.merge();
    assert_eq!(merged.incomplete, [""; 0]);
    let numbers = numbers(&rows);
    assert_eq!(numbers[&("/data/a".into(), 0)], range(0..thread));
    assert_eq!(numbers[&("/data/signal".into(), 0)], range(0..handler));
}

#[test]
fn a_full_spool_makes_the_trace_incomplete_and_tells_how_much_is_missing() {
    let spool = Spool::new();
    let status = spool.command("threads").env(ENV_LIMIT, "2000000").status().unwrap();
    assert!(status.success());
    let (merged, rows, trace) = spool.merge();
    let reason = trace.incomplete().unwrap();
    let missing = 80_000 - rows.len();
    assert!(missing > 0 && rows.len() > 30_000, "{}", rows.len());
    assert!(reason.starts_with(&format!("at least {missing} calls were left out")), "{reason} {missing}");
    assert_eq!(merged.incomplete.len(), 1);
    let bytes: u64 =
        std::fs::read_dir(spool.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= 2_000_000 + 4096, "{bytes}");
}

#[test]
fn a_file_whose_name_does_not_fit_any_more_counts_as_one_call() {
    let spool = Spool::new();
    assert!(spool.command("late_files").env(ENV_LIMIT, "2000000").status().unwrap().success());
    let (_, rows, trace) = spool.merge();
    let reason = trace.incomplete().unwrap();
    let missing = 81_000 - rows.len();
    let said: usize = reason["at least ".len()..].split(' ').next().unwrap().parse().unwrap();
    assert!(missing - 9 * 100 <= said && said < missing, "{reason} {missing}");
}

#[test]
fn a_file_size_limit_does_not_kill_the_process() {
    let spool = Spool::new();
    assert!(spool.run("file_size_limit").success());
    let (merged, rows, _) = spool.merge();
    assert!(merged.incomplete[0].contains("File too large"), "{:?}", merged.incomplete);
    assert!(rows.len() >= 1364 && rows.len() < 10_000, "{}", rows.len());
}

#[test]
fn without_a_directory_nothing_starts() {
    let settings =
        Settings { dir: b"/nonexistent/spool", only: b"", exclude: b"", limit_bytes: DEFAULT_LIMIT_BYTES };
    assert!(Recorder::start(&settings).is_none());
}

#[test]
fn files_that_nobody_wants_cost_no_name() {
    let spool = Spool::new();
    let dir = spool.path();
    let settings = Settings {
        dir: dir.as_os_str().as_encoded_bytes(),
        only: b"",
        exclude: b"*.log",
        limit_bytes: DEFAULT_LIMIT_BYTES,
    };
    let recorder = Recorder::start(&settings).unwrap();
    for path in ["/usr/lib/x", "/data/x.log", "/proc/self/maps"] {
        assert_eq!(recorder.file_id(path.as_bytes()), FileId::NOT_RECORDED);
    }
    call(recorder, FileId::NOT_RECORDED, 1);
    let file = recorder.file_id(b"/data/x");
    assert_eq!(recorder.file_id(b"/data/x"), file);
    assert_ne!(recorder.file_id(b"/data/y"), file);
    call(recorder, file, 1);
    let (_, rows, _) = spool.merge();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].0, "/data/x");
}
