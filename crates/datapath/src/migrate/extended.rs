//! Extended attributes and access lists that a copy takes over.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use stripewise_sys::{Kind, SysRef};

use crate::{Errno, Result};

const ACCESS_LIST: &str = "system.posix_acl_access";

/// Attributes in which file systems (or substitutes for them in tests) keep properties of the new
/// file itself: its layout, its objects, its location.
const NOT_TAKEN: [&[u8]; 12] = [
    b"user.stripewise",
    b"user.pvfs2.",
    b"user.beegfs",
    b"trusted.lov",
    b"trusted.lma",
    b"trusted.lmv",
    b"trusted.link",
    b"trusted.fid",
    b"trusted.hsm",
    b"trusted.som",
    b"trusted.dmv",
    b"trusted.pfid",
];

/// How to treat an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Copy it; failure is an error.
    Must,
    /// Copy it if this user may set it.
    May,
    Not,
}

fn taken(name: &OsStr, access_lists: bool) -> Taken {
    let bytes = name.as_bytes();
    let begins = |prefix: &[u8]| bytes.starts_with(prefix);
    match () {
        () if NOT_TAKEN.iter().any(|prefix| begins(prefix)) => Taken::Not,
        () if begins(b"user.") || (access_lists && name == ACCESS_LIST) => Taken::Must,
        () if begins(b"security.") || begins(b"trusted.") => Taken::May,
        () => Taken::Not,
    }
}

/// Copies the attributes of `from` to `to`. With `access_lists`, `to` also gets the access list of
/// `from`, or none.
///
/// # Errors
/// A required attribute cannot be set, see setxattr(2). A file system without attributes is no
/// error.
pub(super) fn copy(sys: &SysRef, from: Kind<'_>, to: Kind<'_>, access_lists: bool) -> Result<()> {
    let names = list(sys, from)?;
    for name in &names {
        let taken = taken(name, access_lists);
        if taken == Taken::Not {
            continue;
        }
        let value = match sys.xattr(from, name) {
            Err(_) if taken == Taken::May => continue,
            value => value?,
        };
        let set = sys.set_xattr(to, name, &value);
        if taken == Taken::Must {
            set?;
        }
    }
    // The copy may have inherited one from its directory.
    let access_list = OsStr::new(ACCESS_LIST);
    let inherited = |names: Vec<OsString>| names.iter().any(|name| name == access_list);
    if access_lists && !names.iter().any(|name| name == access_list) && inherited(list(sys, to)?) {
        sys.remove_xattr(to, access_list)?;
    }
    Ok(())
}

fn list(sys: &SysRef, of: Kind<'_>) -> Result<Vec<OsString>> {
    match sys.list_xattr(of) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Vec::new()),
        names => names,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_stay_and_what_users_set_comes_along() {
        for (name, expected) in [
            ("user.note", Taken::Must),
            ("user.pvfs2.dist_name", Taken::Not),
            ("user.stripewise.null", Taken::Not),
            ("ceph.file.layout", Taken::Not),
            ("lustre.lov", Taken::Not),
            ("trusted.lov", Taken::Not),
            ("trusted.mine", Taken::May),
            ("security.selinux", Taken::May),
            ("system.posix_acl_access", Taken::Must),
            ("system.nfs4_acl", Taken::Not),
        ] {
            assert_eq!(taken(OsStr::new(name), true), expected, "{name}");
        }
        assert_eq!(taken(OsStr::new(ACCESS_LIST), false), Taken::Not);
    }
}
