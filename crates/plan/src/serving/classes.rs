//! Classes of requests that the same copy serves.

use std::collections::HashMap;

use stripewise_model::Cost;

use crate::candidate::Placement;
use crate::workload::Request;

/// A group's sampled requests, classified by the regions that they begin in, in every copy.
///
/// The same copy serves all requests of a class, wherever they are. If instead every request chose
/// by its own offset, then with unequal groups or stripes all processes would choose the servers
/// that few others use. Regions of a file with different layouts are different classes.
pub struct Classes {
    /// Per request: its class.
    class_of: Vec<u32>,
    count: usize,
}

impl Classes {
    /// Classifies `sample` for these copies.
    pub fn of(sample: &[Request], copies: &[Placement<'_>]) -> Self {
        let mut known = HashMap::<Vec<u32>, u32>::new();
        // Copies whose layouts have one region do not distinguish requests.
        let parted: Vec<_> =
            copies.iter().filter(|copy| copy.layouts.iter().any(|l| l.regions().len() > 1)).collect();
        let mut class_of = Vec::with_capacity(sample.len());
        for request in sample {
            let region =
                |copy: &&Placement<'_>| copy.layout(request.file as usize).region_at(request.offset) as u32;
            let next = known.len() as u32;
            class_of.push(*known.entry(parted.iter().map(region).collect()).or_insert(next));
        }
        Self { class_of, count: known.len() }
    }

    /// The sum of the requests' costs by class, seconds.
    pub fn sums(&self, costs: &[Cost]) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (&class, cost) in self.class_of.iter().zip(costs) {
            sums[class as usize] += cost.total_s();
        }
        sums
    }

    /// Per request: the value of its class.
    pub fn expand<T: Copy>(&self, by_class: &[T]) -> Vec<T> {
        self.class_of.iter().map(|&class| by_class[class as usize]).collect()
    }
}
