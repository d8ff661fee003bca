//! Converts folded layouts ([`crate::fold`]) back to layouts over the servers of a pool, which
//! models need.
//!
//! The file system decides which servers of the pool hold a file; unfolding takes them in order.

use std::collections::{BTreeMap, BTreeSet};

use stripewise_layout::{Layout, Region, Stripe};

use crate::cluster::Cluster;
use crate::driver::NativeTarget;
use crate::fold::layouts_of;
use crate::plan::Plan;

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
    /// The plan with all layouts unfolded ([`Cluster::unfold_all`]) and without native targets, for
    /// models.
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
