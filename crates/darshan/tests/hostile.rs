//! Logs that are cut off, damaged or made to do harm: an error or a part of the data, never a panic
//! and never memory that the log asks for.

use std::io::Cursor;

use common::{LogWriter, NAMES, Shape, USUAL, sample};
use proptest::prelude::*;
use stripewise_darshan::{ByteOrder, Compression, Counters, Error, Layer, Log, Module};

mod common;

/// What a log gives before an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Found {
    names: usize,
    records: usize,
    layouts: usize,
    segments: usize,
}

impl Found {
    fn all(self) -> [usize; 4] {
        [self.names, self.records, self.layouts, self.segments]
    }
}

/// Reads everything. Returns what was found, and the first error of every part.
fn read(bytes: &[u8]) -> Result<(Found, Vec<Error>), Error> {
    let mut log = Log::open(Cursor::new(bytes))?;
    let (mut found, mut errors) = (Found::default(), Vec::new());
    errors.extend(log.job().err());
    errors.extend(names(&mut log, &mut found).err());
    for of in Counters::ALL {
        errors.extend(records(&mut log, of, &mut found).err());
    }
    errors.extend(layouts(&mut log, &mut found).err());
    for layer in [Layer::Posix, Layer::MpiIo] {
        errors.extend(segments(&mut log, layer, &mut found).err());
    }
    Ok((found, errors))
}

type Bytes<'a> = Log<Cursor<&'a [u8]>>;

fn names(log: &mut Bytes, found: &mut Found) -> Result<(), Error> {
    let mut names = log.names()?;
    while names.next_name()?.is_some() {
        found.names += 1;
    }
    Ok(())
}

fn records(log: &mut Bytes, of: Counters, found: &mut Found) -> Result<(), Error> {
    let mut records = log.records(of)?;
    while records.next_record()?.is_some() {
        found.records += 1;
    }
    Ok(())
}

fn layouts(log: &mut Bytes, found: &mut Found) -> Result<(), Error> {
    let mut records = log.lustre()?;
    while records.next_record()?.is_some() {
        found.layouts += 1;
    }
    Ok(())
}

fn segments(log: &mut Bytes, layer: Layer, found: &mut Found) -> Result<(), Error> {
    let mut records = log.dxt(layer)?;
    while records.next_record()?.is_some() {
        while let Some((_, segments)) = records.next_segments()? {
            found.segments += segments.len();
        }
    }
    Ok(())
}

fn shapes() -> impl Iterator<Item = Shape> {
    let compressions = [Compression::Zlib, Compression::Bzip2, Compression::None];
    compressions.into_iter().flat_map(|compression| {
        [ByteOrder::Little, ByteOrder::Big].map(|order| Shape { order, compression, ..USUAL })
    })
}

fn bytes(shape: Shape) -> Vec<u8> {
    sample(Cursor::new(Vec::new()), shape, 0).into_inner()
}

#[test]
fn a_log_cut_off_at_any_byte_gives_a_part_or_an_error() {
    for shape in shapes() {
        let bytes = bytes(shape);
        let (whole, errors) = read(&bytes).unwrap();
        assert!(errors.is_empty(), "{shape:?}: {errors:?}");
        let mut last = Found::default();
        for len in 0..bytes.len() {
            let Ok((found, errors)) = read(&bytes[..len]) else { continue };
            assert!(!errors.is_empty(), "{shape:?}: {len} of {} bytes were taken for all", bytes.len());
            let grows = last.all().iter().zip(found.all()).all(|(before, now)| *before <= now);
            assert!(grows, "{shape:?}: {len} bytes give less than one byte less");
            last = found;
        }
        let misses = whole.all().iter().zip(last.all()).map(|(all, most)| all - most).sum::<usize>();
        assert!(misses <= 7, "{shape:?}: one byte less costs {misses} items");
    }
}

#[test]
fn what_a_cut_log_lacks_is_named() {
    let bytes = bytes(USUAL);
    let (_, errors) = read(&bytes[..bytes.len() - 1]).unwrap();
    let messages: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
    assert!(messages[0].starts_with("module DXT_MPIIO is cut off after "), "{messages:?}");
}

#[test]
fn an_unknown_format_is_named() {
    let mut bytes = bytes(USUAL);
    bytes[..4].copy_from_slice(b"3.99");
    let message = read(&bytes).unwrap_err().to_string();
    assert!(message.contains("\"3.99\"") && message.contains("3.41"), "{message}");
}

#[test]
fn an_unknown_version_of_records_is_named() {
    let mut log = LogWriter::new(Cursor::new(Vec::new()), USUAL);
    log.job(1, 2, 1);
    log.module(Module::Posix, 9, [vec![0; 704]]);
    let (_, errors) = read(log.finish().get_ref()).unwrap();
    assert!(errors[0].to_string().contains("POSIX has records of version 9"), "{errors:?}");
}

/// A log with a module whose records are these bytes.
fn with(module: Module, version: u32, fill: impl FnOnce(&mut common::Bytes)) -> Vec<u8> {
    let mut log = LogWriter::new(Cursor::new(Vec::new()), USUAL);
    log.job(1, 2, 1);
    log.names(&NAMES);
    let mut bytes = log.bytes();
    fill(&mut bytes);
    log.module(module, version, [bytes.bytes]);
    log.finish().into_inner()
}

#[test]
fn lengths_that_cannot_be_true_are_errors() {
    for count in [i64::MAX, i64::MIN, -1, 1 << 40] {
        let dxt = with(Module::DxtPosix, 1, |bytes| {
            bytes.u64(11).i64(0).i64(0).text("n", 64).i64(count).i64(count);
        });
        let v1 = with(Module::Lustre, 1, |bytes| {
            bytes.u64(11).i64(0).i64(1).i64(1).i64(0).i64(1 << 20).i64(count);
        });
        let v2 = with(Module::Lustre, 2, |bytes| _ = bytes.u64(11).i64(0).i64(count).i64(count));
        for log in [dxt, v1] {
            let (found, errors) = read(&log).unwrap();
            assert_eq!((found.segments, found.layouts, errors.len()), (0, 0, 1));
        }
        assert_eq!(read(&v2).unwrap().1.len(), usize::from(count > 0));
    }
}

#[test]
fn a_name_without_an_end_is_an_error() {
    for format in [(3, 0), (3, 41)] {
        let mut log = LogWriter::new(Cursor::new(Vec::new()), Shape { format, ..USUAL });
        log.job(1, 2, 1);
        log.names(&[(11, &"x".repeat(1 << 20))]);
        let (found, errors) = read(log.finish().get_ref()).unwrap();
        assert_eq!(found.names, 0);
        assert!(errors[0].to_string().contains("a name of"), "{errors:?}");
    }
}

#[test]
fn segments_beyond_the_buffer_are_all_read() {
    let segments: Vec<_> = (0..100_000).map(|i| (i, 1, i as f64, i as f64)).collect();
    let log = with(Module::DxtMpiIo, 3, |bytes| common::dxt(bytes, true, (11, 0, "n"), &segments, &segments));
    assert_eq!(read(&log).unwrap().0.segments, 200_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn flipped_bytes_never_panic(
        shape in 0..6_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        // Damage in the header does most.
        in_header in prop::collection::vec((0..1328_usize, any::<u8>()), 0..4),
    ) {
        let mut bytes = bytes(shapes().nth(shape).unwrap());
        for (index, byte) in flips {
            let index = index.index(bytes.len());
            bytes[index] ^= byte;
        }
        in_header.iter().for_each(|(index, byte)| bytes[*index] ^= byte);
        let _ = read(&bytes);
    }
}
