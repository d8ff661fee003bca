use proptest::prelude::*;
use stripewise_cluster::CacheMode;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::error::{at_least_1, targets_known};
use stripewise_model::sla::{Sla, verdict};

use super::{HSERVERS, KIB, MIB, READ, SSERVERS, WRITE, cached_file, cases, classes, kind};
use crate::{CopyView, Identifier, Kind};

pub fn identifier(mode: CacheMode, procs: u32) -> Identifier {
    let (original, copies) = cached_file();
    let views: Vec<CopyView> =
        copies.iter().map(|(layout, groups)| CopyView { layout, spread_over: 4, groups: *groups }).collect();
    Identifier::new(mode, &original, &views, &classes(), procs).unwrap()
}

/// The paper's own model of this file, whose stripes are 64 KiB on both sides: the copy and its
/// benefit in seconds.
fn by_the_paper(kind: Kind, procs: u32, offset: u64, len: u64) -> Option<(usize, f64)> {
    let service = |target: usize| classes()[target].service(kind.op, kind.access);
    let hservers = Sla::new(service(0), 8, procs, 64 * KIB).unwrap();
    let sservers = Sla::new(service(8), 4, procs, 64 * KIB).unwrap();
    let verdict = verdict(&hservers, &sservers, 2, offset, len).unwrap();
    let number = |striping| verdict.sservers.iter().position(|known| known.0 == striping).unwrap();
    verdict.best.map(|(striping, benefit_s)| (number(striping) + 1, benefit_s))
}

#[test]
fn small_requests_are_critical_and_large_ones_not() {
    let sla = identifier(CacheMode::Sla, 32);
    assert_eq!(sla.critical(WRITE, 0, 8 * KIB), Some(2), "8 KiB on one server: 1-DV");
    assert!(sla.benefit_s(2, WRITE, 0, 8 * KIB) > 0.0);
    // Sequential reads of one process: eight disks are faster than one SSD, and than four.
    let alone = identifier(CacheMode::Sla, 1);
    let stream = Kind::ALL[1];
    assert_eq!(alone.critical(stream, 0, 64 * MIB), Some(1));
    let slow = |per_second| super::class(1e-4, 1e-4, per_second);
    let mut classes = classes();
    classes[8..].fill(slow(200e6));
    let (original, copies) = cached_file();
    let view = CopyView { layout: &copies[0].0, spread_over: 4, groups: 1 };
    let slow = Identifier::new(CacheMode::Sla, &original, &[view], &classes, 1).unwrap();
    assert_eq!(slow.critical(stream, 0, 64 * MIB), None);
}

#[test]
fn modes() {
    let offsets = [(0, 8 * KIB), (5, 64 * MIB), (MIB, 1)];
    for (offset, len) in offsets {
        assert_eq!(identifier(CacheMode::Off, 32).critical(WRITE, offset, len), None);
        assert_eq!(
            identifier(CacheMode::Nsca, 32).critical(WRITE, offset, len),
            Some(1),
            "everything, in 1-DH"
        );
        let sca = identifier(CacheMode::Sca, 32);
        let expected = (sca.benefit_s(1, WRITE, offset, len) > 0.0).then_some(1);
        assert_eq!(sca.critical(WRITE, offset, len), expected);
    }
    for mode in CacheMode::ALL {
        assert_eq!(identifier(mode, 32).critical(READ, 4096, 0), None, "nothing to cache");
    }
}

#[test]
fn without_a_copy_in_1dh_only_sla_admits() {
    let (original, copies) = cached_file();
    let view = CopyView { layout: &copies[1].0, spread_over: 4, groups: 4 };
    for (mode, expected) in [(CacheMode::Sla, Some(1)), (CacheMode::Sca, None), (CacheMode::Nsca, None)] {
        let identifier = Identifier::new(mode, &original, &[view], &classes(), 32).unwrap();
        assert_eq!(identifier.critical(WRITE, 0, 8 * KIB), expected);
    }
}

/// B = 0 is not critical; among equal benefits the first copy is chosen.
#[test]
fn ties() {
    let (layout, other) = (on_one(0).unwrap(), on_one(8).unwrap());
    let view = |layout| CopyView { layout, spread_over: 4, groups: 1 };
    let same = Identifier::new(CacheMode::Sla, &layout, &[view(&layout)], &classes(), 4).unwrap();
    assert_eq!(same.critical(WRITE, 0, 8 * KIB), None);
    let views = [view(&layout), view(&other), view(&other)];
    let two = Identifier::new(CacheMode::Sla, &layout, &views, &classes(), 4).unwrap();
    assert_eq!(two.critical(WRITE, 0, 8 * KIB), Some(2));
}

#[test]
fn impossible_values_are_refused() {
    let layout = striped(&HSERVERS, KIB).unwrap();
    let new = |classes: &[_], procs| Identifier::new(CacheMode::Sla, &layout, &[], classes, procs).err();
    assert_eq!(new(&classes(), 0), at_least_1("the number of processes", 0u32).err());
    assert_eq!(new(&classes()[..4], 1), targets_known(&layout, 4).err());
    assert_eq!(SSERVERS.len(), 4);
}

proptest! {
    #![proptest_config(cases())]

    /// On the paper's layouts the decision is the paper's verdict.
    #[test]
    fn is_the_verdict_of_sla(
        kind in kind(),
        procs in 1u32..200,
        (offset, len) in (0u64..64 * MIB, prop_oneof![1u64..256 * KIB, 1u64..16 * MIB]),
    ) {
        let identifier = identifier(CacheMode::Sla, procs);
        let paper = by_the_paper(kind, procs, offset, len);
        match (identifier.critical(kind, offset, len), paper) {
            (None, None) => {}
            (Some(copy), Some((expected, benefit_s))) => {
                // Where a 2-D group and a single server are equally good, rounding may decide
                // differently.
                let found_s = identifier.benefit_s(copy, kind, offset, len);
                prop_assert!((found_s - benefit_s).abs() <= 1e-9 * benefit_s, "{} or {}", copy, expected);
            }
            (found, paper) => prop_assert!(false, "{:?} or {:?}", found, paper),
        }
        // Each cost separately.
        let service = classes()[8].service(kind.op, kind.access);
        let cost = Sla::new(service, 4, procs, 64 * KIB).unwrap();
        let striping = [stripewise_model::Striping::OneDh, stripewise_model::Striping::TwoD { groups: 2 }];
        for (copy, striping) in [(1, striping[0]), (3, striping[1])] {
            let (here, there) =
                (identifier.cost_s(copy, kind, offset, len), cost.cost(striping, offset, len).unwrap().total_s());
            prop_assert!((here - there).abs() <= 1e-9 * there, "copy {}: {} or {}", copy, here, there);
        }
    }
}
