use proptest::prelude::*;
use stripewise_cluster::{CacheAdmission, CacheMode, OverlayKind};

use super::cases;
use crate::background::*;

const CACHE: OverlayKind = OverlayKind::Cache {
    mode: CacheMode::Sla,
    admission: CacheAdmission::Balanced,
    capacity_per_server: 1 << 30,
};

fn units(step: Step, kind: OverlayKind) -> Vec<Unit> {
    step.units(kind, 3).collect()
}

#[test]
fn replicas_are_copied_in_turn_and_only_while_idle() {
    let copies = [0, 1, 2].map(|to| Unit::Copy { to });
    assert_eq!(units(Step::Work, OverlayKind::Replicas), copies);
    assert_eq!(units(Step::Relieve, OverlayKind::Replicas), []);
    assert_eq!(units(Step::Rest, OverlayKind::Replicas), []);
}

#[test]
fn a_cache_makes_space_before_it_fetches_and_fetches_only_while_idle() {
    let write_back = Unit::Copy { to: 0 };
    assert_eq!(units(Step::Work, CACHE), [Unit::KeepFree, write_back, Unit::Fetch]);
    assert_eq!(units(Step::Relieve, CACHE), [Unit::KeepFree, write_back]);
    assert_eq!(units(Step::Rest, CACHE), []);
    assert_eq!(Step::Relieve.pieces_max(), 1, "below the load of the applications");
}

#[test]
fn a_limit_pauses_all_work_and_a_load_only_what_makes_way() {
    let pauses = Pauses { next_ns: 10, next_under_load_ns: 20 };
    let steps = |idle| [9, 10, 19, 20].map(|now_ns| Step::at(now_ns, pauses, idle));
    assert_eq!(steps(true), [Step::Rest, Step::Work, Step::Work, Step::Work]);
    assert_eq!(steps(false), [Step::Rest, Step::Rest, Step::Rest, Step::Relieve]);
    assert_eq!(pause_under_load_ns(1_000, 4), 64_000, "the processes take turns");
    assert_eq!(pause_under_load_ns(u64::MAX, 4), u64::MAX);
}

#[test]
fn polls_grow_rare() {
    let polls: Vec<u64> =
        std::iter::successors(Some(POLL_NS), |&ns| Some(longer_poll_ns(ns))).take(7).collect();
    assert_eq!(polls.iter().map(|ns| ns / POLL_NS).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 32]);
}

#[test]
fn dirty_data_presses_and_clean_data_does_not() {
    let mut pressure = Pressure::default();
    assert!(!pressure.is_high(0));
    pressure.add(60, 0, 4);
    assert!(pressure.is_high(100) && !pressure.is_high(120));
    pressure.add(50, 40, 4);
    assert!(!pressure.is_high(100), "10 clean bytes on each of 4 servers");
}

#[test]
fn a_server_is_used_for_longer_after_slow_requests() {
    assert_eq!(used_for_ns(0), USED_NS);
    assert_eq!(used_for_ns(400_000_000), 800_000_000);
    assert_eq!(used_for_ns(u64::MAX), USED_NS_MAX);
    assert_eq!(recent_ns(800, 1), 700);
    assert_eq!(recent_ns(800, 900), 900);
}

#[test]
fn the_written_copy_is_emptied_first() {
    assert_eq!(eviction_order(2, 4).collect::<Vec<_>>(), [2, 1, 3]);
}

proptest! {
    #![proptest_config(cases())]

    /// Pieces are not empty, stay in their chunk, and keep to the limit over any second.
    #[test]
    fn pieces_keep_to_the_chunk_and_to_the_limit(
        start in any::<u64>().prop_map(|start| start / 2),
        limit in 0u64..1 << 34,
        copiers in 0u64..100,
    ) {
        let (free, limited) = (Pace::UNLIMITED.piece_end(start), Pace::new(Some(limit), copiers));
        prop_assert!(free > start && free - start <= CHUNK_BYTES && free % CHUNK_BYTES == 0);
        let end = limited.piece_end(start);
        prop_assert!(end > start && end <= free);
        let each = (limit / copiers.max(1)).max(1);
        prop_assert!(end - start <= each.max(4096));
        let pause_ns = limited.pause_ns(end - start).unwrap();
        let rate = u128::from(end - start) * 1_000_000_000 / u128::from(pause_ns + 1);
        prop_assert!(rate <= u128::from(each), "{} bytes per second", rate);
        prop_assert_eq!(Pace::UNLIMITED.pause_ns(end), None);
    }

    /// A cache below the watermark is left alone, and a batch never empties a small cache.
    #[test]
    fn evicting_keeps_most_of_a_cache(capacity: u64, used: u64, servers in 1u64..1000) {
        prop_assert!(!lacks_space(used.min(capacity - free_bytes(capacity)), capacity));
        prop_assert!(capacity < 32 || lacks_space(capacity, capacity));
        let batch = batch_bytes(capacity, servers);
        prop_assert!((1..=BATCH_BYTES).contains(&batch));
        prop_assert!(batch == 1 || batch <= capacity.saturating_mul(servers) / 8);
    }
}
