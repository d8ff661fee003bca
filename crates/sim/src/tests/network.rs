//! Connections and transfers.

use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::cil::Cil;
use stripewise_model::{Network, Op, Service, Striping};

use super::{cluster, plan};
use crate::{Lists, Options, Outcome, Simulator, Step};

const NETWORK: Network = Network { establish_s: 3e-4, per_byte_s: 8e-9 };
const SERVICE: (f64, f64) = (300.0, 8.0);
const SIZE: u64 = 256 << 10;

/// Runs `procs` processes, `per_node` on each node. Each makes `each` requests of [`SIZE`] bytes on
/// its own file, which has the layout with the process's number.
fn run(servers: usize, layouts: Vec<Layout>, procs: u32, per_node: u32, each: u64, op: Op) -> Outcome {
    let mut cluster = cluster(&[(servers, [SERVICE, SERVICE])]);
    cluster.network = NETWORK;
    let mut simulator =
        Simulator::new(&cluster, Options { network: true, jitter: 0.0, ..Options::default() }).unwrap();
    let paths: Vec<String> = (0..procs).map(|process| format!("/d/{process}")).collect();
    simulator.open(&plan(&cluster, layouts), &paths, procs, per_node).unwrap();
    let requests =
        |file| (0..each).map(move |i| Step::Request { file, op, offset: i * SIZE, size: SIZE }).collect();
    simulator.run(&mut Lists::new((0..procs).map(requests).collect(), per_node))
}

fn model(servers: u32, striping: Striping, procs: u32, per_node: u32) -> stripewise_model::Cost {
    let service = Service { startup_s: SERVICE.0 * 1e-6, per_byte_s: SERVICE.1 * 1e-9 };
    Cil::new(NETWORK, service, servers, procs, per_node).unwrap().cost(striping, SIZE as f64).unwrap()
}

#[test]
fn a_request_alone_on_one_server_costs_what_the_model_says() {
    for op in [Op::Read, Op::Write] {
        let simulated = run(4, vec![on_one(1).unwrap()], 1, 1, 10, op).elapsed_s;
        let expected = 10.0 * model(4, Striping::OneDv, 1, 1).total_s();
        assert!((simulated / expected - 1.0).abs() < 1e-6, "{op:?}: {simulated} {expected}");
    }
}

#[test]
fn a_request_over_several_servers_costs_at_most_what_the_model_says() {
    for op in [Op::Read, Op::Write] {
        let layout = striped(&[0, 1, 2, 3], SIZE / 4).unwrap();
        let simulated = run(4, vec![layout], 1, 1, 10, op).elapsed_s;
        let cost = model(4, Striping::OneDh, 1, 1);
        // All bytes pass the node's NIC, after the first connection.
        let least = 10.0 * (NETWORK.establish_s + cost.transfer_s);
        assert!(simulated > least && simulated < 10.0 * cost.total_s(), "{op:?}: {simulated} {cost:?}");
    }
}

#[test]
fn a_node_passes_no_more_than_its_nic() {
    // Eight servers are faster than one NIC.
    let layouts: Vec<Layout> = (0..8).map(|server| on_one(server).unwrap()).collect();
    for op in [Op::Read, Op::Write] {
        let outcome = run(8, Vec::clone(&layouts), 16, 16, 50, op);
        let nic_s = outcome.bytes as f64 * NETWORK.per_byte_s;
        assert!((1.0..1.03).contains(&(outcome.elapsed_s / nic_s)), "{op:?}: {} {nic_s}", outcome.elapsed_s);
    }
}

#[test]
fn a_server_is_never_faster_than_its_queue_its_nic_or_its_connections() {
    for op in [Op::Read, Op::Write] {
        let outcome = run(1, vec![on_one(0).unwrap()], 8, 1, 50, op);
        let bound_s = outcome.servers[0].busy_s;
        assert!(
            (1.0..1.03).contains(&(outcome.elapsed_s / bound_s)),
            "{op:?}: {} {bound_s}",
            outcome.elapsed_s
        );
    }
}

#[test]
fn without_network_there_is_none() {
    let with = run(2, vec![on_one(0).unwrap()], 1, 1, 5, Op::Read).elapsed_s;
    let mut cluster = cluster(&[(2, [SERVICE, SERVICE])]);
    cluster.network = NETWORK;
    let mut simulator = Simulator::new(&cluster, Options { jitter: 0.0, ..Options::default() }).unwrap();
    simulator.open(&plan(&cluster, vec![on_one(0).unwrap()]), &["/d/0"], 1, 1).unwrap();
    let requests =
        (0..5).map(|i| Step::Request { file: 0, op: Op::Read, offset: i * SIZE, size: SIZE }).collect();
    let without = simulator.run(&mut Lists::new(vec![requests], 1)).elapsed_s;
    let network_s = 5.0 * (NETWORK.establish_s + SIZE as f64 * NETWORK.per_byte_s);
    assert!((with - without - network_s).abs() < 1e-6);
}
