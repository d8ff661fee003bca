//! Layouts of files: what stripewise's own planner chooses among those of the file system, and the
//! commands for them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use stripewise_cluster::{Cluster, FileSystem};
use stripewise_native::{NativeLayout, Stripe, express_spread};
use stripewise_plan::workload::FileSet;
use stripewise_plan::{Decision, OnlyNative, Options, PlanError, Workload, plan};

use crate::commands::{self, Command};
use crate::facts::{Facts, FileFacts};
use crate::findings::thresholds::NEGLIGIBLE_SHARE;
use crate::present::{Now, set_present};
use crate::storage::{Storage, is_mount, is_no_pool};

/// A change must save this fraction of the time that the model predicts for servers that were not
/// measured. What it saves less is within the error of such parameters.
const MIN_GAIN_UNMEASURED: f64 = 0.25;
/// Layouts within this fraction of the best one's time are as good: the simplest is taken.
const MODEL_ERROR: f64 = 0.1;
/// Files up to this many bytes stay on one server: opening several objects costs more than it
/// saves.
const WHOLE_BYTES: u64 = 4 << 20;
/// Stripe widths to try: powers of two from 64 KiB to 64 MiB.
const STRIPES: std::ops::RangeInclusive<u32> = 16..=26;
/// Narrower stripes split the requests that clients send. Source: the Lustre manual, "Choosing a
/// Stripe Size".
const WIDTH_MIN: u64 = 1 << 20;
/// Maximum number of directories that get commands of their own.
const DIRECTORIES_MAX: usize = 3;

/// The advice on the layout of a set of files.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LayoutAdvice {
    /// The pattern of their names.
    pub pattern: String,
    /// Number of files.
    pub files: u64,
    /// Size of the largest, bytes.
    pub largest_bytes: u64,
    /// Number of processes that use a file, of the file with most.
    pub processes: u64,
    /// The present layout: width x servers.
    pub present: String,
    /// Number of servers of a file in the present layout.
    pub present_servers: u32,
    /// Whether the log tells the present layout; otherwise it is the file system's default.
    pub is_present_known: bool,
    /// The proposed layout; `None` to keep the present one.
    pub proposed: Option<String>,
    /// How many times as fast the model predicts the reads and writes with the proposed layout.
    pub speedup: f64,
    /// Time of the files' reads and writes in the busiest process, seconds: all that can be saved.
    pub time_s: f64,
    /// What to type.
    pub commands: Vec<Command>,
    /// Why the present layout stays.
    pub reason: String,
}

/// The advice for every set of files on the file system, that with most time first. `is_gone` tells
/// whether a file is known not to exist.
///
/// # Errors
/// The planner cannot plan for the cluster.
pub fn layouts(
    workload: Workload,
    facts: &Facts,
    storage: &Storage,
    is_gone: &dyn Fn(&str) -> bool,
) -> Result<Vec<LayoutAdvice>, PlanError> {
    let (Some(cluster), Some(system)) = (storage.planned(), storage.parallel()) else { return Ok(Vec::new()) };
    if workload.file_sets.is_empty() {
        return Ok(Vec::new());
    }
    let measured = storage.speed().1;
    let options = Options {
        native: Some(OnlyNative::of(&cluster)?),
        min_gain: if measured { Options::default().min_gain } else { MIN_GAIN_UNMEASURED },
        stripes: STRIPES.map(|log| 1 << log).collect(),
        ..Options::default()
    };
    let mut workload = workload.divided(&cluster, &options)?;
    let known: HashMap<&str, &FileFacts> = facts.files.iter().map(|file| (&*file.name, file)).collect();
    let mut now = Vec::new();
    for set in &mut workload.file_sets {
        let present = set_present(set, &known, (system, &cluster));
        now.push(present.map_err(|error| PlanError::new(error.to_string()))?);
    }
    let planned = plan(&workload, &cluster, &options)?;
    let mut advised = Vec::new();
    for ((set, decision), now) in workload.file_sets.iter().zip(&planned.decisions).zip(&now) {
        let subject = Subject { set, decision, now, facts, system, cluster: &cluster, known: &known };
        advised.push(subject.advice(options.min_gain, is_gone));
    }
    advised.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    one_per_directory(system, &mut advised);
    Ok(advised)
}

