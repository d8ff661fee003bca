//! CephFS: layouts are the attributes `ceph.file.layout` and `ceph.dir.layout`, whoever mounted it, kernel or `ceph-fuse`.
//!
//! A directory's is inherited by files that are created in it and, where nothing nearer has one, below it. A file's can be set until
//! it is written for the first time. What is set is checked by the metadata server, which rounds nothing.

mod admin;
mod probe;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use stripewise_cluster::{FileSystem, size};
use stripewise_native::NativeLayout;
use stripewise_native::cephfs::Attribute;
use stripewise_sys::{Errno, Kind, Real, SysRef};

use crate::files::{self, HERE};
use crate::mounts::{Mount, mount_of};
use crate::{Actual, Driver, DriverError, Probe, Result, Tool};

const SYSTEM: FileSystem = FileSystem::CephFs;
const DIR_LAYOUT: &str = "ceph.dir.layout";
const FILE_LAYOUT: &str = "ceph.file.layout";
/// Types in the mount table.
const KINDS: [&str; 3] = ["ceph", "fuse.ceph-fuse", "fuse.ceph"];
/// How a user comes to be allowed to set layouts.
const MAY_SET: &str = "setting layouts takes write permission and the flag p in the client's MDS capabilities; \
    an administrator gives it: `ceph fs authorize FS client.NAME / rwp`";

type MountOf = dyn Fn(&Path) -> Result<Option<Mount>> + Send + Sync;

/// CephFS through a mounted directory.
#[derive(Clone)]
pub struct CephFs {
    sys: SysRef,
    /// How the mount that a path is on is found.
    mount_of: Arc<MountOf>,
    /// The administrators' tool, for what users are not told otherwise.
    ceph: Tool,
}

impl Default for CephFs {
    fn default() -> Self {
        Self { sys: Arc::new(Real), mount_of: Arc::new(mount_of), ceph: Tool::new("ceph") }
    }
}

impl Driver for CephFs {
    fn system(&self) -> Option<FileSystem> {
        Some(SYSTEM)
    }

    fn probe(&self, dir: &Path) -> Result<Option<Probe>> {
        match self.mount(dir)? {
            Some(mount) => probe::probe(self, dir, &mount).map(Some),
            None => Ok(None),
        }
    }

    fn prepare(&self, dir: &Path, layout: &NativeLayout) -> Result<()> {
        let asked = attribute_of(layout)?;
        self.require(&files::existing(&self.sys, dir)?)?;
        let made = files::make_directories(&self.sys, dir)?;
        let prepared = self.prepare_existing(dir, &asked);
        if prepared.is_err() {
            made.undo(&self.sys);
        }
        prepared
    }

    fn create(&self, file: &Path, layout: &NativeLayout, mode: u32) -> Result<()> {
        let asked = attribute_of(layout)?;
        self.require(files::parent(file))?;
        let open = files::create_new(&self.sys, file, mode)?;
        let of = Kind::Open(open.as_fd());
        let made = files::writable(&self.sys, file, || self.set(of, file, FILE_LAYOUT, &asked))
            .and_then(|()| self.verify(file, FILE_LAYOUT, &asked));
        if made.is_err() {
            let _ = self.sys.unlink(HERE, file);
        }
        made
    }

    fn read_back(&self, path: &Path) -> Result<Actual> {
        self.require(path)?;
        if !files::is_directory(&files::look(&self.sys, path)?) {
            let attribute = self.attribute(path, FILE_LAYOUT)?;
            return Ok(actual(attribute.as_ref(), None));
        }
        // What is nearest counts.
        let absolute = files::absolute(path)?;
        let mount = (self.mount_of)(path)?.map(|mount| mount.point);
        for dir in absolute.ancestors() {
            if let Some(attribute) = self.attribute(dir, DIR_LAYOUT)? {
                let from = (dir != absolute).then(|| format!("from {}", dir.display()));
                return Ok(actual(Some(&attribute), from));
            }
            if Some(dir) == mount.as_deref() {
                break;
            }
        }
        Ok(Actual { layout: None, note: Some("what a directory above the mounted one says".to_owned()) })
    }

    fn remove(&self, dir: &Path) -> Result<()> {
        if !files::exists(&self.sys, dir) {
            return Ok(());
        }
        self.require(dir)?;
        match self.sys.remove_xattr(Kind::Named(HERE, dir), OsStr::new(DIR_LAYOUT)) {
            Ok(()) | Err(Errno::NODATA) => files::remove_if_empty(&self.sys, dir),
            Err(errno) => Err(self.refused(dir, "taking its layout away", errno)),
        }
    }
}

