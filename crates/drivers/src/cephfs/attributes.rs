//! The attributes in which CephFS keeps layouts: setting, reading, comparing and parsing them.

use std::ffi::OsStr;
use std::path::Path;

use stripewise_cluster::size;
use stripewise_native::cephfs::Attribute;
use stripewise_sys::{Errno, Kind};

use super::handle::{CephFs, MAY_SET};
use crate::driver::Actual;
use crate::error::{DriverError, Result};
use crate::files;

impl CephFs {
    /// Sets `value`, the text of `asked`.
    pub(super) fn set(
        &self,
        of: Kind<'_>,
        path: &Path,
        name: &str,
        value: &str,
        asked: &Attribute,
    ) -> Result<()> {
        self.sys.set_xattr(of, OsStr::new(name), value.as_bytes()).map_err(|errno| {
            let refused = |problem| DriverError::refused(path, value, problem);
            match errno {
                Errno::INVAL => refused(match &asked.pool {
                    Some(pool) => format!(
                        "this CephFS has no data pool {pool:?}; `stripewise init` lists those that it has, and an administrator \
                         adds one with `ceph fs add_data_pool FS {pool}`"
                    ),
                    None => "the metadata server does not take these values".to_owned(),
                }),
                Errno::NOTEMPTY => refused(
                    "the file was written before; copy it to a new file with the layout and rename that".to_owned(),
                ),
                errno => self.failed(path, "setting its layout", errno),
            }
        })
    }

    pub(super) fn failed(&self, path: &Path, doing: &str, errno: Errno) -> DriverError {
        match errno {
            Errno::ACCESS | Errno::PERM => DriverError::Denied {
                path: path.to_owned(),
                doing: doing.to_owned(),
                remedy: MAY_SET.to_owned(),
            },
            errno => DriverError::io(path, doing, errno),
        }
    }

    /// The text of an attribute; `None`: it is not set.
    pub(super) fn text(&self, of: Kind<'_>, path: &Path, name: &str) -> Result<Option<String>> {
        files::attribute_of(&*self.sys, of, name)
            .map_err(|errno| DriverError::io(path, format!("reading {name}"), errno))
    }

    /// As [`Self::verify`]. If `value` says more than the layout, also verifies that text.
    pub(super) fn verify_exact(
        &self,
        of: Kind<'_>,
        path: &Path,
        name: &str,
        value: &str,
        asked: &Attribute,
    ) -> Result<()> {
        self.verify(of, path, name, asked)?;
        if value == asked.text() {
            return Ok(());
        }
        match self.text(of, path, name)? {
            Some(got) if got != value => Err(DriverError::refused(path, value, format!("it has {got:?} now"))),
            _ => Ok(()),
        }
    }

    /// Compares an attribute with the requested one.
    pub(super) fn verify(&self, of: Kind<'_>, path: &Path, name: &str, asked: &Attribute) -> Result<()> {
        const REMEDY: &str = "this CephFS does not keep layouts as they are set, use plain directories on it (driver = \"dirs\")";
        let got = self.text(of, path, name)?.map(|text| understood(path, name, &text)).transpose()?;
        let objects = got.as_ref().map(|got| got.object_size);
        DriverError::compare(path, &asked.layout(), got.map(|got| got.layout()), REMEDY)?;
        if objects == Some(asked.object_size) {
            return Ok(());
        }
        let sizes = (size::format(asked.object_size), size::format(objects.unwrap_or(0)));
        Err(DriverError::Differs {
            path: path.to_owned(),
            asked: asked.layout(),
            got: Some(asked.layout()),
            remedy: format!("its objects are {} instead of {}; {REMEDY}", sizes.1, sizes.0),
        })
    }
}

/// Whether a file with `got` has the requested attribute, including the object size, which layouts
/// do not contain.
pub(super) fn is_met(asked: &Attribute, got: &Attribute) -> bool {
    asked.layout().is_met_by(&got.layout()) && asked.object_size == got.object_size
}

/// Parses the attribute `name` of `path`.
pub(super) fn understood(path: &Path, name: &str, text: &str) -> Result<Attribute> {
    let problem = || format!("{name} is not understood; is this a newer CephFS?");
    Attribute::parse(text).ok_or_else(|| DriverError::refused(path, text, problem()))
}

/// The actual layout from the attribute `name` of `path`. `from` is the ancestor directory that has
/// the attribute, unless `path` itself has it.
pub(super) fn actual(path: &Path, name: &str, text: String, from: Option<&Path>) -> Result<Actual> {
    let attribute = understood(path, name, &text)?;
    let objects = format!("objects of {}", size::format(attribute.object_size));
    let note = from.map_or(objects.clone(), |from| format!("{objects}, from {}", from.display()));
    let layout = Some(attribute.layout());
    Ok(Actual { layout, note: Some(note), exact: Some(text), inherited: from.is_some() })
}
