//! Records of a fixed length: counters and times of a file. Older versions lack some of them.
//! Source: `include/darshan-{posix,mpiio,stdio,hdf5}-log-format.h` and `darshan_log_get_*_file` in
//! `darshan-util/darshan-{posix,mpiio,stdio,hdf5}-logutils.c`, all of Darshan 3.5, which reads the
//! records of all versions since 3.0.

use std::io::{Read, Seek};

use crate::bytes::{ByteOrder, Fields};
use crate::region::Region;
use crate::{Error, Module, counters};

/// What a module counted for one file, in one process or in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Id of the file's name.
    pub id: u64,
    /// The process, or -1 for all processes together.
    pub rank: i64,
    /// Id of the file of an HDF5 dataset; 0 if it is not known, and in other modules.
    pub file_id: u64,
    /// The integers that [`Counters::names`] lists. A counter that the version of the record lacks
    /// is -1, and an id 0.
    pub counters: Vec<i64>,
    /// The floating-point numbers that [`Counters::times`] lists; times are seconds since the start
    /// of the job. One that the version of the record lacks is -1.
    pub times: Vec<f64>,
}

/// A module whose records are counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counters {
    /// System calls.
    Posix,
    /// MPI-IO.
    MpiIo,
    /// C streams.
    Stdio,
    /// HDF5 files.
    H5f,
    /// HDF5 datasets.
    H5d,
}

/// What a version of a record lacks: indices of counters and of times.
struct Version {
    lacks: &'static [usize],
    lacks_times: &'static [usize],
}

const WHOLE: Version = Version { lacks: &[], lacks_times: &[] };

/// `F_CLOSE_START_TIMESTAMP` and `F_OPEN_END_TIMESTAMP` of POSIX and MPI-IO.
const CLOSE_START_OPEN_END: &[usize] = &[3, 4];
/// FILENOS, DUPS, RENAME_SOURCES, RENAME_TARGETS, RENAMED_FROM.
const OF_POSIX_4: &[usize] = &[1, 2, 10, 11, POSIX_RENAMED_FROM];
const POSIX_RENAMED_FROM: usize = 12;

/// By version, from 1. Version 1 of POSIX also has [`POSIX_1_STDIO`].
const POSIX: &[Version] = &[
    Version { lacks: OF_POSIX_4, lacks_times: CLOSE_START_OPEN_END },
    Version { lacks: OF_POSIX_4, lacks_times: CLOSE_START_OPEN_END },
    Version { lacks: OF_POSIX_4, lacks_times: &[] },
    WHOLE,
];
const MPIIO: &[Version] = &[
    Version { lacks: &[], lacks_times: CLOSE_START_OPEN_END },
    Version { lacks: &[], lacks_times: CLOSE_START_OPEN_END },
    WHOLE,
];
const STDIO: &[Version] = &[Version { lacks: &[1], lacks_times: &[] }, WHOLE];
const H5F: &[Version] = &[
    Version { lacks: &[1, 2], lacks_times: &[1, 2, 4] },
    Version { lacks: &[1, 2], lacks_times: &[4] },
    WHOLE,
];
/// Version 1 lacks only the id of the file.
const H5D: &[Version] = &[WHOLE, WHOLE];

/// Version 1 of POSIX has the number of calls of fopen here, and three more counters of C streams.
const POSIX_1_STDIO: usize = 8;
/// Number of these counters.
const POSIX_1_STDIO_COUNTERS: usize = 4;

impl Counters {
    /// All of them.
    pub const ALL: [Counters; 5] =
        [Counters::Posix, Counters::MpiIo, Counters::Stdio, Counters::H5f, Counters::H5d];

    /// The module.
    pub fn module(self) -> Module {
        match self {
            Counters::Posix => Module::Posix,
            Counters::MpiIo => Module::MpiIo,
            Counters::Stdio => Module::Stdio,
            Counters::H5f => Module::H5f,
            Counters::H5d => Module::H5d,
        }
    }

