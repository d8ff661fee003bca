//! Evaluations per second of the request cost on a prepared layout, with random offsets and sizes,
//! on eight servers of two classes.

use std::hint::black_box;
use stripewise_random::Random;

use criterion::{BenchmarkId, Criterion, Throughput};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{striped, two_d, until_full};
use stripewise_model::{Network, PreparedCost, Server, Service, Startup};

const KIB: u64 = 1 << 10;
const TARGETS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Fixed stripes, groups, and PSA's two regions.
fn layouts() -> [(&'static str, Layout); 3] {
    let first = TARGETS.map(|target| (target, if target < 4 { 120 * KIB } else { 8 * KIB }));
    let space = [4, 5, 6, 7].map(|target| (target, 256 << 20));
    let second = [0, 1, 2, 3].map(|target| (target, 128 * KIB));
    [
        ("1-DH", striped(&TARGETS, 64 * KIB).expect("valid")),
        ("2-D", two_d(&TARGETS, 4, 512 * KIB, 4 * KIB).expect("valid")),
        ("PSA", until_full(&first, &space, &second).expect("valid")),
    ]
}

fn servers() -> Vec<Server> {
    let hdd = Service { startup_s: 3e-4, per_byte_s: 7.95e-9 };
    let ssd = Service { startup_s: 5e-5, per_byte_s: 2.38e-9 };
    TARGETS.map(|target| Server::new(if target < 4 { hdd } else { ssd }, 16).expect("valid")).to_vec()
}

/// Random requests within 64 GiB, with sizes from 4 KiB to 4 MiB in steps of 4 KiB.
fn requests() -> Vec<(u64, u64)> {
    let mut random = Random(0);
    (0..4096).map(|_| (random.below(64 << 30), (random.below(1024) + 1) * 4 * KIB)).collect()
}

fn costs(criterion: &mut Criterion) {
    let network = Network { establish_s: 3e-4, per_byte_s: 7.95e-9 };
    let requests = requests();
    let mut group = criterion.benchmark_group("request costs");
    group.throughput(Throughput::Elements(requests.len() as u64));
    for (name, layout) in layouts() {
        let prepared = PreparedCost::new(&layout, &servers(), network, 2, Startup::EverySharer).expect("valid");
        group.bench_function(BenchmarkId::new("sum of 4096", name), |bench| {
            bench.iter(|| {
                let cost = |&(offset, size): &(u64, u64)| prepared.cost(offset, size).total_s();
                black_box(&requests).iter().map(cost).sum::<f64>()
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    costs(&mut criterion);
    criterion.final_summary();
}
