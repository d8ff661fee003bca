//! Which sets are divided, and that nothing is lost.

use std::path::Path;

use proptest::prelude::*;
use stripewise_cluster::{Rule, Spread};
use stripewise_model::Op;

use super::*;
use crate::tests::{Random, cluster, counted};
use crate::workload::File;
use crate::{Scheme, sort_rules};

const BLOCK: u64 = 4096;

/// Disks, and SSDs of `ssd` bytes each.
fn disks_and_ssds(ssd: &str) -> Cluster {
    cluster((4, 5e-3, 8e-9), (2, 5e-5, 2e-9), ("1G", ssd), (0.0, 0.0))
}

fn set(pattern: &str, files: &[(String, u64)]) -> FileSet {
    let file = |(name, size): &(String, u64)| File::new(name.as_str(), *size);
    FileSet { pattern: pattern.into(), files: files.iter().map(file).collect(), ..FileSet::default() }
}

/// Random reads of a block by these processes, `count` of each file.
fn reads(set: FileSet, counts: &[u64], process_of: impl Fn(u32, u64) -> u32, procs: u32) -> FileSet {
    let of_file = |(file, &count): (u32, &u64)| {
        let process_of = &process_of;
        (0..count).map(move |number| (file, process_of(file, number)))
    };
    let request = |(file, process)| Request { process, file, size: BLOCK, ..Request::default() };
    let sample: Vec<Request> = (0..).zip(counts).flat_map(of_file).map(request).collect();
    let group = Group { procs, ..Group::of_all(Op::Read, Access::Random, sample) };
    counted(FileSet { groups: vec![group], ..set })
}

fn numbered(count: usize, size: u64) -> Vec<(String, u64)> {
    (0..count).map(|number| (format!("/d/f{number}"), size)).collect()
}

/// The patterns of the parts and the number of their files, if one process reads each file of 1 MiB
/// that often.
fn divided(counts: &[u64]) -> Vec<(String, usize)> {
    let set = reads(set("/d/f<n>", &numbered(counts.len(), 1 << 20)), counts, |_, _| 0, 1);
    parts_of(set)
}

fn parts_of(set: FileSet) -> Vec<(String, usize)> {
    let workload = Workload { file_sets: vec![set] };
    let parts = workload.divided(&disks_and_ssds("512K"), &Options::default()).unwrap().file_sets;
    parts.into_iter().map(|part| (part.pattern, part.files.len())).collect()
}

fn whole(files: usize) -> Vec<(String, usize)> {
    vec![("/d/f<n>".to_owned(), files)]
}

#[test]
fn the_files_with_more_work_become_sets_with_their_names() {
    assert_eq!(divided(&[10, 10, 900, 10]), [("/d/f2".to_owned(), 1), ("/d/f<n>".to_owned(), 3)]);
    let mut parts = divided(&[1, 900, 1, 850, 1, 1, 1]);
    parts.sort();
    assert_eq!(parts, [("/d/f1".to_owned(), 1), ("/d/f3".to_owned(), 1), ("/d/f<n>".to_owned(), 5)]);
    assert_eq!(divided(&[900, 10])[0], ("/d/f0".to_owned(), 1), "the denser one of two is named");
}

#[test]
fn the_files_with_less_work_are_named_if_they_are_fewer() {
    let parts = divided(&[500, 500, 500, 5, 500, 500, 500]);
    assert_eq!(parts, [("/d/f<n>".to_owned(), 6), ("/d/f3".to_owned(), 1)]);
}

#[test]
fn files_that_are_used_alike_stay_one_set() {
    assert_eq!(divided(&[500; 20]), whole(20));
    assert_eq!(divided(&[500, 900, 600, 510, 700]), whole(5), "less than twice as often");
    assert_eq!(divided(&[2, 1, 5, 1, 0, 1]), whole(6), "by chance");
    let mut random = Random(3);
    for requests in [300, 3000, 30_000] {
        let mut counts = vec![0; 300];
        (0..requests).for_each(|_| counts[random.below(300) as usize] += 1);
        assert_eq!(divided(&counts), whole(300), "{requests} requests at random");
    }
}

