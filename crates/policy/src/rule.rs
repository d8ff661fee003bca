//! The rule by which the copies of a file are chosen.

use stripewise_cluster::{CacheAdmission, OverlayKind};
use stripewise_model::{ClassParams, ModelError, Network};

use crate::balance::Balance;
use crate::costs::{CopyView, Costs};
use crate::identify::Identifier;
use crate::kind::Kind;

/// The rule of a file with several copies. Must be created again when the concurrency changes.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few, and each is behind a pointer")]
pub enum Rule {
    /// Replicas: the cheapest.
    Replicas(Costs),
    /// A cache: Algorithm 1.
    Cache(Identifier),
}

impl Rule {
    /// For a file with these copies, the original first. Their layouts use targets whose parameters
    /// are in `classes` by index, over `network`; `procs` is (p, c).
    ///
    /// # Errors
    /// As [`Costs::new`], [`Identifier::new`] and [`Balance::new`].
    pub fn new(
        kind: OverlayKind,
        copies: &[CopyView<'_>],
        classes: &[ClassParams],
        network: Network,
        procs: (u32, u32),
    ) -> Result<Self, ModelError> {
        let OverlayKind::Cache { mode, admission, .. } = kind else {
            return Ok(Self::Replicas(Costs::new(copies, classes, network, procs)?));
        };
        let identifier = Identifier::new(mode, copies[0].layout, &copies[1..], classes, procs.0)?;
        Ok(Self::Cache(match admission {
            CacheAdmission::Balanced => identifier.balanced(Balance::new(copies, classes, network, procs.0)?),
            CacheAdmission::AsPrinted => identifier,
        }))
    }

    /// The best of the copies in the mask `valid` to copy a range from in the background. `None` if
    /// the mask has no copy.
    pub fn source(&self, start: u64, len: u64, valid: u8) -> Option<usize> {
        let cheapest = match self {
            Self::Replicas(costs) => costs.cheapest(Kind::COPYING, start, len, valid),
            Self::Cache(_) => None,
        };
        cheapest.or_else(|| (valid != 0).then(|| valid.trailing_zeros() as usize))
    }
}
