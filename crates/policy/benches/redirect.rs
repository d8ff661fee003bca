//! The cost of a decision per request: the Identifier and the Redirector on a cached file, and the
//! cheapest of three replicas.

use std::hint::black_box;
use stripewise_random::Random;

use criterion::{Criterion, Throughput};
use stripewise_cluster::CacheMode;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::{Access, ByAccess, ClassParams, Network, Op, Service};
use stripewise_policy::{Balance, Cdt, CopyView, Costs, Identifier, Kind, Request, Sent, Space, Span, Want};

const KIB: u64 = 1 << 10;
/// More requests than the table holds, so that each one replaces an entry.
const REQUESTS: u64 = 1 << 17;
const HSERVERS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const SSERVERS: [u32; 4] = [8, 9, 10, 11];

/// Entries of the critical data table.
const CDT: usize = 1 << 16;

/// No space: every write that misses goes to the original.
struct Full;

impl Space for Full {
    fn take_free(&mut self, _: &Want<'_>) -> bool {
        false
    }

    fn take_clean(&mut self, _: &Want<'_>) -> bool {
        false
    }
}

fn classes() -> Vec<ClassParams> {
    let class = |startup_s, per_byte_s| {
        let service = Service { startup_s, per_byte_s };
        let both = ByAccess { random: service, sequential: service };
        ClassParams { read: both, write: both }
    };
    (0..12).map(|target| if target < 8 { class(5e-3, 8.3e-9) } else { class(5e-5, 2.4e-9) }).collect()
}

fn identifier(balanced: bool) -> Identifier {
    let original = striped(&HSERVERS, 64 * KIB).expect("valid");
    let copies = [
        (striped(&SSERVERS, 64 * KIB).expect("valid"), 1),
        (on_one(8).expect("valid"), 4),
        (striped(&SSERVERS[..2], 64 * KIB).expect("valid"), 2),
    ];
    let views: Vec<CopyView<'_>> =
        copies.iter().map(|(layout, groups)| CopyView { layout, spread_over: 4, groups: *groups }).collect();
    let slow = CopyView { layout: &original, spread_over: 8, groups: 1 };
    let balance =
        Balance::new(&[&[slow][..], &views].concat(), &classes(), Network::default(), 32).expect("valid");
    let identifier = Identifier::new(CacheMode::Sla, &original, &views, &classes(), 32).expect("valid");
    if balanced { identifier.balanced(balance) } else { identifier }
}

/// Random offsets in 4 GiB, multiples of `len`.
fn offsets(len: u64) -> Vec<u64> {
    let mut random = Random(0);
    (0..REQUESTS).map(|_| random.below((4 << 30) / len) * len).collect()
}

fn redirect(criterion: &mut Criterion) {
    for (admission, balanced) in [("as printed", false), ("balanced", true)] {
        redirect_by(criterion, admission, &identifier(balanced));
    }
}

fn redirect_by(criterion: &mut Criterion, admission: &str, identifier: &Identifier) {
    let mut group = criterion.benchmark_group(format!("identify and redirect, {admission}"));
    group.throughput(Throughput::Elements(REQUESTS));
    for (name, op, len, mask) in [
        ("critical write, miss, no space", Op::Write, 4 * KIB, 1),
        ("critical read, miss", Op::Read, 4 * KIB, 1),
        ("critical read of 64 KiB, miss", Op::Read, 64 * KIB, 1),
        ("write of 64 MiB, miss", Op::Write, 64 << 20, 1),
        ("hit", Op::Read, 4 * KIB, 0b100),
    ] {
        let kind = Kind { op, access: Access::Random };
        let offsets = offsets(len);
        let mut cdt = Cdt::new(CDT);
        for place in 0..CDT as u64 {
            cdt.note(1, place * 64 * KIB + 1, 4 * KIB, 1);
        }
        let (sent, mut parts) = (Sent::default(), Vec::new());
        group.bench_function(name, |bench| {
            bench.iter(|| {
                for &offset in black_box(&offsets) {
                    parts.clear();
                    let spans = [Span { start: offset, end: offset + len, mask }];
                    let request = Request { file: 1, kind, offset, len };
                    black_box(identifier.redirect(&mut cdt, &sent, &request, &spans, &mut Full, &mut parts));
                }
            });
        });
    }
    group.finish();
}

fn replicas(criterion: &mut Criterion) {
    let layouts: Vec<Layout> =
        [16, 256, 4096].iter().map(|stripe| striped(&HSERVERS, stripe * KIB).expect("valid")).collect();
    let views: Vec<CopyView<'_>> =
        layouts.iter().map(|layout| CopyView { layout, spread_over: HSERVERS.len(), groups: 1 }).collect();
    let network = Network { establish_s: 3e-4, per_byte_s: 7.95e-9 };
    let costs = Costs::new(&views, &classes(), network, (32, 4)).expect("valid");
    let mut group = criterion.benchmark_group("replicas");
    group.throughput(Throughput::Elements(REQUESTS));
    let kind = Kind { op: Op::Write, access: Access::Random };
    for len in [4 * KIB, 1 << 20] {
        let offsets = offsets(len);
        group.bench_function(format!("cheapest of 3, {} KiB", len / KIB), |bench| {
            bench.iter(|| {
                let cheapest = |&offset| costs.cheapest(kind, offset, len, 0b111).unwrap_or(0);
                black_box(&offsets).iter().map(cheapest).sum::<usize>()
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    redirect(&mut criterion);
    replicas(&mut criterion);
    criterion.final_summary();
}
