//! The parallel file systems that stripewise supports.

/// A parallel file system: a value of `driver = "..."` in a tier other than `dirs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileSystem {
    /// Ceph's file system.
    CephFs,
    /// Lustre.
    Lustre,
    /// BeeGFS.
    BeeGfs,
    /// OrangeFS, formerly PVFS2.
    OrangeFs,
}

impl FileSystem {
    /// All supported file systems.
    pub const ALL: [Self; 4] = [Self::CephFs, Self::Lustre, Self::BeeGfs, Self::OrangeFs];

    /// The name in `cluster.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CephFs => "cephfs",
            Self::Lustre => "lustre",
            Self::BeeGfs => "beegfs",
            Self::OrangeFs => "orangefs",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::CephFs => "CephFS",
            Self::Lustre => "Lustre",
            Self::BeeGfs => "BeeGFS",
            Self::OrangeFs => "OrangeFS",
        }
    }

    /// The file system called `name` in `cluster.toml`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for system in FileSystem::ALL {
            assert_eq!(FileSystem::from_name(system.name()), Some(system));
            assert_eq!(system.title().to_lowercase(), system.name());
        }
        assert_eq!(FileSystem::from_name("dirs"), None);
    }
}
