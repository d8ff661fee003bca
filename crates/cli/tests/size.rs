//! Large inputs: bounded memory, bounded output, and nothing left behind.

mod support;

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stripewise_cluster::Plan;
use stripewise_trace::{Flags, Meta, Op, ProcessInfo, Request, TraceWriter};
use support::{Place, directories, tier};

/// Maximum number of lines of output, however many files there are.
const LINES_MAX: usize = 200;

/// Signals that end a command.
const SIGNALS: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Limits the command's memory to `bytes` of address space. The command heeds signals even if this
/// test, which may run in the background, ignores them.
fn limited(mut command: Command, bytes: u64) -> Command {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `signal` and `setrlimit` are async-signal-safe, and `limit` lives as long as the
    // closure.
    unsafe {
        command.pre_exec(move || {
            SIGNALS.iter().for_each(|&signal| _ = libc::signal(signal, libc::SIG_DFL));
            match libc::setrlimit(libc::RLIMIT_AS, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        })
    };
    command
}

/// A name of letters only.
fn letters(number: u32) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// Writes a trace of one write of 64 KiB to each file.
fn trace(place: &Place, names: impl Iterator<Item = String>) {
    let mut writer = TraceWriter::create(&place.path("t")).unwrap();
    let process = ProcessInfo { node: "node".into(), pid: 1, rank: 0, program: "app".into() };
    let process = writer.process_id(&process);
    for (name, index) in names.zip(0..) {
        let request = Request {
            process,
            tid: 1,
            file: writer.file_id(&name),
            op: Op::Write,
            flags: Flags::POSITIONAL,
            offset: 0,
            size: 1 << 16,
            result: 1 << 16,
            start_ns: 1000 * index,
            end_ns: 1000 * index + 900,
        };
        writer.push(&request).unwrap();
    }
    writer.finish(&Meta { origin: "synthetic".into(), ..Meta::default() }).unwrap();
    let class = [(5e-5, 1e-8); 4];
    place.write("cluster.toml", &tier("hdd", class, &directories("/disks/h", 2), "1T", false));
}

/// Plans with at most 1 GiB of memory. Returns the number of rules.
#[track_caller]
fn planned(place: &Place, flags: &str) -> usize {
    let command = place.command(&format!("plan t -q {flags}"));
    let output = limited(command, 1 << 30).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap().lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines");
    Plan::parse(&place.read("plan.toml"), "plan.toml").unwrap().rules.len()
}

#[test]
fn names_that_differ_in_letters_are_planned_by_directory() {
    let place = Place::new();
    let names = if std::env::var_os("STRIPEWISE_LONG").is_some() { 2_000_000 } else { 100_000 };
    trace(&place, (0..names).map(|number| format!("/data/{}", letters(number))));
    assert_eq!(planned(&place, ""), 1);
    assert!(place.read("plan.toml").contains("\"/data/*\""));
}

#[test]
fn files_that_are_not_wanted_are_not_planned() {
    let place = Place::new();
    trace(&place, (0..1000).map(|number| format!("/data/{}", letters(number))));
    assert_eq!(planned(&place, "--only /data/a"), 1);
    let plan = Plan::parse(&place.read("plan.toml"), "plan.toml").unwrap();
    assert_eq!(plan.rules[0].pattern, "/data/a");
    let json = place.json("plan t -q --only /data/a --json");
    assert_eq!((&json["files"][0]["count"], json["files"].as_array().unwrap().len()), (&1.into(), 1));
}

#[test]
fn many_patterns_of_files_take_bounded_output() {
    let place = Place::new();
    trace(&place, (0..400).map(|number| format!("/{}/file", letters(number))));
    assert_eq!(planned(&place, ""), 400);
    assert_eq!(planned(&place, "--candidates"), 400);
    let lines = place.text("trace --summary t").lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines");
}

/// Waits until the trace has been begun.
fn wait_for_output(place: &Place, child: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(600);
    let begun = || {
        let mut entries = std::fs::read_dir(place.directory()).unwrap();
        entries.any(|entry| entry.unwrap().metadata().is_ok_and(|file| file.len() > 1 << 16))
    };
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "the command has ended");
        assert!(Instant::now() < deadline, "nothing is written");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_long_synthetic_trace_takes_little_memory_and_leaves_nothing_if_it_is_killed() {
    for signal in SIGNALS {
        let place = Place::new();
        let command = place.command("synth ior --procs 8 --transfer 4K --total 4T --shared -o t");
        let mut child = limited(command, 256 << 20).stderr(Stdio::null()).spawn().unwrap();
        wait_for_output(&place, &mut child);
        // SAFETY: the child has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        assert!(!child.wait().unwrap().success());
        assert_eq!(std::fs::read_dir(place.directory()).unwrap().count(), 0);
    }
}

#[test]
fn a_random_order_that_does_not_fit_into_memory_is_refused() {
    let place = Place::new();
    let message = place.error("synth ior --procs 1 --transfer 1 --total 1G --access random -o t");
    assert!(message.contains("choose more segments"), "{message}");
}
