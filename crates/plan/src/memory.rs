//! Requests that memory served, told apart by their durations.
//!
//! A request is memory's if it was as quick as a copy in memory and took less than half of the time
//! that the servers of the present layout need for it when they do nothing else. Neither holds for
//! requests that pass the page cache (O_DIRECT, a CephFS without one), whatever their pattern.
//! Where servers are as fast as memory, the second condition never holds, and nothing is lost.
//!
//! - A quick read may have been fetched ahead while a slow one of the process waited, so a server
//!   did serve it; a kernel reads around random requests, too. The time that slow reads take beyond
//!   their own bytes accounts for so many quick ones, except for pages that the node has read or
//!   written before.
//! - A quick write is memory's if its bytes were not flushed by a later sync or slow close. What
//!   was flushed is paid to the servers, whenever.
//!
//! Such requests take their traced time in every layout: what memory served before, it serves after
//! the change as well. This is an assumption; moving a file does not change what is read again. The
//! servers do not see them, so they cannot gain.
//!
//! The parameters must have been measured: of a cluster that is only described, and of servers that
//! are emulated, durations say nothing. Errors: a server that answers from a cache of its own
//! within half of its measured time is taken for memory, if it is that quick; a process that loses
//! its processor during a hit makes it a miss.

use std::collections::{BTreeMap, HashMap};

use stripewise_cluster::Cluster;
use stripewise_model::Op;
use stripewise_trace::summary::MAX_GROUPS;

use crate::choose::present;
use crate::error::PlanError;
use crate::mapping::{Idle, Mapped};
use crate::options::Options;
use crate::present::Present;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{Calls, FileSet, FromMemory, Group, Lane, Request, Workload};

/// A request that took less than this fraction of what its servers need was not served by them.
const QUICK: f64 = 0.5;
/// The most that a call takes if memory serves it, seconds: for the call, and for each byte.
const CALL_S: f64 = 20e-6;
const PER_BYTE_S: f64 = 1e-9;
/// The most that is read ahead during one request, bytes: the largest default of a client (Ceph's).
const READ_AHEAD: f64 = (8 << 20) as f64;

/// The most seconds that a call for so many bytes takes if memory serves it.
pub(crate) fn memory_s(bytes: u64) -> f64 {
    calls_s(1, bytes)
}

/// The same of several calls, one after another.
fn calls_s(count: u64, bytes: u64) -> f64 {
    count as f64 * CALL_S + bytes as f64 * PER_BYTE_S
}

impl Workload {
    /// Takes out what memory served. The present layouts must be known, and the durations of the
    /// calls must be those of a real run. More than [`MAX_GROUPS`] sets, which are planned by what
    /// they have in common, stay as they are.
    ///
    /// # Errors
    /// The cluster is unusable.
    pub fn without_memory(mut self, cluster: &Cluster, options: &Options) -> Result<Self, PlanError> {
        if cluster.accuracy.is_exact() || self.file_sets.len() > MAX_GROUPS {
            return Ok(self);
        }
        let servers = Servers::of(cluster)?;
        for set in &mut self.file_sets {
            take_out(set, cluster, &servers, options)?;
        }
        Ok(self)
    }

    /// The most seconds of I/O if memory served all requests: what it served took its traced time.
    /// Groups that no stage overlaps follow one another, and a stage takes as long as its longest
    /// lane.
    pub fn in_memory_s(&self) -> f64 {
        let mut by_lane = BTreeMap::<(u32, Option<Lane>), f64>::new();
        for group in self.file_sets.iter().flat_map(|set| &set.groups) {
            let of_processes_s = group.times as f64 * calls_s(group.count, group.bytes);
            let seconds = of_processes_s / f64::from(group.procs.max(1));
            *by_lane.entry((group.application, group.lane)).or_default() += seconds;
        }
        let mut by_stage = BTreeMap::<(u32, Option<u32>), f64>::new();
        for ((application, lane), seconds) in by_lane {
            let longest = by_stage.entry((application, lane.map(|lane| lane.stage))).or_default();
            *longest = longest.max(seconds);
        }
        let calls = self.file_sets.iter().flat_map(|set| &set.calls);
        by_stage.values().sum::<f64>() + calls.map(Calls::memory_s).sum::<f64>()
    }
}