/// A directory gives new files one layout: the first advice for it counts. Only Lustre gives an
/// existing file another layout than its directory's.
fn one_per_directory(system: FileSystem, advised: &mut [LayoutAdvice]) {
    let mut seen = BTreeSet::new();
    for advice in advised {
        advice.commands.retain(|command| command.directory.as_ref().is_none_or(|dir| seen.insert(dir.clone())));
        if system != FileSystem::Lustre && advice.commands.iter().all(|command| command.directory.is_none()) {
            advice.commands.clear();
        }
        if let Some(layout) = advice.proposed.take_if(|_| advice.commands.is_empty()) {
            advice.reason =
                format!("{layout} would be faster, in a directory that has no other files or layout");
        }
    }
}

/// A set of files, and what is known of it.
struct Subject<'a> {
    set: &'a FileSet,
    decision: &'a Decision,
    now: &'a Now,
    facts: &'a Facts,
    system: FileSystem,
    cluster: &'a Cluster,
    known: &'a HashMap<&'a str, &'a FileFacts>,
}

impl Subject<'_> {
    fn advice(&self, min_gain: f64, is_gone: &dyn Fn(&str) -> bool) -> LayoutAdvice {
        let files = || self.set.files.iter().filter_map(|file| self.known.get(&*file.name));
        let data_s: f64 = files().map(|file| file.data[0].time_s + file.data[1].time_s).sum();
        let mut advice = LayoutAdvice {
            pattern: self.set.pattern.clone(),
            files: self.set.count(),
            largest_bytes: self.set.largest(),
            processes: files().map(|file| file.processes).max().unwrap_or(1),
            present: self.now.text.clone(),
            present_servers: self.now.servers,
            is_present_known: self.now.is_known,
            time_s: self.facts.of_busiest_s(data_s),
            speedup: 1.0,
            ..LayoutAdvice::default()
        };
        if self.facts.share_of(advice.time_s).is_some_and(|share| share < NEGLIGIBLE_SHARE) {
            advice.reason = "its reads and writes take hardly any of the run".into();
            return advice;
        }
        match self.proposal(min_gain) {
            Ok((layout, speedup)) => {
                advice.proposed = Some(layout.to_string());
                advice.speedup = speedup;
                advice.commands = self.commands(&layout, is_gone);
            }
            Err(reason) => advice.reason = reason,
        }
        advice
    }

    /// The layout to change to, and how many times as fast it is predicted to be; else why not.
    fn proposal(&self, min_gain: f64) -> Result<(NativeLayout, f64), String> {
        if self.set.largest() <= WHOLE_BYTES {
            return Err("small files are fastest on one server".into());
        }
        if self.decision.keep {
            return Err(self.decision.reason.clone());
        }
        let (layout, elapsed_s) = self.simplest().ok_or("the file system has no better layout")?;
        let now_s = self.decision.present.elapsed_s;
        if self.is_present(&layout) {
            return Err(format!("the files have the best layout already: {layout}"));
        }
        if elapsed_s > now_s * (1.0 - min_gain) {
            return Err(format!("no layout saves more than {:.0} %", 100.0 * min_gain));
        }
        Ok((layout, now_s / elapsed_s.max(f64::MIN_POSITIVE)))
    }

    /// Of the candidates that are as good as the best, the one with fewest components, then one
    /// without narrow stripes, then fewest servers, then the widest stripes.
    fn simplest(&self) -> Option<(NativeLayout, f64)> {
        let limit_s = self.decision.best().elapsed_s * (1.0 + MODEL_ERROR);
        let good = self.decision.competing().filter(|judged| judged.elapsed_s <= limit_s);
        let native = good.filter_map(|judged| {
            let layouts = judged.candidate.layouts.build();
            let layout = express_spread(self.system, &layouts, self.cluster, self.set.largest()).ok()?;
            Some((self.trimmed(layout), judged.elapsed_s))
        });
        native.min_by_key(|(layout, _)| {
            let (width, count) = layout.components.last().map_or((0, 0), |last| stripes(&last.stripe));
            (layout.components.len(), width < WIDTH_MIN, count, Reverse(width))
        })
    }

    /// Without the name of a pool that does not exist, and without stripes that no file reaches.
    fn trimmed(&self, mut layout: NativeLayout) -> NativeLayout {
        for component in &mut layout.components {
            if let Stripe::Even { width, count, pool } = &mut component.stripe {
                let reached = self.set.largest().div_ceil(*width).max(1);
                *count = (*count).min(u32::try_from(reached).unwrap_or(u32::MAX));
                pool.take_if(|name| is_no_pool(name));
            }
        }
        layout
    }

    /// Whether all files have these stripes already.
    fn is_present(&self, layout: &NativeLayout) -> bool {
        let Some(Stripe::Even { width, count, pool }) = layout.stripe() else { return false };
        let is_same = *count == self.now.servers && (*count == 1 || *width == self.now.width);
        is_same && self.now.is_same && pool.is_none()
    }

    fn commands(&self, layout: &NativeLayout, is_gone: &dyn Fn(&str) -> bool) -> Vec<Command> {
        let names = || self.set.files.iter().map(|file| &*file.name);
        let directories: BTreeSet<&str> =
            names().filter_map(|name| name.rsplit_once('/')).map(|(dir, _)| dir).collect();
        // The root of a file system belongs to the site.
        let directories =
            directories.into_iter().filter(|dir| !dir.is_empty() && !is_mount(&self.facts.mounts, dir));
        let mut all: Vec<Command> = directories
            .take(DIRECTORIES_MAX)
            .flat_map(|directory| commands::of_directory(self.system, layout, directory))
            .collect();
        let is_kept = |name: &&str| {
            let file = self.known.get(name);
            file.is_some_and(|file| file.data[0].bytes > 0 && !file.is_renamed) && !is_gone(name)
        };
        let kept: Vec<&str> = names().filter(is_kept).collect();
        all.extend(commands::of_files(self.system, layout, &kept));
        all
    }
}

