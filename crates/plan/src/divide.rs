//! Sets of files that differ in their use are divided, so that each part gets a layout of its own.
//!
//! A set has the files whose names differ only in digits, and one layout. If most of the work is on
//! a few of them, only these should get the fast servers. Work is what it is for regions of files:
//! the time that requests take longer on the slowest class of servers than on the fastest.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use stripewise_cluster::Cluster;
use stripewise_cluster::pattern::escape;
use stripewise_model::Access;
use stripewise_trace::summary::MAX_GROUPS;

use crate::error::PlanError;
use crate::joint::is_scarce;
use crate::options::Options;
use crate::regions::{EVIDENCE, Work, work_s};
use crate::servers::Servers;
use crate::workload::{FileSet, FileUse, Group, Request, Workload};

/// Maximum number of sets that are taken out of one.
const TAKEN_MAX: usize = 8;
/// Files are taken out only if that can save more than this fraction of the work on all files.
const LEAST_GAIN: f64 = 0.01;
/// Files of different processes stay together if their requests would take longer by more than this
/// factor, one part after the other.
const STRETCH_MAX: f64 = 1.25;
/// Number of subsets with the largest gain that are examined before the rest stays together.
const TRIES: usize = 16;

impl Workload {
    /// The workload in which files with like names are sets of their own if the work on them per
    /// stored byte differs much from that on the others. It is the same workload if all files fit
    /// on every tier, or sets are not planned jointly. There are at most [`MAX_GROUPS`] sets then,
    /// or as many as before: more are planned by kinds. The existing files are not known yet.
    ///
    /// The rules of the new sets come before that of the set ([`sort_rules`](crate::sort_rules)).
    ///
    /// # Errors
    /// The cluster is unusable.
    pub fn divided(mut self, cluster: &Cluster, options: &Options) -> Result<Self, PlanError> {
        let servers = Servers::of(cluster)?;
        let place = (cluster, &servers);
        if options.is_joint() && is_scarce(self.total_size(), place, options) {
            let works: Vec<Vec<Work>> = self.file_sets.iter().map(|set| works(set, place)).collect();
            let all_s: f64 = works.iter().flatten().map(|work| work.work_s).sum();
            let mut room = MAX_GROUPS.saturating_sub(self.file_sets.len());
            let sets = self.file_sets.into_iter().zip(&works);
            let parts = sets.flat_map(|(set, works)| {
                let division = Division::new(&set, works, place, LEAST_GAIN * all_s);
                let divided = division.divided(TAKEN_MAX.min(room));
                room -= divided.0.len() - 1;
                parts(set, divided)
            });
            self.file_sets = parts.collect();
            self.file_sets.sort_by_key(|set| Reverse(set.bytes()));
        }
        self.file_sets.iter_mut().for_each(|set| set.uses = Vec::new());
        Ok(self)
    }
}

/// The work on each file; empty if it is not known.
fn works(set: &FileSet, place: (&Cluster, &Servers)) -> Vec<Work> {
    let of_kinds = |used: &FileUse| -> f64 {
        let kinds = used.kinds();
        kinds.map(|(op, access, count, bytes)| count as f64 * work_s(place, op, access, bytes / count)).sum()
    };
    let files = set.files.iter().zip(&set.uses);
    files.map(|(file, used)| Work { work_s: of_kinds(used), stored: file.size as f64 }).collect()
}

/// Files of a set that a pattern of their own matches.
#[derive(Clone, Copy)]
struct Subset {
    name: Name,
    /// The work on all of them.
    work: Work,
}

/// Which names the files of a subset have.
#[derive(Clone, Copy)]
enum Name {
    /// That of this file.
    Whole(usize),
    /// Those with the number that this file has in this place: the n-th of its name, from 0.
    Number(usize, usize),
}

