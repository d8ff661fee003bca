//! The files of a trace while its requests are collected: their sizes and uses, and the names of
//! those that their sets list.

use std::borrow::Cow;
use std::sync::Arc;

use stripewise_cluster::pattern::escape;
use stripewise_trace::summary::Breadth;
use stripewise_trace::{Classifier, FileNames, Request as Call, pattern_of};

use crate::workload::{File, FileSet, FileUse};

/// Maximum number of listed files of all sets together, besides one of each, if there are too many
/// to list all.
const LISTED_OF_MANY: usize = 512 * 1024;
/// The same of one set.
const LISTED_OF_SET: usize = 64 * 1024;

/// What is known of all files. Memory: 12 bytes for each, and some 100 for each listed one.
///
/// Of files that are not too many all are listed, with their uses. Of more, each set lists its
/// first ones. These stand for the others in turn: files that are used together often follow each
/// other, and should not become one.
pub(super) struct Files {
    /// Maximum number of listed files of a set.
    listed_max: usize,
    /// The names of the listed files of each set, as absolute paths.
    names: Vec<Vec<Arc<str>>>,
    /// The pattern of each set.
    patterns: Vec<String>,
    /// Largest size seen, bytes, by file.
    sizes: Vec<u64>,
    /// By file: the process that moved data, [`NONE`] or [`SEVERAL`].
    users: Vec<u32>,
    /// A bit for each file that was opened.
    opened: Vec<u64>,
    /// A bit for each file whose name was removed, until it is opened again.
    removed: Vec<u64>,
    /// By file: all requests that moved data; empty if there are too many files.
    uses: Vec<FileUse>,
}

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

impl Files {
    /// The files with these names, in the groups of the classifier. Up to `all_max` files are all
    /// listed.
    pub(super) fn new<F: FileNames + ?Sized>(
        files: &F,
        classifier: &Classifier,
        all_max: usize,
    ) -> Result<Self, F::Error> {
        let (count, breadths) = (files.count(), classifier.groups().collect::<Vec<Breadth>>());
        let listed_max = match count <= all_max {
            true => usize::MAX,
            false => (LISTED_OF_MANY / breadths.len()).clamp(1, LISTED_OF_SET),
        };
        let mut names = vec![Vec::new(); breadths.len()];
        let mut patterns = vec![String::new(); breadths.len()];
        let mut file = 0;
        files.for_each(&mut |name| {
            let group = classifier.group(file) as usize;
            file += 1;
            let listed: &mut Vec<Arc<str>> = &mut names[group];
            if listed.is_empty() {
                patterns[group] = pattern(name, breadths[group]);
            }
            if listed.len() < listed_max {
                listed.push(absolute(name).into());
            }
        })?;
        let uses = if listed_max == usize::MAX { vec![FileUse::default(); count] } else { Vec::new() };
        Ok(Self {
            listed_max,
            names,
            patterns,
            sizes: vec![0; count],
            users: vec![NONE; count],
            opened: vec![0; count.div_ceil(64)],
            removed: vec![0; count.div_ceil(64)],
            uses,
        })
    }

    /// Notes that a file has at least this size, bytes.
    pub(super) fn grow(&mut self, file: u32, size: u64) {
        let known = &mut self.sizes[file as usize];
        *known = size.max(*known);
    }

    /// Notes that a file is opened that has this size, bytes. Returns whether that creates it: it
    /// is empty, and nothing has used it before or its name was removed since.
    pub(super) fn open(&mut self, file: u32, size: u64) -> bool {
        let (index, bit) = (file as usize / 64, 1u64 << (file % 64));
        let is_first = self.opened[index] & bit == 0 && self.users[file as usize] == NONE;
        let is_removed = self.removed[index] & bit != 0;
        self.opened[index] |= bit;
        self.removed[index] &= !bit;
        self.grow(file, size);
        if is_removed { size == 0 } else { is_first && self.sizes[file as usize] == 0 }
    }

    /// Notes that a file's name is removed.
    pub(super) fn remove(&mut self, file: u32) {
        self.removed[file as usize / 64] |= 1u64 << (file % 64);
    }

    /// Notes a request that moved data.
    #[inline]
    pub(super) fn add(&mut self, call: &Call) {
        self.grow(call.file, call.offset.saturating_add(call.bytes()));
        let user = &mut self.users[call.file as usize];
        *user = if [NONE, call.process].contains(user) { call.process } else { SEVERAL };
    }

    /// The use of a file, if it is kept.
    #[inline]
    pub(super) fn use_of(&mut self, file: u32) -> Option<&mut FileUse> {
        self.uses.get_mut(file as usize)
    }

    /// The sets without their requests, and the index of each file in its set: of one that is not
    /// listed, that of the file that stands for it.
    pub(super) fn into_sets(self, classifier: &Classifier) -> (Vec<FileSet>, Vec<u32>) {
        let Self { listed_max, names, patterns, sizes, mut users, uses, .. } = self;
        let set = |(names, pattern): (Vec<Arc<str>>, String)| FileSet {
            pattern,
            uses: Vec::with_capacity(if uses.is_empty() { 0 } else { names.len() }),
            private: true,
            files: names.into_iter().map(|name| File::new(name, 0)).collect(),
            ..FileSet::default()
        };
        let mut sets: Vec<FileSet> = names.into_iter().zip(patterns).map(set).collect();
        let mut counts = vec![0usize; sets.len()];
        for (file, (size, user)) in (0..).zip(sizes.iter().zip(&mut users)) {
            let group = classifier.group(file) as usize;
            let (set, index) = (&mut sets[group], counts[group] % listed_max);
            set.private &= *user != SEVERAL;
            // Each sum becomes a mean below.
            let listed = &mut set.files[index];
            listed.size = listed.size.saturating_add(*size);
            listed.others += u32::from(counts[group] >= listed_max);
            set.uses.extend(uses.get(file as usize));
            counts[group] += 1;
            // The index takes the place of the user, which is known by now.
            *user = index as u32;
        }
        for file in sets.iter_mut().flat_map(|set| &mut set.files) {
            file.size = file.size.div_ceil(file.count());
        }
        (sets, users)
    }
}

/// The name of a file as an absolute path. Names in synthetic traces may have no directory.
pub(super) fn absolute(name: &str) -> Cow<'_, str> {
    if name.starts_with('/') { name.into() } else { format!("/{name}").into() }
}

/// The pattern of the set of a file. A name that is not absolute matches in any directory.
fn pattern(name: &str, breadth: Breadth) -> String {
    let is_absolute = name.starts_with('/');
    let breadth = match breadth {
        // The absolute path has one more `/`.
        Breadth::Below(depth) if !is_absolute && depth > 0 => Breadth::Below(depth + 1),
        breadth => breadth,
    };
    let pattern = breadth.of(&pattern_of(&escape(&absolute(name))));
    let anywhere = !is_absolute && !pattern.starts_with("**");
    format!("{}{pattern}", if anywhere { "**" } else { "" })
}

/// The wanted ones of some files.
pub(super) struct Wanted<'f, F: ?Sized, W> {
    pub(super) files: &'f F,
    /// Whether a file with this absolute path is wanted.
    pub(super) is_wanted: W,
    /// Number of wanted files.
    pub(super) count: usize,
}

impl<F: FileNames + ?Sized, W: Fn(&str) -> bool> FileNames for Wanted<'_, F, W> {
    type Error = F::Error;

    fn count(&self) -> usize {
        self.count
    }

    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), F::Error> {
        self.files.for_each(&mut |name| {
            if (self.is_wanted)(&absolute(name)) {
                each(name);
            }
        })
    }
}
