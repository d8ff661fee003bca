//! What stat says, and chmod, chown, utimens.

use stripewise_layout::Layout;
use stripewise_sys::{Kind, Mode, Stat, Timespec};
use stripewise_target::{CACHED, TargetError, access_list};

use super::{LogicalFile, OpenCopy};
use crate::permissions::{is_protected, of_anchor, of_file};
use crate::runtime::Change;
use crate::{Errno, Result, anchor, trouble};

/// utimensat(2)'s UTIME_OMIT: leave this time.
pub(super) const OMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: (1 << 30) - 2 };

/// Size and times of a managed file, computed from anchor and components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Logical size, bytes.
    pub size_bytes: u64,
    /// Permissions of owner, group and others: the mode bits below 0o1000.
    pub permissions: u32,
    /// 512-byte blocks of the original's components.
    pub blocks: u64,
    /// The latest of anchor and components.
    pub modified: Timespec,
    /// The latest of anchor and components.
    pub changed: Timespec,
    /// The latest of anchor and components.
    pub accessed: Timespec,
}

impl Attributes {
    /// Of what the kernel says of the anchor, and of the components of each copy, the original first.
    pub(crate) fn of(anchor: &Stat, copies: &[(Vec<Stat>, &Layout)]) -> Self {
        let all = || copies.iter().flat_map(|(stats, _)| stats);
        let latest = |time: fn(&Stat) -> Timespec| all().map(time).fold(time(anchor), later);
        let first = copies.first().and_then(|(stats, _)| stats.first());
        let original = copies.iter().take(1).flat_map(|(stats, _)| stats);
        Self {
            size_bytes: copies.iter().map(|(stats, layout)| file_size(stats, layout)).max().unwrap_or(0),
            permissions: first.map_or(anchor.st_mode & 0o777, |first| of_file(anchor.st_mode, first.st_mode)),
            blocks: original.map(|stat| stat.st_blocks as u64).sum(),
            modified: latest(modified),
            changed: latest(changed),
            accessed: latest(accessed),
        }
    }

    /// Into what the kernel said of the anchor.
    pub(crate) fn put_into(&self, stat: &mut Stat) {
        stat.st_size = self.size_bytes as i64;
        stat.st_mode = stat.st_mode & !0o777 | self.permissions;
        stat.st_blocks = self.blocks as i64;
        (stat.st_mtime, stat.st_mtime_nsec) = (self.modified.tv_sec, self.modified.tv_nsec as _);
        (stat.st_ctime, stat.st_ctime_nsec) = (self.changed.tv_sec, self.changed.tv_nsec as _);
        (stat.st_atime, stat.st_atime_nsec) = (self.accessed.tv_sec, self.accessed.tv_nsec as _);
    }
}

impl LogicalFile {
    /// Size, blocks and times.
    ///
    /// # Errors
    /// EIO.
    pub fn attributes(&self) -> Result<Attributes> {
        let anchor = self.sys().stat(self.anchor())?;
        let attributes = Attributes::of(&anchor, &self.stats()?);
        Ok(match self.interrupted_truncate()? {
            Some(size_bytes) => Attributes { size_bytes, ..attributes },
            // What only those have counts, or a copy of the file would be shorter and nobody would notice.
            None if self.lost().next().is_some() => Attributes { size_bytes: self.size()?, ..attributes },
            None => attributes,
        })
    }

    /// What the kernel says of the components of every copy that can be used.
    pub(super) fn stats(&self) -> Result<Vec<(Vec<Stat>, &Layout)>> {
        let stats = |copy: &OpenCopy| copy.components().stats().map_err(|error| trouble::told(&error));
        self.present().map(|copy| Ok((stats(copy)?, copy.layout()))).collect()
    }

    /// Puts [`LogicalFile::attributes`] into what the kernel said of the anchor.
    ///
    /// # Errors
    /// EIO; `stat` is unchanged then.
    pub fn correct_stat(&self, stat: &mut Stat) -> Result<()> {
        self.attributes()?.put_into(stat);
        Ok(())
    }

    /// futimens(2), fchmod(2), fchown(2): of the anchor and of the components of all copies. The
    /// anchor gets no permission to write.
    ///
    /// # Errors
    /// As those, of the anchor; then the components are unchanged.
    pub fn change(&self, change: &Change) -> Result<()> {
        let anchor = Kind::Open(self.anchor());
        let timed = self.overlay().filter(|_| matches!(change, Change::Times(_)));
        timed.inspect(|overlay| overlay.forget_times());
        match change {
            Change::Times(times) => self.sys().set_times(anchor, times)?,
            Change::Mode(mode) => self.sys().set_mode(anchor, without_write(*mode))?,
            Change::Owner(user, group) => return self.change_owner(*user, *group),
        }
        let done = self.present().map(|copy| change_of(copy, change)).fold(Ok(()), std::result::Result::and);
        // Another process may have noted the old ones meanwhile.
        timed.inspect(|overlay| overlay.forget_times());
        match done {
            // The names of a file that was removed while it is open are gone.
            Err(error) if error.errno() == Errno::NOENT && self.sys().stat(self.anchor())?.st_nlink == 0 => {
                Ok(())
            }
            done => done.map_err(|error| trouble::told(&error)),
        }
    }
}

