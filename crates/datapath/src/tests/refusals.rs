//! Refusals of the kernel: a missing permission, or a server error with the same errno.

use std::sync::Arc;

use stripewise_faulty::{Disk, Faulty, Journal};
use stripewise_sys::OFlags;

use super::support::*;
use crate::{Errno, Runtime};

/// Creates a file with some bytes, and a process whose calls can be made to fail.
fn prepared() -> (Stage, Arc<Faulty>, Arc<Runtime>) {
    let stage = Stage::new(small());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    drop(opened);
    let process = Faulty::new(&Disk::new(stage.root.path(), Journal::Posix).unwrap(), 0);
    let runtime = stage.runtime_on(process.clone());
    (stage, process, runtime)
}

#[test]
fn a_refusal_that_passes_does_not_make_a_file_read_only() {
    for error in [Errno::ACCESS, Errno::PERM] {
        let (stage, process, runtime) = prepared();
        process.fail("open", ".0", error, 1);
        let reader = open(&runtime, &stage.path("f"), OFlags::RDONLY).unwrap();
        let writer = open(&runtime, &stage.path("f"), OFlags::RDWR).unwrap();
        assert!(reader.file.is_writable() && writer.file.is_writable());
        assert_eq!(writer.file.write(b"new", 0, 1), Ok(3));
    }
}

#[test]
fn an_anchor_that_is_open_and_cannot_be_read_is_not_taken_for_a_plain_file() {
    for call in ["stat", "pread"] {
        let (stage, process, runtime) = prepared();
        let path = stage.path("f");
        let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
        process.fail(call, "/f", Errno::ACCESS, 1);
        let found = runtime.correct_stat(None, &path, true, &mut stat);
        assert_eq!(found, Err(Errno::IO), "{call}");
        assert_eq!(runtime.correct_stat(None, &path, true, &mut stat), Ok(true));
        assert_eq!(stat.st_size, 300);
    }
}
