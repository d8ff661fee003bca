//! Spreads the files of a set over several layouts so that concurrent requests contend for as few
//! servers as possible.

use std::path::Path;

use stripewise_cluster::Spread;

use crate::workload::FileSet;

/// The spread under which the busiest layout gets the fewest of the requests that are issued at
/// about the same time.
///
/// The candidates are every `<n>` of the pattern and the hash of the path. The stride of an `<n>`
/// is the greatest common divisor of the differences of its values (files 0, 4, 8, ... are
/// neighbors). Of equal candidates the last field wins, because the last number usually counts
/// fastest (`step12/rank3`).
pub fn choose_spread(set: &FileSet, layouts: usize) -> Spread {
    let hashed = Spread::default();
    if layouts <= 1 {
        return hashed;
    }
    let fields = set.pattern.matches("<n>").count();
    let by_field = (0..fields).rev().map(|field| Spread { field: Some(field), stride: stride(set, field) });
    let candidates = by_field.chain([hashed]);
    candidates.min_by_key(|spread| crowding(set, &layout_of(set, spread, layouts), layouts)).unwrap_or(hashed)
}

/// Per file of the set: index of its layout.
pub fn layout_of(set: &FileSet, spread: &Spread, layouts: usize) -> Vec<u32> {
    let index = |name: &str| spread.index(&set.pattern, Path::new(name), layouts).unwrap_or(0) as u32;
    if layouts <= 1 {
        vec![0; set.files.len()]
    } else {
        set.files.iter().map(|file| index(&file.name)).collect()
    }
}

/// A spread that was chosen for another set with as many `<n>`, with the stride of this one.
pub fn spread_for(chosen: &Spread, set: &FileSet) -> Spread {
    Spread { stride: chosen.field.map_or(chosen.stride, |field| stride(set, field)), ..*chosen }
}

/// The greatest common divisor of the differences of a field's values; 1 if all values are equal.
fn stride(set: &FileSet, field: usize) -> u64 {
    // With stride 1 and this many layouts, the index is the number itself (modulo 2^63).
    let all = Spread { field: Some(field), stride: 1 };
    let numbers = set.files.iter().map(|file| all.index(&set.pattern, Path::new(&*file.name), usize::MAX));
    let mut numbers = numbers.map(|number| number.unwrap_or(0) as u64);
    let first = numbers.next().unwrap_or(0);
    numbers.fold(0, |divisor, number| gcd(divisor, number.abs_diff(first))).max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Number of neighboring requests that are taken to be issued at about the same time.
const RUN: usize = 256;

/// Number of requests that the fullest layout gets, summed over runs of neighboring requests.
fn crowding(set: &FileSet, layout_of: &[u32], layouts: usize) -> u64 {
    let mut sum = 0;
    let mut counts = vec![0u64; layouts];
    for run in set.groups.iter().flat_map(|group| group.sample.chunks(RUN)) {
        counts.fill(0);
        run.iter().for_each(|request| counts[layout_of[request.file as usize] as usize] += 1);
        sum += counts.iter().max().copied().unwrap_or(0);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{File, Group, Request};
    use stripewise_model::{Access, Op};

    fn set(pattern: &str, names: impl Iterator<Item = String>) -> FileSet {
        let files: Vec<File> = names.map(|name| File::new(name, 1)).collect();
        let request = |file| Request { process: file, file, size: 1, ..Request::default() };
        let sample: Vec<Request> = (0..files.len() as u32).map(request).collect();
        let group = Group { procs: 16, ..Group::of_all(Op::Read, Access::Random, sample) };
        FileSet {
            pattern: pattern.into(),
            files,
            groups: vec![group],
            private: true,
            mapped: false,
            ..FileSet::default()
        }
    }

    #[test]
    fn numbers_in_steps_are_spread_evenly() {
        let set = set("/out.<n>", (0..16).map(|n| format!("/out.{:04}", n * 8 + 3)));
        let spread = choose_spread(&set, 4);
        assert_eq!(spread, Spread { field: Some(0), stride: 8 });
        let mut counts = [0; 4];
        layout_of(&set, &spread, 4).iter().for_each(|&layout| counts[layout as usize] += 1);
        assert_eq!(counts, [4; 4]);
    }

    #[test]
    fn the_field_that_tells_concurrent_files_apart_is_taken() {
        // 20 steps one after the other, each of 256 ranks.
        let names = (0..20).flat_map(|step| (0..256).map(move |rank| format!("/s{}/r{rank}", step * 100)));
        assert_eq!(choose_spread(&set("/s<n>/r<n>", names), 8), Spread { field: Some(1), stride: 1 });
        // 256 members of an ensemble, each with steps of its own.
        let names = (0..20).flat_map(|step| (0..256).map(move |member| format!("/m{member}/s{step}")));
        assert_eq!(choose_spread(&set("/m<n>/s<n>", names), 8), Spread { field: Some(0), stride: 1 });
    }

    #[test]
    fn names_without_numbers_are_hashed() {
        let names = ["/a", "/b", "/c"].map(str::to_owned);
        assert_eq!(choose_spread(&set("/*", names.into_iter()), 2), Spread::default());
    }
}
