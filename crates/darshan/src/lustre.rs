//! The layouts of files on Lustre. Source: `include/darshan-lustre-log-format.h` and
//! `darshan-util/darshan-lustre-logutils.c`: version 2 of Darshan 3.5, version 1 of 3.0 to 3.4.

use std::io::{Read, Seek};

use crate::Error;
use crate::bytes::{ByteOrder, Fields, text};
use crate::region::Region;

/// Maximum number of components of a file. Lustre allows far fewer.
const COMPONENTS_MAX: i64 = 1 << 16;

/// Maximum number of stripes of a file. Lustre allows 2000 in each component.
const STRIPES_MAX: i64 = 1 << 20;

/// Bytes of a component: seven counters and the name of the pool.
const COMPONENT_BYTES: usize = 7 * 8 + POOL_BYTES;
const POOL_BYTES: usize = 16;

/// A component of a file's layout. Numbers that version 1 lacks are -1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Bytes of a stripe.
    pub stripe_bytes: i64,
    /// Number of stripes.
    pub stripes: i64,
    /// Lustre's code of the pattern.
    pub pattern: i64,
    /// Lustre's flags.
    pub flags: i64,
    /// First byte of the file that the component is for.
    pub start: i64,
    /// End of that range; -1 if it is the end of the file.
    pub end: i64,
    /// Number of the mirror.
    pub mirror: i64,
    /// The pool of OSTs; empty if there is none.
    pub pool: String,
}

/// The layout of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LustreRecord {
    /// Id of the file's name.
    pub id: u64,
    /// The process, or -1 for all processes together.
    pub rank: i64,
    /// The components.
    pub components: Vec<Component>,
    /// The OSTs of the stripes, of one component after the other.
    pub osts: Vec<i64>,
    /// Number of OSTs of the file system; `None` if the record does not say (version 2).
    pub all_osts: Option<u32>,
}

/// The layouts in a log, streamed.
pub struct LustreRecords<'a, R> {
    region: Region<'a, R>,
    order: ByteOrder,
    version: u32,
}

/// The newest version of the records that is known.
pub(crate) const NEWEST: u32 = 2;

impl<'a, R: Read + Seek> LustreRecords<'a, R> {
    pub(crate) fn new(region: Region<'a, R>, order: ByteOrder, version: u32) -> LustreRecords<'a, R> {
        LustreRecords { region, order, version }
    }

    /// The next layout, or `None` after the last. Memory: at most 9 MiB of components and OSTs.
    ///
    /// # Errors
    /// The region is cut off or damaged here.
    pub fn next_record(&mut self) -> Result<Option<LustreRecord>, Error> {
        let fixed = if self.version == 1 { 7 * 8 } else { 4 * 8 };
        if !self.region.need(fixed)? {
            return Ok(None);
        }
        let mut fields = Fields::new(self.order, self.region.bytes());
        let mut record = LustreRecord { id: fields.u64(), rank: fields.i64(), ..LustreRecord::default() };
        if self.version == 1 {
            let [osts, _mdts, _offset, stripe_bytes, stripes] = std::array::from_fn(|_| fields.i64());
            self.region.consume(fixed);
            record.all_osts = u32::try_from(osts).ok().filter(|&osts| osts > 0);
            record.components = vec![whole(stripe_bytes, stripes)];
            record.osts = self.osts(stripes)?;
            return Ok(Some(record));
        }
        let (components, stripes) = (fields.i64(), fields.i64());
        self.region.consume(fixed);
        if components > COMPONENTS_MAX {
            return Err(self.region.damaged(format!("a layout of {components} components")));
        }
        // Without components, Darshan writes no stripes.
        if components > 0 {
            record.components = (0..components).map(|_| self.component()).collect::<Result<_, _>>()?;
            record.osts = self.osts(stripes)?;
            drop_unused(&mut record);
        }
        Ok(Some(record))
    }

    fn component(&mut self) -> Result<Component, Error> {
        self.region.must(COMPONENT_BYTES)?;
        let mut fields = Fields::new(self.order, self.region.bytes());
        let [stripe_bytes, stripes, pattern, flags, start, end, mirror] = std::array::from_fn(|_| fields.i64());
        let pool = text(fields.take(POOL_BYTES));
        self.region.consume(COMPONENT_BYTES);
        Ok(Component { stripe_bytes, stripes, pattern, flags, start, end, mirror, pool })
    }

    /// Grows as the OSTs are read, since the number may be wrong.
    fn osts(&mut self, stripes: i64) -> Result<Vec<i64>, Error> {
        if !(0..=STRIPES_MAX).contains(&stripes) {
            return Err(self.region.damaged(format!("a layout of {stripes} stripes")));
        }
        let mut osts = Vec::new();
        for _ in 0..stripes {
            self.region.must(8)?;
            osts.push(Fields::new(self.order, self.region.bytes()).i64());
            self.region.consume(8);
        }
        Ok(osts)
    }
}

/// The layout of version 1, which knows a single component.
fn whole(stripe_bytes: i64, stripes: i64) -> Component {
    let unknown = -1;
    Component {
        stripe_bytes,
        stripes,
        pattern: unknown,
        flags: unknown,
        start: 0,
        end: -1,
        mirror: unknown,
        pool: String::new(),
    }
}

/// Darshan reserves places for components. Those that were not needed have stripes of -1 bytes.
fn drop_unused(record: &mut LustreRecord) {
    let used = record.components.iter().position(|component| component.stripe_bytes == -1);
    record.components.truncate(used.unwrap_or(record.components.len()));
    let stripes = record.components.iter().fold(0_i64, |sum, component| sum.saturating_add(component.stripes));
    record.osts.truncate(stripes.max(0) as usize);
}
