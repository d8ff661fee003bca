//! What calls cost the client itself, besides the work of the servers.
//!
//! A call on a file whose bytes are in n objects takes `a + b * n`: every object is opened, created
//! or asked for its size. For reads and writes, n is the number of objects that a request touches.
//! The papers' formulas have no such term.

use serde::{Deserialize, Serialize};

/// A kind of call whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Call {
    /// An existing file is opened.
    Open,
    /// A new file is created and opened.
    Create,
    /// The only descriptor of a file is closed.
    Close,
    /// The attributes of a file are queried by its name.
    Stat,
    /// The only name of a file is removed.
    Unlink,
    /// A small read that the page cache serves.
    Read,
    /// A small write that the page cache takes.
    Write,
}

impl Call {
    /// Every kind of call.
    pub const ALL: [Call; 7] =
        [Call::Open, Call::Create, Call::Close, Call::Stat, Call::Unlink, Call::Read, Call::Write];

    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        ["open", "create", "close", "stat", "unlink", "read", "write"][self as usize]
    }
}

/// A value for each kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByCall<T> {
    /// The value for opens.
    pub open: T,
    /// The value for creations.
    pub create: T,
    /// The value for closes.
    pub close: T,
    /// The value for stats.
    pub stat: T,
    /// The value for removals.
    pub unlink: T,
    /// The value for reads.
    pub read: T,
    /// The value for writes.
    pub write: T,
}

impl<T> ByCall<T> {
    /// The values that a function gives.
    ///
    /// # Errors
    /// The first error of the function.
    pub fn try_of<E>(mut value: impl FnMut(Call) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self {
            open: value(Call::Open)?,
            create: value(Call::Create)?,
            close: value(Call::Close)?,
            stat: value(Call::Stat)?,
            unlink: value(Call::Unlink)?,
            read: value(Call::Read)?,
            write: value(Call::Write)?,
        })
    }

    /// The value of one kind of call.
    pub fn of_call(&self, call: Call) -> &T {
        match call {
            Call::Open => &self.open,
            Call::Create => &self.create,
            Call::Close => &self.close,
            Call::Stat => &self.stat,
            Call::Unlink => &self.unlink,
            Call::Read => &self.read,
            Call::Write => &self.write,
        }
    }
}

/// The time that one kind of call takes in the client: `base_s + n * per_object_s` on a file with n
/// objects, `plain_s` on a plain file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCost {
    /// The cost `a`, seconds.
    pub base_s: f64,
    /// The cost `b`, seconds per object.
    pub per_object_s: f64,
    /// The same call on a plain file, without stripewise, seconds.
    pub plain_s: f64,
}

impl CallCost {
    /// Seconds of a call on a file with this number of objects.
    pub fn seconds(&self, objects: f64) -> f64 {
        self.base_s + objects * self.per_object_s
    }
}
