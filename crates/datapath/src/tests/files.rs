//! The calls on one file by one process.

use std::os::unix::fs::MetadataExt;

use stripewise_sys::{Mode, OFlags};

use super::support::*;
use crate::{Change, Errno, Opened, Whence};

#[test]
fn what_is_written_is_read() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let bytes = pattern(1, 1000);
    let opened = open(&runtime, &path, CREATE).unwrap();
    assert_eq!(opened.file.write(&bytes, 0, 4), Ok(1000));
    assert_eq!(opened.file.read(500, 250, 3).unwrap(), bytes[250..750]);
    assert_eq!(opened.file.read(500, 990, 3).unwrap(), bytes[990..]);
    assert_eq!(opened.file.read(500, 1000, 1).unwrap(), b"");
    drop(opened);
    let opened = open(&stage.runtime(), &path, OFlags::RDONLY).unwrap();
    assert_eq!(opened.file.all().unwrap(), bytes);
}

#[test]
fn the_anchor_says_what_it_is_and_nobody_may_write_to_it() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let opened = open(&runtime, &path, CREATE).unwrap();
    opened.file.write(&pattern(1, 10), 999_990, 1).unwrap();
    drop(opened);
    let text = std::fs::read(&path).unwrap();
    assert!(text.starts_with(b"stripewise file, format 1\n# This file's bytes"));
    let anchor = std::fs::metadata(&path).unwrap();
    assert_eq!((anchor.mode() & 0o7777, anchor.blocks() <= 16), (0o444, true));
    assert_eq!(stage.objects().len(), 4);
}

#[test]
fn holes_are_zeros_and_the_end_is_the_end() {
    let stage = Stage::new(small());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(b"x", 500, 1).unwrap();
    let all = opened.file.all().unwrap();
    assert_eq!((all.len(), all[500]), (501, b'x'));
    assert!(all[..500].iter().all(|&byte| byte == 0));
    assert_eq!(opened.file.seek(Whence::Data, 500), Ok(500));
    assert_eq!(opened.file.seek(Whence::Hole, 500), Ok(501));
    assert_eq!(opened.file.seek(Whence::Hole, 501), Err(Errno::NXIO));
}

#[test]
fn truncating_cuts_and_grows() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    let opened = open(&stage.runtime(), &path, CREATE).unwrap();
    let mut bytes = pattern(1, 300);
    opened.file.write(&bytes, 0, 1).unwrap();
    for size in [123, 200, 99, 0, 7, 1000] {
        opened.file.truncate(size).unwrap();
        bytes.resize(size as usize, 0);
        assert_eq!(opened.file.size(), Ok(size));
        assert_eq!(opened.file.all().unwrap(), bytes, "{size}");
    }
    opened.file.truncate(1).unwrap();
    let text = opened.file.anchored().text_bytes;
    assert_eq!(std::fs::metadata(&path).unwrap().len(), text, "the anchor never changes");
    assert_eq!(opened.file.truncate(1 << 63), Err(Errno::FBIG));
}

#[test]
fn opening_with_truncation_never_reaches_the_anchor() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    open(&runtime, &path, CREATE).unwrap().file.write(b"hello", 0, 1).unwrap();
    for flags in [OFlags::RDWR, OFlags::WRONLY, CREATE] {
        let opened = open(&stage.runtime(), &path, flags | OFlags::TRUNC).unwrap();
        assert_eq!(opened.file.size(), Ok(0));
        opened.file.write(b"again", 0, 1).unwrap();
    }
    assert_eq!(open(&stage.runtime(), &path, OFlags::RDONLY).unwrap().file.all().unwrap(), b"again");
}

#[test]
fn appending_goes_to_the_end() {
    let stage = Stage::new(small());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    assert_eq!(opened.file.append_bytes(b"one"), Ok((0, 3)));
    opened.file.truncate(10).unwrap();
    assert_eq!(opened.file.append_bytes(b"two"), Ok((10, 3)));
    assert_eq!(opened.file.all().unwrap(), b"one\0\0\0\0\0\0\0two");
}