/// Takes the requests out of a set that memory served.
fn take_out(
    set: &mut FileSet,
    cluster: &Cluster,
    servers: &Servers,
    options: &Options,
) -> Result<(), PlanError> {
    let present = present(&Problem::new(set, cluster, servers, options, set.total_size()))?;
    let original = present.original(set);
    let is_emulated = |target| cluster.tier_of(target).is_some_and(|tier: usize| cluster.tiers[tier].emulate);
    if original.layouts.iter().flat_map(|layout| layout.targets()).any(is_emulated) {
        return Ok(());
    }
    let mut groups = std::mem::take(&mut set.groups);
    let unflushed = unflushed_shares(&groups, &set.calls);
    for group in &mut groups {
        let idle = Mapped::new(&group.sample, &original).on_idle(group, servers);
        let is_memory = match group.op {
            Op::Read => reads_of_memory(&group.sample, &idle),
            Op::Write => {
                let share = unflushed.get(&group.application).copied().unwrap_or_default();
                writes_of_memory(&group.sample, &idle, share)
            }
        };
        let served = split(group, &is_memory);
        set.memory.add(&served);
        set.add_memory_time(group, served.ns);
    }
    groups.retain(|group| group.count > 0);
    set.groups = groups;
    if set.groups.is_empty() && !matches!(set.present, Present::Known { .. }) {
        // Without requests it cannot be derived again.
        let (name, layouts) = (present.name, present.layouts.build());
        set.present = Present::Known { name, layouts, layout_of: None, managed: false };
    }
    Ok(())
}

/// By application: the fraction of its written bytes that no call has flushed.
fn unflushed_shares(groups: &[Group], calls: &[Calls]) -> HashMap<u32, f64> {
    let mut written = HashMap::<u32, u64>::new();
    for group in groups.iter().filter(|group| group.op == Op::Write) {
        *written.entry(group.application).or_default() += group.bytes;
    }
    let share = |(application, bytes): (u32, u64)| {
        let of_it = calls.iter().filter(|calls| calls.application == application);
        let unflushed: u64 = of_it.map(|calls| calls.unflushed_bytes).sum();
        (application, (unflushed as f64 / bytes.max(1) as f64).min(1.0))
    };
    written.into_iter().map(share).collect()
}

fn is_quick(request: &Request, idle: &Idle) -> bool {
    request.took_s() <= memory_s(request.size) && request.took_s() < QUICK * idle.seconds
}

/// Which of these reads memory served.
fn reads_of_memory(sample: &[Request], idle: &[Idle]) -> Vec<bool> {
    // By process: the time in which servers may have sent more than was asked for.
    let mut ahead_s = HashMap::<u32, f64>::new();
    for (request, idle) in sample.iter().zip(idle) {
        if !is_quick(request, idle) {
            let most_s = READ_AHEAD / request.size as f64 * idle.transfer_s;
            let beyond_s = (request.took_s() - idle.transfer_s).clamp(0.0, most_s);
            *ahead_s.entry(request.process).or_default() += beyond_s;
        }
    }
    let of_memory = |(request, idle): (&Request, &Idle)| {
        if !is_quick(request, idle) {
            return false;
        }
        match ahead_s.get_mut(&request.process) {
            Some(left_s) if !request.known && *left_s >= idle.transfer_s => {
                *left_s -= idle.transfer_s;
                false
            }
            _ => true,
        }
    };
    sample.iter().zip(idle).map(of_memory).collect()
}

/// Which of these writes stayed in memory: quick ones, the last first, up to this fraction of all
/// bytes.
fn writes_of_memory(sample: &[Request], idle: &[Idle], fraction: f64) -> Vec<bool> {
    let all: f64 = sample.iter().map(|request| request.size as f64).sum();
    let mut left = all * fraction;
    let stays = |(request, idle): (&Request, &Idle)| {
        let stays = left >= request.size as f64 && is_quick(request, idle);
        left -= if stays { request.size as f64 } else { 0.0 };
        stays
    };
    let mut stay: Vec<bool> = sample.iter().zip(idle).rev().map(stays).collect();
    stay.reverse();
    stay
}

/// Takes the sampled requests that memory served out of a group, and those that they stand for.
fn split(group: &mut Group, is_memory: &[bool]) -> FromMemory {
    if group.sample.is_empty() {
        return FromMemory::default();
    }
    let weight = group.count as f64 / group.sample.len() as f64;
    let mut sampled = FromMemory::default();
    let mut is_memory = is_memory.iter();
    group.sample.retain(|request| {
        let served = *is_memory.next().unwrap_or(&false);
        if served {
            let ns = (request.took_s() * 1e9) as u64;
            sampled.add(&FromMemory { requests: 1, bytes: request.size, ns });
        }
        !served
    });
    let served = match group.sample.is_empty() {
        true => FromMemory { requests: group.count, bytes: group.bytes, ..sampled.times(weight) },
        false => sampled.times(weight),
    };
    group.count = group.count.saturating_sub(served.requests);
    group.bytes = group.bytes.saturating_sub(served.bytes);
    served
}

#[cfg(test)]
mod tests;
