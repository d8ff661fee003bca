//! The protocol for several nodes at scale (`docs/formats/nodes.md`): the time of a collective
//! sync, the growth of the log, and the latency of an eviction's acknowledgements.
//!
//! `cargo bench -p stripewise-extents --bench nodes [-- SECONDS]` simulates them for 10, 100 and
//! 1,000 nodes. The records, the log's state and the decisions are the real ones. Only the file
//! system is simulated: an append under the commit lock takes SECONDS (default: as measured on a
//! CephFS that ten nodes append to, `bench/results.d/nodes.md`), and the lock serves those who wait
//! in the order in which they came.

#![allow(missing_docs, reason = "a benchmark")]

use std::ops::Range;
use std::time::Instant;

use stripewise_extents::nodes::{
    Batch, Hold, HoldKind, Log, Record, Session, encode_batch, evicted, may_punch, owes_acknowledgement,
    own_holds, with_hold,
};
use stripewise_extents::{CopyId, Mask, Node, Span};
use stripewise_random::Random;

const NODES: [u32; 3] = [10, 100, 1000];
const APPEND_S: f64 = 0.0109;
/// A node that waits for nothing reads the log this often, seconds.
const POLL_S: f64 = 1.0;
const SYNCS: u32 = 20;
const EVICTIONS: usize = 25;
const MIB: u64 = 1 << 20;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(APPEND_S);
    println!("An append takes {:.1} ms.\n", 1e3 * seconds);
    println!(
        "| nodes | collective sync, each node appends: s | one appends for all: s | log, bytes per sync | \
         log rewritten after syncs | acknowledged, median s | CPU of a node per sync, us |"
    );
    println!("|---|---|---|---|---|---|---|");
    for nodes in NODES {
        let mut world = World::new(nodes, seconds);
        let before = world.bytes;
        let each = world.seconds_of(|world| (0..SYNCS).for_each(|sync| world.sync(sync)));
        let bytes = (world.bytes - before) / u64::from(SYNCS);
        let cpu = world.cpu_s() / f64::from(SYNCS);
        let mut random = Random(u64::from(nodes));
        let mut latencies: Vec<f64> = (0..EVICTIONS).map(|_| world.acknowledged(&mut random)).collect();
        latencies.sort_by(f64::total_cmp);
        println!(
            "| {nodes} | {:.2} | {seconds:.2} | {bytes} | {} | {:.2} | {:.0} |",
            each / f64::from(SYNCS),
            world.limit_bytes() / bytes,
            latencies[EVICTIONS / 2],
            1e6 * cpu,
        );
    }
}

/// The log with all nodes in it, and the time.
struct World {
    log: Log,
    batches: Vec<Batch>,
    next: u64,
    bytes: u64,
    now_s: f64,
    append_s: f64,
    sessions: Vec<Session>,
}

impl World {
    /// All nodes have joined, and each writes a mebibyte of its own in every gibibyte.
    fn new(nodes: u32, append_s: f64) -> Self {
        let log = Log::new(Mask::all(2), Session::NONE);
        let sessions = (1..=nodes).map(Session).collect();
        let mut world = Self { log, batches: Vec::new(), next: 1, bytes: 0, now_s: 0.0, append_s, sessions };
        for session in world.sessions.clone() {
            let name =
                format!("0123456789abcdef0123456789abcdef/node{:04}/02abcdef{:04x}", session.0, session.0);
            world.append(session, vec![Record::Joined(session, Node { name, boot: [7; 16] })]);
            let hold = Hold { range: Self::region(session), kind: HoldKind::Write(CopyId::ORIGINAL) };
            let holds = with_hold(&world.log, session, hold);
            world.append(session, vec![holds]);
        }
        world
    }

    fn region(session: Session) -> Range<u64> {
        let start = u64::from(session.0) << 30;
        start..start + (1 << 30)
    }

    fn append(&mut self, author: Session, records: Vec<Record>) {
        for batch in Batch::by(author, records) {
            self.bytes += encode_batch(&batch, self.next).len() as u64;
            self.next += 1;
            self.log.apply(&batch);
            self.batches.push(batch);
        }
        self.now_s += self.append_s;
    }

    /// All nodes commit a mebibyte that they have written, at the same time.
    fn sync(&mut self, sync: u32) {
        for session in self.sessions.clone() {
            let start = Self::region(session).start + u64::from(sync) * 2 * MIB;
            let span = Span::new(start..start + MIB, Mask::only(CopyId::ORIGINAL));
            self.append(session, vec![Record::Changes(vec![span])]);
        }
    }

    fn seconds_of(&mut self, act: impl FnOnce(&mut Self)) -> f64 {
        let begin = self.now_s;
        act(self);
        self.now_s - begin
    }

    /// Processor seconds of a node that reads what all have appended in `SYNCS` syncs.
    fn cpu_s(&self) -> f64 {
        let (mut log, began) =
            (Log::new(Mask::all(2), Session::NONE), self.batches.len() - self.sessions.len() * SYNCS as usize);
        self.batches[..began].iter().for_each(|batch| log.apply(batch));
        let begin = Instant::now();
        self.batches[began..].iter().for_each(|batch| log.apply(batch));
        begin.elapsed().as_secs_f64()
    }

    /// Bytes that are appended between two rewrites, as for journals of one node.
    fn limit_bytes(&self) -> u64 {
        let needed: usize = self.log.restated().iter().map(|batch| encode_batch(batch, 1).len()).sum();
        needed as u64 + (64 << 10)
    }

    /// Evicts a range that nobody writes, and returns the seconds until all have acknowledged: each
    /// node sees the eviction when it reads the log, and then waits for the commit lock.
    fn acknowledged(&mut self, random: &mut Random) -> f64 {
        let (own, copy, range) = (self.sessions[0], CopyId::new(1), 0..MIB);
        let hold = Hold { range: range.clone(), kind: HoldKind::Evict };
        let records = vec![Record::Changes(evicted(&self.log, &range, copy)), with_hold(&self.log, own, hold)];
        self.append(own, records);
        let begin = self.now_s;
        let mut seen: Vec<(f64, Session)> = self.sessions[1..]
            .iter()
            .map(|&session| (begin + POLL_S * (random.next_u64() as f64 / u64::MAX as f64), session))
            .collect();
        seen.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (at_s, session) in seen {
            assert!(owes_acknowledgement(&self.log, session) && !may_punch(&self.log, own, &range));
            self.now_s = self.now_s.max(at_s);
            let holds = own_holds(&self.log, session).to_vec();
            self.append(session, vec![Record::Holds(session, holds)]);
        }
        assert!(may_punch(&self.log, own, &range), "all have acknowledged");
        let latency = self.now_s - begin;
        let kept =
            own_holds(&self.log, own).iter().filter(|hold| hold.kind != HoldKind::Evict).cloned().collect();
        let restored = Record::Changes(vec![Span::new(range, Mask::all(2))]);
        self.append(own, vec![Record::Holds(own, kept), restored]);
        latency
    }
}
