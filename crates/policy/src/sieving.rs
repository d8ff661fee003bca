//! Data sieving on a managed file: decides whether an MPI library should read (and write back)
//! everything between the pieces that a process needs, in large requests, or only the pieces.
//!
//! Sieving moves more bytes, the pieces need more startups. Which costs less depends on the layout,
//! on the servers, and on the number of processes that do it at the same time. The decision uses
//! the general cost formula and the file's layout in the plan.

use stripewise_cluster::Plan;
use stripewise_layout::Layout;
use stripewise_model::{Access, Op, PreparedCost, Service, Startup};

/// Strided requests of one of several processes.
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    /// Whether the requests write.
    pub writes: bool,
    /// Number of processes that make such requests at the same time, and the largest number of them
    /// on one node.
    pub procs: (u32, u32),
    /// Length of a piece, bytes.
    pub piece_bytes: u64,
    /// Distance from the start of one piece to the start of the next, bytes.
    pub stride_bytes: u64,
    /// Length of a sieving request, bytes.
    pub buffer_bytes: u64,
}

/// Maximum number of pieces examined. The slowest of them counts, because all processes wait for
/// the busiest server in the end.
const PIECES: u64 = 64;

/// Whether sieving costs less than separate pieces; `None` if the plan does not know all of the
/// servers.
pub fn pays(plan: &Plan, layout: &Layout, strided: &Strided) -> Option<bool> {
    // A file that the file system stripes over a pool is on all of the pool's servers.
    let layout = &plan.cluster.unfold(layout, 0);
    let pieces = (strided.buffer_bytes / strided.stride_bytes.max(1)).max(1);
    let op = if strided.writes { Op::Write } else { Op::Read };
    let single = prepared(plan, layout, op, strided.procs)?;
    let piece_s = |i: u64| single.cost(i * strided.stride_bytes, strided.piece_bytes).total_s();
    let slowest_s = (0..PIECES.min(pieces)).map(piece_s).fold(0.0, f64::max);
    Some(sieve_s(plan, layout, strided)? < slowest_s * pieces as f64)
}

/// The cost of one sieving request in seconds. A write locks its range, which overlaps those of the
/// other processes, so they take turns.
fn sieve_s(plan: &Plan, layout: &Layout, strided: &Strided) -> Option<f64> {
    let cost_s = |op, procs| Some(prepared(plan, layout, op, procs)?.cost(0, strided.buffer_bytes).total_s());
    if !strided.writes {
        return cost_s(Op::Read, strided.procs);
    }
    let alone = (1, 1);
    Some(f64::from(strided.procs.0) * (cost_s(Op::Read, alone)? + cost_s(Op::Write, alone)?))
}

fn prepared(plan: &Plan, layout: &Layout, op: Op, procs: (u32, u32)) -> Option<PreparedCost> {
    let targets = layout.targets().max()? + 1;
    let service = |target| Some(plan.cluster.class_of(target)?.service(op, Access::Random));
    let services: Vec<Service> = (0..targets).map(service).collect::<Option<_>>()?;
    let (spread_over, network) = (layout.target_count(), plan.cluster.network);
    PreparedCost::by_reach(layout, &services, spread_over, network, procs, Startup::EverySharer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 HDDs and 4 SSDs; the HDDs are slow. As in `bench/results.d/mpi.md`.
    fn plan(cycle: &str) -> Plan {
        let class = |name: &str, startup_s: f64, per_byte_s: f64| {
            let service = format!("{{ startup_s = {startup_s:e}, per_byte_s = {per_byte_s:e} }}");
            let kinds = ["read.random", "read.sequential", "write.random", "write.sequential"];
            let lines = kinds.map(|kind| format!("{kind} = {service}\n")).concat();
            let servers = [0, 1, 2, 3].map(|i| format!("\"/s/{name}{i}\"")).join(", ");
            format!(
                "[cluster.class.{name}]\n{lines}[[cluster.tier]]\nname = \"{name}\"\nclass = \"{name}\"\n\
                 driver = \"dirs\"\nservers = [{servers}]\ncapacity_per_server = \"1T\"\n"
            )
        };
        let text = format!(
            "version = 1\nscheme = \"DEF\"\n[[rule]]\npattern = \"/d/**\"\nscheme = \"DEF\"\nreason = \"a test\"\n\
             predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = \"{cycle}\" }}]]\n\
             [cluster.network]\nestablish_s = 0.0\nper_byte_s = 0.0\n{}{}",
            class("hdd", 1.2e-3, 3.18e-8),
            class("ssd", 2e-4, 9.5e-9)
        );
        Plan::parse(&text, "plan.toml").unwrap()
    }

    fn decision(cycle: &str, writes: bool, procs: u32, piece_bytes: u64) -> bool {
        let plan = plan(cycle);
        let stride_bytes = piece_bytes * u64::from(procs);
        let buffer_bytes = if writes { 512 << 10 } else { 4 << 20 };
        let strided = Strided { writes, procs: (procs, procs), piece_bytes, stride_bytes, buffer_bytes };
        pays(&plan, &plan.rules[0].layouts[0], &strided).unwrap()
    }

    /// Measured results: (processes, bytes of a piece, whether sieving was faster for reads, and
    /// for writes).
    #[test]
    fn it_decides_as_measured() {
        let measured = [
            (2, 1 << 10, true, true),
            (2, 4 << 10, true, true),
            (2, 256 << 10, false, false),
            (8, 1 << 10, true, true),
            (8, 16 << 10, false, false),
            (8, 64 << 10, false, false),
            (16, 4 << 10, false, false),
            (16, 64 << 10, false, false),
        ];
        for (procs, piece, read, write) in measured {
            let found = [false, true].map(|writes| decision("hdd/0-3:64K ssd/0-3:64K", writes, procs, piece));
            assert_eq!(found, [read, write], "{procs} processes, pieces of {piece}");
        }
    }

    #[test]
    fn an_unknown_server_gives_no_advice() {
        let plan = plan("hdd/0-3:64K");
        let layout = &plan.rules[0].layouts[0];
        let none = Plan {
            cluster: stripewise_cluster::Cluster { tiers: Vec::new(), ..plan.cluster.clone() },
            ..plan.clone()
        };
        let strided =
            Strided { writes: false, procs: (2, 2), piece_bytes: 1, stride_bytes: 2, buffer_bytes: 4 };
        assert_eq!(pays(&none, layout, &strided), None);
    }
}