/// More sets would be planned by kinds.
#[test]
fn division_ends_where_there_are_as_many_sets_as_are_planned_one_by_one() {
    let count = |others: usize| {
        let other = |_| reads(set("/d/g", &[("/d/g".to_owned(), BLOCK)]), &[1], |_, _| 0, 1);
        let divisible = reads(set("/d/f<n>", &numbered(7, 1 << 20)), &[1, 900, 1, 850, 1, 1, 1], |_, _| 0, 1);
        let file_sets = (0..others).map(other).chain([divisible]).collect();
        let workload = Workload { file_sets };
        workload.divided(&disks_and_ssds("512K"), &Options::default()).unwrap().file_sets.len()
    };
    let found = [1, MAX_GROUPS - 2, MAX_GROUPS - 1, MAX_GROUPS].map(count);
    assert_eq!(found, [4, MAX_GROUPS, MAX_GROUPS, MAX_GROUPS + 1]);
}

#[test]
fn a_million_files_that_are_used_alike_stay_one_set() {
    let mut random = Random(5);
    let mut counts = vec![0; 1_000_000];
    (0..1_000_000).for_each(|_| counts[random.below(1_000_000) as usize] += 1);
    let set = reads(set("/d/f<n>", &numbered(1_000_000, BLOCK)), &counts, |_, _| 0, 1);
    assert_eq!(parts_of(set), whole(1_000_000));
}

#[test]
fn few_of_very_many_differing_files_are_taken_out() {
    let counts: Vec<u64> = (1..=2000u64).map(|rank| 20_000 / rank).collect();
    let parts = divided(&counts);
    assert_eq!(parts.len(), TAKEN_MAX + 1);
    assert!(
        parts.contains(&("/d/f0".to_owned(), 1)) && parts.contains(&("/d/f<n>".to_owned(), 2000 - TAKEN_MAX))
    );
}

#[test]
fn what_hardly_counts_does_not_divide() {
    let small = reads(set("/d/f<n>", &numbered(3, 1 << 20)), &[1, 40, 1], |_, _| 0, 1);
    assert_eq!(parts_of(small.clone()).len(), 2);
    let large = reads(set("/e/g", &[("/e/g".into(), 1 << 20)]), &[10_000], |_, _| 0, 1);
    let both = Workload { file_sets: vec![large, small] };
    assert_eq!(both.divided(&disks_and_ssds("1M"), &Options::default()).unwrap().file_sets.len(), 2);
}

#[test]
fn sets_are_divided_only_where_space_is_scarce() {
    let set = || reads(set("/d/f<n>", &numbered(3, 1 << 20)), &[10, 900, 10], |_, _| 0, 1);
    let parts = |ssd: &str, options: &Options| {
        Workload { file_sets: vec![set()] }.divided(&disks_and_ssds(ssd), options).unwrap().file_sets.len()
    };
    assert_eq!(parts("1M", &Options::default()), 2);
    assert_eq!(parts("2M", &Options::default()), 1);
    let psa = Scheme::Planner("PSA".into());
    assert_eq!(parts("1M", &Options { scheme: psa, ..Options::default() }), 1, "as its paper has it");
}

/// Steps of 4 ranks, the newest of which is read again.
#[test]
fn files_with_the_same_number_become_one_set() {
    let names = |step: u32, rank: u32| (format!("/d/step{step:03}/rank{rank}"), 1 << 20);
    let files: Vec<_> = (0..6).flat_map(|step| (0..4).map(move |rank| names(step, rank))).collect();
    let counts: Vec<u64> = (0..24).map(|file| if file >= 20 { 500 } else { 5 }).collect();
    let set = reads(set("/d/step<n>/rank<n>", &files), &counts, |file, _| file % 4, 4);
    let parts = parts_of(FileSet { private: true, ..set });
    assert_eq!(parts, [("/d/step005/rank<n>".to_owned(), 4), ("/d/step<n>/rank<n>".to_owned(), 20)]);
}

