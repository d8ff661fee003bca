//! A candidate layout for a file set, and its predicted cost.

use std::borrow::Cow;

use stripewise_cluster::{CopySpec, Overlay, Spread};
use stripewise_layout::Layout;
use stripewise_model::Cost;

use crate::form::Form;
use crate::layouts::Layouts;
use crate::spread::layout_of;
use crate::workload::{File, FileSet};

/// One way to lay out the files of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its shape and place.
    pub form: Form,
    /// The text of `form`, unique within a set: `1-DH`, `2-D g=2`, `stripe 64K on ssd`, ...
    pub name: String,
    /// The planner that proposed it (`overall`, `psa`, ...), or `present`.
    pub scheme: &'static str,
    /// One layout for all files, or several over which the files are spread.
    pub layouts: Layouts,
    /// How a file picks one of several layouts.
    pub spread: Spread,
    /// Per file of the set: the index of its layout, if known. Takes precedence over `spread`.
    pub by_file: Option<Vec<u32>>,
    /// The extra copies, if any; `layouts` then describe the original.
    pub overlay: Option<Overlay>,
    /// Users look for this one: a layout of the papers over all servers, or a planner's own choice.
    /// It is replayed in full even if it is far from the best.
    pub notable: bool,
    /// Further facts for the user, as sentences without a full stop.
    pub remarks: Vec<String>,
}

impl Candidate {
    /// A candidate with one layout for all files.
    pub fn single(scheme: &'static str, form: impl Into<Form>, layout: Layout) -> Self {
        Self::spread(scheme, form, vec![layout], Spread::default())
    }

    /// A candidate with several layouts, over which the files are spread.
    pub fn spread(
        scheme: &'static str,
        form: impl Into<Form>,
        layouts: impl Into<Layouts>,
        spread: Spread,
    ) -> Self {
        let (form, layouts) = (form.into(), layouts.into());
        let name = form.to_string();
        let (by_file, overlay, notable, remarks) = (None, None, false, Vec::new());
        Self { form, name, scheme, layouts, spread, by_file, overlay, notable, remarks }
    }

    /// The same files with further copies, under a name of its own. Such candidates are few, and
    /// they matter.
    pub fn with_copies(&self, scheme: &'static str, name: String, overlay: Overlay) -> Self {
        let form = name.clone().into();
        Self { form, name, scheme, overlay: Some(overlay), notable: true, ..self.clone() }
    }

    /// Whether a user means it with this name, which need not tell where the files go on if they do
    /// not fit (`1-DH` for `1-DH, then hdd`).
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.form.title() == name
    }

    /// The extra copies; empty if there are none.
    pub fn copies(&self) -> &[CopySpec] {
        self.overlay.as_ref().map_or(&[], |overlay| &overlay.copies)
    }

    /// Per file of the set: the index of its layout.
    pub fn layout_of(&self, set: &FileSet) -> Vec<u32> {
        self.by_file.clone().unwrap_or_else(|| layout_of(set, &self.spread, self.layouts.len()))
    }

    /// Copy 0.
    pub fn original(&self, set: &FileSet) -> Placement<'static> {
        Placement { layouts: Cow::Owned(self.layouts.build()), layout_of: self.layout_of(set) }
    }

    /// All copies, the original first.
    pub fn placements(&self, set: &FileSet) -> Vec<Placement<'_>> {
        let extra = self.copies().iter().map(|copy| {
            let layout_of = layout_of(set, &copy.spread, copy.layouts.len());
            Placement { layouts: Cow::Borrowed(&copy.layouts[..]), layout_of }
        });
        std::iter::once(self.original(set)).chain(extra).collect()
    }

    /// Number of distinct targets in the layouts of all copies.
    pub fn targets(&self) -> usize {
        let of_copies = self.copies().iter().flat_map(|copy| &copy.layouts).flat_map(Layout::targets);
        let mut targets: Vec<u32> = of_copies.chain(self.layouts.targets()).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.len()
    }
}

/// The candidates of a planner.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// At least one candidate.
    pub candidates: Vec<Candidate>,
    /// Index of the only candidate that competes; `None`: all of them compete.
    pub pick: Option<usize>,
}

