//! Acts as another user.

use std::marker::PhantomData;

use crate::{Errno, Result};

/// While it exists, the calling thread accesses file systems as another user.
#[derive(Debug)]
pub struct Acting {
    acts: bool,
    /// The setting belongs to the thread, so this value must not be sent to another one.
    _thread: PhantomData<*const ()>,
}

/// Makes the calling thread of a root process access file systems as `user`: files that it creates
/// belong to that user, and it may do only what that user may do. So the user can use the files,
/// and another user who swaps names cannot make root change a file that is not the user's. Has
/// no effect for other users than root, and for `None`.
#[must_use]
pub fn act_as(user: Option<u32>) -> Acting {
    let other = user.filter(|&user| user != 0 && rustix::process::geteuid().is_root());
    if let Some(user) = other {
        // SAFETY: no memory is involved; changes only this thread's fsuid.
        unsafe { libc::setfsuid(user) };
    }
    Acting { acts: other.is_some(), _thread: PhantomData }
}

/// Turns root's whole process into one of another user permanently, with that user's groups. A
/// command that serves the files of a user then does nothing with rights that the user lacks. Must
/// be called before other threads are started.
///
/// # Errors
/// As setresuid(2): EPERM if the process is not root's.
pub fn become_user(user: u32, group: u32) -> Result<()> {
    let done = |result: i32| match result {
        0 => Ok(()),
        _ => Err(Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))),
    };
    // SAFETY: the entry is used before another call may change it, and no other thread runs yet. A
    // user without an entry gets the file's group.
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