impl LogicalFile {
    /// fchown(2). To another user, which only root may, the objects move first: a call that was
    /// killed is made again. A file with several copies must not be open elsewhere.
    fn change_owner(&self, user: Option<u32>, group: Option<u32>) -> Result<()> {
        let anchor = Kind::Open(self.anchor());
        let owner = self.sys().stat(self.anchor())?.st_uid;
        let new = user.filter(|&user| user != owner);
        if new.is_some() && self.sys().user() != ROOT {
            return self.sys().set_owner(anchor, user, group);
        }
        if let (Some(new), Some(overlay)) = (new, self.overlay()) {
            if overlay.is_used_by_others()? {
                return Err(Errno::BUSY);
            }
            self.leave();
            overlay.now_owned_by(new, self.original())?;
        }
        let give = |copy: &OpenCopy| {
            let set = copy.components();
            new.map_or(Ok(()), |new| set.give_to(new))?;
            group.map_or(Ok(()), |group| set.set_group(group))
        };
        if new.is_none() {
            self.sys().set_owner(anchor, user, group)?;
        }
        self.present().try_for_each(give).map_err(|error| trouble::told(&error))?;
        if new.is_some() { self.sys().set_owner(anchor, user, group) } else { Ok(()) }
    }

    /// Takes over permissions, access list and group that a program without this library gave the
    /// anchor, and takes the permission to write away from that. Where this process may not, its
    /// owner's next one does.
    pub(crate) fn follow_anchor(&self, anchor: &Stat) {
        let Ok(Some(object)) = self.components().fd(0).map(|fd| self.sys().stat(fd).ok()) else { return };
        if ![anchor.st_uid, ROOT].contains(&self.sys().user()) {
            return;
        }
        let now = of_file(anchor.st_mode, object.st_mode);
        // With an access list the mode shows its mask, which may have stayed the same.
        let differs = now != object.st_mode & 0o777 || !is_protected(anchor.st_mode);
        let list = differs.then(|| access_list(self.sys(), self.anchor())).flatten();
        let taken_over = self.present().map(|copy| {
            let set = copy.components();
            let given = anchor.st_gid == object.st_gid || set.set_group(anchor.st_gid).is_ok();
            if !differs {
                return Ok(());
            }
            list.as_ref().map_or(Ok(()), |list| set.set_access_list(list))?;
            // Another group than the anchor's gets no rights.
            let now = if given { now } else { now & !0o070 };
            change_of(copy, &Change::Mode(Mode::from_raw_mode(anchor.st_mode & 0o7000 | now)))
        });
        if taken_over.fold(Ok(()), std::result::Result::and).is_ok() {
            let _ = anchor::protect(self.sys(), self.anchor(), anchor, self.parts.anchored.text_bytes);
        }
    }

    /// Whether the file was given to another user since it was opened; then its objects are looked
    /// for there.
    pub(super) fn follow_owner(&self) -> bool {
        let Ok(anchor) = self.sys().stat(self.anchor()) else { return false };
        let moved = anchor.st_uid != self.components().objects().owner;
        self.present().for_each(|copy| copy.components().now_owned_by(anchor.st_uid));
        moved
    }
}

const ROOT: u32 = 0;

fn change_of(copy: &OpenCopy, change: &Change) -> std::result::Result<(), TargetError> {
    let set = copy.components();
    match change {
        Change::Times(times) => set.set_times(times),
        Change::Mode(mode) if copy.is_cache() => set.set_mode(*mode | CACHED),
        Change::Mode(mode) => set.set_mode(*mode - CACHED),
        // Not of one copy alone.
        Change::Owner(..) => Ok(()),
    }
}

/// What an anchor gets of a file's mode.
pub(crate) fn without_write(mode: Mode) -> Mode {
    Mode::from_raw_mode(of_anchor(mode.as_raw_mode()))
}

/// The size of the file that the components of one copy give.
fn file_size(components: &[Stat], layout: &Layout) -> u64 {
    let sizes: Vec<u64> = components.iter().map(|stat| stat.st_size as u64).collect();
    layout.file_size(&sizes)
}

pub(super) fn modified(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ }
}

fn changed(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_ctime, tv_nsec: stat.st_ctime_nsec as _ }
}

fn accessed(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec as _ }
}

pub(super) fn later(one: Timespec, other: Timespec) -> Timespec {
    if (one.tv_sec, one.tv_nsec) >= (other.tv_sec, other.tv_nsec) { one } else { other }
}
