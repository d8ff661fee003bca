//! Properties of an MPI job, from all its spools: the names of its nodes, and missing ranks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::spool_reader::Spool;

/// Per spool: the name of its node. This is the host name. If MPI distinguishes nodes with the same
/// host name (common for containers), `#` and the node's number in the job follow.
pub(super) fn nodes(spools: &[Spool]) -> Vec<String> {
    let mut numbers: HashMap<&str, HashSet<u32>> = HashMap::new();
    for spool in spools.iter().filter(|spool| spool.header.node > 0) {
        numbers.entry(&spool.host).or_default().insert(spool.header.node);
    }
    let is_ambiguous = |host: &str| numbers.get(host).is_some_and(|numbers| numbers.len() > 1);
    let name = |spool: &Spool| match spool.header.node {
        node if node > 0 && is_ambiguous(&spool.host) => format!("{}#{}", spool.host, node - 1),
        _ => spool.host.clone(),
    };
    spools.iter().map(name).collect()
}

/// The ranks of jobs that left no spool, one sentence per job size. Programs of the same size that
/// ran one after the other count as one job.
pub(super) fn missing_ranks(spools: &[Spool]) -> Vec<String> {
    let mut jobs: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for spool in spools.iter().filter(|spool| spool.header.ranks > 0) {
        if let Ok(rank) = u32::try_from(spool.header.rank) {
            jobs.entry(spool.header.ranks).or_default().insert(rank);
        }
    }
    let sentence = |(ranks, seen): (&u32, &BTreeSet<u32>)| {
        let missing = u64::from(*ranks).saturating_sub(seen.len() as u64);
        let first = (0..*ranks).find(|rank| !seen.contains(rank))?;
        let those =
            if missing == 1 { format!("rank {first}") } else { format!("{missing} ranks from {first} on") };
        Some(format!(
            "{those} of {ranks} left no spool: do all nodes have the library and the spool's directory?"
        ))
    };
    jobs.iter().filter_map(sentence).collect()
}
