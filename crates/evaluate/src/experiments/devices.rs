//! Servers and network of the published experiments.
//!
//! **HServers** are CIL's disks: 0.3 ms for a random access, 0.1 ms for a sequential one, 120 MB/s
//! (MB is 2^20 bytes here).
//!
//! **SServers.** PSA and SLA do not print α and β of their SSDs (OCZ RevoDrive X2), only their
//! speed relative to the disk (SLA §2.2): random reads of 4 KiB are 14.5 times as fast and writes
//! 27.2 times; sequential reads of 256 KiB are 2.2 times as fast and writes 1.9 times. If α is the
//! same for random and sequential access, these are two equations for α and β:
//!
//! ```text
//! α + 4 KiB · β   = (0.3 ms + 4 KiB / 120 MB/s) / 14.5   = 0.0229 ms
//! α + 256 KiB · β = (0.1 ms + 256 KiB / 120 MB/s) / 2.2  = 0.9924 ms
//! ```
//!
//! Reads: α = 0.0076 ms, 1/β = 254 MB/s. Writes: 1/β = 217 MB/s and α = -0.006 ms, so a disk with a
//! startup of 0.3 ms contradicts such an SSD (27.2 requires a startup of at least 0.46 ms). Writes
//! therefore get the startup of reads, the rate follows from the large requests (219 MB/s), and
//! writes of 4 KiB are 13 times as fast instead of 27.2 times. (Without any startup they would be
//! 18.5 times as fast; but then SLA's model divides small writes over as many servers as it can.)
//!
//! PSA's own results support these values: PA's stripes make a disk and an SSD take the same time
//! for their pieces of 512 KiB. With these parameters an HServer gets 17K (random reads), 22K
//! (random writes), 33K (sequential reads) and 38K (sequential writes) of each 128K; published are
//! 20K, 24K, 28K and 36K. With a startup of 1 ms the SServers would get everything.

use stripewise_model::{ByAccess, ClassParams, Network, Service};

use crate::cell::Servers;

/// Bytes per megabyte in the papers' rates.
const MB: f64 = (1u64 << 20) as f64;

/// CIL's startup of a random access on a disk, in seconds.
pub const RANDOM_S: f64 = 3e-4;

/// Speed of the SSD relative to the disk: (4 KiB random, 256 KiB sequential) for reads and for
/// writes.
const FASTER: [(f64, f64); 2] = [(14.5, 2.2), (27.2, 1.9)];

/// Returns CIL's Ethernet.
pub fn ethernet() -> Network {
    Network { establish_s: 3e-4, per_byte_s: 1.0 / (120.0 * MB) }
}

/// Returns CIL's Ethernet with persistent connections, as parallel file systems have. SLA's model
/// has no cost of establishing connections: with 0.3 ms for every request, an SSD server would be
/// no faster than a disk server.
pub fn ethernet_connected() -> Network {
    Network { establish_s: 0.0, ..ethernet() }
}

/// Returns CIL's disk with another startup of random accesses, in seconds.
pub fn hdd(random_s: f64) -> ClassParams {
    let service = |startup_s| Service { startup_s, per_byte_s: 1.0 / (120.0 * MB) };
    let both = ByAccess { random: service(random_s), sequential: service(RANDOM_S / 3.0) };
    ClassParams { read: both, write: both }
}

/// Returns an SSD whose speed relative to that disk is as in SLA.
pub fn ssd_beside(hdd: &ClassParams) -> ClassParams {
    const SMALL: u64 = 4 << 10;
    const LARGE: u64 = 256 << 10;
    let service = |(small, large): (f64, f64)| {
        let small_s = hdd.read.random.busy_s(SMALL) / small;
        let large_s = hdd.read.sequential.busy_s(LARGE) / large;
        let per_byte_s = (large_s - small_s) / (LARGE - SMALL) as f64;
        (Service { startup_s: small_s - SMALL as f64 * per_byte_s, per_byte_s }, large_s)
    };
    let [(read, _), (mut write, large_s)] = FASTER.map(service);
    if write.startup_s < 0.0 {
        let startup_s = read.startup_s;
        write = Service { startup_s, per_byte_s: (large_s - startup_s) / LARGE as f64 };
    }
    let both = |service| ByAccess { random: service, sequential: service };
    ClassParams { read: both(read), write: both(write) }
}

