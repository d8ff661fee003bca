//! Attributes of a managed file: stat, chmod, chown and utimens.

use stripewise_layout::Layout;
use stripewise_sys::{Kind, Mode, Stat, Timespec, Timestamps};
use stripewise_target::{CACHED, TargetError, access_list};

use super::LogicalFile;
use super::copy::OpenCopy;
use crate::error::Logged;
use crate::permissions::{is_protected, of_anchor, of_file};
use crate::{Errno, Result, anchor};

/// UTIME_OMIT of utimensat(2): leaves this time unchanged.
pub(super) const OMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: (1 << 30) - 2 };

/// A change of a file's metadata.
#[derive(Clone, Debug)]
pub enum Change {
    /// utimensat(2).
    Times(Timestamps),
    /// chmod(2).
    Mode(Mode),
    /// chown(2); `None` leaves the user or group unchanged.
    Owner(Option<u32>, Option<u32>),
}

/// Size, permissions and times of a managed file, computed from its anchor and objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Logical size in bytes.
    pub size_bytes: u64,
    /// Permissions of owner, group and others: the mode bits below 0o1000.
    pub permissions: u32,
    /// Number of 512-byte blocks of the objects of all copies. The original alone may have none
    /// yet, and GNU tar archives a file without blocks as one hole.
    pub blocks: u64,
    /// The latest modification time of the anchor and the objects.
    pub modified: Timespec,
    /// The latest change time of the anchor and the objects.
    pub changed: Timespec,
    /// The latest access time of the anchor and the objects.
    pub accessed: Timespec,
}

impl Attributes {
    /// Computes the attributes from the stat results of the anchor and of each copy's objects, the
    /// original first.
    pub(crate) fn of(anchor: &Stat, copies: &[(Vec<Stat>, &Layout)]) -> Self {
        let all = || copies.iter().flat_map(|(stats, _)| stats);
        let latest = |time: fn(&Stat) -> Timespec| all().map(time).fold(time(anchor), later);
        let first = copies.first().and_then(|(stats, _)| stats.first());
        Self {
            size_bytes: copies.iter().map(|(stats, layout)| file_size(stats, layout)).max().unwrap_or(0),
            permissions: first.map_or(anchor.st_mode & 0o777, |first| of_file(anchor.st_mode, first.st_mode)),
            blocks: all().map(|stat| stat.st_blocks as u64).sum(),
            modified: latest(|stat| time(stat.st_mtime, stat.st_mtime_nsec)),
            changed: latest(|stat| time(stat.st_ctime, stat.st_ctime_nsec)),
            accessed: latest(|stat| time(stat.st_atime, stat.st_atime_nsec)),
        }
    }

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
    /// Size, permissions, blocks and times.
    ///
    /// # Errors
    /// EIO.
    pub fn attributes(&self) -> Result<Attributes> {
        let anchor = self.sys().stat(self.anchor())?;
        let attributes = Attributes::of(&anchor, &self.stats()?);
        Ok(match self.interrupted_truncate()? {
            Some(size_bytes) => Attributes { size_bytes, ..attributes },
            // Bytes that only lost copies hold count too. Otherwise a program that copies the file
            // would silently make a shorter one.
            None if self.lost().next().is_some() => Attributes { size_bytes: self.size()?, ..attributes },
            None => attributes,
        })
    }

    /// The stat results of the objects of every usable copy, the original first.
    pub(super) fn stats(&self) -> Result<Vec<(Vec<Stat>, &Layout)>> {
        let stats = |copy: &OpenCopy| copy.objects().stats().logged();
        self.present().map(|copy| Ok((stats(copy)?, copy.layout()))).collect()
    }

    /// Puts [`LogicalFile::attributes`] into the anchor's stat result.
    ///
    /// # Errors
    /// EIO; `stat` is unchanged then.
    pub fn correct_stat(&self, stat: &mut Stat) -> Result<()> {
        self.attributes()?.put_into(stat);
        Ok(())
    }

    /// futimens(2), fchmod(2) or fchown(2) on the anchor and on the objects of all copies. The
    /// anchor never gets write permission.
    ///
    /// # Errors
    /// Same as those calls. If the call on the anchor fails, the objects are unchanged (except that
    /// a chown to another user changes the objects first).
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
        // Another process may have recorded the old times meanwhile.
        timed.inspect(|overlay| overlay.forget_times());
        match done {
            // The file was removed while open, so its objects have no names any more.
            Err(error) if error.errno() == Errno::NOENT && self.sys().stat(self.anchor())?.st_nlink == 0 => {
                Ok(())
            }
            done => done.logged(),
        }
    }
}

