//! Whole runs, compared with brute force and checked for invariants.

mod copies;
mod network;
mod striped;

pub(crate) use stripewise_random::Random;

use std::path::PathBuf;

use stripewise_cluster::{Cluster, Driver, Plan, Rule, Spread, Tier};
use stripewise_layout::Layout;
use stripewise_model::{ByAccess, ClassParams, Network, Service};

/// A cluster with a number of servers per class. The parameters of a class are (startup in µs, ns
/// per byte) for random and for sequential access.
pub(crate) fn cluster(classes: &[(usize, [(f64, f64); 2])]) -> Cluster {
    let mut cluster = Cluster { network: Network::default(), ..Cluster::default() };
    for (index, &(servers, [random, sequential])) in classes.iter().enumerate() {
        let service = |(us, ns): (f64, f64)| Service { startup_s: us * 1e-6, per_byte_s: ns * 1e-9 };
        let by = ByAccess { random: service(random), sequential: service(sequential) };
        let name = format!("c{index}");
        cluster.classes.insert(name.clone(), ClassParams { read: by, write: by });
        let dirs = (0..servers).map(|server| PathBuf::from(format!("/s/{name}/{server}"))).collect();
        cluster.tiers.push(Tier {
            name: name.clone(),
            class: name,
            driver: Driver::Dirs { servers: dirs },
            capacity_per_server: 1 << 40,
            emulate: true,
        });
    }
    cluster
}

/// A plan with these layouts for `/d/0`, `/d/1`, ... in turn.
pub(crate) fn plan(cluster: &Cluster, layouts: Vec<Layout>) -> Plan {
    let rule = Rule {
        pattern: "/d/<n>".into(),
        scheme: "test".into(),
        reason: "a test".into(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts,
        spread: Spread { field: Some(0), stride: 1 },
        overlay: None,
    };
    Plan { scheme: "test".into(), cluster: cluster.clone(), rules: vec![rule] }
}