#[test]
fn exclusive_creation_and_what_is_there_already() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let exclusive = CREATE | OFlags::EXCL;
    drop(open(&runtime, &path, exclusive).unwrap());
    assert_eq!(open(&runtime, &path, exclusive).map(drop), Err(Errno::EXIST));
    assert_eq!(stage.objects().len(), 4, "what the second try made is removed");
    // A plain file stays plain.
    let plain = stage.path("plain");
    std::fs::write(&plain, "a file of which nobody knows").unwrap();
    let opened = runtime.open(None, &plain, CREATE | OFlags::TRUNC, MODE).unwrap();
    assert!(matches!(opened, Opened::Plain(raw) if { stripewise_sys::fd::close_public(raw); true }));
    assert_eq!(std::fs::metadata(&plain).unwrap().len(), 0);
    // A file that matches no rule stays plain too.
    let other = stage.root.path().join("other");
    assert!(matches!(runtime.open(None, &other, CREATE, MODE).unwrap(), Opened::Plain(_)));
    assert_eq!(runtime.open(None, &stage.path("no/f"), CREATE, MODE).map(drop), Err(Errno::NOENT));
    let names = std::fs::read_dir(stage.path("")).unwrap().flatten();
    assert!(names.map(|n| n.file_name()).all(|name| name == "f" || name == "plain"), "no temporaries are left");
}

#[test]
fn what_the_application_gets_cannot_write_to_the_anchor() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let anew = CREATE | OFlags::TRUNC;
    let append = OFlags::WRONLY | OFlags::APPEND;
    for flags in [CREATE, OFlags::RDWR, OFlags::WRONLY, anew, OFlags::RDONLY, append] {
        let file = open(&runtime, &path, flags).unwrap();
        let again = runtime.open_again(&file.file, flags).unwrap();
        for raw in [file.raw, again] {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{raw}")).unwrap();
            let octal = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            let has = OFlags::from_bits_retain(u32::from_str_radix(octal.trim(), 8).unwrap());
            assert_eq!(has & OFlags::RWMODE, OFlags::RDONLY, "{flags:?}");
            assert_eq!(has.contains(OFlags::APPEND), flags.contains(OFlags::APPEND));
        }
        stripewise_sys::fd::close_public(again);
        assert!(file.file.is_writable() && file.file.write(b"x", 0, 1) == Ok(1));
    }
}

#[test]
fn a_link_to_nowhere_is_created_by_the_kernel() {
    let stage = Stage::new(small());
    let link = stage.path("link");
    std::os::unix::fs::symlink("there", &link).unwrap();
    assert!(matches!(stage.runtime().open(None, &link, CREATE, MODE).unwrap(), Opened::Plain(_)));
    assert!(stage.path("there").exists());
}

#[test]
fn removing_and_replacing_takes_the_objects_along() {
    let stage = Stage::new(small());
    let (runtime, path, other) = (stage.runtime(), stage.path("f"), stage.path("g"));
    for name in [&path, &other] {
        open(&runtime, name, CREATE).unwrap().file.write(b"hello", 0, 1).unwrap();
    }
    assert_eq!(stage.objects().len(), 8);
    let held = open(&runtime, &other, OFlags::RDWR).unwrap();
    runtime.rename(None, &path, None, &other, 0).unwrap();
    assert_eq!(stage.objects().len(), 4);
    assert_eq!(held.file.read(5, 0, 1).unwrap(), b"hello", "an open file goes on working");
    assert_eq!(held.file.write(b"HE", 0, 1), Ok(2));
    // These take the size lock, whose file is gone.
    assert_eq!(held.file.append_bytes(b"!!"), Ok((5, 2)));
    held.file.truncate(6).unwrap();
    held.file.sync(false).unwrap();
    assert_eq!(held.file.all().unwrap(), b"HEllo!");
    std::fs::hard_link(&other, stage.path("second")).unwrap();
    runtime.unlink(None, &other).unwrap();
    assert_eq!(stage.objects().len(), 4, "it has another name");
    runtime.unlink(None, &stage.path("second")).unwrap();
    assert_eq!(stage.objects().len(), 0);
    assert_eq!(runtime.unlink(None, &other), Err(Errno::NOENT));
}

