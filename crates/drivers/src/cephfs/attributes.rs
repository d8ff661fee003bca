//! The attributes in which CephFS keeps layouts: setting, reading, comparing and parsing them.

use std::ffi::OsStr;
use std::path::Path;

use stripewise_cluster::size;
use stripewise_native::cephfs::Attribute;
use stripewise_native::{Names, Objects};
use stripewise_sys::{Errno, Kind, Sys};

use crate::driver::Actual;
use crate::error::{DriverError, Result};
use crate::files;

/// The layout of a file.
pub(super) const FILE_LAYOUT: &str = "ceph.file.layout";
/// How a user gets permission to set layouts.
pub(super) const MAY_SET: &str = "setting layouts takes write permission and the flag p in the client's MDS capabilities; \
    an administrator gives it: `ceph fs authorize FS client.NAME / rwp`";

/// An attribute with the layout of a file, or of a directory's new files.
#[derive(Clone, Copy)]
pub(super) struct Xattr<'a> {
    pub sys: &'a dyn Sys,
    pub of: Kind<'a>,
    pub path: &'a Path,
    pub name: &'static str,
}

impl Xattr<'_> {
    /// The attribute's text; `None`: it is not set.
    pub fn text(&self) -> Result<Option<String>> {
        files::attribute(self.sys, self.of, self.name)
            .map_err(|errno| DriverError::io(self.path, format!("reading {}", self.name), errno))
    }

    /// Sets `value`, the text of `asked`.
    pub fn set(&self, value: &str, asked: &Attribute) -> Result<()> {
        self.sys.set_xattr(self.of, OsStr::new(self.name), value.as_bytes()).map_err(|errno| {
            let problem = match (errno, &asked.pool) {
                (Errno::INVAL, Some(pool)) => format!(
                    "this CephFS has no data pool {pool:?}; `stripewise init` lists those that it has, and an administrator \
                     adds one with `ceph fs add_data_pool FS {pool}`"
                ),
                (Errno::INVAL, None) => "the metadata server does not take these values".to_owned(),
                (Errno::NOTEMPTY, _) => {
                    "the file was written before; copy it to a new file with the layout and rename that".to_owned()
                }
                _ => return denied_or_io(self.path, "setting its layout", errno),
            };
            DriverError::refused(self.path, value, problem)
        })
    }

    /// Takes the attribute away.
    pub fn remove(&self) -> std::result::Result<(), Errno> {
        self.sys.remove_xattr(self.of, OsStr::new(self.name))
    }

    /// As [`Self::verify`]. If `value` says more than the layout, also verifies that text.
    pub fn verify_exact(&self, value: &str, asked: &Attribute) -> Result<()> {
        self.verify(asked)?;
        if value == asked.text() {
            return Ok(());
        }
        match self.text()? {
            Some(got) if got != value => {
                Err(DriverError::refused(self.path, value, format!("it has {got:?} now")))
            }
            _ => Ok(()),
        }
    }

    /// Compares the attribute with the requested one.
    pub fn verify(&self, asked: &Attribute) -> Result<()> {
        const REMEDY: &str = "this CephFS does not keep layouts as they are set, use plain directories on it (driver = \"dirs\")";
        let got = self.text()?.map(|text| self.understood(&text)).transpose()?;
        let objects = got.as_ref().map(|got| got.object_size);
        DriverError::compare(self.path, &asked.layout(), got.map(|got| got.layout()), REMEDY)?;
        if objects == Some(asked.object_size) {
            return Ok(());
        }
        let sizes = (size::format(asked.object_size), size::format(objects.unwrap_or(0)));
        Err(DriverError::Differs {
            path: self.path.to_owned(),
            asked: asked.layout(),
            got: Some(asked.layout()),
            remedy: format!("its objects are {} instead of {}; {REMEDY}", sizes.1, sizes.0),
        })
    }

    /// Parses a text of the attribute.
    pub fn understood(&self, text: &str) -> Result<Attribute> {
        let problem = || format!("{} is not understood; is this a newer CephFS?", self.name);
        Attribute::parse(text).ok_or_else(|| DriverError::refused(self.path, text, problem()))
    }

    /// The actual layout from the attribute's text. `from` is the ancestor directory that has the
    /// attribute, unless the examined file or directory itself has it.
    pub fn actual(&self, text: String, from: Option<&Path>) -> Result<Actual> {
        let attribute = self.understood(&text)?;
        let note = format!("objects of {}", size::format(attribute.object_size));
        let note = from.map_or(note.clone(), |from| format!("{note}, from {}", from.display()));
        let layout = Some(attribute.layout());
        let objects = Some(Objects { size: attribute.object_size, names: self.names(&text)? });
        let inherited = from.is_some();
        Ok(Actual { layout, note: Some(note), exact: Some(text), objects, inherited, ..Actual::default() })
    }

    /// What the objects of the file are called; `None` of a directory.
    fn names(&self, text: &str) -> Result<Option<Names>> {
        if self.name != FILE_LAYOUT {
            return Ok(None);
        }
        let inode = match self.of {
            Kind::Open(open) => self.sys.stat(open),
            Kind::Named(dir, path) => self.sys.stat_at(dir, path, true),
        };
        let inode = inode.map_err(|errno| DriverError::io(self.path, "looking at it", errno))?.st_ino;
        let mut fields = text.split_whitespace();
        let namespace = fields.find_map(|field| field.strip_prefix("pool_namespace=")).unwrap_or_default();
        Ok(Some(Names { inode, namespace: namespace.to_owned() }))
    }
}

/// The error of a call that takes the right to set layouts.
pub(super) fn denied_or_io(path: &Path, doing: &str, errno: Errno) -> DriverError {
    match errno {
        Errno::ACCESS | Errno::PERM => DriverError::denied(path, doing, MAY_SET),
        errno => DriverError::io(path, doing, errno),
    }
}