    /// Names of [`Record::counters`].
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Counters::Posix => &counters::POSIX,
            Counters::MpiIo => &counters::MPIIO,
            Counters::Stdio => &counters::STDIO,
            Counters::H5f => &counters::H5F,
            Counters::H5d => &counters::H5D,
        }
    }

    /// Names of [`Record::times`].
    pub fn times(self) -> &'static [&'static str] {
        match self {
            Counters::Posix => &counters::POSIX_TIMES,
            Counters::MpiIo => &counters::MPIIO_TIMES,
            Counters::Stdio => &counters::STDIO_TIMES,
            Counters::H5f => &counters::H5F_TIMES,
            Counters::H5d => &counters::H5D_TIMES,
        }
    }

    fn versions(self) -> &'static [Version] {
        match self {
            Counters::Posix => POSIX,
            Counters::MpiIo => MPIIO,
            Counters::Stdio => STDIO,
            Counters::H5f => H5F,
            Counters::H5d => H5D,
        }
    }

    /// The newest version of the records that is known.
    pub(crate) fn newest(self) -> u32 {
        self.versions().len() as u32
    }
}

/// The records of a module, streamed.
pub struct Records<'a, R> {
    region: Region<'a, R>,
    order: ByteOrder,
    of: Counters,
    version: u32,
    bytes: usize,
    record: Record,
    /// Number of records left out.
    left_out: u64,
}

impl<'a, R: Read + Seek> Records<'a, R> {
    /// `version` is one that is known.
    pub(crate) fn new(region: Region<'a, R>, order: ByteOrder, of: Counters, version: u32) -> Records<'a, R> {
        let Version { lacks, lacks_times } = &of.versions()[version as usize - 1];
        let numbers = of.names().len() - lacks.len() + of.times().len() - lacks_times.len();
        let mut records =
            Records { region, order, of, version, bytes: 0, record: Record::default(), left_out: 0 };
        let others = if records.has_stdio() { POSIX_1_STDIO_COUNTERS } else { records.has_file().into() };
        records.bytes = 8 * (2 + numbers + others);
        records
    }

    fn has_stdio(&self) -> bool {
        self.of == Counters::Posix && self.version == 1
    }

    fn has_file(&self) -> bool {
        self.of == Counters::H5d && self.version >= 2
    }

    /// The next record, or `None` after the last.
    ///
    /// # Errors
    /// The region is cut off or damaged here.
    pub fn next_record(&mut self) -> Result<Option<&Record>, Error> {
        loop {
            if !self.region.need(self.bytes)? {
                return Ok(None);
            }
            let is_mixed = self.parse();
            self.region.consume(self.bytes);
            if !is_mixed {
                return Ok(Some(&self.record));
            }
            self.left_out += 1;
        }
    }

    /// Records of version 1 of POSIX that mix system calls with C streams. They have been left out,
    /// as Darshan's own tools do.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Parses the available record. Returns whether it mixes system calls with C streams.
    fn parse(&mut self) -> bool {
        let (has_stdio, has_file) = (self.has_stdio(), self.has_file());
        let Version { lacks, lacks_times } = &self.of.versions()[self.version as usize - 1];
        let mut fields = Fields::new(self.order, self.region.bytes());
        let Record { id, rank, file_id, counters, times } = &mut self.record;
        (*id, *rank) = (fields.u64(), fields.i64());
        *file_id = if has_file { fields.u64() } else { 0 };
        counters.clear();
        let mut fopens = 0;
        for index in 0..self.of.names().len() {
            if has_stdio && index == POSIX_1_STDIO {
                fopens = fields.i64();
                fields.take(8 * (POSIX_1_STDIO_COUNTERS - 1));
            }
            counters.push(if lacks.contains(&index) { lacking(self.of, index) } else { fields.i64() });
        }
        times.clear();
        for index in 0..self.of.times().len() {
            times.push(if lacks_times.contains(&index) { -1.0 } else { fields.f64() });
        }
        fopens > 0
    }
}

/// The value of a counter that a record lacks, as Darshan's own tools say.
fn lacking(of: Counters, index: usize) -> i64 {
    if of == Counters::Posix && index == POSIX_RENAMED_FROM { 0 } else { -1 }
}
