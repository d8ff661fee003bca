//! Files with several copies, used by one process.

use std::path::{Path, PathBuf};

use stripewise_cluster::CacheMode;
use stripewise_extents::CopyId;
use stripewise_sys::OFlags;

use super::setup::Setup;
use super::support::*;
use crate::Errno;
use crate::manifest::Copies;

fn setups() -> Vec<Setup> {
    let caches = CacheMode::ALL.map(|mode| Setup::cache(mode, 100));
    let mut setups = vec![Setup::replicas(), Setup::replicas().each_write()];
    setups.extend(caches);
    setups
}

/// Number of entries left in memory for files that are not open, without the words of the servers.
fn left_in(memory: &Path) -> usize {
    let of_servers = ["space", "activity"].map(|name| usize::from(memory.join(name).exists()));
    std::fs::read_dir(memory).unwrap().count() - of_servers.iter().sum::<usize>()
}

fn copies_of(file: &crate::LogicalFile) -> &Copies {
    file.manifest().copies.as_deref().unwrap()
}

#[test]
fn what_is_written_is_read_also_after_it_was_closed() {
    for setup in setups() {
        let stage = Stage::of(&setup);
        let path = stage.path("f");
        let opened = open(&stage.runtime(), &path, CREATE).unwrap();
        assert_eq!(copies_of(&opened.file).list.len(), setup.overlay.as_ref().unwrap().copies.len());
        let (one, two) = (pattern(1, 300), pattern(2, 40));
        assert_eq!(opened.file.write(&one, 0, 3), Ok(300));
        assert_eq!(opened.file.write(&two, 100, 2), Ok(40));
        assert_eq!(opened.file.write(&two, 500, 1), Ok(40));
        let expected = [&one[..100], &two, &one[140..], &[0; 200], &two].concat();
        assert_eq!(opened.file.all().unwrap(), expected);
        assert_eq!(opened.file.size(), Ok(540));
        drop(opened);
        assert_eq!(left_in(stage.memory()), 0);
        let again = open(&stage.runtime(), &path, OFlags::RDONLY).unwrap();
        assert_eq!(again.file.all().unwrap(), expected, "{setup:?}");
    }
}

#[test]
fn a_file_that_is_removed_takes_its_copies_and_its_map_along() {
    for setup in setups() {
        let stage = Stage::of(&setup);
        let runtime = stage.runtime();
        let opened = open(&runtime, &stage.path("f"), CREATE).unwrap();
        opened.file.write(&pattern(1, 300), 0, 1).unwrap();
        let objects = stage.objects();
        assert!(objects.iter().any(|name| name.ends_with(".extents")), "{objects:?}");
        runtime.unlink(None, &stage.path("f")).unwrap();
        assert_eq!(stage.objects(), Vec::<String>::new());
        // The open file keeps working.
        opened.file.write(&pattern(2, 300), 200, 1).unwrap();
        assert_eq!(opened.file.read(300, 200, 1).unwrap(), pattern(2, 300));
        opened.file.sync(false).unwrap();
        drop(opened);
        assert_eq!(stage.objects(), Vec::<String>::new());
        assert_eq!(left_in(stage.memory()), 0);
    }
}

#[test]
fn truncates_cut_every_copy() {
    for setup in setups() {
        let stage = Stage::of(&setup);
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        let file = &opened.file;
        for (seed, at, len) in [(1, 0, 300), (2, 30, 7), (3, 200, 60)] {
            file.write(&pattern(seed, len), at, 1).unwrap();
        }
        let before = file.all().unwrap();
        file.truncate(210).unwrap();
        file.truncate(400).unwrap();
        assert_eq!(file.all().unwrap(), [&before[..210], &[0; 190]].concat(), "{setup:?}");
        drop(opened);
        let again = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR | OFlags::TRUNC).unwrap();
        assert_eq!(again.file.size(), Ok(0));
    }
}