/// Width and number of equal stripes.
fn stripes(stripe: &Stripe) -> (u64, u32) {
    match stripe {
        Stripe::Even { width, count, .. } => (*width, *count),
        Stripe::Listed { width, servers } | Stripe::Grouped { width, servers, .. } => {
            (*width, servers.len() as u32)
        }
        Stripe::Varied { stripes } => (0, stripes.len() as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sets of files in one directory, each with a command for it and one for a file.
    fn two_sets() -> Vec<LayoutAdvice> {
        let set = |name: &str| {
            let directory =
                Command { directory: Some("/s".into()), ..Command::new(format!("set {name} /s"), "") };
            let commands = vec![directory, Command::new(format!("move /s/{name}"), "")];
            LayoutAdvice { proposed: Some("1M x 4".into()), commands, ..LayoutAdvice::default() }
        };
        ["a", "b"].map(set).to_vec()
    }

    fn texts(advice: &LayoutAdvice) -> Vec<&str> {
        advice.commands.iter().map(|command| &*command.text).collect()
    }

    #[test]
    fn a_directory_gets_one_layout() {
        let mut advised = two_sets();
        one_per_directory(FileSystem::Lustre, &mut advised);
        assert_eq!((texts(&advised[0]).len(), texts(&advised[1])), (2, vec!["move /s/b"]));
    }

    #[test]
    fn a_copy_would_get_the_layout_of_the_directory() {
        let mut advised = two_sets();
        one_per_directory(FileSystem::BeeGfs, &mut advised);
        assert_eq!((texts(&advised[0]).len(), texts(&advised[1]).len()), (2, 0));
        assert!(advised[1].proposed.is_none() && advised[1].reason.contains("1M x 4 would be faster"));
    }
}
