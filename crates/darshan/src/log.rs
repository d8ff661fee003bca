//! An open log.

use std::io::{Read, Seek, SeekFrom};

use crate::dxt::{DxtRecords, Layer};
use crate::header::{Extent, Header};
use crate::job::Job;
use crate::lustre::{self, LustreRecords};
use crate::names::Names;
use crate::records::{Counters, Records};
use crate::region::Region;
use crate::{Error, Module};

/// A Darshan log. Memory: 400 KiB while something is read, whatever the log says.
pub struct Log<R> {
    source: R,
    header: Header,
}

impl<R: Read + Seek> Log<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// `source` is not a Darshan log, or one of an unknown format, or cannot be read.
    pub fn open(mut source: R) -> Result<Log<R>, Error> {
        let len = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        let header = Header::read(&mut source, len)?;
        Ok(Log { source, header })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the job record.
    ///
    /// # Errors
    /// It is cut off or damaged.
    pub fn job(&mut self) -> Result<Job, Error> {
        let Header { format, order, job, .. } = self.header;
        Job::read(self.region("the job record", job)?, order, format)
    }

    /// Streams the name records.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn names(&mut self) -> Result<Names<'_, R>, Error> {
        let Header { format, order, names, .. } = self.header;
        Ok(Names::new(self.region("the table of names", names)?, order, format))
    }

    /// Streams the records of a module; there are none if it has no data.
    ///
    /// # Errors
    /// The records have an unknown version, or the log cannot be read.
    pub fn records(&mut self, of: Counters) -> Result<Records<'_, R>, Error> {
        let (version, extent) = self.find(of.module(), of.newest())?;
        let order = self.header.order;
        Ok(Records::new(self.region(of.module().region(), extent)?, order, of, version))
    }

    /// Streams the layouts of files on Lustre; there are none if the module has no data.
    ///
    /// # Errors
    /// The records have an unknown version, or the log cannot be read.
    pub fn lustre(&mut self) -> Result<LustreRecords<'_, R>, Error> {
        let (version, extent) = self.find(Module::Lustre, lustre::NEWEST)?;
        let order = self.header.order;
        Ok(LustreRecords::new(self.region(Module::Lustre.region(), extent)?, order, version))
    }

    /// Streams the extended trace of a layer; there is none if the module has no data.
    ///
    /// # Errors
    /// The records have an unknown version, or the log cannot be read.
    pub fn dxt(&mut self, layer: Layer) -> Result<DxtRecords<'_, R>, Error> {
        let (version, extent) = self.find(layer.module(), layer.newest())?;
        let order = self.header.order;
        Ok(DxtRecords::new(self.region(layer.module().region(), extent)?, order, layer, version))
    }

    /// Version and place of a module's records.
    fn find(&self, module: Module, known: u32) -> Result<(u32, Extent), Error> {
        match self.header.module(module) {
            None => Ok((known, Extent::default())),
            Some(info) if (1..=known).contains(&info.version) => Ok((info.version, info.extent)),
            Some(info) => Err(Error::ModuleVersion { module: module.name(), version: info.version, known }),
        }
    }

    fn region(&mut self, name: &'static str, extent: Extent) -> Result<Region<'_, R>, Error> {
        Region::new(&mut self.source, name, self.header.compression, extent)
    }
}