#[test]
fn files_of_a_directory_are_named_whatever_their_names_have() {
    let names = ["/d/a", "/d/b*<n>", "/d/c\\7"].map(|name| (name.to_owned(), 1 << 20));
    for (counts, expected) in [([9, 900, 9], "/d/b\\*\\<n>"), ([9, 9, 900], "/d/c\\\\7")] {
        let parts = parts_of(reads(set("/d/*", &names), &counts, |_, _| 0, 1));
        assert_eq!(parts, [(expected.to_owned(), 1), ("/d/*".to_owned(), 2)]);
        let parts = parts_of(reads(set("**/d/*", &names), &counts, |_, _| 0, 1));
        assert_eq!(parts[0].0, format!("**{expected}"), "a name that is not absolute");
    }
}

/// One set after the other, the processes of one would wait for those of the other.
#[test]
fn files_of_different_processes_stay_one_set() {
    let counts = [100, 1000, 100, 100];
    let files = || set("/d/f<n>", &numbered(4, 1 << 20));
    let own = reads(files(), &counts, |file, _| file, 4);
    assert_eq!(parts_of(FileSet { private: true, ..own }), whole(4));
    let shared = reads(files(), &counts, |_, number| number as u32 % 4, 4);
    assert_eq!(parts_of(shared).len(), 2);
    let in_turns = reads(files(), &counts, |file, _| file, 1);
    assert_eq!(parts_of(in_turns).len(), 2, "one process at a time");
}

/// The sample of a long trace may have only some of many files.
#[test]
fn a_sample_that_shows_too_little_does_not_divide() {
    let mut set = reads(set("/d/f<n>", &numbered(3, 1 << 20)), &[100, 5000, 100], |_, _| 0, 1);
    set.groups[0].sample.retain(|request| request.file != 1);
    assert_eq!(parts_of(set), whole(3));
}

#[test]
fn a_part_of_a_mixed_group_is_in_order_if_its_requests_are() {
    let mut set = reads(set("/d/f<n>", &numbered(2, 1 << 20)), &[300, 200], |_, _| 0, 1);
    set.groups[0]
        .sample
        .iter_mut()
        .filter(|request| request.file == 1)
        .for_each(|request| request.past.run = 1);
    let whole = Workload { file_sets: vec![counted(set)] };
    let mut cluster = crate::tests::with_order(disks_and_ssds("512K"));
    cluster.classes.values_mut().for_each(|class| class.read.sequential.startup_s = 5e-5);
    let parts = whole.divided(&cluster, &Options::default()).unwrap().file_sets;
    let accesses: Vec<_> = parts.iter().map(|part| (part.pattern.as_str(), part.groups[0].access)).collect();
    assert_eq!(accesses, [("/d/f0", Access::Random), ("/d/f<n>", Access::Sequential)]);
}

#[test]
fn numbers_in_names_and_patterns() {
    assert_eq!(number("/d12/x.007", 0), Some("12"));
    assert_eq!(number("/d12/x.007", 1), Some("007"));
    assert_eq!(number("/d12/x.007", 2), None);
    assert_eq!(with_number("/d<n>/\\<n>/\\\\<n>", 1, "5"), "/d<n>/\\<n>/\\\\5");
    assert_eq!(numbers_of("/<n>\\<n><n"), [1]);
}

