//! Folds layouts over the servers of a pool into layouts that the file system can set, and back.
//!
//! Planners and models work with servers, including those of a pool. The file system that stripes
//! over a pool accepts one stripe width and one number of servers per directory. Before bytes are
//! placed, [`Cluster::fold`] therefore replaces a run of m different servers with stripes of h
//! bytes each by one stripe of m·h bytes on the native target (tier, h, m). [`Cluster::unfold`] is
//! the inverse, which models need. The file system decides which servers of the pool hold a file;
//! unfolding takes them in order.

use std::collections::{BTreeMap, BTreeSet};

use stripewise_layout::{Layout, LayoutError, MAX_TARGETS, Region, Stripe};

use crate::cluster::Cluster;
use crate::driver::NativeTarget;
use crate::plan::{Plan, Rule};
use crate::size;

/// Widest stripe of a native target with one server, bytes. There the width does not affect the
/// placement of bytes; it bounds the size of the file system's objects.
const SINGLE_WIDTH_MAX: u64 = 64 << 20;

/// Why a file system that stripes over a pool cannot express a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The file system does not support stripes of this width.
    #[error("tier {tier}: stripes of {} on {count} servers; {rule}", size::format(*width))]
    Width {
        /// Name of the tier.
        tier: String,
        /// Width of the stripes, bytes.
        width: u64,
        /// Number of servers in the run.
        count: u32,
        /// The file system's rule.
        rule: &'static str,
    },
    /// Two runs of the same shape are on different servers.
    #[error(
        "tier {tier}: the layout comes to different servers of the pool at different places ({label}), which the file \
         system cannot be told; describe the servers one by one (servers = [...]) for such layouts"
    )]
    Servers {
        /// Name of the tier.
        tier: String,
        /// The shape of the runs.
        label: String,
    },
    /// The folded layout has more targets than a layout can name, or stripes too wide.
    #[error("the folded layout: {0}")]
    Layout(#[from] LayoutError),
}

impl Cluster {
    /// Whether some tier is a pool, so that layouts must be folded before bytes are placed.
    pub fn has_pools(&self) -> bool {
        self.tiers.iter().any(|tier| tier.driver.is_pool())
    }

    /// Replaces servers of pools in the layout by native targets, and adds new ones to
    /// [`Cluster::native_targets`].
    ///
    /// # Errors
    /// The file system cannot express this layout ([`FoldError`]); then nothing was added.
    pub fn fold(&mut self, layout: &Layout) -> Result<Layout, FoldError> {
        let mut folding =
            Folding { cluster: self, natives: self.native_targets.clone(), served: BTreeMap::new() };
        let region = |region: &Region| -> Result<Region, FoldError> {
            Ok(Region { cycle: folding.cycle(&region.cycle)?, ..region.clone() })
        };
        let regions = layout.regions().iter().map(region).collect::<Result<_, _>>()?;
        let folded = Layout::new(regions)?;
        self.native_targets = folding.natives;
        Ok(folded)
    }
}

/// A layout while it is being folded.
struct Folding<'c> {
    cluster: &'c Cluster,
    natives: Vec<NativeTarget>,
    /// The servers that a native target stands for in this layout, ascending.
    served: BTreeMap<NativeTarget, Vec<u32>>,
}

impl Folding<'_> {
    fn cycle(&mut self, cycle: &[Stripe]) -> Result<Vec<Stripe>, FoldError> {
        let mut folded = Vec::with_capacity(cycle.len());
        let mut rest = cycle;
        while let Some(first) = rest.first() {
            let run = self.run(rest);
            folded.push(match run {
                0 => *first,
                run => self.stripe(&rest[..run])?,
            });
            rest = &rest[run.max(1)..];
        }
        Ok(folded)
    }

    /// Number of leading stripes that are equally wide and on different servers of one pool; 0 if
    /// the first is not on a server of a pool.
    fn run(&self, stripes: &[Stripe]) -> usize {
        let pool_of = |stripe: &Stripe| {
            let tier = self.cluster.tier_of(stripe.target)?;
            let pool = self.cluster.tiers[tier].driver.is_pool();
            (pool && self.cluster.native_target(stripe.target).is_none()).then_some(tier)
        };
        let Some(first) = stripes.first().filter(|first| pool_of(first).is_some()) else { return 0 };
        let mut before = BTreeSet::new();
        let goes_on = |stripe: &&Stripe| {
            stripe.width == first.width && pool_of(stripe) == pool_of(first) && before.insert(stripe.target)
        };
        stripes.iter().take_while(goes_on).count()
    }

    fn stripe(&mut self, run: &[Stripe]) -> Result<Stripe, FoldError> {
        let native = self.native(run)?;
        let mut servers: Vec<u32> = run.iter().map(|stripe| stripe.target).collect();
        servers.sort_unstable();
        if *self.served.entry(native).or_insert_with(|| servers.clone()) != servers {
            let tier = self.cluster.tiers[native.tier].name.clone();
            return Err(FoldError::Servers { tier, label: native.label() });
        }
        let index = self.natives.iter().position(|known| *known == native).unwrap_or_else(|| {
            self.natives.push(native);
            self.natives.len() - 1
        });
        let target = u32::try_from(self.cluster.target_count() + index).unwrap_or(MAX_TARGETS);
        Ok(Stripe { target, width: run.iter().map(|stripe| stripe.width).sum() })
    }

    /// The native target of a run, which must not be empty.
    fn native(&self, run: &[Stripe]) -> Result<NativeTarget, FoldError> {
        let tier = self.cluster.tier_of(run[0].target).expect("a run is on servers of a tier");
        let (system, _) = self.cluster.tiers[tier].driver.native().expect("a run is on a pool's servers");
        let (width, count) = (run[0].width, run.len() as u32);
        if count == 1 {
            return Ok(NativeTarget { tier, width: system.width_above(width.min(SINGLE_WIDTH_MAX)), count });
        }
        if !system.has_width(width) {
            let (tier, rule) = (self.cluster.tiers[tier].name.clone(), system.width_rule());
            return Err(FoldError::Width { tier, width, count, rule });
        }
        Ok(NativeTarget { tier, width, count })
    }
}

