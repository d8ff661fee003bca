//! Writes logs as `include/darshan-*-log-format.h` of Darshan says, of every version, byte order
//! and compression: for tests, the benchmark, and the example `samples`.

#![allow(dead_code, reason = "each user needs a part")]

use std::io::{Seek, SeekFrom, Write};

use stripewise_darshan::{ByteOrder, Compression, Counters, Layer, Module};

/// How a log is written.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub format: (u32, u32),
    pub order: ByteOrder,
    pub compression: Compression,
}

/// The shape of the logs of Darshan 3.5 on most machines.
pub const USUAL: Shape = Shape { format: (3, 41), order: ByteOrder::Little, compression: Compression::Zlib };

/// Numbers in a byte order.
#[derive(Clone)]
pub struct Bytes {
    order: ByteOrder,
    pub bytes: Vec<u8>,
}

impl Bytes {
    pub fn new(order: ByteOrder) -> Bytes {
        Bytes { order, bytes: Vec::new() }
    }

    pub fn u32(&mut self, number: u32) -> &mut Bytes {
        let is_little = self.order == ByteOrder::Little;
        self.bytes.extend(if is_little { number.to_le_bytes() } else { number.to_be_bytes() });
        self
    }

    pub fn u64(&mut self, number: u64) -> &mut Bytes {
        let is_little = self.order == ByteOrder::Little;
        self.bytes.extend(if is_little { number.to_le_bytes() } else { number.to_be_bytes() });
        self
    }

    pub fn i64(&mut self, number: i64) -> &mut Bytes {
        self.u64(number.cast_unsigned())
    }

    pub fn f64(&mut self, number: f64) -> &mut Bytes {
        self.u64(number.to_bits())
    }

    /// The text, filled up with NULs.
    pub fn text(&mut self, text: &str, len: usize) -> &mut Bytes {
        self.bytes.extend(text.as_bytes());
        self.bytes.resize(self.bytes.len() + len - text.len(), 0);
        self
    }
}

type Extent = (u64, u64);

/// Writes a log, region by region.
pub struct LogWriter<W> {
    out: W,
    shape: Shape,
    names: Extent,
    /// By slot: version and place.
    slots: Vec<(u32, Extent)>,
    partial: u64,
}

impl<W: Write + Seek> LogWriter<W> {
    pub fn new(mut out: W, shape: Shape) -> LogWriter<W> {
        let slots = if shape.format < (3, 41) { 16 } else { 64 };
        out.seek(SeekFrom::Start(if slots == 16 { 360 } else { 1328 })).unwrap();
        LogWriter { out, shape, names: (0, 0), slots: vec![(0, (0, 0)); slots], partial: 0 }
    }

    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.shape.order)
    }

    /// Writes streams, one after the other. Returns where they are.
    fn region(&mut self, streams: impl IntoIterator<Item = Vec<u8>>) -> Extent {
        let start = self.out.stream_position().unwrap();
        for stream in streams {
            let packed = packed(self.shape.compression, &stream);
            self.out.write_all(&packed).unwrap();
        }
        (start, self.out.stream_position().unwrap() - start)
    }

    /// The first region.
    pub fn job(&mut self, start_s: i64, end_s: i64, processes: i64) {
        let (mut job, has_ns) = (self.bytes(), self.shape.format >= (3, 41));
        job.i64(1000).i64(start_s);
        if has_ns {
            job.i64(250_000_000);
        }
        job.i64(end_s);
        if has_ns {
            job.i64(750_000_000);
        }
        job.i64(processes).i64(77).text("lib_ver=3.x\n", 1024);
        let len = 4096 - job.bytes.len();
        job.text("/opt/app --steps 3\nlustre\t/scratch\next4\t/", len);
        self.region([job.bytes]);
    }

    /// The second region, if there is one.
    pub fn names(&mut self, names: &[(u64, &str)]) {
        let mut bytes = self.bytes();
        for (id, name) in names {
            bytes.u64(*id);
            match self.shape.format {
                (3, 0) => bytes.u32(name.len() as u32).text(name, name.len()),
                _ => bytes.text(name, name.len() + 1),
            };
        }
        self.names = self.region([bytes.bytes]);
    }

    /// A module's records, in order of modules.
    pub fn module(&mut self, module: Module, version: u32, streams: impl IntoIterator<Item = Vec<u8>>) {
        let slot = self.slot(module);
        self.slots[slot] = (version, self.region(streams));
    }

    /// Marks a module's data as partial.
    pub fn partial(&mut self, module: Module) {
        self.partial |= 1 << self.slot(module);
    }

    fn slot(&self, module: Module) -> usize {
        let (number, format) = (module as usize, self.shape.format);
        let lacks = |other: Module, since| usize::from(number > other as usize && format < since);
        number - lacks(Module::H5d, (3, 20)) - lacks(Module::PnetcdfVar, (3, 41))
    }

    /// Writes the header.
    pub fn finish(mut self) -> W {
        let (mut header, (major, minor)) = (self.bytes(), self.shape.format);
        header.text(&format!("{major}.{minor:02}"), 8).u64(6_567_223);
        header.bytes.push(match self.shape.compression {
            Compression::Zlib => 0,
            Compression::Bzip2 => 1,
            Compression::None => 2,
        });
        match self.slots.len() {
            16 => header.text("", 3).u32(self.partial as u32),
            _ => header.text("", 7).u64(self.partial),
        };
        header.u64(self.names.0).u64(self.names.1);
        self.slots.iter().for_each(|(_, (offset, len))| _ = header.u64(*offset).u64(*len));
        self.slots.iter().for_each(|(version, _)| _ = header.u32(*version));
        self.out.seek(SeekFrom::Start(0)).unwrap();
        self.out.write_all(&header.bytes).unwrap();
        self.out
    }
}

