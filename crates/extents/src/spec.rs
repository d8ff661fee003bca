//! The parameters that a map is joined with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use std::os::fd::AsFd;
use stripewise_sys::{Errno, FileType, Mode, OFlags, Stat, SysRef};

use crate::error::io;
use crate::{MapError, Mask, Result};

/// Name of the file with the shared state in the run directory.
pub(crate) const SHARED_FILE: &str = "board";

/// A machine during one boot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// `MACHINE/HOST/HARDWARE`: `/etc/machine-id` (the host name if there is none), the host name,
    /// and the hardware addresses of up to four network devices, joined by `+`. Earlier versions
    /// wrote `MACHINE` alone.
    pub name: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot: [u8; 16],
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const MACHINE_ID: &str = "/etc/machine-id";
const HOST: &str = "/proc/sys/kernel/hostname";
const DEVICES: &str = "/sys/class/net";
/// Maximum length of each of the three fields of the name, bytes.
const PART_BYTES_MAX: usize = 64;
const DEVICES_MAX: usize = 4;

impl Node {
    /// Reads the name and the boot id of this machine.
    ///
    /// # Errors
    /// If the boot id cannot be read from /proc.
    pub fn this(sys: &SysRef) -> Result<Self> {
        let boot = text(sys, Path::new(BOOT_ID)).and_then(|text| parse_uuid(&text).ok_or(Errno::IO));
        let boot = boot.map_err(io(Path::new(BOOT_ID), "read"))?;
        let part = |path| text(sys, Path::new(path)).unwrap_or_default().replace('/', "_");
        let host = part(HOST);
        let machine = Some(part(MACHINE_ID)).filter(|id| !id.is_empty()).unwrap_or_else(|| host.clone());
        Ok(Self { name: format!("{machine}/{host}/{}", hardware(sys).join("+")), boot })
    }

    /// The host name, for tables; the whole name if an earlier version wrote it.
    pub fn host(&self) -> &str {
        self.name.split('/').nth(1).filter(|host| !host.is_empty()).unwrap_or(&self.name)
    }

    /// Whether a journal that names `other` was written by this machine, in this boot or an earlier
    /// one. Machines made from one image share the machine id and perhaps the host name, so one of
    /// the network devices must also match.
    pub fn is_same_machine(&self, other: &Self) -> bool {
        let own: Vec<&str> = self.name.splitn(3, '/').collect();
        let others: Vec<&str> = other.name.splitn(3, '/').collect();
        match (&own[..], &others[..]) {
            _ if self == other => true,
            ([machine, host, devices], [other_machine, other_host, others]) => {
                let is_others = |device: &str| !device.is_empty() && others.split('+').any(|it| it == device);
                machine == other_machine && host == other_host && devices.split('+').any(is_others)
            }
            // An earlier version wrote one of the names.
            _ => own[0] == others[0],
        }
    }
}

