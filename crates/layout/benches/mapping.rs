//! The cost of a mapping: one offset, the pieces of a request, and its bytes per target. Offsets
//! are random, so that the branch predictor cannot learn them.

use std::hint::black_box;
use stripewise_random::Random;

use criterion::Criterion;
use stripewise_layout::Layout;
use stripewise_layout::constructors::{striped, two_d, until_full};

const MIB: u64 = 1 << 20;
const TARGETS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Fixed stripes, groups, and PSA's two regions, all on eight targets.
fn layouts() -> [(&'static str, Layout); 3] {
    let first = TARGETS.map(|target| (target, if target < 4 { 240 << 10 } else { 16 << 10 }));
    let space = [4, 5, 6, 7].map(|target| (target, 256 * MIB));
    let second = [0, 1, 2, 3].map(|target| (target, 256 << 10));
    [
        ("1-DH", striped(&TARGETS, 64 << 10).expect("valid")),
        ("2-D", two_d(&TARGETS, 4, MIB, 4096).expect("valid")),
        ("PSA", until_full(&first, &space, &second).expect("valid")),
    ]
}

/// 4096 offsets in the range of 64 GiB.
fn offsets() -> Vec<u64> {
    let mut random = Random(0);
    (0..4096).map(|_| random.below(64 << 30)).collect()
}

fn mapping(criterion: &mut Criterion) {
    let offsets = offsets();
    for (name, layout) in layouts() {
        let mut at = (0..offsets.len()).cycle();
        let mut offset = || offsets[at.next().expect("endless")];
        let mut group = criterion.benchmark_group(name);
        group.bench_function("locate", |bench| bench.iter(|| layout.locate(black_box(offset()))));
        group.bench_function("file_offset", |bench| {
            bench.iter(|| layout.file_offset(0, black_box(offset()) >> 3));
        });
        group.bench_function("pieces of 1 MiB, first to last", |bench| {
            bench.iter(|| layout.pieces(black_box(offset()), MIB).map(|piece| piece.target_offset).max());
        });
        let mut bytes = [0; TARGETS.len()];
        group.bench_function("bytes_per_target of 1 MiB", |bench| {
            bench.iter(|| {
                layout.bytes_per_target(black_box(offset()), MIB, &mut bytes);
                bytes[0]
            });
        });
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    mapping(&mut criterion);
    criterion.final_summary();
}
