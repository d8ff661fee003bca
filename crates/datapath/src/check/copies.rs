//! Checks the extent map of a file with several copies, and whether its copies are there.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use stripewise_extents::{CopyId, MapError, MapSpec, Mask, Span, repair};
use stripewise_sys::Mode;
use stripewise_target::{Access, CACHED, ObjectSet};

use super::findings::{Finding, Kind, Options, Run};
use super::looked::Looked;
use crate::error::{FileError, FileResult as Result};
use crate::inspect::{CopyState, Inspection, Lease, MapState, inspect};
use crate::manifest::CopyRef;
use crate::runtime::Runtime;

/// Block size assumed for the targets' file systems, bytes.
const BLOCK_BYTES: u64 = 4096;
const NAMED: usize = 8;

struct Checked<'a> {
    runtime: &'a Runtime,
    options: Options,
    file: &'a Looked,
    findings: &'a mut Vec<Finding>,
}

/// Checks the map and the extra copies of a file whose original is there.
pub(super) fn check(run: &mut Run<'_>, file: &Looked) {
    let Run { runtime, options, findings } = run;
    let mut checked = Checked { runtime, options: *options, file, findings };
    match checked.inspect().and_then(|found| checked.map(found)) {
        Ok(found) => {
            checked.lost_copies(&found);
            checked.space(&found);
            checked.compare(&found);
        }
        Err(error) => checked.add(Kind::Map, error.to_string()),
    }
}

