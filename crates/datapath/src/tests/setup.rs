//! Setups of test files with one or several copies.

use stripewise_cluster::Spread;
use stripewise_cluster::{CacheAdmission, CacheMode, CopySpec, Durability, Overlay, OverlayKind};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::{ByAccess, ClassParams, Service};

use super::support::*;

/// The layouts and copies of test files. Targets are numbered over all copies; those from `slow` on
/// are fast.
#[derive(Clone, Debug)]
pub struct Setup {
    pub original: Layout,
    pub slow: u32,
    pub overlay: Option<Overlay>,
}

impl Setup {
    pub fn single(original: Layout) -> Self {
        let slow = original.target_count() as u32;
        Self { original, slow, overlay: None }
    }

    /// Three replicas on three targets, with layouts such that small, medium and large requests
    /// each prefer a different one.
    pub fn replicas() -> Self {
        let copies = vec![("thirds", striped(&[0, 1, 2], 16).unwrap(), 1), ("one", on_one(1).unwrap(), 1)];
        Self { original: small(), slow: 3, overlay: Some(overlay(OverlayKind::Replicas, copies)) }
    }

    /// Two slow targets, and three cache copies on two fast targets that hold `capacity` bytes
    /// each.
    pub fn cache(mode: CacheMode, capacity: u64) -> Self {
        let copies = vec![
            ("1-DH", striped(&[2, 3], 8).unwrap(), 1),
            ("1-DV", on_one(2).unwrap(), 1),
            ("2-D", striped(&[3], 32).unwrap(), 1),
        ];
        let kind =
            OverlayKind::Cache { mode, admission: CacheAdmission::default(), capacity_per_server: capacity };
        Self { original: striped(&[0, 1], 32).unwrap(), slow: 2, overlay: Some(overlay(kind, copies)) }
    }

    pub fn each_write(mut self) -> Self {
        self.overlay.as_mut().unwrap().durability = Durability::EachWrite;
        self
    }

    /// Number of targets.
    pub fn targets(&self) -> u32 {
        let copies = self.overlay.iter().flat_map(|overlay| &overlay.copies).flat_map(|copy| &copy.layouts);
        copies.chain([&self.original]).map(|layout| layout.target_count() as u32).max().unwrap()
    }
}

fn overlay(kind: OverlayKind, copies: Vec<(&str, Layout, u32)>) -> Overlay {
    let copy = |(name, layout, groups): (&str, Layout, u32)| CopySpec {
        name: name.to_owned(),
        layouts: vec![layout],
        spread: Spread::default(),
        groups,
    };
    Overlay {
        kind,
        copies: copies.into_iter().map(copy).collect(),
        lazy_close: false,
        durability: Durability::Sync,
        background: None,
        procs: 4,
        procs_per_node: 4,
    }
}

/// The parameters of the slow and the fast class, chosen so that requests of about 100 bytes differ
/// in cost.
pub fn classes() -> [(String, ClassParams); 2] {
    let class = |startup_s: f64, per_byte_s: f64| {
        let service = |startup_s| Service { startup_s, per_byte_s };
        let both = ByAccess { random: service(startup_s), sequential: service(startup_s / 10.0) };
        ClassParams { read: both, write: both }
    };
    [("slow".to_owned(), class(1e-5, 1e-6)), ("fast".to_owned(), class(1e-6, 5e-7))]
}