fn text(sys: &SysRef, path: &Path) -> std::result::Result<String, Errno> {
    let file = sys.open(None, path, OFlags::RDONLY, Mode::empty())?;
    let bytes = sys.read_start(file.as_fd(), PART_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The addresses of network devices that are backed by a device, real or virtual. Empty in a
/// network namespace without such a device.
fn hardware(sys: &SysRef) -> Vec<String> {
    let devices = Path::new(DEVICES);
    let Ok(dir) = sys.open(None, devices, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) else {
        return Vec::new();
    };
    let listed = sys.list(dir.as_fd()).unwrap_or_default();
    let is_hardware = |device: &PathBuf| sys.stat_at(None, &device.join("device"), true).is_ok();
    let address = |device: PathBuf| text(sys, &device.join("address")).ok();
    let paths = listed.into_iter().map(|entry| devices.join(entry.name)).filter(is_hardware);
    let mut addresses: Vec<String> = paths.filter_map(address).map(|text| text.replace(':', "")).collect();
    addresses.retain(|text| !text.is_empty() && text.len() <= 40 && !text.bytes().all(|digit| digit == b'0'));
    addresses.sort_unstable();
    addresses.dedup();
    addresses.truncate(DEVICES_MAX);
    // InfiniBand addresses are longer than Ethernet addresses.
    while addresses.join("+").len() > PART_BYTES_MAX {
        addresses.pop();
    }
    addresses
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|&digit| digit != '-').collect();
    if digits.len() != 32 {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// The map to join, and how to join it.
#[derive(Clone, Debug)]
pub struct MapSpec {
    /// Directory of the index and the shared state of this file alone. It is created with its
    /// parents (mode 0700) and removed again. It should be in memory: see [`default_run_dir`].
    pub run_dir: PathBuf,
    /// The directory that `journal_below` starts from, an absolute path.
    pub journal_base: PathBuf,
    /// The directory that holds the journal as long as the map is joined, relative to
    /// `journal_base`; empty for `journal_base` itself. Other users may create names there, so no
    /// symbolic link is followed.
    pub journal_below: PathBuf,
    /// File name of the journal in that directory: `ID.extents`.
    pub journal_name: OsString,
    /// The file's id.
    pub id: [u8; 16],
    /// Number of copies, the original included: 1 to [`crate::CopyId::LIMIT`].
    pub copies: usize,
    /// The copies that are valid for a byte that the map does not list: [`Mask::all`] in a
    /// replicated file, [`Mask::ORIGINAL`] in a cached one. Used only when the journal is created.
    pub default: Mask,
    /// User id of the file's owner, who also owns the journal and the run directory. Only the
    /// owner's processes may join the map. `None` means the calling user.
    pub owner: Option<u32>,
    /// This machine.
    pub node: Node,
    /// The file is being created: a missing journal is created, and synced with its directory, so
    /// that a journal that is missing later must have been removed. Without this flag a missing
    /// journal is [`crate::MapError::Missing`].
    pub create: bool,
    /// Whether the file system of the journal gives what sessions of several nodes need (E1, E3 and
    /// E4 in `docs/formats/nodes.md`). A journal that has version 2 is used with sessions in any
    /// case.
    pub sessions: bool,
}

impl MapSpec {
    /// Path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.journal_base.join(&self.journal_below).join(&self.journal_name)
    }

    /// Checks that the calling user owns the file, because only the owner's processes may join the
    /// map.
    pub(crate) fn check_owner(&self, sys: &SysRef) -> Result<()> {
        match self.owner.filter(|&owner| owner != sys.user()) {
            Some(owner) => Err(MapError::NotOwner { path: self.journal(), owner }),
            None => Ok(()),
        }
    }

    /// The error of a map whose index or shared state is gone.
    pub(crate) fn lost(&self) -> MapError {
        MapError::Lost { path: self.journal(), run_dir: self.run_dir.clone() }
    }

    /// The error of a session that is over on this node.
    pub(crate) fn over(&self) -> MapError {
        MapError::Over { path: self.journal() }
    }

    /// Whether this process may join the map.
    pub fn is_owners(&self, sys: &SysRef) -> bool {
        self.check_owner(sys).is_ok()
    }

    /// Whether the run directory has a shared state. If so, processes of this node have the file
    /// open, or were killed while they had it open.
    ///
    /// # Errors
    /// As stat(2); EACCES if the directory belongs to another user.
    pub fn has_shared_state(&self, sys: &SysRef) -> Result<bool> {
        let path = self.run_dir.join(SHARED_FILE);
        match sys.stat_at(None, &path, false) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(io(&path, "look at")(errno)),
        }
    }
}

/// Candidates for the directory that holds the run directories of a user, in order of preference.
fn run_bases(user: u32) -> impl Iterator<Item = PathBuf> {
    const PLACES: u32 = 8;
    let numbered = (1..PLACES).map(move |number| format!("/dev/shm/stripewise-{user}.{number}"));
    std::iter::once(format!("/dev/shm/stripewise-{user}")).chain(numbered).map(PathBuf::from)
}

/// `/dev/shm/stripewise-UID/ID`: the default run directory. `uid` is the owner of the file, so that
/// all processes that may write it share one directory. Any user may create
/// `/dev/shm/stripewise-UID` first: a directory that is not private to `uid` is skipped, and all
/// processes use the same one of `/dev/shm/stripewise-UID.1` to `.7`.
///
/// # Errors
/// EPERM if other users have taken all of these names.
pub fn default_run_dir(sys: &SysRef, uid: u32, id: [u8; 16]) -> Result<PathBuf> {
    run_base(sys, run_bases(uid), uid).map(|base| base.join(format!("{:032x}", u128::from_be_bytes(id))))
}

fn run_base(sys: &SysRef, places: impl Iterator<Item = PathBuf>, uid: u32) -> Result<PathBuf> {
    let (mut free, mut taken) = (None, PathBuf::new());
    for place in places {
        match sys.stat_at(None, &place, false) {
            // An existing private directory takes precedence over a free name: other processes use
            // it.
            Ok(stat) if is_private(&stat, uid) => return Ok(place),
            Err(Errno::NOENT) => free = free.or(Some(place)),
            _ => taken = place,
        }
    }
    free.ok_or_else(|| {
        io(&taken, "use, as other users have made it and the others like it; let root remove them;")(
            Errno::PERM,
        )
    })
}

/// Whether a directory belongs to `user` and no other user can create names in it.
pub(crate) fn is_private(stat: &Stat, user: u32) -> bool {
    let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    directory && stat.st_uid == user && stat.st_mode & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use stripewise_sys::Real;

    use super::*;

    #[test]
    fn a_directory_that_others_made_or_may_write_to_is_passed_over() {
        let (sys, root): (SysRef, _) = (Arc::new(Real), tempfile::tempdir().unwrap());
        let places: Vec<PathBuf> = (0..3).map(|number| root.path().join(number.to_string())).collect();
        let user = sys.user();
        let base = |uid| run_base(&sys, places.clone().into_iter(), uid);
        assert_eq!(base(user), Ok(places[0].clone()));
        std::fs::create_dir(&places[0]).unwrap();
        assert_eq!(base(user), Ok(places[0].clone()));
        assert_eq!(base(user + 1), Ok(places[1].clone()), "another user's");
        std::fs::set_permissions(&places[0], PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(base(user), Ok(places[1].clone()), "anybody may make names in it");
        std::os::unix::fs::symlink("/tmp", &places[1]).unwrap();
        assert_eq!(base(user), Ok(places[2].clone()), "a link");
        std::fs::create_dir(&places[2]).unwrap();
        std::fs::remove_file(&places[1]).unwrap();
        assert_eq!(base(user), Ok(places[2].clone()), "the one that is in use counts before a free one");
        let refused = base(user + 1).map(drop);
        assert_eq!(refused, Ok(()), "the one that has become free");
        std::fs::create_dir(&places[1]).unwrap();
        let refused = base(user + 1).unwrap_err();
        assert_eq!(refused.errno(), Errno::PERM);
        assert!(refused.to_string().contains("let root remove them"), "{refused}");
    }
}