#[test]
fn modes_are_as_asked_and_changed_everywhere() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let mode = Mode::from_raw_mode(0o400);
    let Opened::Managed(raw, file) = runtime.open(None, &path, CREATE, mode).unwrap() else { panic!() };
    assert_eq!(file.write(b"hello", 0, 1), Ok(5), "its creator may write whatever its mode");
    stripewise_sys::fd::close_public(raw);
    assert_eq!(file.attributes().unwrap().permissions, 0o400);
    let change = crate::Change::Mode(Mode::from_raw_mode(0o640));
    assert_eq!(runtime.change(stripewise_sys::Kind::Named(None, &path), &change), Ok(true));
    let mut modes: Vec<u32> = walk(stage.root.path()).iter().map(|m| m.mode() & 0o7777).collect();
    modes.sort_unstable();
    assert_eq!(modes, [0o440, 0o640, 0o640, 0o640, 0o640], "of the anchor first");
    let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
    assert!(stage.runtime().correct_stat(None, &path, true, &mut stat).unwrap());
    assert_eq!(stat.st_mode & 0o7777, 0o640);
}

/// The metadata of anchors, objects and `ID.manifest`.
fn walk(root: &std::path::Path) -> Vec<std::fs::Metadata> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            found.extend(walk(&entry.path()));
        } else if !entry.file_name().to_string_lossy().ends_with(".toml") {
            found.push(metadata);
        }
    }
    found
}

#[test]
fn stat_tells_of_the_logical_file() {
    let stage = Stage::new(small());
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let opened = open(&runtime, &path, CREATE).unwrap();
    opened.file.write(&pattern(1, 100), 0, 1).unwrap();
    for runtime in [&runtime, &stage.runtime()] {
        let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
        assert!(runtime.correct_stat(None, &path, true, &mut stat).unwrap());
        assert_eq!(stat.st_size, 100);
        assert_eq!(stat.st_blocks as u64, opened.file.attributes().unwrap().blocks);
    }
    let plain = stage.path("plain");
    std::fs::write(&plain, "x".repeat(1000)).unwrap();
    let mut stat = runtime.sys().stat_at(None, &plain, true).unwrap();
    assert!(!runtime.correct_stat(None, &plain, true, &mut stat).unwrap());
}

#[test]
fn an_owner_that_another_process_has_set_can_be_changed_again() {
    let stage = Stage::new(small());
    let runtimes = [stage.runtime(), stage.runtime()];
    let opened = runtimes.each_ref().map(|runtime| open(runtime, &stage.path("f"), CREATE).unwrap());
    let [one, other] = opened.each_ref().map(|opened| &opened.file);
    if one.sys().user() != 0 {
        return;
    }
    one.write(&pattern(1, 100), 0, 1).unwrap();
    for (file, owner) in [(one, 64_132), (other, 64_132), (other, 64_133), (one, 0)] {
        file.change(&Change::Owner(Some(owner), Some(owner))).unwrap();
        assert_eq!(one.all().unwrap(), pattern(1, 100));
        assert_eq!(stage.path("f").metadata().unwrap().uid(), owner);
    }
}

/// A process that has read a manifest reads it again: the inode may by then belong to another file.
#[test]
fn stat_reads_the_manifest_each_time() {
    let stage = Stage::new(small());
    for (name, size) in [("f", 100), ("g", 200)] {
        open(&stage.runtime(), &stage.path(name), CREATE).unwrap().file.write(&pattern(1, size), 0, 1).unwrap();
    }
    let (runtime, path) = (stage.runtime(), stage.path("f"));
    let size = || {
        let mut stat = runtime.sys().stat_at(None, &path, true).unwrap();
        assert!(runtime.correct_stat(None, &path, true, &mut stat).unwrap());
        stat.st_size
    };
    assert_eq!((size(), size()), (100, 100));
    std::fs::write(&path, std::fs::read(stage.path("g")).unwrap()).unwrap();
    assert_eq!(size(), 200);
}

