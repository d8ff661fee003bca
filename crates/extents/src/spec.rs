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
    /// `/etc/machine-id`, or the host name where there is none; at most 255 bytes.
    pub name: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot: [u8; 16],
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NAMES: [&str; 2] = ["/etc/machine-id", "/proc/sys/kernel/hostname"];
const NAME_BYTES_MAX: usize = 255;

impl Node {
    /// This machine.
    ///
    /// # Errors
    /// When /proc is not there.
    pub fn this(sys: &SysRef) -> Result<Self> {
        let text = |path: &str| -> std::result::Result<String, Errno> {
            let file = sys.open(None, Path::new(path), OFlags::RDONLY, Mode::empty())?;
            let bytes = sys.read_start(file.as_fd(), NAME_BYTES_MAX)?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        let boot = text(BOOT_ID).and_then(|text| parse_uuid(&text).ok_or(Errno::IO));
        let boot = boot.map_err(io(Path::new(BOOT_ID), "read"))?;
        let name = NAMES.iter().find_map(|path| text(path).ok().filter(|text| !text.is_empty()));
        Ok(Self { name: name.unwrap_or_default(), boot })
    }
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
