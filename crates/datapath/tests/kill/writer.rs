//! A process that does random operations until it is killed.

use std::path::Path;
use std::sync::Arc;
use stripewise_random::Random;

use stripewise_datapath::{IoOptions, LogicalFile, Opened, Runtime};
use stripewise_sys::fd::close_public;
use stripewise_sys::{IoVec, Mode, OFlags};

use crate::Stage;
use crate::notes::{Notes, Operation, SLOT_BYTES, bytes, record};

/// Number of slots per writer in the shared file.
const SLOTS: usize = 60;
const OWN_BYTES_MAX: usize = 60_000;
const MODE: Mode = Mode::from_raw_mode(0o644);
const CREATE: OFlags = OFlags::RDWR.union(OFlags::CREATE);

/// An application's descriptor and its file.
struct Open(i32, Arc<LogicalFile>);

impl Drop for Open {
    fn drop(&mut self) {
        self.1.closing();
        close_public(self.0);
    }
}

fn open(runtime: &Runtime, path: &Path, flags: OFlags) -> Open {
    match runtime.open(None, path, flags, MODE).unwrap() {
        Opened::Managed(raw, file) => Open(raw, file),
        Opened::Plain(_) => panic!("{} is plain", path.display()),
    }
}

/// Does `operations` operations. With 0, returns only by a panic.
pub fn run(stage: &Stage, (writer, writers): (usize, usize), seed: u64, operations: u64) {
    let runtime = stage.working_runtime();
    let mut notes = Notes::create(&stage.notes(writer));
    let mut random = Random(seed.wrapping_add(writer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // All writers create the shared files at the same time.
    let shared = open(&runtime, &stage.file("shared"), CREATE);
    let log = open(&runtime, &stage.file("log"), CREATE);
    let path = stage.file(&format!("own{writer}"));
    let mut own: Option<Open> = None;
    for number in 0..if operations > 0 { operations } else { u64::MAX } {
        // Unique among the writers of a round, and different between rounds.
        let seed = (number * writers as u64 + writer as u64) << 8 | (seed & 0xff);
        let operation = match (random.index(20), &own) {
            (0..=3, _) => Operation::Slot { slot: random.index(SLOTS) * writers + writer, seed },
            (4..=6, _) => Operation::Log { seed },
            (_, None) => Operation::Create,
            (7..=13, _) => {
                let offset = random.index(OWN_BYTES_MAX);
                Operation::Write { offset, len: 1 + random.index(OWN_BYTES_MAX - offset).min(12_000), seed }
            }
            (14..=15, _) => Operation::Append { len: 1 + random.index(4000), seed },
            (16, _) => Operation::Truncate { size: random.index(OWN_BYTES_MAX) },
            (17, _) => Operation::Sync,
            (18, _) => Operation::Empty,
            (_, _) => Operation::Remove,
        };
        notes.around(operation, || match operation {
            Operation::Create => own = Some(open(&runtime, &path, CREATE | OFlags::EXCL)),
            Operation::Remove => {
                own = None;
                runtime.unlink(None, &path).unwrap();
            }
            Operation::Empty => own = Some(open(&runtime, &path, OFlags::WRONLY | OFlags::TRUNC)),
            Operation::Slot { slot, seed } => write(&shared.1, &bytes(seed, SLOT_BYTES), slot * SLOT_BYTES),
            Operation::Log { seed } => append(&log.1, &record(seed)),
            own_operation => on_own(&own.as_ref().unwrap().1, own_operation),
        });
        // Only without kills: a kill in these operations could leave states that the notes do not
        // describe.
        if operations > 0 && number % 40 == 39 {
            let slot = random.index(SLOTS) * writers + writer;
            let seed = seed | 0x80;
            notes.around(Operation::Slot { slot, seed }, || {
                in_a_child(&runtime, || write(&shared.1, &bytes(seed, SLOT_BYTES), slot * SLOT_BYTES));
            });
            if own.is_some() {
                let other = stage.file(&format!("renamed{writer}"));
                runtime.rename(None, &path, None, &other, 0).unwrap();
                runtime.rename(None, &other, None, &path, 0).unwrap();
            }
        }
    }
}

/// Runs `act` in a forked child, which exits with _exit.
fn in_a_child(runtime: &Runtime, act: impl FnOnce()) {
    // SAFETY: the child uses no state that other threads of the parent may hold, except state made
    // for forks.
    unsafe {
        match libc::fork() {
            0 => {
                runtime.after_fork_child();
                act();
                libc::_exit(0)
            }
            child => {
                let mut status = -1;
                assert!(libc::waitpid(child, &mut status, 0) == child && status == 0, "{status}");
            }
        }
    }
}

fn on_own(file: &LogicalFile, operation: Operation) {
    match operation {
        Operation::Write { offset, len, seed } => write(file, &bytes(seed, len), offset),
        Operation::Append { len, seed } => append(file, &bytes(seed, len)),
        Operation::Truncate { size } => file.truncate(size as u64).unwrap(),
        _ => file.sync(false).unwrap(),
    }
}

fn write(file: &LogicalFile, bytes: &[u8], offset: usize) {
    let vector = [IoVec { base: bytes.as_ptr().cast_mut(), len: bytes.len() }];
    // SAFETY: the buffer is only read.
    let done = unsafe { file.write_at(&vector, offset as u64, IoOptions::default()) };
    assert_eq!(done, Ok(bytes.len()));
}

fn append(file: &LogicalFile, bytes: &[u8]) {
    let vector = [IoVec { base: bytes.as_ptr().cast_mut(), len: bytes.len() }];
    // SAFETY: the buffer is only read.
    let done = unsafe { file.append(&vector, IoOptions::default()) };
    assert_eq!(done.map(|(_, done)| done), Ok(bytes.len()));
}