/// Critical data goes to the cache until the cache is full, and the limit is never exceeded.
#[test]
fn a_cache_takes_what_gains_and_no_more_than_it_holds() {
    let stage = Stage::of(&Setup::cache(CacheMode::Sca, 1000));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    for number in 0..200 {
        opened.file.write(&pattern(number, 16), number * 100, 1).unwrap();
    }
    let object =
        |path: &PathBuf| path.extension().is_some_and(|number| number.to_str().unwrap().parse::<u32>().is_ok());
    let bytes = |target: &str| {
        let files = walk(&stage.root.path().join(target)).into_iter().filter(object);
        files.map(|path| nonzero(&path)).sum::<usize>()
    };
    let cached = bytes("t2") + bytes("t3");
    assert!(cached > 1500 && bytes("t2") <= 1000 && bytes("t3") <= 1000, "{cached}");
    assert_eq!(cached + bytes("t0") + bytes("t1"), 200 * 16);
    for number in 0..200 {
        assert_eq!(opened.file.read(16, number * 100, 1).unwrap(), pattern(number, 16));
    }
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

fn nonzero(path: &Path) -> usize {
    std::fs::read(path).unwrap().iter().filter(|&&byte| byte != 0).count()
}

/// Bytes that only a lost copy holds are an error, never zeros; all others can be read and written.
#[test]
fn a_lost_cache_target() {
    let stage = Stage::of(&Setup::cache(CacheMode::Nsca, 1000));
    let path = stage.path("f");
    let opened = open(&stage.runtime(), &path, CREATE).unwrap();
    opened.file.write(&pattern(1, 300), 0, 1).unwrap();
    drop(opened);
    std::fs::rename(stage.root.path().join("t3"), stage.root.path().join("gone")).unwrap();
    let opened = open(&stage.runtime(), &path, OFlags::RDWR).unwrap();
    let file = &opened.file;
    assert_eq!(file.size(), Ok(300), "what only the lost copy has counts");
    assert_eq!(file.attributes().unwrap().size_bytes, 300, "and is not left out of copies without a word");
    assert_eq!(file.read(10, 0, 1), Err(Errno::IO));
    assert_eq!(file.truncate(10), Err(Errno::IO), "it would come back with what was cut off");
    assert_eq!(file.write(&pattern(2, 50), 20, 1), Ok(50));
    assert_eq!(file.read(50, 20, 1).unwrap(), pattern(2, 50));
    assert_eq!(file.read(60, 20, 1).unwrap(), pattern(2, 50), "up to the first byte that is lost");
    drop(opened);
    std::fs::rename(stage.root.path().join("gone"), stage.root.path().join("t3")).unwrap();
    let opened = open(&stage.runtime(), &path, OFlags::RDWR).unwrap();
    let mut expected = pattern(1, 300);
    expected[20..70].copy_from_slice(&pattern(2, 50));
    assert_eq!(opened.file.all().unwrap(), expected);
}

/// While a mapping exists, all writes of all processes go to the mapped copy.
#[test]
fn mapped_ranges_are_in_the_original() {
    for mut setup in setups() {
        setup.original = stripewise_layout::constructors::striped(&[0, 1], 4096).unwrap();
        let stage = Stage::of(&setup);
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        let other = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
        let mut expected = pattern(1, 10_000);
        other.file.write(&expected, 0, 1).unwrap();
        other.file.write(&expected, 20_000, 1).unwrap();
        let extents = opened.file.map_extents(4096, 8192, 4096).unwrap();
        let read = |bytes: &mut [u8], at: u64| {
            let extent = extents
                .iter()
                .find(|extent| (extent.file_offset..extent.file_offset + extent.len).contains(&at))
                .unwrap();
            // SAFETY: the file of the descriptor is open.
            let fd = unsafe { stripewise_sys::fd::borrow(extent.fd) };
            let sys: stripewise_sys::SysRef = std::sync::Arc::new(stripewise_sys::Real);
            sys.read_at(fd, bytes, extent.object_offset + (at - extent.file_offset)).unwrap()
        };
        let mut bytes = [0; 1000];
        assert_eq!(read(&mut bytes, 5000), 1000);
        assert_eq!(bytes, expected[5000..6000]);
        // A write of any process is visible through the mapping.
        let new = pattern(2, 1000);
        other.file.write(&new, 5000, 1).unwrap();
        expected[5000..6000].copy_from_slice(&new);
        assert_eq!(read(&mut bytes, 5000), 1000);
        assert_eq!(bytes, new[..]);
        assert_eq!(other.file.read(10_000, 0, 1).unwrap(), expected, "{setup:?}");
    }
}

/// Bytes cut off by a truncate may still be valid, as zeros, in another copy alone when the file
/// grows over them again.
#[test]
fn a_mapped_file_that_grows_again_can_be_mapped_further() {
    for mut setup in setups() {
        setup.original = stripewise_layout::constructors::striped(&[0, 1], 4096).unwrap();
        let stage = Stage::of(&setup);
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        let file = &opened.file;
        file.write(&pattern(1, 30_000), 0, 1).unwrap();
        let other = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
        // Another process copies at this moment, so the map does not forget the bytes cut off.
        let map = other.file.overlay().unwrap().map().unwrap();
        let copier = map.copier().unwrap().unwrap();
        file.truncate(4096).unwrap();
        drop(copier);
        file.map_extents(0, 4096, 4096).unwrap();
        file.truncate(30_000).unwrap();
        assert_eq!(file.map_extents(16_384, 8192, 4096).err(), None, "{setup:?}");
        let map = file.overlay().unwrap().map().unwrap();
        assert!(map.is_mapped().unwrap(), "nobody copies as long as there are mappings");
        let mut expected = vec![0; 30_000];
        expected[..4096].copy_from_slice(&pattern(1, 30_000)[..4096]);
        assert_eq!(file.all().unwrap(), expected, "{setup:?}");
    }
}

/// A file is mapped while another process keeps writing: from some point on, those writes go to the
/// original.
#[test]
fn a_file_is_mapped_beside_a_writer_that_does_not_stop() {
    for mut setup in setups() {
        setup.original = stripewise_layout::constructors::striped(&[0, 1], 4096).unwrap();
        let stage = Stage::of(&setup);
        let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
        opened.file.write(&pattern(1, 1 << 20), 0, 1).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..2u64 {
                let (stop, stage) = (&stop, &stage);
                scope.spawn(move || {
                    let other = open(&stage.runtime(), &stage.path("f"), OFlags::RDWR).unwrap();
                    let bytes = pattern(2, 512);
                    for block in (0u64..).take_while(|_| !stop.load(std::sync::atomic::Ordering::Relaxed)) {
                        other.file.write(&bytes, (block * 7 + writer) % 2048 * 512, 1).unwrap();
                    }
                });
            }
            let mapped = opened.file.map_extents(0, 1 << 20, 4096).map(|extents| extents.len());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(mapped, Ok(256), "{setup:?}");
        });
    }
}

/// A copy that failed once is avoided where another copy can be used, and used where none can.
#[test]
fn a_write_that_only_a_copy_that_failed_can_take() {
    let stage = Stage::of(&Setup::cache(CacheMode::Sla, 1));
    let opened = open(&stage.runtime(), &stage.path("f"), CREATE).unwrap();
    let file = &opened.file;
    assert!(file.copies().unwrap().unwrap().avoid(CopyId::ORIGINAL, Errno::IO));
    assert_eq!(file.write(&pattern(1, 300), 0, 1), Ok(300));
    assert_eq!(file.all().unwrap(), pattern(1, 300));
}