/// A set while subsets are taken out of it.
struct Division<'s> {
    set: &'s FileSet,
    works: &'s [Work],
    place: (&'s Cluster, &'s Servers),
    /// The least gain of a subset, seconds of work.
    least_s: f64,
    /// The mean work of a request, seconds.
    one_s: f64,
    /// The pattern of the set, and those of the subsets in the order in which they are taken out.
    patterns: Vec<String>,
    /// By file: the index of its pattern.
    pattern_of: Vec<u8>,
    /// The place of the number by which subsets were taken out. Patterns with numbers in different
    /// places could match the same file.
    number: Option<usize>,
}

impl<'s> Division<'s> {
    fn new(set: &'s FileSet, works: &'s [Work], place: (&'s Cluster, &'s Servers), least_s: f64) -> Self {
        let requests: u64 = set.groups.iter().map(|group| group.count).sum();
        let one_s = works.iter().map(|work| work.work_s).sum::<f64>() / requests.max(1) as f64;
        let (patterns, pattern_of) = (vec![set.pattern.clone()], vec![0; set.files.len()]);
        Self { set, works, place, least_s, one_s, patterns, pattern_of, number: None }
    }

    /// The patterns of the parts, and the index of each file's pattern. Takes out at most `most`
    /// subsets.
    fn divided(mut self, most: usize) -> (Vec<String>, Vec<u8>) {
        while self.patterns.len() <= most && self.may_gain() {
            let Some(name) = self.next() else { break };
            let files: Vec<usize> = self.left().filter(|&file| self.has(name, file)).collect();
            files.into_iter().for_each(|file| self.pattern_of[file] = self.patterns.len() as u8);
            if let Name::Number(place, _) = name {
                self.number = Some(place);
            }
            self.patterns.push(self.pattern(name));
        }
        (self.patterns, self.pattern_of)
    }