/// A missing object must not count as an object of size 0.
#[test]
fn stat_of_a_file_without_an_object_is_left_alone() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    open(&stage.runtime(), &path, CREATE).unwrap().file.write(&pattern(1, 100), 0, 1).unwrap();
    let name = stage.objects().into_iter().find(|name| name.ends_with(".1")).unwrap();
    let object = stage.root.path().join(format!("t1/stripewise/{}/{name}", home()));
    std::fs::rename(&object, object.with_extension("away")).unwrap();
    std::os::unix::fs::symlink(object.with_extension("away"), &object).unwrap();
    for _ in 0..2 {
        let runtime = stage.runtime();
        let before = runtime.sys().stat_at(None, &path, true).unwrap();
        let mut stat = before;
        assert!(!runtime.correct_stat(None, &path, true, &mut stat).unwrap());
        assert_eq!((stat.st_size, stat.st_blocks), (before.st_size, before.st_blocks));
        let _ = std::fs::remove_file(&object);
    }
}

#[test]
fn a_missing_target_is_an_io_error() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    open(&stage.runtime(), &path, CREATE).unwrap().file.write(b"hello", 0, 1).unwrap();
    std::fs::rename(stage.root.path().join("t1"), stage.root.path().join("unmounted")).unwrap();
    assert_eq!(open(&stage.runtime(), &path, OFlags::RDONLY).map(drop), Err(Errno::IO));
    assert_eq!(open(&stage.runtime(), &stage.path("new"), CREATE).map(drop), Err(Errno::IO));
    std::fs::create_dir(stage.root.path().join("t1")).unwrap();
    assert_eq!(open(&stage.runtime(), &path, OFlags::RDONLY).map(drop), Err(Errno::IO));
    assert_eq!(std::fs::read_dir(stage.root.path().join("t1")).unwrap().count(), 0, "nothing is made there");
}

#[test]
fn truncation_makes_lost_objects_anew() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    open(&stage.runtime(), &path, CREATE).unwrap().file.write(&pattern(1, 100), 0, 1).unwrap();
    let lost = stage.objects().into_iter().find(|name| name.ends_with(".1")).unwrap();
    std::fs::remove_file(stage.root.path().join(format!("t1/stripewise/{}/{lost}", home()))).unwrap();
    assert_eq!(open(&stage.runtime(), &path, OFlags::RDWR).map(drop), Err(Errno::IO));
    assert_eq!(open(&stage.runtime(), &path, CREATE).map(drop), Err(Errno::IO));
    let opened = open(&stage.runtime(), &path, CREATE | OFlags::TRUNC).unwrap();
    opened.file.write(b"new", 0, 1).unwrap();
    assert_eq!(open(&stage.runtime(), &path, OFlags::RDONLY).unwrap().file.all().unwrap(), b"new");
    assert_eq!(stage.objects().len(), 4, "nothing is left of the old one");
    assert_eq!(
        open(&stage.runtime(), &path, OFlags::RDONLY).unwrap().file.attributes().unwrap().permissions,
        0o644
    );
}

#[test]
fn a_damaged_manifest_is_an_io_error() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    drop(open(&stage.runtime(), &path, CREATE).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("start = 0", "start = 1")).unwrap();
    assert_eq!(open(&stage.runtime(), &path, OFlags::RDONLY).map(drop), Err(Errno::IO));
    assert_eq!(open(&stage.runtime(), &path, OFlags::WRONLY | OFlags::TRUNC).map(drop), Err(Errno::IO));
}

