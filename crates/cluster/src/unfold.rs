//! Layouts over the servers of a pool again, from what the file system was told ([`crate::fold`]): what models need.
//!
//! Which servers of the pool hold a file the file system decides; unfolding takes them in order.

use std::collections::{BTreeMap, BTreeSet};

use stripewise_layout::{Layout, Region, Stripe};

use crate::cluster::Cluster;
use crate::driver::NativeTarget;
use crate::fold::layouts_of;
use crate::plan::Plan;

/// Servers taken so far, per tier.
type Taken = BTreeMap<usize, usize>;

impl Cluster {
    /// The layout on the servers of pools where it is on native targets: what models need.
    ///
    /// The servers are taken in order, those of layout number `index` of layouts like it behind those of the ones before it.
    /// Every byte is on the server that a turn over the native target comes to, also where a region ends within a turn and
    /// the next goes on from there.
    pub fn unfold(&self, layout: &Layout, index: usize) -> Layout {
        self.unfold_onto(layout, index, &mut Taken::new())
    }

    /// The layouts of a rule unfolded: as [`Cluster::unfold`], the servers of every tier one after the other through all of them, as a
    /// file system spreads files.
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
                    let phase = layout.component_size(stripe.target, region.start) % native.turn();
                    self.turn(native, firsts[&stripe.target], phase, stripe.width)
                }
            };
            region.cycle.iter().flat_map(stripe).collect()
        };
        let regions = layout.regions().iter().map(|region| Region { cycle: cycle(region), ..region.clone() });
        Layout::new(regions.collect()).expect("the same regions, stripes of more than 0 bytes")
    }

    /// Per native target of the layout: the server of its tier with which its turn begins. In a tier of which none is taken yet, so many
    /// like the first of the layout are.
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

    /// `width` bytes of a native target, from byte `phase` of its turn on, cut into its servers' stripes.
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

    /// Number of servers that the files of a rule are spread over which have these layouts: those of pools are counted, each
    /// once.
    pub fn servers_of(&self, layouts: &[Layout]) -> usize {
        let unfolded = self.unfold_all(layouts);
        unfolded.iter().flat_map(Layout::targets).collect::<BTreeSet<u32>>().len()
    }
}

impl Plan {
    /// The plan with all layouts unfolded ([`Cluster::unfold_all`]) and without native targets: what models need.
    #[must_use]
    pub fn unfolded(&self) -> Self {
        let mut plan = self.clone();
        if plan.cluster.native_targets.is_empty() {
            return plan;
        }
        for layouts in plan.rules.iter_mut().flat_map(layouts_of) {
            *layouts = self.cluster.unfold_all(layouts);
        }
        plan.cluster.native_targets.clear();
        plan
    }
}
