//! The cost of a request that misses, in addition to its I/O: the extent map with a million cached
//! extents, the Identifier and the Redirector.
//!
//! `cargo bench -p stripewise-policy --bench miss` prints the table of `bench/results.d/policy.md`.
//! The map and the journal are in /dev/shm.

#![allow(missing_docs, reason = "a benchmark")]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use stripewise_random::Random;

use stripewise_cluster::CacheMode;
use stripewise_extents::{CopyId, Map, MapSpec, Mask, Node};
use stripewise_layout::Layout;
use stripewise_layout::constructors::{on_one, striped};
use stripewise_model::{Access, ByAccess, ClassParams, Network, Op, Service};
use stripewise_policy::{Balance, Cdt, CopyView, Identifier, Kind, Request, Sent, Space, Span, Want};
use stripewise_sys::{Real, SysRef};

const BLOCK: u64 = 4096;
const EXTENTS: u64 = 1_000_000;
/// Number of blocks of the file per cached block.
const SPARSE: u64 = 4;
const REQUESTS: usize = 100_000;
const TIMES: usize = 15;
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

fn block(number: u64) -> Range<u64> {
    number * BLOCK..(number + 1) * BLOCK
}

fn map(memory: &std::path::Path) -> Map {
    let sys: SysRef = Arc::new(Real);
    let spec = MapSpec {
        owner: None,
        run_dir: memory.join("file"),
        journal_base: memory.to_owned(),
        journal_below: Default::default(),
        journal_name: "f.extents".into(),
        id: [7; 16],
        copies: 4,
        default: Mask::ORIGINAL,
        node: Node::this(&sys).expect("a node"),
        create: true,
        sessions: false,
    };
    Map::join(sys, spec).expect("a map")
}

/// SLA's 8 HServers and 4 SServers, 32 processes.
fn identifier(balanced: bool) -> Identifier {
    let service = |startup_s, per_byte_s| Service { startup_s, per_byte_s };
    let class = |service| {
        let both = ByAccess { random: service, sequential: service };
        ClassParams { read: both, write: both }
    };
    let (hdd, ssd) = (class(service(3e-4, 7.9e-9)), class(service(5e-5, 2.4e-9)));
    let classes: Vec<ClassParams> = (0..12).map(|target| if target < 8 { hdd } else { ssd }).collect();
    let original = striped(&[0, 1, 2, 3, 4, 5, 6, 7], 64 << 10).expect("valid");
    let ssds = [8, 9, 10, 11];
    let copies: Vec<(Layout, u32)> = vec![
        (striped(&ssds, 64 << 10).expect("valid"), 1),
        (on_one(8).expect("valid"), 4),
        (striped(&ssds[..2], 64 << 10).expect("valid"), 2),
    ];
    let views: Vec<_> =
        copies.iter().map(|(layout, groups)| CopyView { layout, spread_over: 4, groups: *groups }).collect();
    let slow = CopyView { layout: &original, spread_over: 8, groups: 1 };
    let identifier = Identifier::new(CacheMode::Sla, &original, &views, &classes, 32).expect("valid");
    if !balanced {
        return identifier;
    }
    identifier.balanced(
        Balance::new(&[&[slow][..], &views].concat(), &classes, Network::default(), 32).expect("valid"),
    )
}

/// CPU time of this thread in ns; other processes may be running.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: an out pointer of this frame.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Prints one row: the CPU time of one request in ns, from the fastest and from the median
/// measurement.
fn row(name: &str, places: &[u64], mut request: impl FnMut(Range<u64>)) {
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let started = cpu_ns();
            places.iter().for_each(|&number| request(block(number)));
            (cpu_ns() - started) as f64 / places.len() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("| {name} | {:.0} | {:.0} |", times[0], times[TIMES / 2]);
}

/// Asks the policy for the destination of a request.
struct Decider<'a> {
    identifier: &'a Identifier,
    cdt: Cdt,
    sent: Sent,
    parts: Vec<stripewise_policy::Part>,
}

impl Decider<'_> {
    fn decide(&mut self, op: Op, range: &Range<u64>, known: &[stripewise_extents::Span]) {
        let spans: Vec<Span> = known
            .iter()
            .map(|span| Span { start: span.start, end: span.end, mask: span.mask.bits() })
            .collect();
        let kind = Kind { op, access: Access::Random };
        let request = Request { file: 1, kind, offset: range.start, len: range.end - range.start };
        self.parts.clear();
        let Self { identifier, cdt, sent, parts } = self;
        black_box(identifier.redirect(cdt, sent, &request, &spans, &mut Full, parts));
        assert_eq!(parts[0].copy, 0, "a miss");
    }
}

fn main() {
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let map = map(memory.path());
    let mut random = Random(1);
    for number in 0..EXTENTS {
        let range = block(number * SPARSE);
        let mut guard = map.begin_write(range.clone()).expect("a write");
        guard.prepare(range.clone(), CopyId::new(2)).expect("prepared");
        guard.wrote(range, CopyId::new(2)).expect("written");
    }
    let places: Vec<u64> = (0..REQUESTS).map(|_| random.below(EXTENTS) * SPARSE + 2).collect();
    println!("{EXTENTS} cached extents; ns of CPU per request of 4 KiB that misses:\n");
    println!("| | fastest | median |\n|---|---:|---:|");
    let write = |range: Range<u64>, decide: &mut dyn FnMut(&[stripewise_extents::Span])| {
        let mut guard = map.begin_write(range.clone()).expect("a write");
        decide(guard.spans());
        guard.prepare(range.clone(), CopyId::ORIGINAL).expect("prepared");
        guard.wrote(range, CopyId::ORIGINAL).expect("written");
    };
    let read = |range: Range<u64>, decide: &mut dyn FnMut(&[stripewise_extents::Span])| {
        let guard = map.begin_read(range).expect("a read");
        decide(guard.spans());
        assert!(guard.still_valid(|_| CopyId::ORIGINAL).expect("asked"));
    };
    row("write, the map alone", &places, |range| write(range, &mut |_| ()));
    row("read, the map alone", &places, |range| read(range, &mut |_| ()));
    for (admission, balanced) in [("as printed", false), ("balanced", true)] {
        let identifier = identifier(balanced);
        let mut decider =
            Decider { identifier: &identifier, cdt: Cdt::default(), sent: Sent::default(), parts: Vec::new() };
        let name = |what: &str| format!("{what}, map and policy, {admission}");
        row(&name("write"), &places, |range| {
            write(range.clone(), &mut |spans| decider.decide(Op::Write, &range, spans));
        });
        row(&name("read"), &places, |range| {
            read(range.clone(), &mut |spans| decider.decide(Op::Read, &range, spans));
        });
    }
}
