//! Algorithm 1: every branch, by the paper's line numbers, and arbitrary requests compared with a
//! direct form of the algorithm.

use proptest::prelude::*;
use stripewise_cluster::CacheMode;
use stripewise_model::Op;

use super::identify::identifier;
use super::{KIB, MIB, READ, SSERVERS, WRITE, cases, kind, spans};
use crate::redirect::{Chosen, Why};
use crate::{Cdt, CopyView, Critical, Identifier, Kind, Part, Redirected, Request, Sent, Space, Span, Want};

/// Bytes per server that are free and that clean data uses, and the requests for space.
#[derive(Clone, Default)]
struct Room {
    free: u64,
    clean: u64,
    asked: Vec<(usize, u64, u64)>,
}

impl Room {
    fn take(room: &mut u64, want: &Want<'_>) -> bool {
        let most = want.bytes.iter().copied().max().unwrap_or(0);
        let fits = most <= *room;
        *room -= if fits { most } else { 0 };
        fits
    }
}

impl Space for Room {
    fn take_free(&mut self, want: &Want<'_>) -> bool {
        assert_eq!(want.bytes.iter().sum::<u64>(), want.end - want.start, "every byte is somewhere");
        assert!(want.bytes[..SSERVERS[0] as usize].iter().all(|&bytes| bytes == 0), "on the SServers");
        self.asked.push((want.copy, want.start, want.end));
        Self::take(&mut self.free, want)
    }

    fn take_clean(&mut self, want: &Want<'_>) -> bool {
        assert_eq!(self.asked.last(), Some(&(want.copy, want.start, want.end)), "free space is tried first");
        Self::take(&mut self.clean, want)
    }
}

struct Bed {
    identifier: Identifier,
    cdt: Cdt,
    sent: Sent,
    room: Room,
}

impl Bed {
    fn new(mode: CacheMode, free: u64, clean: u64) -> Self {
        Self::of(identifier(mode, 32), free, clean)
    }

    fn of(identifier: Identifier, free: u64, clean: u64) -> Self {
        let room = Room { free, clean, asked: vec![] };
        Self { identifier, cdt: Cdt::new(64), sent: Sent::default(), room }
    }

    /// Issues a request for the range that the spans cover.
    fn redirect(&mut self, kind: Kind, spans: &[(u64, u64, u8)]) -> (Redirected, Vec<Chosen>) {
        let spans: Vec<Span> = spans.iter().map(|&(start, end, mask)| Span { start, end, mask }).collect();
        let (offset, end) = (spans[0].start, spans[spans.len() - 1].end);
        let request = Request { file: 1, kind, offset, len: end - offset };
        let Self { identifier, cdt, sent, room } = self;
        identifier.choose(cdt, sent, &request, &spans, room)
    }
}

fn part(start: u64, end: u64, copy: usize, why: Why) -> Chosen {
    Chosen { part: Part { start, end, copy }, why }
}

const SMALL: u64 = 8 * KIB;

#[test]
fn line_26_a_hit_goes_where_it_is_mapped() {
    for (mode, kind) in [(CacheMode::Sla, READ), (CacheMode::Sla, WRITE), (CacheMode::Off, WRITE)] {
        let mut bed = Bed::new(mode, 0, 0);
        let (found, parts) = bed.redirect(kind, &[(0, SMALL, 0b100)]);
        assert_eq!(parts, [part(0, SMALL, 2, Why::Hit)]);
        assert_eq!(found, Redirected::default(), "nothing to decide");
        assert!(bed.cdt.len() == 0 && bed.room.asked.is_empty());
    }
}

#[test]
fn line_26_of_several_copies_the_cheapest_the_first_in_a_tie() {
    let mut bed = Bed::new(CacheMode::Sla, 0, 0);
    assert_eq!(bed.redirect(READ, &[(0, SMALL, 0b0111)]).1, [part(0, SMALL, 2, Why::Hit)], "1-DV before 1-DH");
    let large = 16 * MIB;
    let cost = |copy| bed.identifier.cost_s(copy, READ, 0, large);
    let cheapest = if cost(1) < cost(2) { 1 } else { 2 };
    assert_eq!(bed.redirect(READ, &[(0, large, 0b0110)]).1, [part(0, large, cheapest, Why::Hit)]);
}

#[test]
fn line_26_a_tie() {
    let (original, copies) = super::cached_file();
    let view = CopyView { layout: &copies[1].0, spread_over: 4, groups: 4 };
    let mut bed = Bed::new(CacheMode::Sla, 0, 0);
    bed.identifier = Identifier::new(CacheMode::Sla, &original, &[view; 2], &super::classes(), 32).unwrap();
    assert_eq!(bed.redirect(READ, &[(0, SMALL, 0b110)]).1, [part(0, SMALL, 1, Why::Hit)]);
}

