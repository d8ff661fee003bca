//! The files of a set that exist, and how many of their bytes a change of layout moves.

use std::path::Path;

use stripewise_cluster::Cluster;
use stripewise_layout::Layout;

use crate::candidate::Candidate;
use crate::workload::{Existing, ExistingFile, FileSet};

/// Bytes of the set's existing files that would have to be moved into the layouts of a candidate:
/// all bytes of each file that has another layout now.
pub(crate) fn moved_bytes(set: &FileSet, candidate: &Candidate, cluster: &Cluster) -> u64 {
    let Existing { files, layouts } = &set.existing;
    let sum = |sum: u64, file: &ExistingFile| sum.saturating_add(file.size);
    if layouts.is_empty() || candidate.overlay.is_some() {
        return files.iter().fold(0, sum);
    }
    // As bytes are placed: a file system spreads stripes over the servers of a pool by itself.
    let mut folding = cluster.has_pools().then(|| cluster.clone());
    let mut placed = |layout: &Layout| match &mut folding {
        Some(cluster) => cluster.fold(layout).ok(),
        None => Some(layout.clone()),
    };
    let present: Vec<_> = layouts.iter().map(&mut placed).collect();
    let planned: Vec<_> = candidate.layouts.build().iter().map(placed).collect();
    let is_there = |file: &&ExistingFile| {
        let index = candidate.spread.index(&set.pattern, Path::new(&*file.name), planned.len());
        let (Some(now), Some(then)) = (file.layout, index) else { return false };
        present[now as usize].is_some() && present[now as usize] == planned[then]
    };
    files.iter().filter(|file| !is_there(file)).fold(0, sum)
}
