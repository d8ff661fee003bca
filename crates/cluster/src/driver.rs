//! How the servers of a tier are accessed.

use std::path::PathBuf;

use crate::file_system::FileSystem;
use crate::size;

/// The location of a tier's servers.
#[derive(Clone, Debug, PartialEq)]
pub enum Driver {
    /// Every server is a directory, such as a disk or an NFS mount.
    Dirs {
        /// One absolute directory per server.
        servers: Vec<PathBuf>,
    },
    /// Servers of a parallel file system, accessed through directories whose new files inherit a
    /// native layout.
    Native {
        /// The file system.
        system: FileSystem,
        /// The absolute directory on it in which the targets are created.
        root: PathBuf,
        /// The tier's servers.
        members: Members,
    },
}

/// The servers of a tier on a parallel file system.
#[derive(Clone, Debug, PartialEq)]
pub enum Members {
    /// Servers by name: each is a target, and stripewise decides which bytes it holds. A name is
    /// that of a pool on that server alone (CephFS, BeeGFS), an OST index (Lustre), or an address
    /// (OrangeFS).
    Servers(Vec<String>),
    /// A pool whose servers cannot be addressed individually: the file system stripes over them.
    Pool {
        /// The file system's name of the pool.
        name: String,
        /// Number of servers in the pool, at least 1.
        count: u32,
    },
}

/// A prepared directory of a pool tier: the file system stripes its new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NativeTarget {
    /// Index into [`crate::Cluster::tiers`]; that tier has [`Members::Pool`].
    pub tier: usize,
    /// Width of a stripe on one server, bytes, more than 0.
    pub width: u64,
    /// Number of servers in a turn, at least 1 and at most the number of servers in the pool.
    pub count: u32,
}

impl NativeTarget {
    /// `64Kx4`: distinguishes the native targets of a tier in names and paths.
    pub fn label(&self) -> String {
        format!("{}x{}", size::format(self.width), self.count)
    }

    /// Parses the output of [`NativeTarget::label`]: (width, count); `None`: another text.
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

    /// Number of servers, including those of a pool, although they cannot be addressed
    /// individually.
    pub fn servers(&self) -> usize {
        match self {
            Self::Dirs { servers } => servers.len(),
            Self::Native { members: Members::Servers(servers), .. } => servers.len(),
            Self::Native { members: Members::Pool { count, .. }, .. } => *count as usize,
        }
    }

    /// Whether the file system stripes over the servers, so that layouts over them are folded
    /// before bytes are placed.
    pub fn is_pool(&self) -> bool {
        matches!(self, Self::Native { members: Members::Pool { .. }, .. })
    }

    /// The directory of server `index` of the tier called `tier`. In a pool it is a name only: the
    /// directory does not exist.
    pub(crate) fn server_path(&self, tier: &str, index: usize) -> PathBuf {
        match self {
            Self::Dirs { servers } => servers[index].clone(),
            Self::Native { root, .. } => root.join(format!("{tier}-{index}")),
        }
    }

    /// The file system and the directory in which its targets are created; `None` for `dirs`.
    pub fn native(&self) -> Option<(FileSystem, &std::path::Path)> {
        match self {
            Self::Dirs { .. } => None,
            Self::Native { system, root, .. } => Some((*system, root)),
        }
    }
}
