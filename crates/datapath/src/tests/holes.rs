//! The holes of a file are the holes of its objects, byte by byte.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{striped, two_part};
use stripewise_sys::{Real, SeekFrom, Sys};

use super::support::*;
use crate::{Errno, LogicalFile, Whence};

/// Upper limit of the offsets of all operations.
const END: u64 = 150_000;

#[derive(Clone, Debug)]
enum Op {
    Write(u64, u64),
    Truncate(u64),
    Allocate(u64, u64),
}

fn ops(unit: u64) -> impl Strategy<Value = Vec<Op>> {
    let range = || (0..END / unit, 0..8000 / unit).prop_map(move |(at, len)| (at * unit, (len + 1) * unit));
    vec(
        prop_oneof![
            6 => range().prop_map(|(at, len)| Op::Write(at, len)),
            1 => (0..END / unit).prop_map(move |size| Op::Truncate(size * unit)),
            1 => range().prop_map(|(at, len)| Op::Allocate(at, len)),
        ],
        0..12,
    )
}

fn apply(file: &LogicalFile, ops: &[Op]) {
    for op in ops {
        match *op {
            Op::Write(at, len) => drop(file.write(&pattern(1, len as usize), at, 1).unwrap()),
            Op::Truncate(size) => file.truncate(size).unwrap(),
            Op::Allocate(at, len) => file.allocate(at, len, false).unwrap(),
        }
    }
}

/// Which bytes below `size` are data according to `seek`.
fn map(size: u64, seek: impl Fn(Whence, u64) -> Result<u64, Errno>) -> Vec<bool> {
    let mut map = vec![false; size as usize];
    let mut at = 0;
    while let Ok(data) = seek(Whence::Data, at) {
        at = seek(Whence::Hole, data).unwrap();
        assert!(data < at && at <= size, "data from {data} to {at} of {size}");
        map[data as usize..at as usize].fill(true);
    }
    assert_eq!(seek(Whence::Data, at), Err(Errno::NXIO));
    assert_eq!(seek(Whence::Hole, size), Err(Errno::NXIO));
    map
}

fn of_kernel(fd: BorrowedFd<'_>) -> Vec<bool> {
    let size = Real.stat(fd).unwrap().st_size as u64;
    map(size, |whence, at| match whence {
        Whence::Data => Real.seek(fd, SeekFrom::Data(at)),
        Whence::Hole => Real.seek(fd, SeekFrom::Hole(at)),
    })
}

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(striped(&[0, 1, 2], 4096).unwrap()),
        Just(striped(&[1, 0], 1000).unwrap()),
        Just(two_part(&[(0, 5000), (2, 333), (0, 8192)], 60_000, &[(1, 12_288), (2, 1)]).unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn as_the_objects_have_them(layout in layouts(), ops in ops(1)) {
        let stage = Stage::new(layout.clone());
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        apply(&opened.file, &ops);
        let size = opened.file.size().unwrap();
        let set = opened.file.objects();
        let objects: Vec<_> = (0..set.len()).map(|index| of_kernel(set.fd(index).unwrap())).collect();
        let expected: Vec<bool> = (0..size).map(|offset| {
            let (target, at) = layout.locate(offset);
            objects[target as usize].get(at as usize).copied().unwrap_or(false)
        }).collect();
        prop_assert!(map(size, |whence, at| opened.file.seek(whence, at)) == expected);
        // Also search from arbitrary offsets.
        for at in (0..size).step_by(777) {
            let next = |data| expected[at as usize..].iter().position(|&is| is == data).map(|more| at + more as u64);
            prop_assert_eq!(opened.file.seek(Whence::Data, at), next(true).ok_or(Errno::NXIO));
            prop_assert_eq!(opened.file.seek(Whence::Hole, at), Ok(next(false).unwrap_or(size)));
        }
        let bytes = opened.file.all().unwrap();
        prop_assert!(bytes.iter().zip(&expected).all(|(&byte, &data)| data || byte == 0));
    }

    /// If stripes and writes are whole pages, the holes are those of a plain file.
    #[test]
    fn as_a_plain_file_has_them(ops in ops(4096)) {
        let stage = Stage::new(striped(&[0, 1, 2], 8192).unwrap());
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        let plain = tempfile::tempfile_in(stage.root.path()).unwrap();
        let ops: Vec<Op> = ops.into_iter().filter(|op| !matches!(op, Op::Allocate(..))).collect();
        apply(&opened.file, &ops);
        for op in &ops {
            match *op {
                Op::Write(at, len) => plain.write_all_at(&pattern(1, len as usize), at).unwrap(),
                Op::Truncate(size) => plain.set_len(size).unwrap(),
                Op::Allocate(..) => {}
            }
        }
        // A growing truncate writes an object's last byte, so one page more than in the plain file
        // may be data.
        let grown = ops.iter().any(|op| matches!(op, Op::Truncate(_)));
        let (ours, theirs) =
            (map(opened.file.size().unwrap(), |whence, at| opened.file.seek(whence, at)), of_kernel(plain.as_fd()));
        prop_assert_eq!(ours.len(), theirs.len());
        prop_assert!(ours.iter().zip(&theirs).all(|(&ours, &theirs)| ours == theirs || (grown && ours)));
    }
}
