//! The balance alone and in Algorithm 1: it never admits more than Algorithm 1, and the same with
//! one process.

use proptest::prelude::*;
use stripewise_cluster::CacheMode;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::{Network, Op};

use super::identify::identifier;
use super::{HSERVERS, KIB, MIB, READ, WRITE, cached_file, cases, class, classes, kind, spans};
use crate::redirect::{Chosen, Why};
use crate::{Balance, Cdt, CopyView, Identifier, Kind, Request, Sent, Space, Span, Want};

/// The balance for the file of `cached_file`: 8 HServers, 4 SServers.
fn balance(procs: u32) -> Balance {
    let (original, copies) = cached_file();
    let mut views = vec![view(&original, 8)];
    views.extend(copies.iter().map(|copy| view(&copy.0, 4)));
    Balance::new(&views, &classes(), Network::default(), procs).unwrap()
}

fn view(layout: &Layout, spread_over: usize) -> CopyView<'_> {
    CopyView { layout, spread_over, groups: 1 }
}

fn balanced(mode: CacheMode, procs: u32) -> Identifier {
    identifier(mode, 32).balanced(balance(procs))
}

/// Free bytes on every server.
struct Room(u64);

impl Space for Room {
    fn take_free(&mut self, want: &Want<'_>) -> bool {
        let most = want.bytes.iter().copied().max().unwrap_or(0);
        let fits = most <= self.0;
        self.0 -= if fits { most } else { 0 };
        fits
    }

    fn take_clean(&mut self, _: &Want<'_>) -> bool {
        false
    }
}

fn ask(identifier: &Identifier, sent: &Sent, kind: Kind, spans: &[Span], room: &mut Room) -> Vec<Chosen> {
    let (offset, end) = (spans[0].start, spans[spans.len() - 1].end);
    let request = Request { file: 1, kind, offset, len: end - offset };
    identifier.choose(&mut Cdt::new(8), sent, &request, spans, room).1
}

/// Loads on SLA's servers with the published values, computed by hand.
#[test]
fn loads_are_what_keeps_the_tiers_busy() {
    let slow = striped(&HSERVERS, 64 * KIB).unwrap();
    let fast = on_one(9).unwrap();
    let views = [view(&slow, 8), view(&fast, 4)];
    let (hdd, ssd) = (class(3e-4, 1e-4, 120.0 * MIB as f64), class(5e-5, 5e-5, 400.0 * MIB as f64));
    let classes: Vec<_> = (0..12).map(|target| if target < 8 { hdd } else { ssd }).collect();
    let balance = Balance::new(&views, &classes, Network::default(), 32).unwrap();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    near(balance.load(0, WRITE, 0, 8 * KIB).tier_s, (3e-4 + 8.0 / (120.0 * 1024.0)) / 8.0);
    near(balance.load(1, WRITE, 0, 8 * KIB).tier_s, (5e-5 + 8.0 / (400.0 * 1024.0)) / 4.0);
    near(balance.load(0, WRITE, 0, 4 * MIB).tier_s, (8.0 * 3e-4 + 4.0 / 120.0) / 8.0);
    near(balance.load(1, WRITE, 0, 4 * MIB).tier_s, (5e-5 + 4.0 / 400.0) / 4.0);
    near(balance.load(1, WRITE, 0, 0).tier_s, 0.0);
    // Links of 120 MB/s slow the SServers down, but not the HServers.
    let network = Network { establish_s: 0.0, per_byte_s: 1.0 / (120.0 * MIB as f64) };
    let linked = Balance::new(&views, &classes, network, 32).unwrap();
    near(linked.load(0, WRITE, 0, 4 * MIB).tier_s, balance.load(0, WRITE, 0, 4 * MIB).tier_s);
    near(linked.load(1, WRITE, 0, 4 * MIB).tier_s, 4.0 / 120.0 / 4.0);
    near(linked.load(1, WRITE, 0, 4 * KIB).tier_s, (5e-5 + 4.0 / (400.0 * 1024.0)) / 4.0);
}

#[test]
fn few_processes_take_everything() {
    // At 8 KiB a request keeps the original's tier busy 36 times as long as the cache's, so
    // `p > y·(m_s + m_h)` requires 12 processes.
    for (procs, expected) in [(1, true), (2, true), (8, true), (32, false), (1000, false)] {
        let (identifier, sent, mut room) = (balanced(CacheMode::Sla, procs), Sent::default(), Room(1 << 40));
        let all = (0..1000).all(|index| {
            let (start, end) = (index * 8 * KIB, (index + 1) * 8 * KIB);
            ask(&identifier, &sent, WRITE, &[Span { start, end, mask: 1 }], &mut room)[0].part.copy != 0
        });
        assert_eq!(all, expected, "{procs} processes");
    }
}

#[test]
fn what_is_not_taken_is_told_apart_and_asks_for_no_space() {
    let (identifier, sent, mut room) = (balanced(CacheMode::Sla, 32), Sent::default(), Room(MIB));
    let span = [Span { start: 0, end: 64 * KIB, mask: 1 }];
    let why: Vec<Why> = (0..200).map(|_| ask(&identifier, &sent, WRITE, &span, &mut room)[0].why).collect();
    assert_eq!(why[0], Why::Free, "the first is taken");
    assert!(why.contains(&Why::Busy));
    let full = why.iter().filter(|why| **why == Why::Full).count();
    assert!(full > 0, "the space of 16 requests does not do");
    assert_eq!(why.iter().filter(|why| **why == Why::Free).count(), 16);
}