fn packed(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::None => bytes.to_vec(),
    }
}

/// A record with the counters and times named, all others 0, as a version of it has them.
pub fn record(bytes: &mut Bytes, of: Counters, version: u32, (id, rank): (u64, i64), values: &[(&str, f64)]) {
    bytes.u64(id).i64(rank);
    if of == Counters::H5d && version > 1 {
        bytes.u64(id ^ 1);
    }
    let value = |name: &str| values.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, value)| *value);
    for (index, name) in of.names().iter().enumerate() {
        if of == Counters::Posix && version == 1 && *name == "POSIX_FSYNCS" {
            // fopens, freads, fwrites, fseeks
            (0..4).for_each(|_| _ = bytes.i64(0));
        }
        if !lacks(of, version, name) {
            bytes.i64(if values.is_empty() { index as i64 + 1 } else { value(name) as i64 });
        }
    }
    for (index, name) in of.times().iter().enumerate() {
        if !lacks(of, version, name) {
            bytes.f64(if values.is_empty() { index as f64 + 0.5 } else { value(name) });
        }
    }
}

/// Whether a version of a record lacks a counter or time.
fn lacks(of: Counters, version: u32, name: &str) -> bool {
    let end = |names: &[&str]| names.iter().any(|end| name.ends_with(end));
    let edges = end(&["_F_CLOSE_START_TIMESTAMP", "_F_OPEN_END_TIMESTAMP"]);
    match of {
        Counters::Posix => {
            let of_4 = ["_FILENOS", "_DUPS", "_RENAME_SOURCES", "_RENAME_TARGETS", "_RENAMED_FROM"];
            version < 4 && end(&of_4) || version < 3 && edges
        }
        Counters::MpiIo => version < 3 && edges,
        Counters::Stdio => version < 2 && end(&["_FDOPENS"]),
        Counters::H5f => version < 3 && end(&["_FLUSHES", "_USE_MPIIO", "_META_TIME"]) || version < 2 && edges,
        Counters::H5d => false,
    }
}