    /// The files that were not taken out.
    fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.works.len()).filter(|&file| self.pattern_of[file] == 0)
    }

    /// The work on the files that were not taken out.
    fn rest(&self) -> Work {
        let mut rest = Work::default();
        self.left().for_each(|file| rest.join(self.works[file]));
        rest
    }

    /// Whether any division could gain enough. If not, names need not be compared.
    fn may_gain(&self) -> bool {
        let rest = self.rest();
        let gains = self.left().map(|file| gain_s(&self.works[file], &rest));
        gains.filter(|gain_s| *gain_s > 0.0).sum::<f64>() > self.least_s
    }

    /// The subset with the largest gain that surely differs from the other files and can be planned
    /// apart from them.
    fn next(&self) -> Option<Name> {
        let (rest, mut subsets) = (self.rest(), self.subsets());
        // Of many subsets, one could differ by chance.
        let evidence = EVIDENCE + (subsets.len() as f64).ln();
        let gain_s = |subset: &Subset| gain_s(&subset.work, &rest);
        subsets.retain(|subset| {
            let differs = subset.work.differs(&without(&rest, &subset.work), self.one_s);
            gain_s(subset).abs() > self.least_s && differs >= evidence
        });
        // Each of two files has the same gain. The one with more work per byte comes first.
        subsets.sort_by(|one, other| {
            let size = |subset: &Subset| gain_s(subset).abs() as f32;
            size(other).total_cmp(&size(one)).then(gain_s(other).total_cmp(&gain_s(one)))
        });
        subsets.into_iter().take(TRIES).find(|subset| self.is_apart(subset, &rest)).map(|subset| subset.name)
    }

    /// Every file that is left, and all of them with the same number in a place.
    fn subsets(&self) -> Vec<Subset> {
        let of_file = |name, file: usize| Subset { name, work: self.works[file] };
        let mut all: Vec<Subset> = self.left().map(|file| of_file(Name::Whole(file), file)).collect();
        let is_possible = |place: &usize| self.number.is_none_or(|number| number == *place);
        for place in (0..numbers_of(&self.set.pattern).len()).filter(is_possible) {
            let mut known: HashMap<Option<&str>, usize> = HashMap::new();
            for file in self.left() {
                let next = all.len();
                let subset = *known.entry(self.number_of(file, place)).or_insert(next);
                if subset == next {
                    all.push(of_file(Name::Number(place, file), file));
                } else {
                    all[subset].work.join(self.works[file]);
                }
            }
        }
        all
    }

    /// The digits of a number in the name of a file.
    fn number_of(&self, file: usize, place: usize) -> Option<&'s str> {
        number(&self.set.files[file].name, place)
    }

    /// Whether a subset has this file.
    fn has(&self, name: Name, file: usize) -> bool {
        match name {
            Name::Whole(one) => one == file,
            Name::Number(place, one) => self.number_of(one, place) == self.number_of(file, place),
        }
    }

    /// The pattern of a subset.
    fn pattern(&self, name: Name) -> String {
        let pattern = &self.set.pattern;
        match name {
            Name::Whole(file) => {
                let anywhere = if pattern.starts_with("**") { "**" } else { "" };
                format!("{anywhere}{}", escape(&self.set.files[file].name))
            }
            Name::Number(place, file) => {
                with_number(pattern, place, self.number_of(file, place).unwrap_or_default())
            }
        }
    }

    /// Whether the subset and the other files can be planned one after the other. The samples must
    /// show how they differ, and the same processes must use both: those that use one part while
    /// other processes use the other one would seem to wait for them.
    fn is_apart(&self, subset: &Subset, rest: &Work) -> bool {
        let Sampled { work_s: [others_s, subset_s], are_both, apart_s } = self.sampled(subset.name);
        let all_s = others_s + subset_s;
        let seen = Work { work_s: subset_s / all_s * rest.work_s, ..subset.work };
        let (seen_s, gain_s) = (gain_s(&seen, rest), gain_s(&subset.work, rest));
        are_both && (seen_s - gain_s).abs() <= gain_s.abs() / 2.0 && apart_s <= STRETCH_MAX * all_s
    }

    /// What the samples show of a subset and of the other files that are left.
    fn sampled(&self, name: Name) -> Sampled {
        let mut all = Sampled::default();
        let mut has_requests = [false; 2];
        let part_of: Vec<usize> = (0..self.works.len()).map(|file| usize::from(self.has(name, file))).collect();
        for group in &self.set.groups {
            let weight = group.weight(group.sample.len());
            let (mut seconds, mut processes) = ([0.0; 2], [HashSet::new(), HashSet::new()]);
            for request in group.sample.iter().filter(|request| self.pattern_of[request.file as usize] == 0) {
                let part = part_of[request.file as usize];
                seconds[part] += weight * work_s(self.place, group.op, request.access(), request.size);
                processes[part].insert(request.process);
                has_requests[part] = true;
            }
            let of_both = processes[0].union(&processes[1]).count();
            let at_once = |count: usize| count.clamp(1, group.procs.max(1) as usize) as f64;
            for part in [0, 1] {
                all.work_s[part] += seconds[part];
                all.apart_s += seconds[part] * at_once(of_both) / at_once(processes[part].len());
            }
        }
        Sampled { are_both: has_requests == [true; 2], ..all }
    }
}

/// The sampled requests of two parts of a set.
#[derive(Default)]
struct Sampled {
    /// The work in each part, seconds.
    work_s: [f64; 2],
    /// Whether both parts have requests.
    are_both: bool,
    /// The work in both parts, seconds, in each part as many times as it has fewer processes than
    /// there are in both.
    apart_s: f64,
}

/// Seconds of work that are saved if some of the files get the fast servers, rather than an equal
/// part of each file, where these servers have just the space for them. Negative if the other files
/// should get them.
fn gain_s(some: &Work, all: &Work) -> f64 {
    some.work_s - all.work_s * some.stored / all.stored.max(1.0)
}

/// The work on the other files.
fn without(all: &Work, some: &Work) -> Work {
    Work { work_s: (all.work_s - some.work_s).max(0.0), stored: (all.stored - some.stored).max(0.0) }
}