#[test]
fn lines_5_to_9_a_critical_write_takes_free_space() {
    let mut bed = Bed::new(CacheMode::Sla, SMALL, 0);
    let (found, parts) = bed.redirect(WRITE, &[(0, SMALL, 1)]);
    assert_eq!(parts, [part(0, SMALL, 2, Why::Free)], "in the layout that gains most: 1-DV");
    assert_eq!(found, Redirected { critical: Some(2), newly_wanted: false });
    let entry = Critical { file: 1, offset: 0, len: SMALL, copy: 2, wanted: false };
    assert_eq!(bed.cdt.get(1, 0), Some(&entry));
    assert_eq!(bed.room.free, 0);
}

#[test]
fn lines_11_to_16_without_free_space_clean_space_is_taken() {
    let mut bed = Bed::new(CacheMode::Sla, SMALL - 1, SMALL);
    assert_eq!(bed.redirect(WRITE, &[(0, SMALL, 1)]).1, [part(0, SMALL, 2, Why::Clean)]);
    assert_eq!((bed.room.free, bed.room.clean), (SMALL - 1, 0));
}

#[test]
fn line_17_without_any_space_the_original_is_written() {
    let mut bed = Bed::new(CacheMode::Sla, SMALL - 1, SMALL - 1);
    let (found, parts) = bed.redirect(WRITE, &[(0, SMALL, 1)]);
    assert_eq!(parts, [part(0, SMALL, 0, Why::Full)]);
    assert_eq!(found.critical, Some(2));
}

#[test]
fn line_19_a_write_that_is_not_critical_goes_to_the_original() {
    let mut bed = Bed::new(CacheMode::Off, MIB, MIB);
    let (found, parts) = bed.redirect(WRITE, &[(0, SMALL, 1)]);
    assert_eq!((found, parts), (Redirected::default(), vec![part(0, SMALL, 0, Why::Miss)]));
    assert!(bed.cdt.len() == 0 && bed.room.asked.is_empty(), "no space is asked for");
}

#[test]
fn lines_21_to_23_a_critical_read_is_flagged_and_served_by_the_original() {
    let mut bed = Bed::new(CacheMode::Sla, MIB, MIB);
    let (found, parts) = bed.redirect(READ, &[(0, SMALL, 1)]);
    assert_eq!(parts, [part(0, SMALL, 0, Why::Miss)]);
    assert_eq!(found, Redirected { critical: Some(2), newly_wanted: true });
    assert!(bed.cdt.get(1, 0).unwrap().wanted && bed.room.asked.is_empty(), "lazily: nothing is allocated");
    assert!(!bed.redirect(READ, &[(0, SMALL, 1)]).0.newly_wanted, "once is enough");
    assert_eq!(bed.cdt.get(1, 0).unwrap().copy, 2);
}

#[test]
fn line_24_a_read_that_is_not_critical_is_not_flagged() {
    let mut bed = Bed::new(CacheMode::Off, MIB, MIB);
    assert_eq!(bed.redirect(READ, &[(0, SMALL, 1)]).0, Redirected::default());
    assert!(bed.cdt.len() == 0);
}

#[test]
fn nsca_admits_everything_in_1dh() {
    let mut bed = Bed::new(CacheMode::Nsca, 64 * MIB, 0);
    assert_eq!(bed.redirect(WRITE, &[(0, 16 * MIB, 1)]).1, [part(0, 16 * MIB, 1, Why::Free)]);
    assert!(bed.redirect(READ, &[(0, 16 * MIB, 1)]).0.newly_wanted);
}

#[test]
fn a_write_that_is_cached_in_part_admits_the_rest() {
    let mut bed = Bed::new(CacheMode::Sla, KIB, KIB);
    let spans = [
        (0, KIB, 1),
        (KIB, 3 * KIB, 0b10),
        (3 * KIB, 4 * KIB, 1),
        (4 * KIB, 6 * KIB, 1),
        (6 * KIB, SMALL, 0b100),
    ];
    let (found, parts) = bed.redirect(WRITE, &spans);
    let expected = [
        part(0, KIB, 2, Why::Free),
        part(KIB, 3 * KIB, 1, Why::Hit),
        part(3 * KIB, 4 * KIB, 2, Why::Clean),
        part(4 * KIB, 6 * KIB, 0, Why::Full),
        part(6 * KIB, SMALL, 2, Why::Hit),
    ];
    assert_eq!(parts, expected);
    assert_eq!(found.critical, Some(2));
    assert_eq!(bed.cdt.get(1, 0).unwrap().len, SMALL, "the request as the application makes it");
}

#[test]
fn a_read_that_is_cached_in_part_is_served_by_both() {
    let mut bed = Bed::new(CacheMode::Sla, 0, 0);
    let (found, parts) = bed.redirect(READ, &[(0, 4 * KIB, 1), (4 * KIB, SMALL, 0b100)]);
    assert_eq!(parts, [part(0, 4 * KIB, 0, Why::Miss), part(4 * KIB, SMALL, 2, Why::Hit)]);
    assert!(found.newly_wanted, "what is missing is worth fetching");
}

