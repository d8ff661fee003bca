//! Built-in parameters of common servers, for advice without a calibration. They are orders of
//! magnitude: an advice that depends on them says so.
//!
//! A server here is what a parallel file system stripes over, such as an OST: several devices
//! behind one server. (The papers' single disks of `crates/evaluate` are slower.) Streams that come
//! to a server from many clients seek, which is the startup of random requests.

use serde::Serialize;
use stripewise_model::{ByAccess, ClassParams, Network, Service};

/// Bytes per second of 1 GB/s.
const GB: f64 = 1e9;

/// A kind of server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A group of some ten disks (RAID 6).
    #[default]
    Hdd,
    /// A group of SATA or SAS flash devices.
    Ssd,
    /// NVMe devices.
    Nvme,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 3] = [Class::Hdd, Class::Ssd, Class::Nvme];

    /// The name in `--fs`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Hdd => "hdd",
            Class::Ssd => "ssd",
            Class::Nvme => "nvme",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Class::Hdd => "HDD",
            Class::Ssd => "SSD",
            Class::Nvme => "NVMe",
        }
    }

    /// The class that a pool's name suggests; disks, if it suggests none.
    pub fn of_pool(name: &str) -> Class {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match () {
            () if has(&["nvme", "optane"]) => Class::Nvme,
            () if has(&["flash", "ssd", "fast", "burst"]) => Class::Ssd,
            () => Class::Hdd,
        }
    }

    /// α and β.
    pub fn params(self) -> ClassParams {
        let (random_s, sequential_s, rate) = match self {
            Class::Hdd => (4e-3, 3e-4, 0.6 * GB),
            Class::Ssd => (2e-4, 1e-4, 1.5 * GB),
            Class::Nvme => (8e-5, 5e-5, 4.0 * GB),
        };
        let service = |startup_s| Service { startup_s, per_byte_s: 1.0 / rate };
        let both = ByAccess { random: service(random_s), sequential: service(sequential_s) };
        ClassParams { read: both, write: both }
    }
}

/// A node's link of 100 Gbit/s with persistent connections.
pub fn network() -> Network {
    Network { establish_s: 2e-5, per_byte_s: 1.0 / (10.0 * GB) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_faster_than_the_one_before() {
        let time = |class: Class| class.params().read.random.busy_s(1 << 20);
        assert!(Class::ALL.is_sorted_by(|a, b| time(*a) > time(*b)));
    }

    #[test]
    fn names_of_pools_suggest_classes() {
        for (name, class) in [("flash", Class::Ssd), ("NVMe0", Class::Nvme), ("capacity", Class::Hdd)] {
            assert_eq!(Class::of_pool(name), class, "{name}");
        }
    }
}
