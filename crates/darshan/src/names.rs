//! Name records: the path, or the name within a file, behind a record's id. Source: Darshan 3.5
//! `darshan_log_get_namerecs` and `darshan_log_get_namerecs_3_00` in
//! `darshan-util/darshan-logutils.c`.

use std::io::{Read, Seek};

use crate::Error;
use crate::bytes::{ByteOrder, Fields};
use crate::region::{BUFFER_BYTES, Region};

/// Maximum length of a name. Darshan's own are paths, or paths with the name of an HDF5 dataset.
const NAME_BYTES_MAX: usize = BUFFER_BYTES - 64;

/// The name records of a log. The same id may come several times.
pub struct Names<'a, R> {
    region: Region<'a, R>,
    order: ByteOrder,
    /// Names have a length in front and no NUL at the end: format 3.00.
    has_length: bool,
    /// Bytes of the record that the caller has.
    current: usize,
}

impl<'a, R: Read + Seek> Names<'a, R> {
    pub(crate) fn new(region: Region<'a, R>, order: ByteOrder, format: (u32, u32)) -> Names<'a, R> {
        Names { region, order, has_length: format == (3, 0), current: 0 }
    }

    /// The next id and its name, or `None` after the last.
    ///
    /// # Errors
    /// The region is cut off or damaged here.
    pub fn next_name(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        self.region.consume(std::mem::take(&mut self.current));
        if !self.region.need(8)? {
            return Ok(None);
        }
        let (start, end) = if self.has_length { self.counted()? } else { self.terminated()? };
        self.current = if self.has_length { end } else { end + 1 };
        let record = self.region.bytes();
        Ok(Some((Fields::new(self.order, record).u64(), &record[start..end])))
    }

    /// Start and end of a name with its length in front.
    fn counted(&mut self) -> Result<(usize, usize), Error> {
        self.region.must(12)?;
        let len = Fields::new(self.order, &self.region.bytes()[8..]).u32() as usize;
        if len > NAME_BYTES_MAX {
            return Err(self.region.damaged(format!("a name of {len} bytes")));
        }
        self.region.must(12 + len)?;
        Ok((12, 12 + len))
    }

    /// Start and end of a name with a NUL behind it.
    fn terminated(&mut self) -> Result<(usize, usize), Error> {
        let mut searched = 8;
        loop {
            let bytes = self.region.bytes();
            if let Some(len) = bytes[searched..].iter().position(|&byte| byte == 0) {
                return Ok((8, searched + len));
            }
            searched = bytes.len();
            if searched > NAME_BYTES_MAX {
                return Err(self.region.damaged(format!("a name of more than {NAME_BYTES_MAX} bytes")));
            }
            self.region.must(searched + 1)?;
        }
    }
}
