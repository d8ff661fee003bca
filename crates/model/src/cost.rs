//! The four terms of a cost.

use std::iter::Sum;
use std::ops::{Add, Mul};

use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The cost of one request, term by term, in seconds. Sums and multiples of it are the costs of
/// many requests.
///
/// It is serialized with the sum as a fifth key, `total_s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Cost {
    /// `T_e`: establishing network connections.
    pub establish_s: f64,
    /// `T_x`: transferring the bytes over the network.
    pub transfer_s: f64,
    /// `T_s`: startup of the I/O on the slowest server.
    pub startup_s: f64,
    /// `T_rw`: reading or writing on the slowest server.
    pub io_s: f64,
}

impl Cost {
    /// The sum of the terms, in seconds.
    pub fn total_s(&self) -> f64 {
        self.establish_s + self.transfer_s + self.startup_s + self.io_s
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Cost", 5)?;
        object.serialize_field("establish_s", &self.establish_s)?;
        object.serialize_field("transfer_s", &self.transfer_s)?;
        object.serialize_field("startup_s", &self.startup_s)?;
        object.serialize_field("io_s", &self.io_s)?;
        object.serialize_field("total_s", &self.total_s())?;
        object.end()
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            establish_s: self.establish_s + other.establish_s,
            transfer_s: self.transfer_s + other.transfer_s,
            startup_s: self.startup_s + other.startup_s,
            io_s: self.io_s + other.io_s,
        }
    }
}

impl Mul<f64> for Cost {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            establish_s: self.establish_s * times,
            transfer_s: self.transfer_s * times,
            startup_s: self.startup_s * times,
            io_s: self.io_s * times,
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}
