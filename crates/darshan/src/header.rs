//! The header: the only part of a log that is never compressed. Source: Darshan 3.5
//! `include/darshan-log-format.h` and `darshan_log_get_header` in
//! `darshan-util/darshan-logutils.c`.

use std::io::Read;

use crate::bytes::{ByteOrder, Fields};
use crate::{Error, Module};

/// `DARSHAN_MAGIC_NR`, 8 bytes after the version.
const MAGIC: u64 = 6_567_223;

/// Bytes of the version and the magic number.
const START_BYTES: usize = 16;

/// Number of module slots since format 3.41.
const SLOTS: usize = 64;
/// Number of module slots before format 3.41.
const SLOTS_BEFORE_3_41: usize = 16;

/// The formats of Darshan 3.0 to 3.5.
const FORMATS: [(u32, u32); 5] = [(3, 0), (3, 10), (3, 20), (3, 21), (3, 41)];

/// How the regions of a log are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `DARSHAN_ZLIB_COMP`
    Zlib,
    /// `DARSHAN_BZIP2_COMP`
    Bzip2,
    /// `DARSHAN_NO_COMP`: the memory-mapped logs of processes that did not shut down.
    None,
}

/// Where a region lies in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// A module with data in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleInfo {
    /// Number of the module in format 3.41. Earlier formats lack some modules and count on.
    pub number: usize,
    /// Version of its records.
    pub version: u32,
    /// Whether Darshan ran out of memory for records of this module.
    pub is_partial: bool,
    pub(crate) extent: Extent,
}

impl ModuleInfo {
    /// The module, if Darshan 3.5 knows it.
    pub fn module(&self) -> Option<Module> {
        Module::ALL.get(self.number).copied()
    }

    /// The module's name, or `number N`.
    pub fn name(&self) -> String {
        self.module().map_or_else(|| format!("number {}", self.number), |module| module.name().to_owned())
    }
}

/// The header of a log.
#[derive(Clone, Debug)]
pub struct Header {
    /// Version of the log format, such as (3, 41).
    pub format: (u32, u32),
    /// The byte order of all numbers.
    pub order: ByteOrder,
    /// The compression of all regions.
    pub compression: Compression,
    /// The modules with data, by number.
    pub modules: Vec<ModuleInfo>,
    pub(crate) job: Extent,
    pub(crate) names: Extent,
}

/// Whether a file begins as a Darshan log of any version since 3.0. `start` are its first bytes.
pub fn is_darshan(start: &[u8]) -> bool {
    order_of(start).is_some()
}

fn order_of(start: &[u8]) -> Option<ByteOrder> {
    let magic = start.get(8..START_BYTES)?;
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|&order| Fields::new(order, magic).u64() == MAGIC)
}

impl Header {
    /// Reads the header of a log of `len` bytes.
    pub(crate) fn read(source: &mut impl Read, len: u64) -> Result<Header, Error> {
        let mut start = [0; START_BYTES];
        read_exact(source, &mut start)?;
        let Some(order) = order_of(&start) else {
            return Err(Error::NotDarshan("its magic number is missing".into()));
        };
        let format = format(&start[..8])?;
        let slots = if format < (3, 41) { SLOTS_BEFORE_3_41 } else { SLOTS };
        let flag_bytes = if format < (3, 41) { 4 } else { 8 };
        // The flags are aligned to their size.
        let mut rest = vec![0; 2 * flag_bytes + 16 + 20 * slots];
        read_exact(source, &mut rest)?;
        let compression = compression(rest[0])?;
        let mut fields = Fields::new(order, &rest[flag_bytes..]);
        let mut partial = if flag_bytes == 4 { u64::from(fields.u32()) } else { fields.u64() };
        let names = extent(&mut fields);
        let extents: Vec<Extent> = (0..slots).map(|_| extent(&mut fields)).collect();
        let mut modules = Vec::new();
        for (slot, &extent) in extents.iter().enumerate() {
            let (version, is_partial) = (fields.u32(), partial & 1 == 1);
            partial >>= 1;
            if extent.len > 0 {
                modules.push(ModuleInfo { number: number(format, slot), version, is_partial, extent });
            }
        }
        let mut header = Header { format, order, compression, modules, job: Extent::default(), names };
        header.job = header.job_extent((START_BYTES + rest.len()) as u64, len)?;
        Ok(header)
    }

    /// What the header says of a module, if that has data.
    pub fn module(&self, module: Module) -> Option<&ModuleInfo> {
        self.modules.iter().find(|info| info.number == module as usize)
    }

    /// The job record lies between the header and the next region.
    fn job_extent(&self, offset: u64, len: u64) -> Result<Extent, Error> {
        let first_module = self.modules.first().map_or(len, |info| info.extent.offset);
        let end = if self.names.offset == 0 { first_module } else { self.names.offset };
        match end.checked_sub(offset) {
            Some(len) if len > 0 => Ok(Extent { offset, len }),
            _ => Err(Error::Truncated { region: "the job record", bytes: 0 }),
        }
    }
}

fn read_exact(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), Error> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::NotDarshan("it ends within the header".into()),
        _ => error.into(),
    })
}

fn format(version: &[u8]) -> Result<(u32, u32), Error> {
    let version = crate::bytes::text(version);
    let parsed =
        version.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed.filter(|format| FORMATS.contains(format)).ok_or_else(|| {
        let known = FORMATS.map(|(major, minor)| format!("{major}.{minor:02}")).join(", ");
        Error::Format { version, known }
    })
}

fn compression(code: u8) -> Result<Compression, Error> {
    match code {
        0 => Ok(Compression::Zlib),
        1 => Ok(Compression::Bzip2),
        2 => Ok(Compression::None),
        _ => Err(Error::NotDarshan(format!("its compression is {code}, not 0 to 2"))),
    }
}

fn extent(fields: &mut Fields) -> Extent {
    Extent { offset: fields.u64(), len: fields.u64() }
}

/// The number in format 3.41 of the module in a slot. Format 3.20 inserted H5D, and 3.41
/// PNETCDF_VAR.
fn number(format: (u32, u32), slot: usize) -> usize {
    let mut number = slot;
    if format < (3, 20) && number >= Module::H5d as usize {
        number += 1;
    }
    if format < (3, 41) && number >= Module::PnetcdfVar as usize {
        number += 1;
    }
    number
}
