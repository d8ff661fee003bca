//! Acting as another user.

use std::marker::PhantomData;

use crate::{Errno, Result};

/// The calling thread acts as another user towards file systems, until this is dropped.
#[derive(Debug)]
pub struct Acting {
    acts: bool,
    /// It is the thread's.
    _thread: PhantomData<*const ()>,
}

/// What root makes in the calling thread from now on belongs to `user`, and root may do there what the user may: so a user can go on with it, and
/// nobody who swaps names can have root change what is not the user's. Of no effect for anybody but root, and for `None`.
#[must_use]
pub fn act_as(user: Option<u32>) -> Acting {
    let other = user.filter(|&user| user != 0 && rustix::process::geteuid().is_root());
    if let Some(user) = other {
        // SAFETY: no memory; changes this thread's fsuid alone.
        unsafe { libc::setfsuid(user) };
    }
    Acting { acts: other.is_some(), _thread: PhantomData }
}

/// Makes root's whole process that of another user, for good, with that user's groups: of what a
/// command does for the files of a user, nothing is done with rights that the user has not. Before
/// other threads are started.
///
/// # Errors
/// As setresuid(2): EPERM, the process is not root's.
pub fn become_user(user: u32, group: u32) -> Result<()> {
    let done = |result: i32| {
        if result == 0 {
            Ok(())
        } else {
            Err(Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)))
        }
    };
    // SAFETY: the entry is used before another call may change it; nobody else runs yet. A user
    // without one has the file's group.
    unsafe {
        match libc::getpwuid(user).as_ref() {
            Some(entry) => {
                done(libc::initgroups(entry.pw_name, entry.pw_gid))?;
                done(libc::setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid))?;
            }
            None => {
                done(libc::setgroups(1, &raw const group))?;
                done(libc::setresgid(group, group, group))?;
            }
        }
        done(libc::setresuid(user, user, user))
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if self.acts {
            // SAFETY: as above.
            unsafe { libc::setfsuid(rustix::process::geteuid().as_raw()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    const USER: u32 = 65534;

    #[test]
    fn root_makes_files_for_others() {
        if !rustix::process::geteuid().is_root() {
            return assert!(!act_as(Some(USER)).acts);
        }
        let dir = tempfile::tempdir().unwrap();
        let owner = |name| std::fs::metadata(dir.path().join(name)).unwrap().uid();
        let make = |name| std::fs::write(dir.path().join(name), "").map_err(|error| error.kind());
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        {
            let _acting = act_as(Some(USER));
            assert_eq!(make("a"), Err(std::io::ErrorKind::PermissionDenied), "as that user");
        }
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        {
            let _acting = act_as(Some(USER));
            make("b").unwrap();
        }
        make("c").unwrap();
        assert_eq!((owner("b"), owner("c")), (USER, 0));
    }
}
