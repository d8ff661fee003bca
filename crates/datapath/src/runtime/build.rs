//! A new managed file, complete under a temporary name; then published at its own.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stripewise_layout::{Layout, Region, Stripe};
use stripewise_sys::{Dir, Errno, Fd, Mode, OFlags, SysRef};
use stripewise_target::{ComponentSet, FileId, Target, TargetError, TargetRef};

use super::{FileKey, Runtime};
use crate::anchor::Anchored;
use crate::file::{LogicalFile, Parts, sync_directory};
use crate::manifest::Manifest;
use crate::trouble::Trouble;

/// Temporaries are called `.stripewise-ID.new`.
pub(crate) const TEMPORARY_PREFIX: &str = ".stripewise-";
const TEMPORARY_SUFFIX: &str = ".new";

/// The name of the temporary anchor of file `id`.
pub(crate) fn temporary_name(id: FileId) -> String {
    format!("{TEMPORARY_PREFIX}{id}{TEMPORARY_SUFFIX}")
}

/// The inverse of [`temporary_name`].
pub(crate) fn temporary_id(name: &str) -> Option<FileId> {
    FileId::from_hex(name.strip_prefix(TEMPORARY_PREFIX)?.strip_suffix(TEMPORARY_SUFFIX)?)
}

/// A complete managed file without a name of its own. Dropped before it is published, it goes again with all that
/// belongs to it.
pub struct NewFile {
    sys: SysRef,
    /// Of the temporary name; `None` when the path is absolute.
    dir: Option<Fd>,
    temporary: PathBuf,
    /// Empty once it is published.
    targets: Vec<Arc<Target>>,
    id: FileId,
    file: Option<LogicalFile>,
}

impl Runtime {
    /// Makes an empty managed file beside `path`, under a temporary name. `layout` counts the plan's targets; `mode` is
    /// as for open(2): the umask applies.
    ///
    /// # Errors
    /// A target is missing or full, or the directory of `path` may not be written to. Nothing is left then.
    pub fn build(&self, dir: Dir<'_>, path: &Path, mode: Mode, layout: &Layout) -> Result<NewFile, Trouble> {
        let (layout, targets) = self.resolve(layout)?;
        self.build_on(dir, path, mode, layout, targets, None)
    }

    /// A layout over the plan's targets as one over only those that it uses, and these.
    ///
    /// # Errors
    /// A target is missing.
    pub(crate) fn resolve(&self, layout: &Layout) -> Result<(Layout, Vec<Arc<Target>>), TargetError> {
        let (layout, used) = compact(layout);
        let targets = used.iter().map(|&index| self.targets.planned(index)).collect::<Result<_, _>>()?;
        Ok((layout, targets))
    }

    /// Whether a file is where `layout`, over the plan's targets, would put it. Touches no target.
    pub fn is_placed(&self, manifest: &Manifest, layout: &Layout) -> bool {
        let (layout, used) = compact(layout);
        let same = |(there, &index): (&TargetRef, &u32)| self.targets.planned_path(index) == Some(&there.path);
        manifest.layout == layout && manifest.targets.iter().zip(&used).all(same)
    }

    /// The targets that a manifest names.
    pub(crate) fn targets_of(&self, manifest: &Manifest) -> Result<Vec<Arc<Target>>, TargetError> {
        self.targets.of_manifest(&manifest.targets)
    }

    /// As [`Runtime::build`], with the id that the file is to have.
    pub(crate) fn build_with(
        &self,
        id: FileId,
        path: &Path,
        mode: Mode,
        layout: Layout,
        targets: Vec<Arc<Target>>,
    ) -> Result<NewFile, Trouble> {
        self.build_on(None, path, mode, layout, targets, Some(id))
    }

    /// As [`Runtime::build`], with the layout and targets of another file.
    ///
    /// # Errors
    /// As there.
    pub fn build_like(
        &self,
        dir: Dir<'_>,
        path: &Path,
        mode: Mode,
        like: &Manifest,
    ) -> Result<NewFile, Trouble> {
        let targets = self.targets_of(like)?;
        self.build_on(dir, path, mode, like.layout.clone(), targets, None)
    }

    fn build_on(
        &self,
        dir: Dir<'_>,
        path: &Path,
        mode: Mode,
        layout: Layout,
        targets: Vec<Arc<Target>>,
        id: Option<FileId>,
    ) -> Result<NewFile, Trouble> {
        let sys = self.sys();
        let io = |what| Trouble::io(path, what);
        let servers = self.targets.servers(&targets)?;
        let id = id.map_or_else(|| FileId::random(&**sys), Ok).map_err(io("make an id"))?;
        let temporary = super::paths::directory_of(path).join(temporary_name(id));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let anchor = sys.open(dir, &temporary, flags, mode).map_err(io("create the anchor"))?;
        let dir = dir.map(Fd::duplicate).transpose();
        let mut new = NewFile { sys: sys.clone(), dir: None, temporary, targets, id, file: None };
        new.dir = dir.map_err(io("create the anchor"))?;
        let stat = sys.stat(anchor.as_fd()).map_err(io("create the anchor"))?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        let components = ComponentSet::create(sys, new.targets.clone(), id, mode)?;
        let absolute = super::paths::absolute(sys, new.dir.as_ref().map(AsFd::as_fd), path);
        let absolute = absolute.unwrap_or_else(|_| path.to_owned());
        let references = new.targets.iter().map(|target| target.reference()).collect();
        let anchored = self.manifest(id, &absolute, references, layout)?;
        let (text, anchored) = (anchored.0, anchored.1);
        // Its owner uses the copy for locks, also of a file that is read-only.
        components.create_manifest(text.as_bytes(), mode | Mode::RUSR | Mode::WUSR)?;
        sys.write_all_at(anchor.as_fd(), text.as_bytes(), 0).map_err(io("write the manifest"))?;
        let parts = Parts {
            key: FileKey::of(&stat),
            path: absolute,
            anchored,
            anchor,
            components: components.with_servers(servers.clone()),
            writable: true,
            servers,
        };
        new.file = Some(LogicalFile::new(self.shared.clone(), parts));
        Ok(new)
    }

