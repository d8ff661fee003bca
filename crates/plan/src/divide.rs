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
/// Files of different processes stay together if the processes' requests would take longer than
/// this factor one part after the other.
const STRETCH_MAX: f64 = 1.25;
/// Number of classes with the largest gain that are examined before the rest stays together.
const TRIES: usize = 16;

impl Workload {
    /// The workload in which files with like names are sets of their own if the work on them per
    /// stored byte differs much from that on the others. It is the same workload if all files fit
    /// on every tier, or sets are not planned jointly. The existing files are not known yet.
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
            let sets = self.file_sets.into_iter().zip(&works);
            let parts = sets.flat_map(|(set, works)| {
                let classes = Division::new(&set, works, place, LEAST_GAIN * all_s).classes();
                parts(set, classes)
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
struct Class {
    name: Name,
    /// The work on all of them.
    work: Work,
}

/// What the names of the files of a class are.
#[derive(Clone, Copy)]
enum Name {
    /// The name of this file.
    File(usize),
    /// They have the number of this file in one place: the n-th of the name, from 0.
    Number(usize, usize),
}

/// A set while classes of its files are taken out.
struct Division<'s> {
    set: &'s FileSet,
    works: &'s [Work],
    place: (&'s Cluster, &'s Servers),
    /// The least gain of a class, seconds of work.
    least_s: f64,
    /// The mean work of a request, seconds.
    one_s: f64,
    /// The pattern of each class; the first is that of the set.
    patterns: Vec<String>,
    /// By file: the index of its pattern.
    class_of: Vec<u8>,
    /// The place of the number by which classes were taken out. Patterns with numbers in different
    /// places could match the same file.
    number: Option<usize>,
}

impl<'s> Division<'s> {
    fn new(set: &'s FileSet, works: &'s [Work], place: (&'s Cluster, &'s Servers), least_s: f64) -> Self {
        let requests: u64 = set.groups.iter().map(|group| group.count).sum();
        let one_s = works.iter().map(|work| work.work_s).sum::<f64>() / requests.max(1) as f64;
        let (patterns, class_of) = (vec![set.pattern.clone()], vec![0; set.files.len()]);
        Self { set, works, place, least_s, one_s, patterns, class_of, number: None }
    }

    /// The patterns of the parts, and the index of each file's pattern.
    fn classes(mut self) -> (Vec<String>, Vec<u8>) {
        while self.patterns.len() <= TAKEN_MAX && self.may_gain() {
            let Some(name) = self.next() else { break };
            let class = self.patterns.len() as u8;
            for file in self.left().filter(|&file| self.has(name, file)).collect::<Vec<_>>() {
                self.class_of[file] = class;
            }
            if let Name::Number(place, _) = name {
                self.number = Some(place);
            }
            self.patterns.push(self.pattern(name));
        }
        (self.patterns, self.class_of)
    }

    /// The files that were not taken out.
    fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.works.len()).filter(|&file| self.class_of[file] == 0)
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
        let dense = self.left().filter(|&file| gain_s(&self.works[file], &rest) > 0.0);
        dense.map(|file| gain_s(&self.works[file], &rest)).sum::<f64>() > self.least_s
    }

    /// The class with the largest gain that surely differs from the other files and can be planned
    /// apart from them.
    fn next(&self) -> Option<Name> {
        let (rest, mut classes) = (self.rest(), self.all_classes());
        // There are many classes, one of which could differ by chance.
        let evidence = EVIDENCE + (classes.len() as f64).ln();
        let gain_s = |class: &Class| gain_s(&class.work, &rest);
        classes.retain(|class| {
            let differs = class.work.differs(&without(&rest, &class.work), self.one_s);
            gain_s(class).abs() > self.least_s && differs >= evidence
        });
        // Each of two files has the same gain. The one with more work per byte comes first.
        classes.sort_by(|one, other| {
            let size = |class: &Class| gain_s(class).abs() as f32;
            size(other).total_cmp(&size(one)).then(gain_s(other).total_cmp(&gain_s(one)))
        });
        classes.into_iter().take(TRIES).find(|class| self.is_apart(class, &rest)).map(|class| class.name)
    }

