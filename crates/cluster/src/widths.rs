//! Which stripe widths a parallel file system takes.

use crate::file_system::FileSystem;

/// Widths are whole multiples of this on the file systems that are particular about it.
const UNIT: u64 = 64 << 10;

impl FileSystem {
    /// Every width that the file system takes is a whole multiple of so many bytes.
    ///
    /// Sources: Ceph `src/include/fs_types.h` (`CEPH_MIN_STRIPE_UNIT`), Lustre `lustre_user.h` (`LOV_MIN_STRIPE_SIZE`),
    /// BeeGFS `STRIPEPATTERN_MIN_CHUNKSIZE`, OrangeFS `dist-simple-stripe.c` (any size above 0).
    pub fn width_unit(self) -> u64 {
        match self {
            Self::CephFs | Self::Lustre | Self::BeeGfs => UNIT,
            Self::OrangeFs => 1,
        }
    }

    /// Whether it has stripes of `width` bytes.
    pub fn has_width(self, width: u64) -> bool {
        let powers_only = self == Self::BeeGfs;
        width > 0 && width.is_multiple_of(self.width_unit()) && (!powers_only || width.is_power_of_two())
    }

    /// The smallest width that it has and that is at least `width`.
    pub fn width_above(self, width: u64) -> u64 {
        let multiple = width.max(1).next_multiple_of(self.width_unit());
        if self.has_width(multiple) { multiple } else { multiple.next_power_of_two() }
    }

    /// What [`FileSystem::has_width`] asks for, for messages.
    pub fn width_rule(self) -> &'static str {
        match self {
            Self::CephFs => "CephFS has widths that are whole multiples of 64K",
            Self::Lustre => "Lustre has widths that are whole multiples of 64K",
            Self::BeeGfs => "BeeGFS has widths that are powers of two from 64K on",
            Self::OrangeFs => "OrangeFS has any width above 0",
        }
    }
}
