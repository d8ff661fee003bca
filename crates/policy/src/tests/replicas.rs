use proptest::prelude::*;
use stripewise_layout::Layout;
use stripewise_layout::constructors::striped;

use super::{ETHERNET, KIB, MIB, READ, WRITE, cases, classes, kind, spans};
use crate::{CopyView, Costs, Part, Span};

/// Copies with stripes of 16K, 256K and 4M over the HServers, as in CIL's tile-IO runs.
fn costs(p: u32) -> Costs {
    let servers: Vec<u32> = (0..8).collect();
    let layouts: Vec<Layout> =
        [16 * KIB, 256 * KIB, 4 * MIB].iter().map(|&stripe| striped(&servers, stripe).unwrap()).collect();
    let views: Vec<CopyView> =
        layouts.iter().map(|layout| CopyView { layout, spread_over: 8, groups: 1 }).collect();
    Costs::new(&views, &classes(), ETHERNET, (p, 1)).unwrap()
}

fn read(costs: &Costs, spans: &[Span]) -> Vec<Part> {
    let mut parts = Vec::new();
    costs.read(READ, spans, &mut parts);
    parts
}

fn span(start: u64, end: u64, mask: u8) -> Span {
    Span { start, end, mask }
}

#[test]
fn a_file_in_sync_is_read_from_the_cheapest_copy() {
    let many = costs(64);
    let small = [span(0, 64 * KIB, 0b111)];
    assert_eq!(read(&many, &small), [Part { start: 0, end: 64 * KIB, copy: 1 }]);
    let few = costs(1);
    let large = [span(0, 64 * MIB, 0b111)];
    assert_eq!(read(&few, &large)[0].copy, few.cheapest(READ, 0, 64 * MIB, 0b111).unwrap());
    assert_eq!(many.cheapest(WRITE, 0, 64 * KIB, 0b101), Some(2));
    assert_eq!(many.cheapest(WRITE, 0, 64 * KIB, 0), None);
}

/// The fastest of three stripes on 16 servers without a network, as measured
/// (`bench/results.d/copies.md`). At (32, 4 MiB), CIL's cost, which assumes two processes on each
/// server, is lowest for the stripe with which requests meet.
#[test]
fn the_choice_is_the_fastest_as_measured() {
    let servers: Vec<u32> = (0..16).collect();
    let layouts = [16 * KIB, 256 * KIB, 4 * MIB].map(|stripe| striped(&servers, stripe).unwrap());
    let views: Vec<CopyView> =
        layouts.iter().map(|layout| CopyView { layout, spread_over: 16, groups: 1 }).collect();
    let disk = super::class(3e-4, 1e-4, (120 * MIB) as f64);
    for (p, len, fastest) in [
        (1, 256 * KIB, &[0][..]),
        (1, 4 * MIB, &[0, 1]),
        (8, 4 * MIB, &[0, 1]),
        (32, 256 * KIB, &[1, 2]),
        (32, 4 * MIB, &[0, 1]),
    ] {
        let costs = Costs::new(&views, &[disk; 16], stripewise_model::Network::default(), (p, p)).unwrap();
        let chosen = costs.cheapest(WRITE, 0, len, 0b111).unwrap();
        assert!(fastest.contains(&chosen), "{p} processes, {len} bytes: copy {chosen}");
    }
}

#[test]
fn stale_parts_are_read_elsewhere() {
    let costs = costs(16);
    let parts = read(&costs, &[span(0, 4 * MIB, 0b001), span(4 * MIB, 8 * MIB, 0b100)]);
    let expected = [(0, 4 * MIB, 0), (4 * MIB, 8 * MIB, 2)];
    assert_eq!(parts, expected.map(|(start, end, copy)| Part { start, end, copy }));
}

/// The middle was written to copy 1 and has not been copied to the others yet: three reads cost
/// more than one read of copy 1.
#[test]
fn one_copy_serves_all_where_parts_would_cost_more() {
    let costs = costs(16);
    let spans = [span(0, 16 * KIB, 0b111), span(16 * KIB, 20 * KIB, 0b010), span(20 * KIB, 64 * KIB, 0b111)];
    assert_eq!(read(&costs, &spans), [Part { start: 0, end: 64 * KIB, copy: 1 }]);
}

#[test]
fn nothing_is_read_for_nothing() {
    assert_eq!(read(&costs(4), &[]), []);
}

proptest! {
    #![proptest_config(cases())]

    /// Every byte comes from a copy that is valid there, in order. All bytes come from one copy if
    /// that is as cheap; otherwise each span comes from its cheapest copy.
    #[test]
    fn reads_are_right_and_cheap(
        spans in (0u64..4 * MIB).prop_flat_map(|start| spans(start, MIB, 3)),
        kind in kind(),
        p in 1u32..64,
    ) {
        let costs = costs(p);
        let mut parts = vec![Part { start: 7, end: 8, copy: 9 }];
        costs.read(kind, &spans, &mut parts);
        prop_assert_eq!(parts.remove(0).copy, 9, "what was there stays");
        let cost = |start: u64, end: u64, copy| costs.cost_s(copy, kind, start, end - start);
        let mut at = spans[0].start;
        for part in &parts {
            prop_assert_eq!(part.start, at);
            at = part.end;
            for span in spans.iter().filter(|span| span.start < part.end && part.start < span.end) {
                prop_assert!(span.mask & 1 << part.copy != 0, "{:?} from {:?}", span, part);
            }
        }
        prop_assert_eq!(at, spans[spans.len() - 1].end);
        let common = spans.iter().fold(7, |mask, span| mask & span.mask);
        let whole = costs.cheapest_with_cost(kind, spans[0].start, at - spans[0].start, common);
        let mut runs: Vec<(u64, u64, usize)> = Vec::new();
        for span in &spans {
            let copy = costs.cheapest(kind, span.start, span.end - span.start, span.mask).unwrap();
            match runs.last_mut().filter(|run| run.2 == copy) {
                Some(run) => run.1 = span.end,
                None => runs.push((span.start, span.end, copy)),
            }
        }
        let in_runs = runs.iter().map(|&(start, end, copy)| cost(start, end, copy)).sum::<f64>();
        let expected = match whole.filter(|whole| whole.1 <= in_runs || spans.iter().all(|s| s.mask == common)) {
            Some((copy, _)) => vec![(spans[0].start, at, copy)],
            None => runs,
        };
        let expected: Vec<_> = expected.into_iter().map(|(start, end, copy)| Part { start, end, copy }).collect();
        prop_assert_eq!(parts, expected);
    }
}
