//! Aligns the real-time clocks of a job's nodes by its collective calls.
//!
//! A collective open returns in no rank before it has begun in all of them. So each open of all
//! ranks bounds how far the clocks of two nodes can be apart, from both sides. Where the real-time
//! clocks agree with all bounds they are believed; otherwise they are moved into the middle.

use std::collections::{BTreeMap, HashMap};

use super::clocks::Clock;
use super::spool_reader::{Item, Spool, Wanted};
use crate::spool::Record;
use crate::{MpiCall, Op, TraceError};

/// How far the real-time clock of a node was from that of the node with the job's lowest rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The node's name in the trace.
    pub node: String,
    /// The node whose clock counts.
    pub reference: String,
    /// Nanoseconds that the node's clock is ahead; negative if it is behind. All times of the node
    /// are earlier by this in the trace.
    pub ahead_ns: i64,
}

/// Begin and end of a collective call in one rank, nanoseconds since 1970.
type Span = (i128, i128);

/// Moves the clocks of the nodes that took part in the trace's largest MPI job, and returns by how
/// much. `nodes` and `clocks` belong to the spools, one each.
pub(super) fn align(
    spools: &[Spool],
    nodes: &[String],
    clocks: &mut [Clock],
) -> Result<Vec<Correction>, TraceError> {
    let leaders = leaders(spools, nodes);
    let [(_, reference), others @ ..] = &leaders[..] else { return Ok(Vec::new()) };
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut opens = |runs: &[usize]| -> Result<Vec<Vec<Span>>, TraceError> {
        runs.iter().map(|&run| whole_opens(&spools[run], &mut clocks[run])).collect()
    };
    let known = opens(reference)?;
    let mut corrections = Vec::new();
    for (node, runs) in others {
        let ahead_ns = distance(&known, &opens(runs)?);
        if let Some(ahead_ns) = i64::try_from(ahead_ns).ok().filter(|ns| *ns != 0) {
            corrections.push(Correction { node: node.clone(), reference: leaders[0].0.clone(), ahead_ns });
        }
    }
    let by_node: HashMap<&str, i64> =
        corrections.iter().map(|correction| (correction.node.as_str(), correction.ahead_ns)).collect();
    for (clock, node) in clocks.iter_mut().zip(nodes) {
        clock.shift(-by_node.get(node.as_str()).copied().unwrap_or(0));
    }
    Ok(corrections)
}

/// Per node of the job with the most ranks, in order of rank: the spools of its lowest rank, one
/// for each run of the program, in order of their start. One rank per node is enough: any two ranks
/// bound their nodes' clocks.
fn leaders(spools: &[Spool], nodes: &[String]) -> Vec<(String, Vec<usize>)> {
    let ranks = spools.iter().map(|spool| spool.header.ranks).max().unwrap_or(0);
    let mut by_node: BTreeMap<&str, BTreeMap<i32, Vec<usize>>> = BTreeMap::new();
    for (index, spool) in
        spools.iter().enumerate().filter(|(_, spool)| ranks > 1 && spool.header.ranks == ranks)
    {
        by_node.entry(&nodes[index]).or_default().entry(spool.header.rank).or_default().push(index);
    }
    let mut leaders: Vec<(i32, &str, Vec<usize>)> = by_node
        .into_iter()
        .filter_map(|(node, mut of_rank)| of_rank.pop_first().map(|(rank, runs)| (rank, node, runs)))
        .collect();
    leaders.sort();
    let in_order = |mut runs: Vec<usize>| {
        runs.sort_by_key(|&run| spools[run].header.start_realtime_ns);
        runs
    };
    leaders.into_iter().map(|(_, node, runs)| (node.to_owned(), in_order(runs))).collect()
}

/// The collective opens of a rank in which all ranks of its job took part and that succeeded.
fn whole_opens(spool: &Spool, clock: &mut Clock) -> Result<Vec<Span>, TraceError> {
    let mut reader = spool.read(Wanted::Records)?;
    let mut opens = Vec::new();
    while let Some(item) = reader.next_item()? {
        if let Item::Records(_) = item {
            let whole = reader.records().iter().filter(|record| is_whole_open(record, spool.header.ranks));
            opens.extend(whole.map(|record| (clock.exact_ns(record.start), clock.exact_ns(record.end))));
        }
    }
    opens.sort_unstable();
    Ok(opens)
}

fn is_whole_open(record: &Record, ranks: u32) -> bool {
    record.op == Op::Mark as u8
        && record.offset == MpiCall::Open as u64
        && record.size == u64::from(ranks)
        && record.result >= 0
}

/// Nanoseconds that a node's clock is ahead of the reference's, from their opens in each run; 0 if
/// all of them are possible as they are, or if the runs do not correspond.
fn distance(reference: &[Vec<Span>], other: &[Vec<Span>]) -> i128 {
    if reference.len() != other.len() {
        return 0;
    }
    let pairs = reference.iter().zip(other).flat_map(|(reference, other)| reference.iter().zip(other));
    let mut bounds: Option<(i128, i128)> = None;
    for (&(begin, end), &(other_begin, other_end)) in pairs {
        let (least, most) = bounds.unwrap_or((i128::MIN, i128::MAX));
        bounds = Some((least.max(other_begin - end), most.min(other_end - begin)));
    }
    match bounds {
        Some((least, most)) if least > 0 || most < 0 => (least + most) / 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clocks_that_may_be_right_are_believed() {
        assert_eq!(distance(&[vec![(100, 200)]], &[vec![(150, 250)]]), 0);
        assert_eq!(distance(&[], &[]), 0);
        assert_eq!(distance(&[vec![(100, 200)]], &[vec![(900, 950)], vec![]]), 0, "another number of runs");
    }

    #[test]
    fn a_call_that_ended_before_it_began_elsewhere_moves_the_clock() {
        // Ahead by 700 to 850.
        assert_eq!(distance(&[vec![(100, 200)]], &[vec![(900, 950)]]), 775);
        // The second call narrows it to 790 to 810.
        assert_eq!(distance(&[vec![(100, 200), (300, 310)]], &[vec![(900, 950), (1100, 1110)]]), 800);
        assert_eq!(distance(&[vec![(900, 950)]], &[vec![(100, 200)]]), -775);
    }

    proptest! {
        /// Whatever the ranks' delays and the distance are: the result is as near to the truth as
        /// the shortest call, and aligned clocks contradict no call.
        #[test]
        fn the_distance_is_found(
            ahead in -1_000_000_000_000i128..1_000_000_000_000,
            calls in prop::collection::vec((0i128..1000, 0i128..1000, 1i128..1000, 1i128..1000), 1..20),
        ) {
            let (mut reference, mut other, mut at) = (Vec::new(), Vec::new(), 0);
            for (late, other_late, after, other_after) in calls {
                let all_began = at + late.max(other_late);
                reference.push((at + late, all_began + after));
                other.push((at + other_late + ahead, all_began + other_after + ahead));
                at += 10_000;
            }
            let found = distance(&[reference.clone()], &[other.clone()]);
            for ((begin, end), (other_begin, other_end)) in reference.iter().zip(&other) {
                prop_assert!(other_begin - found <= *end && *begin <= other_end - found);
                prop_assert!((found - ahead).abs() <= (end - begin).max(other_end - other_begin));
            }
        }
    }
}
