//! Requests that one call on one object serves.

use stripewise_sys::{IoVec, OFlags};

use super::setup::Setup;
use super::support::*;
use crate::LogicalFile;

fn vector(memory: &mut [u8]) -> IoVec {
    IoVec { base: memory.as_mut_ptr(), len: memory.len() }
}

/// `None`: the request needs more than one call.
fn read(file: &LogicalFile, len: usize, offset: u64) -> Option<Vec<u8>> {
    let mut memory = vec![0xee; len];
    // SAFETY: the memory belongs to this frame.
    let done = unsafe { file.piece_to_read(offset, len)?.read(vector(&mut memory)) };
    (done == Ok(true)).then_some(memory)
}

fn write(file: &LogicalFile, bytes: &[u8], offset: u64) -> Option<usize> {
    let mut memory = bytes.to_vec();
    // SAFETY: the memory belongs to this frame.
    unsafe { file.piece_to_write(offset, bytes.len())?.write(vector(&mut memory)).ok() }
}

#[test]
fn a_piece_is_where_the_other_functions_find_it() {
    let stage = Stage::new(small());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let (file, mut bytes) = (&opened.file, pattern(1, 600));
    file.write(&bytes, 0, 1).unwrap();
    assert_eq!(file.size(), Ok(600));
    let mut served = 0;
    for offset in 0..600 {
        for len in [1, 3, 10, 100] {
            if let Some(read) = read(file, len, offset) {
                let range = offset as usize..offset as usize + len;
                assert_eq!(read, bytes[range.clone()], "{len} at {offset}");
                let new = pattern(offset + len as u64, len);
                assert_eq!(write(file, &new, offset), Some(len));
                bytes[range].copy_from_slice(&new);
                served += 1;
            }
        }
    }
    assert!(served > 600, "{served}");
    assert_eq!(file.all().unwrap(), bytes);
}

#[test]
fn what_needs_more_than_one_call_is_no_piece() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let opened = open(&runtime, &path, CREATE).unwrap();
    let file = &opened.file;
    file.write(&pattern(1, 600), 0, 1).unwrap();
    assert!(read(file, 1, 0).is_none(), "the size was never asked for");
    assert_eq!(file.size(), Ok(600));
    assert!(read(file, 1, 599).is_some() && read(file, 1, 600).is_none() && read(file, 2, 599).is_none());
    assert!(file.piece_to_read(0, 0).is_none() && file.piece_to_write(0, 0).is_none());
    assert!(file.piece_to_write(0, 600).is_none(), "several objects");
    assert!(file.piece_to_write(u64::MAX, 1).is_none() && file.piece_to_write(i64::MAX as u64, 1).is_none());
    // Cut by another process, the file is shorter than this one knows.
    open(&stage.runtime(), &path, CREATE).unwrap().file.truncate(0).unwrap();
    assert!(read(file, 1, 0).is_none());
    drop(opened);
    let opened = open(&stage.runtime(), &path, OFlags::RDONLY).unwrap();
    assert!(opened.file.is_writable(), "any descriptor of the process may come to write");
}

#[test]
fn a_file_with_copies_has_no_pieces() {
    let stage = Stage::of(&Setup::replicas());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(&pattern(1, 600), 0, 1).unwrap();
    assert_eq!(opened.file.size(), Ok(600));
    assert!(opened.file.piece_to_read(0, 1).is_none() && opened.file.piece_to_write(0, 1).is_none());
}

/// A write past the end of a mapped file makes the objects longer, so that its pages are there.
#[test]
fn a_write_that_outgrows_a_mapping_is_no_piece() {
    const PAGE: u64 = 4096;
    let stage = Stage::new(stripewise_layout::constructors::striped(&[0, 1], PAGE).unwrap());
    let opened = open(&stage.real_runtime(), &stage.path("f"), CREATE).unwrap();
    let file = &opened.file;
    file.write(b"x", 0, 1).unwrap();
    let piece = file.piece_to_write(3 * PAGE, 1).unwrap();
    file.map_extents(0, 4 * PAGE, PAGE).unwrap();
    assert!(file.piece_to_write(10, 1).is_none());
    assert_eq!(write(file, b"y", 0), Some(1));
    // Mapped between the question and the write.
    // SAFETY: the memory belongs to this frame.
    assert_eq!(unsafe { piece.write(vector(&mut [b'z'])) }, Ok(1));
    assert!(file.outgrows_mapping(3 * PAGE + 1));
    file.grow_mapped_after(3 * PAGE + 1).unwrap();
    assert!(!file.outgrows_mapping(3 * PAGE + 1));
    assert_eq!(file.size(), Ok(3 * PAGE + 1));
}
