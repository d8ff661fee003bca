//! The parallel file systems that stripewise supports, and the stripe widths that they accept.

use crate::names::named;

/// Unit of the widths on the file systems that restrict them, bytes.
const UNIT: u64 = 64 << 10;

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

named!(FileSystem: CephFs = "cephfs", Lustre = "lustre", BeeGfs = "beegfs", OrangeFs = "orangefs");

impl FileSystem {
    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::CephFs => "CephFS",
            Self::Lustre => "Lustre",
            Self::BeeGfs => "BeeGFS",
            Self::OrangeFs => "OrangeFS",
        }
    }

    /// The unit of widths, bytes: every width that the file system accepts is a whole multiple of
    /// it.
    ///
    /// Sources: Ceph `src/include/fs_types.h` (`CEPH_MIN_STRIPE_UNIT`), Lustre `lustre_user.h`
    /// (`LOV_MIN_STRIPE_SIZE`), BeeGFS `STRIPEPATTERN_MIN_CHUNKSIZE`, OrangeFS
    /// `dist-simple-stripe.c` (any size above 0).
    pub fn width_unit(self) -> u64 {
        match self {
            Self::CephFs | Self::Lustre | Self::BeeGfs => UNIT,
            Self::OrangeFs => 1,
        }
    }

    /// Whether the file system accepts stripes of `width` bytes.
    pub fn has_width(self, width: u64) -> bool {
        let powers_only = self == Self::BeeGfs;
        width > 0 && width.is_multiple_of(self.width_unit()) && (!powers_only || width.is_power_of_two())
    }

    /// The smallest accepted width that is at least `width`.
    pub fn width_above(self, width: u64) -> u64 {
        let multiple = width.max(1).next_multiple_of(self.width_unit());
        if self.has_width(multiple) { multiple } else { multiple.next_power_of_two() }
    }

    /// The rule of [`FileSystem::has_width`], for messages.
    pub fn width_rule(self) -> &'static str {
        match self {
            Self::CephFs => "CephFS has widths that are whole multiples of 64K",
            Self::Lustre => "Lustre has widths that are whole multiples of 64K",
            Self::BeeGfs => "BeeGFS has widths that are powers of two from 64K on",
            Self::OrangeFs => "OrangeFS has any width above 0",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for system in FileSystem::ALL {
            assert_eq!(FileSystem::by_name(system.name()), Some(system));
            assert_eq!(system.title().to_lowercase(), system.name());
        }
        assert_eq!(FileSystem::by_name("dirs"), None);
    }
}