impl Proposal {
    /// Drops the candidates that `admit` refuses. If the pick is among them, all remaining
    /// candidates compete. Returns the names of the dropped ones with the reasons.
    pub(crate) fn retain<E>(&mut self, admit: impl Fn(&mut Candidate) -> Result<(), E>) -> Vec<(String, E)> {
        let (mut kept, mut pick, mut dropped) = (Vec::new(), None, Vec::new());
        for (index, mut candidate) in std::mem::take(&mut self.candidates).into_iter().enumerate() {
            match admit(&mut candidate) {
                Ok(()) => {
                    pick = pick.or((self.pick == Some(index)).then_some(kept.len()));
                    kept.push(candidate);
                }
                Err(reason) => dropped.push((candidate.name, reason)),
            }
        }
        *self = Self { candidates: kept, pick };
        dropped
    }
}

/// One copy of all files of a set.
pub struct Placement<'a> {
    /// The layouts of the files.
    pub layouts: Cow<'a, [Layout]>,
    /// Per file: index of its layout.
    pub layout_of: Vec<u32>,
}

impl Placement<'_> {
    /// The layout of a file.
    pub fn layout(&self, file: usize) -> &Layout {
        &self.layouts[self.layout_of[file] as usize]
    }
}

/// Bytes of files on each of `targets` targets. The file with index f has
/// `layouts[layout_of[f]]`.
pub fn bytes_by_target(files: &[File], (layouts, layout_of): (&[Layout], &[u32]), targets: usize) -> Vec<u64> {
    Alike::new(files, layout_of).bytes_by_target(layouts, targets, u64::MAX)
}

/// Per index of a layout: the sizes of its files, ascending, each with the number of such files.
pub struct Alike(Vec<Vec<(u64, u64)>>);

impl Alike {
    /// Groups files by size. The file with index f has the layout with index `layout_of[f]`.
    pub fn new(files: &[File], layout_of: &[u32]) -> Self {
        let layouts = layout_of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut alike = vec![Vec::new(); layouts];
        for (file, &layout) in files.iter().zip(layout_of) {
            alike[layout as usize].push((file.size, file.count()));
        }
        for sizes in &mut alike {
            sizes.sort_unstable();
            sizes.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        }
        Self(alike)
    }

    /// Bytes of the files on each of `targets` targets if every file ended at `boundary`.
    pub fn bytes_by_target(&self, layouts: &[Layout], targets: usize, boundary: u64) -> Vec<u64> {
        let mut bytes = vec![0; targets];
        for (layout, sizes) in layouts.iter().zip(&self.0) {
            let cut: Vec<(u64, u64)> = sizes.iter().map(|&(size, count)| (size.min(boundary), count)).collect();
            layout.add_object_sizes(&cut, &mut bytes);
        }
        bytes
    }
}

/// How much of the trace was replayed ([`crate::elapsed::replay`]) to find `elapsed_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// About 2000 requests per group: this candidate was far from the best.
    Short,
    /// At least 8000 requests per group, or all of them.
    #[default]
    Full,
}

/// A candidate and its predicted cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The candidate.
    pub candidate: Candidate,
    /// The papers' overall cost, term by term, summed over all requests.
    pub cost: Cost,
    /// Expected wall-clock seconds, including `client_s`.
    pub elapsed_s: f64,
    /// The part of them in which calls and requests keep the client busy and no server works;
    /// `None` if that was not measured.
    pub client_s: Option<f64>,
    /// How much of the trace was replayed to find `elapsed_s`.
    pub method: Method,
    /// Target index of the busiest server.
    pub busiest: u32,
    /// Its busy time, seconds.
    pub busiest_s: f64,
    /// Mean number of servers that a request touches.
    pub servers_per_request: f64,
    /// Background copying that this candidate causes.
    pub background: Background,
}

/// Copying between the copies of files that serves no request: lazy synchronization, write-back and
/// fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Background {
    /// Bytes that are read from one copy and written to another.
    pub bytes: u64,
    /// Seconds that the copying keeps the busiest server busy, or that it takes under the bandwidth
    /// limit of background copying, whichever is longer.
    pub seconds: f64,
}

impl Judged {
    /// A candidate of which nothing is known.
    pub(crate) fn unknown(candidate: Candidate) -> Self {
        Self {
            candidate,
            cost: Cost::default(),
            elapsed_s: f64::INFINITY,
            client_s: None,
            method: Method::Short,
            busiest: 0,
            busiest_s: 0.0,
            servers_per_request: 0.0,
            background: Background::default(),
        }
    }

    /// The sum of the cost's terms, process-seconds.
    pub fn predicted_s(&self) -> f64 {
        self.cost.total_s()
    }
}