impl Checked<'_> {
    fn inspect(&self) -> Result<Inspection> {
        inspect(self.runtime, &self.file.path, (self.file.manifest().clone(), self.file.owner()))
    }

    fn spec(&self) -> Result<MapSpec> {
        self.runtime.map_spec(self.file.manifest(), self.file.owner())
    }

    fn add(&mut self, kind: Kind, text: String) {
        self.findings.push(self.file.finding(kind, text));
    }

    /// Adds a finding. If the repair was asked for, makes it, appends what it reports, and inspects
    /// the file again.
    fn repaired(
        &mut self,
        found: Inspection,
        (kind, text, asked): (Kind, String, bool),
        repair: impl FnOnce(&Self) -> Result<String>,
    ) -> Result<Inspection> {
        if !asked {
            self.add(kind, text);
            return Ok(found);
        }
        let done = repair(self);
        let said = done.as_deref().unwrap_or_default();
        let text = if said.is_empty() { text } else { format!("{text}: {said}") };
        let finding = self.file.finding(kind, text).repair(done.map(drop));
        let inspect_again = finding.repaired;
        self.findings.push(finding);
        if inspect_again { self.inspect() } else { Ok(found) }
    }

    fn map(&mut self, found: Inspection) -> Result<Inspection> {
        let (repair, sys) = (self.options.repair, self.runtime.sys().clone());
        let state = match &found.map {
            None => return Ok(found),
            Some(Err(error)) => return self.journal(error.clone(), found),
            Some(Ok(state)) => state.clone(),
        };
        let settle = |checked: &Self| checked.settle().map(|()| String::new());
        match &state.lease {
            Lease::Elsewhere(node) => {
                let text = format!(
                    "is being written by node {node}, or was when that died; close it there. If that node is gone, `fsck \
                     --take-over` goes on with what it synced; if it still writes, its data will be lost"
                );
                self.repaired(found, (Kind::Node, text, self.options.take_over), |checked| {
                    Ok(fell_back(&repair::take_over(&sys, &checked.spec()?)?.fell_back, &state))
                })
            }
            Lease::Lost => {
                let text = "the extent map was lost while the file was in use; `fsck --repair` goes on with what was synced \
                            last, writes that were not are lost"
                    .to_owned();
                self.repaired(found, (Kind::Map, text, repair), |checked| {
                    Ok(fell_back(&repair::collapse(&sys, &checked.spec()?)?.fell_back, &state))
                })
            }
            Lease::EarlierBoot => {
                let text = "was being written when the machine went down; the next program that opens it goes on with what \
                            was synced, or `fsck --repair`";
                self.repaired(found, (Kind::Interrupted, text.to_owned(), repair), settle)
            }
            Lease::Here if state.processes == 0 => {
                let text = "its last process was killed; the next one goes on, or `fsck --repair` closes it";
                self.repaired(found, (Kind::Interrupted, text.to_owned(), repair), settle)
            }
            Lease::Closed if state.journal_bytes.1 > 0 => {
                let text = format!(
                    "{} bytes at the end of its journal were never finished; `fsck --repair` cuts them off",
                    state.journal_bytes.1
                );
                self.repaired(found, (Kind::Interrupted, text, repair), |checked| {
                    Ok(repair::trim(&sys, &checked.spec()?).map(|_| String::new())?)
                })
            }
            Lease::Closed | Lease::Here => Ok(found),
        }
    }

    /// Joining the map settles what was left, and leaving it closes the file.
    fn settle(&self) -> Result<()> {
        self.runtime.open_file(&self.file.path).map(drop)
    }

    fn journal(&mut self, error: MapError, found: Inspection) -> Result<Inspection> {
        let anew = matches!(error, MapError::Missing { .. } | MapError::Damaged { .. });
        if !anew {
            self.add(Kind::Map, error.to_string());
            return Ok(found);
        }
        let live = self.spec()?.has_shared_state(self.runtime.sys()).unwrap_or(false);
        let held: u64 = found.copies.iter().skip(1).flat_map(|copy| &copy.allocated_bytes).sum();
        let lost = found.copies.iter().any(|copy| copy.lost.is_some());
        let may_lose = !live && (held > 0 || lost);
        let mut text = error.to_string();
        if may_lose {
            text = format!(
                "{text} (its other copies have {held} bytes on their disks, some of which may be newer than the original's: \
                 to give them up, add --drop-dirty)"
            );
        }
        let asked = self.options.repair && (!may_lose || self.options.drop_dirty);
        let sys = self.runtime.sys().clone();
        self.repaired(found, (Kind::Map, text, asked), |checked| {
            repair::reset(&sys, &checked.spec()?, || checked.sync_all())?;
            Ok(if live { "written anew from the index" } else { "the original counts from now on" }.to_owned())
        })
    }

    fn compare(&mut self, found: &Inspection) {
        if !self.options.compare || !matches!(found.map, Some(Ok(_))) {
            return;
        }
        let compared =
            self.runtime.open_file(&self.file.path).map_err(|error| error.to_string()).and_then(|file| {
                let go_on = &mut |_, _| std::ops::ControlFlow::Continue(());
                file.map_or(Ok(Vec::new()), |file| file.compare(go_on).map_err(|errno| errno.to_string()))
            });
        let differences = match compared {
            Ok(differences) => differences,
            Err(error) => return self.add(Kind::Unreadable, format!("its copies cannot be compared: {error}")),
        };
        let mut by_copies: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for difference in differences {
            let span = Span::new(difference.range, Mask::NONE);
            by_copies.entry(difference.copies).or_default().push(span);
        }
        for ((one, other), spans) in by_copies {
            let name = |copy: usize| &found.copies[copy].name;
            let text = format!(
                "copies {} and {} differ within {}: something else has changed files of their servers. Remove the objects of the one \
                 that is wrong, {}.*, and `fsck --repair` makes it anew",
                name(one),
                name(other),
                ranges(&spans),
                self.file.manifest().all_copies().nth(other).map_or(self.file.manifest().id, |copy| copy.id)
            );
            self.add(Kind::Differs, text);
        }
    }

    /// Checks for disk space that cache copies use for invalid bytes, on file systems that do not
    /// count holes as allocated.
    fn space(&mut self, found: &Inspection) {
        let Some(Ok(map)) = &found.map else { return };
        let copies = self.file.manifest().all_copies().zip(&found.copies);
        for (CopyRef { number, .. }, copy) in copies.filter(|(copy, _)| copy.is_cache) {
            let spans = map.spans.iter().filter(|span| span.mask.contains(number)).count() as u64;
            let targets = copy.allocated_bytes.len() as u64;
            // The first and the last block of a range may belong to it only in part.
            let needed = copy.bytes.unwrap_or_default().valid + (2 * spans + 1) * targets * BLOCK_BYTES;
            let taken: u64 = copy.allocated_bytes.iter().sum();
            if taken <= needed || copy.holes_counted || copy.lost.is_some() {
                continue;
            }
            let name = &copy.name;
            let text = format!(
                "copy {name} takes {taken} bytes for {} that are valid there; `fsck --repair` gives the others back",
                copy.bytes.unwrap_or_default().valid
            );
            let finding = self.file.finding(Kind::Space, text);
            self.findings.push(if self.options.repair { finding.repair(self.tidy()) } else { finding });
        }
    }

    fn tidy(&self) -> Result<()> {
        match self.runtime.open_file(&self.file.path)? {
            Some(file) => file.tidy().map_err(FileError::io(&self.file.path, "give back space of")),
            None => Ok(()),
        }
    }

    fn lost_copies(&mut self, found: &Inspection) {
        for (copy, state) in self.file.manifest().all_copies().zip(&found.copies).skip(1) {
            if let Some(lost) = &state.lost {
                self.lost_copy(found, copy, state, lost);
            }
        }
    }

    fn lost_copy(&mut self, found: &Inspection, copy: CopyRef<'_>, state: &CopyState, lost: &FileError) {
        let name = copy.name;
        let Some(Ok(map)) = &found.map else {
            return self.add(Kind::LostCopy, format!("copy {name} is lost: {lost}"));
        };
        let bytes = state.bytes.unwrap_or_default();
        let alone: Vec<_> = map.spans.iter().filter(|span| span.mask.is_only(copy.number)).copied().collect();
        let (kind, text) = if bytes.valid == 0 {
            (Kind::UnusedCopy, format!("copy {name} is lost and nothing of it is needed; {lost}"))
        } else if bytes.alone == 0 {
            let text = format!(
                "copy {name} is lost; all of it is valid elsewhere, and `fsck --repair` forgets it; {lost}"
            );
            (Kind::LostCopy, text)
        } else {
            let text = format!(
                "copy {name} is lost, and with it {}: bring it back, or give them up with `fsck --repair --drop-dirty`; {lost}",
                ranges(&alone)
            );
            (Kind::LostCopy, text)
        };
        let finding = self.file.finding(kind, text);
        if !self.options.repair || (bytes.alone > 0 && !self.options.drop_dirty) {
            return self.findings.push(finding);
        }
        let done = self.forget(copy.number, found.size_bytes).and_then(|()| self.make_again(copy));
        let done = done.and_then(|made| self.keep_size(found.size_bytes).map(|()| made));
        let made = done.as_ref().is_ok_and(|&made| made);
        if bytes.valid > 0 || made {
            self.findings.push(finding.repair(done.map(drop)));
        } else {
            self.findings.push(finding);
        }
    }

    fn sync_all(&self) -> stripewise_sys::Result<()> {
        let sync = |copy| {
            let Ok(set) = self.runtime.open_objects(copy, self.file.owner()) else { return Ok(()) };
            let sync = |index| self.runtime.sys().sync(set.fd(index).map_err(|error| error.errno())?.as_fd());
            (0..set.len()).try_for_each(sync)
        };
        self.file.manifest().all_copies().try_for_each(sync)
    }

    fn forget(&self, copy: CopyId, size: u64) -> Result<()> {
        let report = repair::forget(self.runtime.sys(), &self.spec()?, copy, size, self.options.drop_dirty)?;
        // The copy was written since the inspection.
        let busy = || FileError::io(&self.file.path, "forget a copy, as it is in use,")(crate::Errno::BUSY);
        if report.repaired || report.dirty.is_empty() { Ok(()) } else { Err(busy()) }
    }

    /// Keeps the size of the file: the bytes given up become zeros.
    fn keep_size(&self, size: u64) -> Result<()> {
        let Some(file) = self.runtime.open_file(&self.file.path)? else { return Ok(()) };
        let io = |what| FileError::io(&self.file.path, what);
        if file.size().map_err(io("stat"))? < size {
            file.truncate(size).map_err(io("lengthen"))
        } else {
            Ok(())
        }
    }

    /// Creates the objects of a forgotten copy again, empty, if its targets are there. The map
    /// names none of its old bytes.
    fn make_again(&self, copy: CopyRef<'_>) -> Result<bool> {
        let Ok(targets) = self.runtime.targets_of(copy.targets) else { return Ok(false) };
        let sys = self.runtime.sys();
        let mode = sys.stat_at(None, &self.file.path, true).map_err(FileError::io(&self.file.path, "stat"))?;
        let mut mode_bits = Mode::from_raw_mode(mode.st_mode & 0o777);
        if copy.is_cache {
            mode_bits |= CACHED;
        }
        let of = copy.objects(self.file.owner());
        let access = Access { group: Some(mode.st_gid), ..Access::of_mode(mode_bits) };
        ObjectSet::remove(&targets, of)?;
        let set = ObjectSet::create(sys, targets, of, &access)?;
        set.sync_names()?;
        // The old objects' space no longer counts as used.
        self.tidy().map(|()| true)
    }
}

/// Describes the ranges for which a repair fell back on one of several copies.
fn fell_back(spans: &[Span], state: &MapState) -> String {
    let end = state.spans.last().map_or(0, |span| span.end);
    let below = spans.iter().filter(|span| span.start < end);
    let below: Vec<_> = below.map(|span| Span { end: span.end.min(end), ..*span }).collect();
    if below.is_empty() {
        String::new()
    } else {
        format!("one of several copies counts for {}", ranges(&below))
    }
}

fn ranges(spans: &[Span]) -> String {
    let sum: u64 = spans.iter().map(Span::len).sum();
    let named: Vec<_> =
        spans.iter().take(NAMED).map(|span| format!("{} to {}", span.start, span.end)).collect();
    let more = match spans.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more ranges"),
    };
    format!("{sum} bytes ({}{more})", named.join(", "))
}