/// Holes of 1 KiB in clean cached data: either a seek for each, or one read of the original.
#[test]
fn a_read_in_many_parts_is_one_of_the_original_where_that_is_cheaper() {
    let holes: Vec<_> = (0..16).map(|n| (n * KIB, (n + 1) * KIB, if n % 2 == 0 { 1 } else { 0b101 })).collect();
    let mut bed = Bed::new(CacheMode::Sla, 0, 0);
    let (found, parts) = bed.redirect(READ, &holes);
    assert_eq!(parts, [part(0, 16 * KIB, 0, Why::Whole)]);
    assert!(found.newly_wanted);
    let mut dirty = holes;
    dirty[7].2 = 0b100;
    assert_eq!(bed.redirect(READ, &dirty).1.len(), 16, "the original has not the newest bytes of one part");
}

/// The algorithm for one span: the copy and the reason.
fn of_byte(
    identifier: &Identifier,
    kind: Kind,
    span: &Span,
    critical: Option<usize>,
    room: &mut Room,
) -> (usize, Why) {
    if span.mask & 0b1110 != 0 {
        let len = span.end - span.start;
        let mut copies: Vec<usize> = (1..4).filter(|copy| span.mask & 1 << copy != 0).collect();
        copies.sort_by(|&a, &b| {
            let cost = |copy| identifier.cost_s(copy, kind, span.start, len);
            cost(a).total_cmp(&cost(b)).then(a.cmp(&b))
        });
        return (copies[0], Why::Hit);
    }
    match (kind.op, critical) {
        (Op::Write, Some(copy)) => {
            let mut bytes = vec![0; 12];
            super::cached_file().1[copy - 1].0.bytes_per_target(
                span.start,
                span.end - span.start,
                &mut bytes[..identifier.copies[copy].layout.target_count()],
            );
            let most = bytes.into_iter().max().unwrap();
            let (place, why) = match () {
                () if room.free >= most => (&mut room.free, Why::Free),
                () if room.clean >= most => (&mut room.clean, Why::Clean),
                () => return (0, Why::Full),
            };
            *place -= most;
            (copy, why)
        }
        _ => (0, Why::Miss),
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn is_algorithm_1_for_every_part(
        kind in kind(),
        mode in 0usize..4,
        spans in (0u64..MIB).prop_flat_map(|start| spans(start, 64 * KIB, 4)),
        (free, clean) in (0u64..128 * KIB, 0u64..128 * KIB),
    ) {
        let mut bed = Bed::new(CacheMode::ALL[mode], free, clean);
        let mut room = bed.room.clone();
        let raw: Vec<_> = spans.iter().map(|span| (span.start, span.end, span.mask)).collect();
        let (found, parts) = bed.redirect(kind, &raw);
        let (start, end) = (spans[0].start, spans[spans.len() - 1].end);
        let misses = spans.iter().any(|span| span.mask == 1);
        let critical = bed.identifier.critical(kind, start, end - start).filter(|_| misses);
        prop_assert_eq!(found.critical, critical);
        prop_assert_eq!(found.newly_wanted, critical.is_some() && kind.op == Op::Read);
        prop_assert_eq!(bed.cdt.len(), usize::from(critical.is_some()));
        let expected: Vec<_> =
            spans.iter().map(|span| of_byte(&bed.identifier, kind, span, critical, &mut room)).collect();
        let cost = |start: u64, end: u64, copy| bed.identifier.cost_s(copy, kind, start, end - start);
        if parts.len() == 1 && parts[0].why == Why::Whole {
            prop_assert_eq!(parts[0], part(start, end, 0, Why::Whole));
            prop_assert!(kind.op == Op::Read && misses && spans.iter().all(|span| span.mask & 1 == 1));
            let mut runs: Vec<(u64, u64, usize)> = Vec::new();
            for (span, &(copy, _)) in spans.iter().zip(&expected) {
                match runs.last_mut().filter(|run| run.2 == copy) {
                    Some(run) => run.1 = span.end,
                    None => runs.push((span.start, span.end, copy)),
                }
            }
            prop_assert!(cost(start, end, 0) < runs.iter().map(|&(s, e, c)| cost(s, e, c)).sum());
        } else {
            let mut at = start;
            for Chosen { part, .. } in &parts {
                prop_assert_eq!(part.start, at);
                prop_assert!(part.end > at);
                at = part.end;
            }
            prop_assert_eq!(at, end);
            for (span, &(copy, why)) in spans.iter().zip(&expected) {
                let holding: Vec<_> = parts.iter().filter(|p| p.part.start <= span.start && span.end <= p.part.end).collect();
                prop_assert_eq!(holding.len(), 1, "a span is in one part");
                prop_assert_eq!((holding[0].part.copy, holding[0].why), (copy, why));
            }
            prop_assert!(parts.windows(2).all(|two| (two[0].part.copy, two[0].why) != (two[1].part.copy, two[1].why)));
        }
        prop_assert_eq!((bed.room.free, bed.room.clean), (room.free, room.clean));
    }
}