/// Number of servers taken so far, per tier.
type Taken = BTreeMap<usize, usize>;

impl Cluster {
    /// Replaces native targets in the layout by servers of their pools, for models.
    ///
    /// The servers are taken in order; layout number `index` of several similar layouts gets those
    /// after the servers of the previous ones. Every byte is on the server that a turn over the
    /// native target reaches, also where a region ends within a turn and the next one continues
    /// from there.
    pub fn unfold(&self, layout: &Layout, index: usize) -> Layout {
        self.unfold_onto(layout, index, &mut Taken::new())
    }

    /// The unfolded layouts of a rule: as [`Cluster::unfold`], taking the servers of every tier one
    /// after the other through all layouts, as a file system spreads files.
    pub fn unfold_all(&self, layouts: &[Layout]) -> Vec<Layout> {
        let mut taken = Taken::new();
        layouts.iter().map(|layout| self.unfold_onto(layout, 0, &mut taken)).collect()
    }

    fn unfold_onto(&self, layout: &Layout, index: usize, taken: &mut Taken) -> Layout {
        if layout.targets().all(|target| self.native_target(target).is_none()) {
            return layout.clone();
        }
        let firsts = self.first_servers(layout, index, taken);
        let cycle = |region: &Region| {
            let stripe = |stripe: &Stripe| match self.native_target(stripe.target) {
                None => vec![*stripe],
                Some(native) => {
                    let phase = layout.object_size(stripe.target, region.start) % native.turn();
                    self.turn(native, firsts[&stripe.target], phase, stripe.width)
                }
            };
            region.cycle.iter().flat_map(stripe).collect()
        };
        let regions = layout.regions().iter().map(|region| Region { cycle: cycle(region), ..region.clone() });
        Layout::new(regions.collect()).expect("the same regions, stripes of more than 0 bytes")
    }

    /// Per native target of the layout: the server of its tier with which its turn begins. A tier
    /// of which no server is taken yet starts after `index` times the native target's servers.
    fn first_servers(&self, layout: &Layout, index: usize, taken: &mut Taken) -> BTreeMap<u32, usize> {
        let mut firsts = BTreeMap::new();
        for stripe in layout.regions().iter().flat_map(|region| &region.cycle) {
            let Some(native) = self.native_target(stripe.target) else { continue };
            firsts.entry(stripe.target).or_insert_with(|| {
                let next = taken.entry(native.tier).or_insert(index * native.count as usize);
                let first = *next % self.tiers[native.tier].driver.servers();
                *next += native.count as usize;
                first
            });
        }
        firsts
    }

    /// `width` bytes of a native target, from byte `phase` of its turn on, cut into its servers'
    /// stripes.
    fn turn(&self, native: NativeTarget, first: usize, phase: u64, width: u64) -> Vec<Stripe> {
        let servers = self.targets_of(native.tier);
        let target = |place: u64| {
            let server = (first + (place % u64::from(native.count)) as usize) % servers.len();
            servers.start + server as u32
        };
        if native.count == 1 {
            return vec![Stripe { target: target(0), width }];
        }
        let mut stripes = Vec::with_capacity(native.count as usize + 1);
        let (mut at, end) = (phase, phase + width);
        while at < end {
            let place = at / native.width;
            let next = ((place + 1) * native.width).min(end);
            stripes.push(Stripe { target: target(place), width: next - at });
            at = next;
        }
        stripes
    }

    /// The servers, including those of pools, over which the files of a rule with these layouts are
    /// spread.
    pub fn servers_of(&self, layouts: &[Layout]) -> BTreeSet<u32> {
        self.unfold_all(layouts).iter().flat_map(Layout::targets).collect()
    }
}

impl Plan {
    /// The plan with all layouts folded ([`Cluster::fold`]), so that bytes can be placed according
    /// to it.
    ///
    /// # Errors
    /// The pattern of the first rule with a layout that cannot be folded, and the reason.
    pub fn folded(&self) -> Result<Self, (String, FoldError)> {
        let mut plan = self.clone();
        if !self.cluster.has_pools() {
            return Ok(plan);
        }
        for rule in &mut plan.rules {
            let pattern = rule.pattern.clone();
            for layout in layouts_of(rule).flatten() {
                *layout = plan.cluster.fold(layout).map_err(|error| (pattern.clone(), error))?;
            }
        }
        Ok(plan)
    }

    /// The plan with all layouts unfolded ([`Cluster::unfold_all`]) and without native targets, for
    /// models.
    #[must_use]
    pub fn unfolded(&self) -> Self {
        let mut plan = self.clone();
        for layouts in plan.rules.iter_mut().flat_map(layouts_of) {
            *layouts = self.cluster.unfold_all(layouts);
        }
        plan.cluster.native_targets.clear();
        plan
    }
}

/// The layouts of a rule's files, then those of every extra copy.
fn layouts_of(rule: &mut Rule) -> impl Iterator<Item = &mut Vec<Layout>> {
    let copies = rule.overlay.iter_mut().flat_map(|overlay| &mut overlay.copies).map(|copy| &mut copy.layouts);
    [&mut rule.layouts].into_iter().chain(copies)
}