    fn manifest(
        &self,
        id: FileId,
        path: &Path,
        targets: Vec<TargetRef>,
        layout: Layout,
    ) -> Result<(String, Anchored), Trouble> {
        let created = utc(self.sys().wall_ns() / 1_000_000_000);
        let path = path.to_string_lossy().into_owned();
        let manifest = Manifest { id, pending_truncate: None, path, created, targets, layout, copies: None };
        let text = manifest.format()?;
        let pending_at = Manifest::pending_offset(text.as_bytes()).unwrap_or_default() as u64;
        let anchored = Anchored { manifest: Arc::new(manifest), text_bytes: text.len() as u64, pending_at };
        Ok((text, anchored))
    }
}

impl NewFile {
    /// The file, to be filled.
    pub fn file(&self) -> Option<&LogicalFile> {
        self.file.as_ref()
    }

    /// The temporary name.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    pub(super) fn dir(&self) -> Dir<'_> {
        self.dir.as_ref().map(AsFd::as_fd)
    }

    /// Gives it its name, unless something is there.
    ///
    /// # Errors
    /// EEXIST; then it is still unpublished.
    pub(super) fn publish(&mut self, path: &Path) -> Result<Option<LogicalFile>, Errno> {
        let dir = self.dir.as_ref().map(AsFd::as_fd);
        match self.sys.rename_noreplace(dir, &self.temporary, dir, path) {
            Ok(()) => {}
            // The file system has no such rename: two steps, in an order that never shows less than a whole file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.sys.link(dir, &self.temporary, dir, path)?;
                // What a failure leaves is a second name; `fsck` removes it.
                let _ = self.sys.unlink(dir, &self.temporary);
            }
            Err(error) => return Err(error),
        }
        self.targets.clear();
        Ok(self.file.take())
    }

    /// The file keeps its temporary name, also when nobody holds it any more.
    pub(super) fn keep(mut self) -> Option<LogicalFile> {
        self.targets.clear();
        self.file.take()
    }

    /// Gives it its name, in place of whatever is there, and makes that durable. The caller has synced the file, or does
    /// not mind; what it replaces is the caller's to clean up.
    ///
    /// # Errors
    /// As rename(2), and it is still unpublished; or as fsync(2), and it is published.
    pub fn replace(mut self, path: &Path) -> Result<LogicalFile, Errno> {
        let dir = self.dir.as_ref().map(AsFd::as_fd);
        self.sys.rename(dir, &self.temporary, dir, path)?;
        self.targets.clear();
        sync_directory(&self.sys, dir, path)?;
        self.file.take().ok_or(Errno::IO)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.targets.is_empty() {
            return;
        }
        let dir = self.dir.as_ref().map(AsFd::as_fd);
        let _ = self.sys.unlink(dir, &self.temporary);
        let _ = ComponentSet::remove(&self.sys, &self.targets, self.id);
    }
}

/// The layout over only those targets that it uses, and which those are.
fn compact(layout: &Layout) -> (Layout, Vec<u32>) {
    let used: Vec<u32> = layout.targets().collect();
    let renumber = |stripe: &Stripe| Stripe {
        target: used.partition_point(|&target| target < stripe.target) as u32,
        width: stripe.width,
    };
    let regions = layout.regions().iter().map(|region| Region {
        start: region.start,
        end: region.end,
        cycle: region.cycle.iter().map(renumber).collect(),
    });
    // The same layout with other numbers is as valid as it was.
    let compacted = Layout::new(regions.collect()).unwrap_or_else(|_| layout.clone());
    (compacted, used)
}

/// `2026-11-21T01:00:00Z` of seconds since 1970 (days to civil date: H. Hinnant, chrono-compatible algorithms).
fn utc(seconds: u64) -> String {
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use stripewise_layout::constructors::two_part;

    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        // date -u -d @N +%FT%TZ
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_222_799, "2026-11-21T00:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }

    #[test]
    fn a_layout_keeps_only_its_own_targets() {
        let (layout, used) = compact(&two_part(&[(7, 10), (3, 20)], 90, &[(5, 1)]).unwrap());
        assert_eq!(used, [3, 5, 7]);
        assert_eq!(layout, two_part(&[(2, 10), (0, 20)], 90, &[(1, 1)]).unwrap());
    }
}