impl LogicalFile {
    /// fchown(2). A change to another user, which only root may make, moves the objects first: a
    /// call that was killed can be repeated. A file with several copies must not be open in other
    /// processes.
    fn change_owner(&self, user: Option<u32>, group: Option<u32>) -> Result<()> {
        let anchor = Kind::Open(self.anchor());
        // Another process may have given the file away, and the objects' names with it.
        self.follow_owner();
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
            let set = copy.objects();
            new.map_or(Ok(()), |new| set.give_to(new))?;
            group.map_or(Ok(()), |group| set.set_group(group))
        };
        if new.is_none() {
            self.sys().set_owner(anchor, user, group)?;
        }
        self.present().try_for_each(give).logged()?;
        if new.is_some() { self.sys().set_owner(anchor, user, group) } else { Ok(()) }
    }

    /// Adopts the permissions, access list and group that a program without this library gave the
    /// anchor, and removes the anchor's write permission. Does nothing unless this process belongs
    /// to the owner or root; the owner's next process then does it.
    pub(crate) fn follow_anchor(&self, anchor: &Stat) {
        let Ok(Some(object)) = self.objects().fd(0).map(|fd| self.sys().stat(fd).ok()) else { return };
        if ![anchor.st_uid, ROOT].contains(&self.sys().user()) {
            return;
        }
        let now = of_file(anchor.st_mode, object.st_mode);
        // With an access list, the group bits of the mode show the list's mask, which may be
        // unchanged.
        let differs = now != object.st_mode & 0o777 || !is_protected(anchor.st_mode);
        let list = differs.then(|| access_list(self.sys(), self.anchor())).flatten();
        let taken_over = self.present().map(|copy| {
            let set = copy.objects();
            let given = anchor.st_gid == object.st_gid || set.set_group(anchor.st_gid).is_ok();
            if !differs {
                return Ok(());
            }
            list.as_ref().map_or(Ok(()), |list| set.set_access_list(list))?;
            // The objects kept their old group, which gets no permissions.
            let now = if given { now } else { now & !0o070 };
            change_of(copy, &Change::Mode(Mode::from_raw_mode(anchor.st_mode & 0o7000 | now)))
        });
        if taken_over.fold(Ok(()), std::result::Result::and).is_ok() {
            let _ = anchor::protect(self.sys(), self.anchor(), anchor, self.parts.anchored.text_bytes);
        }
    }

    /// Returns whether the file was given to another user since it was opened. If so, the objects
    /// are looked up under the new owner from now on.
    pub(super) fn follow_owner(&self) -> bool {
        let Ok(anchor) = self.sys().stat(self.anchor()) else { return false };
        let moved = anchor.st_uid != self.objects().objects().owner;
        self.present().for_each(|copy| copy.objects().now_owned_by(anchor.st_uid));
        moved
    }
}

const ROOT: u32 = 0;

fn change_of(copy: &OpenCopy, change: &Change) -> std::result::Result<(), TargetError> {
    let set = copy.objects();
    match change {
        Change::Times(times) => set.set_times(times),
        Change::Mode(mode) if copy.is_cache() => set.set_mode(*mode | CACHED),
        Change::Mode(mode) => set.set_mode(*mode - CACHED),
        // `change_owner` handles all copies together.
        Change::Owner(..) => Ok(()),
    }
}

pub(crate) fn without_write(mode: Mode) -> Mode {
    Mode::from_raw_mode(of_anchor(mode.as_raw_mode()))
}

fn file_size(objects: &[Stat], layout: &Layout) -> u64 {
    let sizes: Vec<u64> = objects.iter().map(|stat| stat.st_size as u64).collect();
    layout.file_size(&sizes)
}

pub(crate) fn time(seconds: i64, nanoseconds: u64) -> Timespec {
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ }
}

fn later(one: Timespec, other: Timespec) -> Timespec {
    if (one.tv_sec, one.tv_nsec) >= (other.tv_sec, other.tv_nsec) { one } else { other }
}
