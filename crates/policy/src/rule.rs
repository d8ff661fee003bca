//! The rule by which the copies of a file are chosen.

use stripewise_cluster::{CacheAdmission, OverlayKind};
use stripewise_layout::Layout;
use stripewise_model::{ClassParams, ModelError, Network};

use crate::balance::Balance;
use crate::costs::{CopyView, Costs};
use crate::identify::{CacheView, Identifier};
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

/// A copy of a file, as the rule needs it.
#[derive(Clone, Copy, Debug)]
pub struct RuleCopy<'a> {
    /// The layout, as in [`CopyView::layout`].
    pub layout: &'a Layout,
    /// The number of servers, as in [`CopyView::spread_over`].
    pub spread_over: usize,
    /// As [`CacheView::groups`]; unused for the original and for replicas.
    pub groups: u32,
}

impl Rule {
    /// For a file with these copies, the original first. Their layouts use targets whose parameters
    /// are in `classes` by index, over `network`; `procs` is (p, c).
    ///
    /// # Errors
    /// As [`Costs::new`], [`Identifier::new`] and [`Balance::new`].
    pub fn new(
        kind: OverlayKind,
        copies: &[RuleCopy<'_>],
        classes: &[ClassParams],
        network: Network,
        procs: (u32, u32),
    ) -> Result<Self, ModelError> {
        let OverlayKind::Cache { mode, admission, .. } = kind else {
            let view = |copy| {
                let &RuleCopy { layout, spread_over, .. } = copy;
                CopyView { layout, spread_over }
            };
            let views: Vec<_> = copies.iter().map(view).collect();
            return Ok(Self::Replicas(Costs::new(&views, classes, network, procs)?));
        };
        let view = |copy| {
            let &RuleCopy { layout, groups, .. } = copy;
            CacheView { layout, groups }
        };
        let views: Vec<_> = copies[1..].iter().map(view).collect();
        let identifier = Identifier::new(mode, copies[0].layout, &views, classes, procs.0)?;
        if admission != CacheAdmission::Balanced {
            return Ok(Self::Cache(identifier));
        }
        let spread: Vec<_> = copies.iter().map(|copy| (copy.layout, copy.spread_over)).collect();
        Ok(Self::Cache(identifier.balanced(Balance::new(&spread, classes, procs.0)?.over(network))))
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