#[test]
fn an_anchor_that_was_overwritten_is_not_written_to() {
    let stage = Stage::new(small());
    let path = stage.path("f");
    let opened = open(&stage.runtime(), &path, CREATE).unwrap();
    opened.file.write(&pattern(1, 100), 0, 1).unwrap();
    let mine = "mine ".repeat(200);
    std::fs::write(&path, &mine).unwrap();
    for size in [10, 100, 5000] {
        opened.file.truncate(size).unwrap();
    }
    opened.file.write(b"x", 100_000, 1).unwrap();
    drop(opened);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), mine);
}

#[test]
fn mapping_needs_whole_pages_and_grown_objects() {
    let stage = Stage::new(stripewise_layout::constructors::striped(&[0, 1], 8192).unwrap());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(b"x", 50_000, 1).unwrap();
    let extents = opened.file.map_extents(4096, 50_001 - 4096, 4096).unwrap();
    let places: Vec<_> = extents.iter().map(|e| (e.object_offset, e.file_offset, e.len)).collect();
    assert_eq!(places[..3], [(4096, 4096, 4096), (0, 8192, 8192), (8192, 16384, 8192)]);
    assert_eq!(places.len(), 7);
    assert_eq!(opened.file.objects().sizes().unwrap(), [50_001 - 3 * 8192, 3 * 8192]);
    assert_eq!(opened.file.size(), Ok(50_001));
    let unaligned = Stage::new(small());
    let opened = open(&unaligned.runtime(), &unaligned.path("f"), CREATE).unwrap();
    opened.file.write(b"x", 50_000, 1).unwrap();
    assert_eq!(opened.file.map_extents(0, 4096, 4096), Err(Errno::NODEV));
}

#[test]
fn allocation_gives_the_size_but_not_when_asked_to_keep_it() {
    let stage = Stage::new(small());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.allocate(50, 1000, true).unwrap();
    assert_eq!(opened.file.size(), Ok(0));
    opened.file.allocate(50, 1000, false).unwrap();
    assert_eq!(opened.file.all().unwrap(), [0; 1050]);
    assert_eq!(opened.file.allocate(0, 0, false), Err(Errno::INVAL));
}

#[test]
fn direct_io_where_it_is_possible() {
    let stage = Stage::new(stripewise_layout::constructors::striped(&[0, 1], 8192).unwrap());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let bytes = pattern(3, 5 * 8192);
    let layout = std::alloc::Layout::from_size_align(bytes.len() + 4096, 4096).unwrap();
    // SAFETY: the size is not 0; freed below.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    for shift in [0, 1, 512] {
        // SAFETY: within the allocation.
        unsafe {
            let base = memory.add(shift);
            base.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            let vectors = [stripewise_sys::IoVec { base, len: bytes.len() }];
            let options = crate::IoOptions { direct: true };
            assert_eq!(opened.file.write_at(&vectors, 4096, options), Ok(bytes.len()));
            base.write_bytes(0, bytes.len());
            assert_eq!(opened.file.read_at(&vectors, 4096, options), Ok(bytes.len()));
            assert_eq!(std::slice::from_raw_parts(base, bytes.len()), bytes);
        }
        assert_eq!(opened.file.read(bytes.len(), 4096, 1).unwrap(), bytes);
    }
    // SAFETY: allocated above.
    unsafe { std::alloc::dealloc(memory, layout) };
}

#[test]
fn invalid_memory_is_efault() {
    let stage = Stage::new(small());
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    opened.file.write(b"hello", 100, 1).unwrap();
    let bad = [stripewise_sys::IoVec { base: 16 as *mut u8, len: 50 }];
    for offset in [0, 80] {
        // SAFETY: only the kernel follows the pointer.
        unsafe {
            assert_eq!(opened.file.read_at(&bad, offset, Default::default()), Err(Errno::FAULT));
            assert_eq!(opened.file.write_at(&bad, offset, Default::default()), Err(Errno::FAULT));
        }
    }
    assert_eq!(opened.file.size(), Ok(105));
}
