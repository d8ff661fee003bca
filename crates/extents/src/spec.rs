//! What a map is joined by.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use std::os::fd::AsFd;
use stripewise_sys::{Errno, Mode, OFlags, SysRef};

use crate::error::io;
use crate::{Mask, Result};

/// A machine, and one of its boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `MACHINE/HOST/HARDWARE`: `/etc/machine-id` (the host name where there is none), the host name, and the hardware addresses
    /// of up to four network devices, joined by `+`. Earlier versions wrote `MACHINE` alone.
    pub name: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot: [u8; 16],
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const MACHINE_ID: &str = "/etc/machine-id";
const HOST: &str = "/proc/sys/kernel/hostname";
const DEVICES: &str = "/sys/class/net";
/// Of each of the first two parts of the name, bytes.
const PART_BYTES_MAX: usize = 64;
const DEVICES_MAX: usize = 4;

impl Node {
    /// This machine.
    ///
    /// # Errors
    /// When /proc is not there.
    pub fn this(sys: &SysRef) -> Result<Self> {
        let boot = text(sys, Path::new(BOOT_ID)).and_then(|text| parse_uuid(&text).ok_or(Errno::IO));
        let boot = boot.map_err(io(Path::new(BOOT_ID), "read"))?;
        let part = |path| text(sys, Path::new(path)).unwrap_or_default().replace('/', "_");
        let host = part(HOST);
        let machine = Some(part(MACHINE_ID)).filter(|id| !id.is_empty()).unwrap_or_else(|| host.clone());
        Ok(Self { name: format!("{machine}/{host}/{}", hardware(sys).join("+")), boot })
    }

    /// Whether a journal that names `other` was written by this machine, on this boot or an earlier one. Machines made from
    /// one image have one machine id, and perhaps one host name; so one of the network devices must be the same, too.
    pub fn is_same_machine(&self, other: &Self) -> bool {
        let parts = |node: &Self| -> Option<(String, String, String)> {
            let mut parts = node.name.splitn(3, '/').map(str::to_owned);
            Some((parts.next()?, parts.next()?, parts.next()?))
        };
        let machine = |node: &Self| node.name.split('/').next().map(str::to_owned);
        match (parts(self), parts(other)) {
            _ if self == other => true,
            (Some((machine, host, mine)), Some((other_machine, other_host, others))) => {
                let is_others = |device: &str| !device.is_empty() && others.split('+').any(|it| it == device);
                machine == other_machine && host == other_host && mine.split('+').any(is_others)
            }
            // One was named by an earlier version.
            _ => machine(self) == machine(other),
        }
    }
}

fn text(sys: &SysRef, path: &Path) -> std::result::Result<String, Errno> {
    let file = sys.open(None, path, OFlags::RDONLY, Mode::empty())?;
    let bytes = sys.read_start(file.as_fd(), PART_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The addresses of the network devices that are hardware, or a virtual machine's; none in a network namespace that
/// has none of them.
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
    // InfiniBand's are longer.
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

/// Which map to join, and how.
#[derive(Clone, Debug)]
pub struct MapSpec {
    /// The directory of this file's index and board, of this file alone; it is made (mode 0700, with its parents) and removed
    /// again. In memory: see [`default_run_dir`].
    pub run_dir: PathBuf,
    /// The directory that holds the journal, as long as the map is joined. Absolute.
    pub journal_dir: PathBuf,
    /// The journal's name there: `ID.extents`.
    pub journal_name: OsString,
    /// The file's id.
    pub id: [u8; 16],
    /// How many copies it has, the original included: 1 to [`crate::CopyId::LIMIT`].
    pub copies: usize,
    /// The copies valid for a byte that the map does not list: [`Mask::all`] in a replicated file, [`Mask::ORIGINAL`] in a
    /// cached one. Only counts when the journal is created.
    pub default: Mask,
    /// Whose the run directory is, if root makes it for somebody: the file's owner, who goes on with it.
    pub owner: Option<u32>,
    /// This machine.
    pub node: Node,
    /// The file is being created: the journal is made if it is not there (and synced with its directory, so that
    /// one that is missing later was removed). Otherwise a missing journal is [`crate::MapError::Missing`].
    pub create: bool,
}

impl MapSpec {
    /// The journal's path.
    pub fn journal(&self) -> PathBuf {
        self.journal_dir.join(&self.journal_name)
    }

    /// Whether the run directory has a board: processes of this node have the file open, or were killed with it.
    ///
    /// # Errors
    /// As stat(2): EACCES, it is another user's.
    pub fn has_board(&self, sys: &SysRef) -> Result<bool> {
        let path = self.run_dir.join(crate::board::BOARD);
        match sys.stat_at(None, &path, false) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) => Err(io(&path, "look at")(errno)),
        }
    }
}

/// `/dev/shm/stripewise-UID/ID`: the place of a map's index and board unless said otherwise. `uid` is the owner of the
/// file, so that all who may write it meet there.
pub fn default_run_dir(uid: u32, id: [u8; 16]) -> PathBuf {
    PathBuf::from(format!("/dev/shm/stripewise-{uid}/{:032x}", u128::from_be_bytes(id)))
}
