//! How the servers of a tier are reached.

use std::path::PathBuf;

use crate::file_system::FileSystem;
use crate::size;

/// Where the servers of a tier are.
#[derive(Clone, Debug, PartialEq)]
pub enum Driver {
    /// Every server is a directory: a disk or an NFS mount each.
    Dirs {
        /// One absolute directory per server.
        servers: Vec<PathBuf>,
    },
    /// Servers of a parallel file system, reached through directories whose new files inherit a native layout.
    Native {
        /// Which file system it is.
        system: FileSystem,
        /// The absolute directory on it in which the targets are made.
        root: PathBuf,
        /// What there is.
        members: Members,
    },
}

/// The servers of a tier on a parallel file system.
#[derive(Clone, Debug, PartialEq)]
pub enum Members {
    /// Each by name, so that each is a target of its own and stripewise decides which bytes it holds. How the file
    /// system names them: a pool on that server alone (CephFS, BeeGFS), an OST index (Lustre), an address (OrangeFS).
    Servers(Vec<String>),
    /// A pool whose servers cannot be told apart: the file system stripes over them.
    Pool {
        /// As the file system names it.
        name: String,
        /// Servers in it, at least 1.
        count: u32,
    },
}

/// A prepared directory of a pool tier: its new files are striped by the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NativeTarget {
    /// Index into [`crate::Cluster::tiers`]; that tier has [`Members::Pool`].
    pub tier: usize,
    /// Bytes of a stripe on one server, more than 0.
    pub width: u64,
    /// Servers in a turn, at least 1 and at most as many as the pool has.
    pub count: u32,
}

impl NativeTarget {
    /// `64Kx4`: what distinguishes the native targets of a tier in names and paths.
    pub fn label(&self) -> String {
        format!("{}x{}", size::format(self.width), self.count)
    }

    /// What [`NativeTarget::label`] writes: (width, count); `None`: another text.
    pub fn parse_label(label: &str) -> Option<(u64, u32)> {
        let (width, count) = label.split_once('x')?;
        let parts = (size::parse(width).ok()?, count.parse().ok()?);
        let native = Self { tier: 0, width: parts.0, count: parts.1 };
        let possible = parts.0 > 0 && parts.1 > 0 && native.turn() <= i64::MAX as u64;
        (possible && native.label() == label).then_some(parts)
    }

    /// Bytes of one turn over all its servers.
    pub fn turn(&self) -> u64 {
        self.width.saturating_mul(u64::from(self.count))
    }
}

impl Driver {
    /// The name in `cluster.toml`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dirs { .. } => "dirs",
            Self::Native { system, .. } => system.name(),
        }
    }

    /// Number of servers; those of a pool are counted though they cannot be told apart.
    pub fn servers(&self) -> usize {
        match self {
            Self::Dirs { servers } => servers.len(),
            Self::Native { members: Members::Servers(servers), .. } => servers.len(),
            Self::Native { members: Members::Pool { count, .. }, .. } => *count as usize,
        }
    }

    /// Whether the file system stripes over the servers, so that layouts over them are folded before bytes are placed.
    pub fn is_pool(&self) -> bool {
        matches!(self, Self::Native { members: Members::Pool { .. }, .. })
    }

    /// The directory of server `index` of the tier called `tier`. In a pool it is a name only: no such directory exists.
    pub(crate) fn server_path(&self, tier: &str, index: usize) -> PathBuf {
        match self {
            Self::Dirs { servers } => servers[index].clone(),
            Self::Native { root, .. } => root.join(format!("{tier}-{index}")),
        }
    }

    /// The file system and the directory in which its targets are made; `None` for `dirs`.
    pub fn native(&self) -> Option<(FileSystem, &std::path::Path)> {
        match self {
            Self::Dirs { .. } => None,
            Self::Native { system, root, .. } => Some((*system, root)),
        }
    }
}
