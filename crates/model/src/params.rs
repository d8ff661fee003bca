//! The parameters that calibration measures and all models read: e, t and, per server class, α and
//! β.

use serde::{Deserialize, Serialize};

use crate::error::{self, ModelError};

/// The network between a client and a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// `e`: the time to establish a connection, seconds.
    pub establish_s: f64,
    /// `t`: the transfer time, seconds per byte.
    pub per_byte_s: f64,
}

impl Network {
    /// Checks that both values are times.
    ///
    /// # Errors
    /// A value that is negative, infinite or not a number.
    pub fn check(&self) -> Result<(), ModelError> {
        error::time("establishing a connection (e)", self.establish_s)?;
        error::time("the network time per byte (t)", self.per_byte_s)
    }
}

/// The time that a sub-request of `b` bytes keeps a server busy: `startup_s + b * per_byte_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// `α`: the startup of one I/O, seconds.
    pub startup_s: f64,
    /// `β`: the I/O time, seconds per byte.
    pub per_byte_s: f64,
}

impl Service {
    /// Checks that both values are times.
    ///
    /// # Errors
    /// A value that is negative, infinite or not a number.
    pub fn check(&self) -> Result<(), ModelError> {
        error::time("the startup time (alpha)", self.startup_s)?;
        error::time("the I/O time per byte (beta)", self.per_byte_s)
    }

    /// The seconds that a sub-request of `bytes` keeps the server busy; 0 for 0 bytes, which do not
    /// touch it.
    pub fn busy_s(&self, bytes: u64) -> f64 {
        if bytes == 0 { 0.0 } else { self.startup_s + bytes as f64 * self.per_byte_s }
    }
}

/// The direction of an I/O request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Data move from the servers to the client.
    Read,
    /// Data move from the client to the servers.
    Write,
}

/// Whether a request continues where the stream's last one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The request begins anywhere.
    Random,
    /// The request begins where the last one ended.
    Sequential,
}

/// The parameters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByAccess<T = Service> {
    /// Random requests.
    pub random: T,
    /// Sequential requests.
    pub sequential: T,
}

/// All parameters of one server class; `T` is what is known of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassParams<T = Service> {
    /// Parameters of reads.
    pub read: ByAccess<T>,
    /// Parameters of writes.
    pub write: ByAccess<T>,
}

impl<T> ClassParams<T> {
    /// The class with a value for each kind of request.
    pub fn of(value: impl Fn(Op, Access) -> T) -> Self {
        let by_access =
            |op| ByAccess { random: value(op, Access::Random), sequential: value(op, Access::Sequential) };
        Self { read: by_access(Op::Read), write: by_access(Op::Write) }
    }

    /// The value for one kind of request.
    pub fn of_kind(&self, op: Op, access: Access) -> &T {
        let by_access = match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
        };
        match access {
            Access::Random => &by_access.random,
            Access::Sequential => &by_access.sequential,
        }
    }
}

impl ClassParams {
    /// The parameters of one kind of request.
    pub fn service(&self, op: Op, access: Access) -> Service {
        *self.of_kind(op, access)
    }
}