impl CephFs {
    /// The mount that an existing path is on, if it is a CephFS.
    fn mount(&self, path: &Path) -> Result<Option<Mount>> {
        let mount = (self.mount_of)(path)?.filter(|mount| KINDS.contains(&mount.kind.as_str()));
        // A CephFS knows the attribute, whether there is one or not.
        let known = !matches!(files::attribute(&self.sys, path, DIR_LAYOUT), Err(Errno::OPNOTSUPP));
        Ok(mount.filter(|_| known))
    }

    fn require(&self, path: &Path) -> Result<()> {
        match self.mount(path)? {
            Some(_) => Ok(()),
            None => Err(DriverError::Elsewhere { path: path.to_owned(), system: SYSTEM.title() }),
        }
    }

    /// Sets, and looks at what a new file gets. Who finds it set needs no right to set it; who fails leaves what was set before.
    fn prepare_existing(&self, dir: &Path, asked: &Attribute) -> Result<()> {
        let former = self.attribute(dir, DIR_LAYOUT)?;
        let of = Kind::Named(HERE, dir);
        if self.verify(dir, DIR_LAYOUT, asked).is_err() {
            self.set(of, dir, DIR_LAYOUT, asked)?;
        }
        let tried = files::try_out(&self.sys, dir, |trial| self.verify(trial, FILE_LAYOUT, asked));
        tried.map_err(|error| {
            let _ = match former {
                Some(former) => self.set(of, dir, DIR_LAYOUT, &former).is_ok(),
                None => self.sys.remove_xattr(of, OsStr::new(DIR_LAYOUT)).is_ok(),
            };
            match error {
                DriverError::Denied { path, doing, .. } if doing == files::WRITING => {
                    let remedy = may_write(asked.pool.as_deref().unwrap_or("POOL"));
                    DriverError::Denied { path, doing, remedy }
                }
                error => error,
            }
        })
    }

    fn set(&self, of: Kind<'_>, path: &Path, name: &str, asked: &Attribute) -> Result<()> {
        let value = asked.text();
        self.sys.set_xattr(of, OsStr::new(name), value.as_bytes()).map_err(|errno| {
            let refused = |problem: String| DriverError::Refused { path: path.to_owned(), value, problem };
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
                errno => self.refused(path, "setting its layout", errno),
            }
        })
    }

    fn refused(&self, path: &Path, doing: &str, errno: Errno) -> DriverError {
        match errno {
            Errno::ACCESS | Errno::PERM => DriverError::Denied {
                path: path.to_owned(),
                doing: doing.to_owned(),
                remedy: MAY_SET.to_owned(),
            },
            errno => DriverError::io(path, doing, errno),
        }
    }

    fn attribute(&self, path: &Path, name: &str) -> Result<Option<Attribute>> {
        let value = files::attribute(&self.sys, path, name)
            .map_err(|errno| DriverError::io(path, format!("reading {name}"), errno))?;
        value
            .map(|value| {
                Attribute::parse(&value).ok_or_else(|| DriverError::Refused {
                    path: path.to_owned(),
                    value,
                    problem: format!("{name} is not understood; is this a newer CephFS?"),
                })
            })
            .transpose()
    }

    /// Compares an attribute with what was asked for.
    fn verify(&self, path: &Path, name: &str, asked: &Attribute) -> Result<()> {
        const REMEDY: &str = "this CephFS does not keep layouts as they are set, use plain directories on it (driver = \"dirs\")";
        let got = self.attribute(path, name)?;
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

/// How a user comes to be allowed to write to a pool.
fn may_write(pool: &str) -> String {
    format!(
        "writing to pool {pool} takes OSD capabilities for it; an administrator gives them: \
         `ceph osd pool application set {pool} cephfs data FS` and `ceph fs authorize FS client.NAME / rwp`"
    )
}

fn attribute_of(layout: &NativeLayout) -> Result<Attribute> {
    Attribute::of(layout).map_err(|problem| DriverError::unsupported(SYSTEM, layout, problem))
}

fn actual(attribute: Option<&Attribute>, from: Option<String>) -> Actual {
    let objects = attribute.map(|attribute| format!("objects of {}", size::format(attribute.object_size)));
    let note: Vec<String> = objects.into_iter().chain(from).collect();
    Actual { layout: attribute.map(Attribute::layout), note: (!note.is_empty()).then(|| note.join(", ")) }
}