/// The digits of a number in a path. The `<n>`s of a set's pattern are the first numbers of the
/// paths.
fn number(path: &str, place: usize) -> Option<&str> {
    path.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).nth(place)
}

/// The pattern with these digits instead of the `<n>` in a place.
fn with_number(pattern: &str, place: usize, digits: &str) -> String {
    let at = numbers_of(pattern)[place];
    format!("{}{digits}{}", &pattern[..at], &pattern[at + "<n>".len()..])
}

/// Where the `<n>`s of a pattern begin.
fn numbers_of(pattern: &str) -> Vec<usize> {
    let mut is_ordinary = false;
    let begins = |(at, c): (usize, char)| {
        let begins = !is_ordinary && pattern[at..].starts_with("<n>");
        is_ordinary = !is_ordinary && c == '\\';
        begins.then_some(at)
    };
    pattern.char_indices().filter_map(begins).collect()
}

/// The parts of a set with these patterns. `pattern_of` has the index of each file's pattern.
fn parts(set: FileSet, (patterns, pattern_of): (Vec<String>, Vec<u8>)) -> Vec<FileSet> {
    if patterns.len() == 1 {
        return vec![set];
    }
    let all = set.count();
    let FileSet { files, groups, calls, private, mapped, present, .. } = set;
    let part = |pattern| FileSet { pattern, private, mapped, present: present.clone(), ..FileSet::default() };
    let mut parts: Vec<FileSet> = patterns.into_iter().map(part).collect();
    let mut place_of = Vec::with_capacity(files.len());
    for (file, index) in files.into_iter().zip(pattern_of.into_iter().map(usize::from)) {
        place_of.push((index, parts[index].files.len() as u32));
        parts[index].files.push(file);
    }
    for group in groups {
        split(group, &place_of, &mut parts);
    }
    // The trace does not count calls by file, and files of like names are opened alike.
    let mut before = 0;
    for part in &mut parts {
        let after = before + part.count();
        part.calls = calls.iter().map(|calls| calls.of_files((before, after), all)).collect();
        before = after;
    }
    parts.iter_mut().for_each(|part| part.private &= part.files.len() > 1);
    parts
}

/// Gives each part its requests of a group. `place_of` has the part of each file, and its index
/// there.
fn split(mut group: Group, place_of: &[(usize, u32)], parts: &mut [FileSet]) {
    let mut samples = vec![Vec::new(); parts.len()];
    let sample = std::mem::take(&mut group.sample);
    let bytes = |sample: &[Request]| sample.iter().map(|request| u128::from(request.size)).sum::<u128>();
    let (all_requests, all_bytes) = (sample.len() as u128, bytes(&sample));
    for request in sample {
        let (part, file) = place_of[request.file as usize];
        samples[part].push(Request { file, ..request });
    }
    // What the parts so far have is rounded, so that all of them have everything together.
    let (mut requests_so_far, mut bytes_so_far) = (0, 0);
    let scaled = |so_far: u128, all: u128, of: u64| (so_far * u128::from(of) / all.max(1)) as u64;
    for (part, sample) in parts.iter_mut().zip(samples).filter(|(_, sample)| !sample.is_empty()) {
        let before =
            [scaled(requests_so_far, all_requests, group.count), scaled(bytes_so_far, all_bytes, group.bytes)];
        requests_so_far += sample.len() as u128;
        bytes_so_far += bytes(&sample);
        let in_order = sample.iter().filter(|request| request.access() == Access::Sequential).count();
        part.groups.push(Group {
            access: if 2 * in_order >= sample.len() { Access::Sequential } else { Access::Random },
            count: scaled(requests_so_far, all_requests, group.count) - before[0],
            bytes: scaled(bytes_so_far, all_bytes, group.bytes) - before[1],
            sample,
            ..group.clone_without_sample()
        });
    }
}

#[cfg(test)]
mod tests;