    /// Every file that is left, and all of them with the same number in a place.
    fn all_classes(&self) -> Vec<Class> {
        let file = |file| Class { name: Name::File(file), work: self.works[file] };
        let mut all: Vec<Class> = self.left().map(file).collect();
        let is_possible = |place: &usize| self.number.is_none_or(|number| number == *place);
        for place in (0..numbers_of(&self.set.pattern).len()).filter(is_possible) {
            let mut known: HashMap<&str, usize> = HashMap::new();
            for file in self.left() {
                let Some(number) = number(&self.set.files[file].name, place) else { continue };
                match known.get(number) {
                    Some(&class) => all[class].work.join(self.works[file]),
                    None => {
                        known.insert(number, all.len());
                        all.push(Class { name: Name::Number(place, file), work: self.works[file] });
                    }
                }
            }
        }
        all
    }

    /// Whether a class has this file.
    fn has(&self, name: Name, file: usize) -> bool {
        let number = |place, file: usize| number(&self.set.files[file].name, place);
        match name {
            Name::File(one) => one == file,
            Name::Number(place, first) => number(place, first) == number(place, file),
        }
    }

    /// The pattern of a class.
    fn pattern(&self, name: Name) -> String {
        let (pattern, files) = (&self.set.pattern, &self.set.files);
        match name {
            Name::File(file) => {
                let anywhere = if pattern.starts_with("**") { "**" } else { "" };
                format!("{anywhere}{}", escape(&files[file].name))
            }
            Name::Number(place, file) => {
                with_number(pattern, place, number(&files[file].name, place).unwrap_or_default())
            }
        }
    }

    /// Whether the class and the other files can be planned one after the other. The samples must
    /// show how they differ, and the same processes must use both: those that use one part while
    /// other processes use the other one would seem to wait for them.
    fn is_apart(&self, class: &Class, rest: &Work) -> bool {
        let members: Vec<bool> = (0..self.works.len()).map(|file| self.has(class.name, file)).collect();
        let (mut sampled_s, mut apart_s, mut has_sample) = ([0.0; 2], 0.0, [false; 2]);
        for group in &self.set.groups {
            let (mut work_s, mut processes) = ([0.0; 2], [HashSet::new(), HashSet::new()]);
            for request in group.sample.iter().filter(|request| self.class_of[request.file as usize] == 0) {
                let part = usize::from(members[request.file as usize]);
                work_s[part] += self.sampled_s(group, request);
                processes[part].insert(request.process);
                has_sample[part] = true;
            }
            let of_both = processes[0].union(&processes[1]).count();
            let together = |count: usize| count.clamp(1, group.procs.max(1) as usize) as f64;
            for part in [0, 1] {
                sampled_s[part] += work_s[part];
                apart_s += work_s[part] * together(of_both) / together(processes[part].len());
            }
        }
        let all_s = sampled_s[0] + sampled_s[1];
        let seen = Work { work_s: sampled_s[1] / all_s * rest.work_s, ..class.work };
        let (seen_s, gain_s) = (gain_s(&seen, rest), gain_s(&class.work, rest));
        let is_shown = has_sample == [true; 2] && (seen_s - gain_s).abs() <= gain_s.abs() / 2.0;
        is_shown && apart_s <= STRETCH_MAX * all_s
    }

    /// The work of the requests that a sampled one stands for.
    fn sampled_s(&self, group: &Group, request: &Request) -> f64 {
        group.weight(group.sample.len()) * work_s(self.place, group.op, request.access(), request.size)
    }
}

/// What it saves, in seconds of work, if some of the files get the fast servers rather than an equal
/// part of each, where these servers have just the space for them; negative if the others should get
/// them.
fn gain_s(some: &Work, all: &Work) -> f64 {
    some.work_s - all.work_s * some.stored / all.stored.max(1.0)
}

/// The work on the other files.
fn without(all: &Work, some: &Work) -> Work {
    Work { work_s: (all.work_s - some.work_s).max(0.0), stored: (all.stored - some.stored).max(0.0) }
}

/// The digits of a number in a path. A set's patterns have `<n>` for the first numbers of the paths.
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

/// The parts of a set with these patterns. `class_of` has the index of each file's pattern.
fn parts(set: FileSet, (patterns, class_of): (Vec<String>, Vec<u8>)) -> Vec<FileSet> {
    if patterns.len() == 1 {
        return vec![set];
    }
    let FileSet { files, groups, private, mapped, present, .. } = set;
    let part = |pattern| FileSet { pattern, private, mapped, present: present.clone(), ..FileSet::default() };
    let mut parts: Vec<FileSet> = patterns.into_iter().map(part).collect();
    let mut place_of = Vec::with_capacity(files.len());
    for (file, &class) in files.into_iter().zip(&class_of) {
        let part = &mut parts[usize::from(class)];
        place_of.push((usize::from(class), part.files.len() as u32));
        part.files.push(file);
    }
    for group in groups {
        split(group, &place_of, &mut parts);
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
