//! Finds what a directory on a CephFS offers to this user.
//!
//! CephFS has no call that lists its data pools, but it accepts a pool's number for its name and
//! refuses pools that are not its data pools. The probe therefore gives a temporary directory one
//! pool after the other and writes a byte to each.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use stripewise_native::cephfs::Attribute;
use stripewise_sys::{Errno, Kind, Mode};

use super::admin;
use super::attributes::MAY_SET;
use super::handle::{CephFs, KINDS, SYSTEM, may_write};
use crate::driver::{Driver, Pool, Probe};
use crate::error::{DriverError, Result};
use crate::files::{self, HERE};
use crate::mounts::Mount;

/// The pool field of a directory's layout, by name or by number.
const DIR_POOL: &str = "ceph.dir.layout.pool";
/// The cluster's identifier.
const CLUSTER: &str = "ceph.cluster_fsid";
/// Highest pool number tried where no list of pools is available; each trial takes some
/// milliseconds.
const NUMBERS_TRIED: u64 = 64;

pub fn probe(ceph: &CephFs, dir: &Path, mount: &Mount) -> Result<Probe> {
    let client = if mount.kind == KINDS[0] {
        "mounted by the kernel"
    } else {
        "mounted by ceph-fuse, which cuts requests into pieces of 128 KiB: mount with the kernel where it can be done"
    };
    let notes = vec![client.to_owned()];
    let mut probe = Probe { system: Some(SYSTEM), mount: mount.point.clone(), notes, ..Probe::default() };
    let cluster = files::attribute(&*ceph.sys, Kind::Named(HERE, dir), CLUSTER).ok().flatten();
    let listed = admin::pools(&ceph.ceph, cluster.as_deref()).unwrap_or_else(|why| {
        probe.notes.push(why);
        BTreeMap::new()
    });
    let trial = files::scratch(&*ceph.sys, dir)?;
    if let Err(errno) = ceph.sys.mkdir(HERE, &trial, Mode::from_raw_mode(0o700)) {
        let error = DriverError::io(dir, "making a directory in it", errno);
        probe.rights.push(format!("which pools may be used is not known: {error}"));
        probe.pools.extend(own(ceph, dir, &listed));
        return Ok(probe);
    }
    let pools = try_pools(ceph, &trial, listed, &mut probe);
    files::remove_if_empty(&*ceph.sys, &trial)?;
    probe.set_pools(pools);
    Ok(probe)
}

/// The pools that the directory `trial` can be given. Adds the rights that this user lacks on them.
fn try_pools(ceph: &CephFs, trial: &Path, listed: BTreeMap<u64, Pool>, probe: &mut Probe) -> Vec<Pool> {
    let mut pools = Vec::new();
    let numbers: Vec<u64> =
        if listed.is_empty() { (1..=NUMBERS_TRIED).collect() } else { listed.keys().copied().collect() };
    for number in numbers {
        let set =
            ceph.sys.set_xattr(Kind::Named(HERE, trial), OsStr::new(DIR_POOL), number.to_string().as_bytes());
        match set {
            Ok(()) => {}
            // There is no pool with this number, or it has another purpose.
            Err(Errno::INVAL | Errno::NOENT) => continue,
            Err(Errno::ACCESS | Errno::PERM) => {
                probe.rights.push(MAY_SET.to_owned());
                pools.extend(own(ceph, trial, &listed));
                return pools;
            }
            Err(errno) => {
                let error = DriverError::io(trial, format!("trying pool {number}"), errno);
                probe.notes.push(error.to_string());
                continue;
            }
        }
        let Ok(Some(attribute)) = ceph.dir(trial).text() else { continue };
        let Some(name) = Attribute::parse(&attribute).and_then(|attribute| attribute.pool) else { continue };
        match files::try_out(&*ceph.sys, trial, |_| Ok(())) {
            Ok(()) => {}
            Err(DriverError::Full { .. }) => probe.notes.push(format!("pool {name} is full")),
            Err(DriverError::Denied { .. }) => {
                probe.rights.push(may_write(&name));
                continue;
            }
            Err(error) => probe.notes.push(format!("pool {name}: {error}")),
        }
        let listed = listed.get(&number).cloned().unwrap_or_default();
        pools.push(Pool { name, ..listed });
    }
    if listed.is_empty() {
        probe.notes.push(format!("pools with numbers above {NUMBERS_TRIED} were not looked for"));
    }
    pools
}

/// The pool that files of a directory get by default.
fn own(ceph: &CephFs, dir: &Path, listed: &BTreeMap<u64, Pool>) -> Option<Pool> {
    let layout = ceph.read_back(dir).ok()?.layout?;
    let stripewise_native::Stripe::Even { pool: Some(name), .. } = layout.stripe()? else { return None };
    let listed = listed.values().find(|pool| pool.name == *name).cloned().unwrap_or_default();
    Some(Pool { name: name.clone(), ..listed })
}