/// Returns an SSD with equal times of reads and writes: a startup of 0.05 ms and 400 MB/s. The
/// worked example in `docs/papers.md` and the comparison in `docs/psa-and-pa.md` use it.
pub fn ssd_of_the_worked_example() -> ClassParams {
    let service = Service { startup_s: 5e-5, per_byte_s: 1.0 / (400.0 * MB) };
    let both = ByAccess { random: service, sequential: service };
    ClassParams { read: both, write: both }
}

/// Returns the same class, slower by `factor`.
pub fn slowed(class: &ClassParams, factor: f64) -> ClassParams {
    let slow = |service: Service| Service {
        startup_s: service.startup_s * factor,
        per_byte_s: service.per_byte_s * factor,
    };
    let both = |by: ByAccess| ByAccess { random: slow(by.random), sequential: slow(by.sequential) };
    ClassParams { read: both(class.read), write: both(class.write) }
}

/// Space of servers that is not limited.
pub const UNLIMITED: u64 = 1 << 50;

/// Returns HServers of a class with unlimited space, and SServers of another with limited space.
pub fn tiers(
    (hservers, sservers): (u32, u32),
    (hdd, ssd): (ClassParams, ClassParams),
    space_per_sserver: u64,
) -> Vec<Servers> {
    let tier = |name, count, class, capacity_per_server| Servers { name, count, class, capacity_per_server };
    vec![tier("hdd", hservers, hdd, UNLIMITED), tier("ssd", sservers, ssd, space_per_sserver)]
}

/// Returns the published disk, and the SSD beside it.
pub fn published() -> (ClassParams, ClassParams) {
    let disk = hdd(RANDOM_S);
    (disk, ssd_beside(&disk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ssd_is_as_much_faster_as_published() {
        // With 1 ms and more there is no contradiction.
        let disk = hdd(1e-3);
        let ssd = ssd_beside(&disk);
        let ratios = |ssd: ByAccess, hdd: ByAccess| {
            let small = hdd.random.busy_s(4 << 10) / ssd.random.busy_s(4 << 10);
            (small, hdd.sequential.busy_s(256 << 10) / ssd.sequential.busy_s(256 << 10))
        };
        let near = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 1e-9 && (b - d).abs() < 1e-9;
        assert!(near(ratios(ssd.read, disk.read), FASTER[0]));
        assert!(near(ratios(ssd.write, disk.write), FASTER[1]));
    }

    #[test]
    fn what_the_published_disk_and_ssd_say_of_each_other() {
        let disk = hdd(RANDOM_S);
        let ssd = ssd_beside(&disk);
        let rate = |service: Service| 1.0 / service.per_byte_s / MB;
        assert!((ssd.read.random.startup_s - 7.55e-6).abs() < 1e-8, "{ssd:?}");
        assert!((rate(ssd.read.random) - 253.9).abs() < 0.1, "{ssd:?}");
        assert_eq!(ssd.write.random.startup_s, ssd.read.random.startup_s);
        assert!((rate(ssd.write.random) - 219.0).abs() < 0.1, "{ssd:?}");
        let writes = disk.write.random.busy_s(4 << 10) / ssd.write.random.busy_s(4 << 10);
        assert!((writes - 13.1).abs() < 0.1, "{writes}");
    }

    #[test]
    fn the_published_stripes_of_pa_follow_from_these_servers() {
        // From h + s = 128K and equal times: h = (α_s - α_h + 128K · β_s) / (β_h + β_s).
        let disk = hdd(RANDOM_S);
        let stripe = |slow: Service, fast: Service| {
            let both = slow.per_byte_s + fast.per_byte_s;
            (fast.startup_s - slow.startup_s + 131_072.0 * fast.per_byte_s) / both / 1024.0
        };
        let ssd = ssd_beside(&disk);
        let stripes = [(disk.read, ssd.read), (disk.write, ssd.write)]
            .map(|(slow, fast)| (stripe(slow.random, fast.random), stripe(slow.sequential, fast.sequential)));
        let [(random_read, read), (random_write, write)] = stripes;
        for (found, published) in [(random_read, 20.0), (random_write, 24.0), (read, 28.0), (write, 36.0)] {
            assert!((found - published).abs() < 6.0, "{stripes:?}");
        }
        let slow = hdd(1e-3);
        assert!(stripe(slow.read.random, ssd_beside(&slow).read.random) < 0.0);
    }
}
