//! The servers: FIFO queues, each represented by the time until which the server is busy.

use stripewise_cluster::Cluster;
use stripewise_model::{Access, ClassParams, Op};
use stripewise_random::Noise;

use crate::{SimError, outcome::ServerUse};

/// A process number that no process has.
const NOBODY: u32 = u32::MAX - 1;

/// Service times of a class, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    startup_ns: f64,
    per_byte_ns: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// Time when everything that has arrived is done, ns.
    busy_until_ns: u64,
    busy_ns: u64,
    requests: u64,
    bytes: u64,
    class: u32,
    /// The process that used the server last.
    used_by: u32,
}

#[derive(Debug)]
struct Class {
    /// Read random, read sequential, write random, write sequential.
    times: [Times; 4],
    /// Whether an access of another process in between makes the next one random, as with the arm
    /// of a real disk.
    one_arm: bool,
}

/// All servers of a cluster, by target index.
///
/// An arriving request adds its service time to the server's busy time. Requests must therefore be
/// served in the order of their arrival, which is the simulator's order of events.
#[derive(Debug)]
pub(crate) struct Servers {
    servers: Vec<Server>,
    classes: Vec<Class>,
    jitter: f64,
    noise: Noise,
    /// Whether any server distinguishes random and sequential access.
    pub order_matters: bool,
}

impl Servers {
    pub fn new(cluster: &Cluster, jitter: f64, seed: u64) -> Result<Self, SimError> {
        let (mut servers, mut classes, mut order_matters) = (Vec::new(), Vec::new(), false);
        for (index, tier) in cluster.tiers.iter().enumerate() {
            let params = params(cluster, index)
                .ok_or_else(|| {
                let (tier, class) = (&tier.name, &tier.class);
                SimError(format!(
                    "tier {tier}: class {class} has no parameters: add [class.{class}] to the cluster, or calibrate"
                ))
            })?;
            let mut times = [Times::default(); 4];
            for op in [Op::Read, Op::Write] {
                for access in [Access::Random, Access::Sequential] {
                    let service = params.service(op, access);
                    service.check()?;
                    times[kind(op, access == Access::Sequential)] =
                        Times { startup_ns: service.startup_s * 1e9, per_byte_ns: service.per_byte_s * 1e9 };
                }
            }
            order_matters |=
                params.read.random != params.read.sequential || params.write.random != params.write.sequential;
            let server = Server { class: classes.len() as u32, used_by: NOBODY, ..Server::default() };
            servers.extend(vec![server; tier.driver.servers()]);
            // Measured parameters describe one stream on a device; emulated servers distinguish the
            // streams of processes.
            let one_arm = !tier.emulate && cluster.measured.contains_key(&tier.class);
            classes.push(Class { times, one_arm });
        }
        // Spreads the seed over all bits; never 0.
        let noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Ok(Self { servers, classes, jitter, noise, order_matters })
    }

    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// The time that a sub-request of a process keeps a server busy, ns.
    #[inline]
    pub fn service_ns(&mut self, server: u32, process: u32, op: Op, sequential: bool, bytes: u64) -> u64 {
        let server = &mut self.servers[server as usize];
        let class = &self.classes[server.class as usize];
        let before = std::mem::replace(&mut server.used_by, process);
        let sequential = sequential && (before == process || !class.one_arm);
        let Times { startup_ns, per_byte_ns } = class.times[kind(op, sequential)];
        let mean_ns = startup_ns + bytes as f64 * per_byte_ns;
        (mean_ns * (1.0 + self.jitter * self.noise.next_unit()) + 0.5) as u64
    }

    /// Adds an arriving sub-request. Returns when it is done, ns.
    #[inline]
    pub fn serve(&mut self, server: u32, now_ns: u64, service_ns: u64, bytes: u64) -> u64 {
        let server = &mut self.servers[server as usize];
        server.requests += 1;
        server.bytes += bytes;
        server.busy_ns += service_ns;
        server.busy_until_ns = server.busy_until_ns.max(now_ns) + service_ns;
        server.busy_until_ns
    }

    /// Resets the counters.
    pub fn begin(&mut self) {
        for server in &mut self.servers {
            (server.busy_ns, server.requests, server.bytes) = (0, 0, 0);
            server.used_by = NOBODY;
        }
    }

    /// The work done since [`Servers::begin`].
    pub fn used(&self) -> Vec<ServerUse> {
        let used = |server: &Server| ServerUse {
            busy_s: server.busy_ns as f64 / 1e9,
            requests: server.requests,
            bytes: server.bytes,
        };
        self.servers.iter().map(used).collect()
    }
}

/// The parameters of a tier: those of the class for emulated servers, the measured ones for others.
fn params(cluster: &Cluster, tier: usize) -> Option<&ClassParams> {
    let spec = &cluster.tiers[tier];
    let by_hand = if spec.emulate { cluster.classes.get(&spec.class) } else { None };
    by_hand.or_else(|| cluster.class_of_tier(tier))
}

#[inline]
fn kind(op: Op, sequential: bool) -> usize {
    2 * usize::from(op == Op::Write) + usize::from(sequential)
}