#[test]
fn nsca_takes_everything_and_counts_nothing() {
    let (identifier, sent, mut room) = (balanced(CacheMode::Nsca, 32), Sent::default(), Room(1 << 40));
    for _ in 0..100 {
        let parts = ask(&identifier, &sent, WRITE, &[Span { start: 0, end: MIB, mask: 1 }], &mut room);
        assert_eq!(parts[0].why, Why::Free);
    }
    assert_eq!(sent.lead_s(), 0.0);
}

/// A long phase of reads from the disks must not cause a long phase in which all writes go to the
/// cache.
#[test]
fn what_was_long_ago_is_forgotten() {
    let (identifier, sent, mut room) = (balanced(CacheMode::Sla, 32), Sent::default(), Room(1 << 40));
    let span = |mask| [Span { start: 0, end: 64 * KIB, mask }];
    for _ in 0..100_000 {
        ask(&identifier, &sent, READ, &span(1), &mut room);
    }
    let taken = (0..10_000)
        .take_while(|_| ask(&identifier, &sent, WRITE, &span(1), &mut room)[0].part.copy != 0)
        .count();
    assert!((10..1000).contains(&taken), "{taken}");
}

#[test]
fn bad_parameters_are_refused() {
    let layout = on_one(12).unwrap();
    assert!(
        Balance::new(&[view(&layout, 1)], &classes(), Network::default(), 4).is_err(),
        "target 12 has no class"
    );
    assert!(Balance::new(&[], &classes(), Network::default(), 0).is_err());
}

proptest! {
    #![proptest_config(cases())]

    /// With one process, the balance is Algorithm 1 for any requests; with more it only ever admits
    /// less.
    #[test]
    fn one_process_is_algorithm_1(
        requests in prop::collection::vec((kind(), (0u64..MIB).prop_flat_map(|at| spans(at, 64 * KIB, 4))), 1..30),
        space in 0u64..MIB,
        procs in 1u32..64,
    ) {
        let printed = identifier(CacheMode::Sla, 32);
        let (alone, many) = (balanced(CacheMode::Sla, 1), balanced(CacheMode::Sla, procs));
        let (none, of_one, of_many) = (Sent::default(), Sent::default(), Sent::default());
        let (mut room, mut room_of_one) = (Room(space), Room(space));
        for (kind, spans) in &requests {
            let expected = ask(&printed, &none, *kind, spans, &mut room);
            prop_assert_eq!(&expected, &ask(&alone, &of_one, *kind, spans, &mut room_of_one));
            let (unlimited, found) = (
                ask(&printed, &none, *kind, spans, &mut Room(u64::MAX)),
                ask(&many, &of_many, *kind, spans, &mut Room(u64::MAX)),
            );
            if found.iter().all(|part| part.why != Why::Busy) {
                prop_assert_eq!(unlimited, found);
            } else {
                prop_assert_eq!(kind.op, Op::Write);
                prop_assert!(found.iter().all(|part| (part.why == Why::Busy) == (part.part.copy == 0)));
                prop_assert!(unlimited.iter().any(|part| part.why == Why::Free));
            }
        }
        prop_assert_eq!(none.lead_s(), 0.0);
        prop_assert_eq!(room.0, room_of_one.0);
    }

    /// While there is space, both tiers get the same amount of work from equal requests. In the end
    /// the original's servers have had no more work than the bound, the share of the data that the
    /// cache has no space for.
    #[test]
    fn like_requests_reach_the_bound(log_size in 12u32..23, space in 0.05f64..0.4, procs in 16u32..200) {
        let (size, requests) = (1u64 << log_size, 2000u64);
        let identifier = balanced(CacheMode::Sla, procs);
        let balance = balance(procs);
        let Some(copy) = identifier.critical(WRITE, 0, size) else { return Ok(()) };
        let (fast_s, slow_s) = (balance.load(copy, WRITE, 0, size).tier_s, balance.load(0, WRITE, 0, size).tier_s);
        prop_assume!(balance.takes(&Sent::default(), copy, WRITE, 0, size));
        let taken_max = (space * requests as f64) as u64;
        let (sent, mut taken, mut slow) = (Sent::default(), 0u64, 0u64);
        let mut full_after = None;
        for index in 0..requests {
            let span = [Span { start: index * size, end: (index + 1) * size, mask: 1 }];
            let mut room = Room(if taken < taken_max { size } else { 0 });
            let part = ask(&identifier, &sent, WRITE, &span, &mut room)[0].part;
            if part.copy == 0 { slow += 1 } else { taken += 1 }
            if taken < taken_max {
                let apart_s = (taken as f64 * fast_s - slow as f64 * slow_s).abs();
                let most_s = fast_s.max(slow_s) + 0.02 * (slow as f64 * slow_s);
                prop_assert!(apart_s <= most_s, "{apart_s} s apart after {taken} and {slow}");
            } else {
                full_after = full_after.or(Some(index));
            }
        }
        let share = slow_s / (slow_s + fast_s);
        if space < share * 0.95 {
            prop_assert_eq!(taken, taken_max);
            prop_assert!(full_after.is_some());
        }
        let bound_s = slow_s.min((1.0 - space).max(1.0 - share) * slow_s);
        prop_assert!(slow as f64 * slow_s <= requests as f64 * bound_s * 1.02 + 2.0 * slow_s);
    }
}