/// A DXT record. Segments are offset, bytes, start and end.
pub fn dxt(
    bytes: &mut Bytes,
    has_threads: bool,
    (id, rank, host): (u64, i64, &str),
    writes: &[(i64, i64, f64, f64)],
    reads: &[(i64, i64, f64, f64)],
) {
    bytes.u64(id).i64(rank).i64(0).text(host, 64).i64(writes.len() as i64).i64(reads.len() as i64);
    for (offset, len, start_s, end_s) in writes.iter().chain(reads) {
        bytes.i64(*offset).i64(*len).f64(*start_s).f64(*end_s);
        if has_threads {
            bytes.u64(0x7f00_0000_1000);
        }
    }
}

/// The version of a module from which segments have threads.
pub fn threads_since(layer: Layer) -> u32 {
    if layer == Layer::Posix { 2 } else { 3 }
}

/// A layout on Lustre: components of (stripe bytes, stripes), some of them unused.
pub fn lustre(bytes: &mut Bytes, version: u32, (id, rank): (u64, i64), components: &[(i64, i64)]) {
    bytes.u64(id).i64(rank);
    if version == 1 {
        let (stripe_bytes, stripes) = components[0];
        bytes.i64(4).i64(1).i64(0).i64(stripe_bytes).i64(stripes);
        (0..stripes).for_each(|ost| _ = bytes.i64(ost + 5));
        return;
    }
    let stripes = components.iter().map(|(_, stripes)| stripes).sum();
    bytes.i64(components.len() as i64).i64(stripes);
    for (stripe_bytes, stripes) in components {
        bytes.i64(*stripe_bytes).i64(*stripes).i64(0).i64(16).i64(0).i64(-1).i64(1).text("fast", 16);
    }
    (0..stripes).for_each(|ost| _ = bytes.i64(ost + 5));
}

/// Names in [`sample`].
pub const NAMES: [(u64, &str); 3] =
    [(11, "/scratch/field.dat"), (12, "/scratch/field.dat:/density"), (13, "<STDOUT>")];

/// A log of this shape with all modules that the reader knows, their records in an older version
/// by `age` (0: the newest that Darshan 3.5.0 writes; such DXT records have no threads).
pub fn sample<W: Write + Seek>(out: W, shape: Shape, age: u32) -> W {
    let mut log = LogWriter::new(out, shape);
    log.job(1_700_000_000, 1_700_000_002, 2);
    log.names(&NAMES);
    let version = |newest: u32| newest.saturating_sub(age).max(1);
    let order = [
        (Counters::Posix, 4),
        (Counters::MpiIo, 3),
        (Counters::H5f, 3),
        (Counters::H5d, 2),
        (Counters::Stdio, 2),
    ];
    for (of, newest) in order {
        if of == Counters::H5d && shape.format < (3, 20) {
            continue;
        }
        if of == Counters::Stdio {
            lustre_records(&mut log, version(2));
        }
        // Each process writes a stream of its own.
        let streams = [0, 1].map(|rank| {
            let mut bytes = log.bytes();
            record(&mut bytes, of, version(newest), (11, rank), &[]);
            record(&mut bytes, of, version(newest), (12, rank), &[]);
            bytes.bytes
        });
        log.module(of.module(), version(newest), streams);
    }
    for (layer, newest) in [(Layer::Posix, 1), (Layer::MpiIo, 2)] {
        let streams = [0, 1].map(|rank| {
            let mut bytes = log.bytes();
            let at = |i: i64| (i << 20, 1 << 20, 0.25 + i as f64, 0.5 + i as f64);
            dxt(&mut bytes, false, (11, rank, "node1"), &[at(0), at(1)], &[at(2)]);
            dxt(&mut bytes, false, (12, rank, "node1"), &[], &[]);
            bytes.bytes
        });
        log.module(layer.module(), version(newest), streams);
    }
    log.partial(Module::Stdio);
    log.finish()
}

fn lustre_records<W: Write + Seek>(log: &mut LogWriter<W>, version: u32) {
    let mut bytes = log.bytes();
    lustre(&mut bytes, version, (11, -1), &[(1 << 20, 2), (4 << 20, 4)]);
    lustre(&mut bytes, version, (12, 0), &[(1 << 20, 3)]);
    log.module(Module::Lustre, version, [bytes.bytes]);
}