/// Files with one or two numbers, or with letters, and groups of which samples were kept.
fn workloads() -> impl Strategy<Value = FileSet> {
    let kinds = [("/d/f<n>", 0u32), ("/d/s<n>/r<n>", 1), ("/d<n>/*", 2), ("**/d/f<n>", 0)];
    let files = prop::collection::vec((1u64..3000, prop_oneof![3 => 0u64..4, 1 => 200u64..600]), 2..14);
    let groups = prop::collection::vec((1u64..9, any::<bool>(), 1u64..40, any::<bool>()), 1..4);
    let sets = (0..kinds.len(), files, groups).prop_map(move |(kind, files, groups)| {
        let (pattern, names) = kinds[kind];
        let name = |index: usize| match names {
            0 => format!("/d/f{index:03}"),
            1 => format!("/d/s{}/r{}", index / 3, index % 3),
            _ => format!("/d{}/{}", index % 2, char::from(b'a' + index as u8)),
        };
        let sized: Vec<_> =
            files.iter().enumerate().map(|(index, (kib, _))| (name(index), kib << 10)).collect();
        let counts: Vec<u64> = files.iter().map(|(_, count)| *count).collect();
        let mut all = reads(set(pattern, &sized), &counts, |file, number| (file + number as u32) % 2, 2);
        all.uses.clear();
        let one = all.groups.remove(0);
        all.groups = (groups.into_iter())
            .map(|(times, is_write, size, is_alike)| {
                let mut group = one.clone();
                group.op = if is_write { Op::Write } else { Op::Read };
                group.sample.retain(|request| is_alike || request.file % 2 == 0);
                group.sample.iter_mut().for_each(|request| request.size = size * (1 + request.file as u64));
                group.count = group.sample.len() as u64 * times + times / 2;
                group.bytes = group.sample.iter().map(|request| request.size).sum::<u64>() * times + times % 3;
                group
            })
            .filter(|group| !group.sample.is_empty())
            .collect();
        counted(all)
    });
    sets.prop_filter("there are requests", |set| !set.groups.is_empty())
}

/// The totals of a group that all parts together must have.
fn totals(sets: &[FileSet]) -> Vec<(Op, u64, u64, usize)> {
    let groups = || sets.iter().flat_map(|set| &set.groups);
    let of = |op| {
        let these = || groups().filter(move |group| group.op == op);
        let requests = these().map(|group| group.count).sum();
        (op, requests, these().map(|group| group.bytes).sum(), these().map(|group| group.sample.len()).sum())
    };
    vec![of(Op::Read), of(Op::Write)]
}

/// Rules for these sets in the order in which they count.
fn rules(sets: &[FileSet]) -> Vec<Rule> {
    let rule = |set: &FileSet| Rule {
        pattern: set.pattern.clone(),
        scheme: String::new(),
        reason: String::new(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts: Vec::new(),
        spread: Spread::default(),
        overlay: None,
    };
    let mut rules: Vec<Rule> = sets.iter().map(rule).collect();
    sort_rules(&mut rules);
    rules
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 400 } else { 4000 }))]

    #[test]
    fn parts_have_all_files_and_requests_of_their_set(set in workloads()) {
        let whole = Workload { file_sets: vec![set] };
        let divided = || whole.clone().divided(&disks_and_ssds("64K"), &Options::default()).unwrap().file_sets;
        let (parts, again) = (divided(), divided());
        let names = |sets: &[FileSet]| {
            let mut files: Vec<_> =
                sets.iter().flat_map(|set| &set.files).map(|file| (file.name.clone(), file.size)).collect();
            files.sort();
            files
        };
        prop_assert_eq!(names(&parts), names(&whole.file_sets));
        prop_assert_eq!(totals(&parts), totals(&whole.file_sets));
        prop_assert!(parts.len() <= TAKEN_MAX + 1);
        prop_assert!(parts.iter().flat_map(|part| &part.groups).all(|group| group.count >= group.sample.len() as u64));
        prop_assert!(parts.iter().all(|part| !part.groups.is_empty() && part.uses.is_empty()));
        prop_assert_eq!(format!("{parts:?}"), format!("{again:?}"));
        // Each file gets the rule of its part.
        let rules = rules(&parts);
        for part in &parts {
            for file in &part.files {
                let first = rules.iter().find(|rule| rule.matches(Path::new(&*file.name)));
                prop_assert_eq!(first.map(|rule| rule.pattern.as_str()), Some(part.pattern.as_str()));
            }
        }
    }
}
