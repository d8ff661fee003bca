//! The engines of several nodes against the pure state of the log.

use proptest::prelude::*;

use super::support::*;
use crate::nodes::tests::format::batch;
use crate::nodes::{Batch, Engine, FileEngine, Log, Record, Session};
use crate::tests::support::real;

const NODES: usize = 3;

#[derive(Clone, Debug)]
enum Does {
    /// Any batches, also by sessions that are not in the log.
    Append(Vec<Batch>),
    /// More than fits a short journal.
    AppendLong(u64),
    Read,
    Rewrite,
    Dies,
    Leaves,
    /// A node has died in an append, which left this number of bytes.
    Torn(usize),
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        6 => prop::collection::vec(batch(), 0..4).prop_map(Does::Append),
        2 => (1u64..60).prop_map(Does::AppendLong),
        4 => Just(Does::Read),
        1 => Just(Does::Rewrite),
        1 => Just(Does::Dies),
        1 => Just(Does::Leaves),
        1 => (1usize..80).prop_map(Does::Torn),
    ]
}

struct Run {
    bed: Bed,
    engines: Vec<FileEngine>,
    /// The log as it must be.
    log: Log,
}

impl Run {
    fn new() -> Self {
        let bed = Bed::new();
        let log = bed.log();
        let mut run = Self { bed, engines: Vec::new(), log };
        (0..NODES).for_each(|node| run.join(node));
        run
    }

    /// Performs a change. A journal that was written anew has lost its acknowledgements.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.bed.inode();
        let done = change(self);
        if self.bed.inode() != before {
            self.log = rewritten(&self.log);
        }
        done
    }

    fn join(&mut self, node: usize) {
        let engine = self.change(|run| run.bed.join(node as u8));
        let spec = self.bed.spec(node as u8);
        let (session, records) = crate::nodes::join(&self.log, &spec.node);
        assert_eq!(engine.session(), session);
        Batch::by(session, records).iter().for_each(|batch| self.log.apply(batch));
        assert_eq!(*engine.log(), self.log);
        self.engines.insert(node, engine);
    }

    fn append(&mut self, node: usize, batches: &[Batch]) {
        let before = self.log.clone();
        let decide = &mut |log: &Log| {
            assert_eq!(*log, before, "an author has read everything before");
            batches.to_vec()
        };
        self.change(|run| run.engines[node].append(decide).unwrap());
        batches.iter().for_each(|batch| self.log.apply(batch));
        assert_eq!(*self.engines[node].log(), self.log);
    }

    fn does(&mut self, node: usize, what: Does) {
        match what {
            Does::Append(batches) => self.append(node, &batches),
            Does::AppendLong(count) => {
                let author = self.engines[node].session();
                let spans = (0..count).map(|at| changes(at * 20, at * 20 + 10, 1 + at as u8 % 7));
                self.append(node, &Batch::by(author, spans.collect()));
            }
            Does::Read => {
                self.engines[node].read().unwrap();
                assert_eq!(*self.engines[node].log(), self.log);
            }
            Does::Rewrite => {
                let before = self.bed.inode();
                self.change(|run| run.engines[node].rewrite().unwrap());
                assert_ne!(self.bed.inode(), before);
                assert_eq!(*self.engines[node].log(), self.log);
            }
            Does::Dies => {
                drop(self.engines.remove(node));
                self.join(node);
            }
            Does::Leaves => {
                let engine = self.engines.remove(node);
                let session = engine.session();
                self.change(|_| engine.leave().unwrap());
                self.log.apply(&Batch { author: session, record: Record::Left(session) });
                self.join(node);
            }
            Does::Torn(len) => {
                let record = Record::Holds(Session(1), vec![]);
                let bytes = crate::nodes::encode_batch(&Batch { author: Session(1), record }, 1 << 40);
                self.bed.leave_behind(&bytes[..len.min(bytes.len())]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Each node's state is the log's, whatever the nodes append, in whatever order they read it,
    /// and however often it is written anew. A node that opens the file finds the same.
    #[test]
    fn engines_have_the_logs_state(steps in prop::collection::vec((0..NODES, does()), 1..40)) {
        let mut run = Run::new();
        for (node, what) in steps {
            run.does(node, what);
            prop_assert_eq!(&run.bed.log(), &run.log);
        }
    }

    /// Whatever bytes a journal has, it is read as far as it is valid, by all in the same way, and
    /// nodes go on from there.
    #[test]
    fn any_journal_can_be_gone_on_with(
        batches in prop::collection::vec(batch(), 0..5),
        rest in prop::collection::vec(any::<u8>(), 0..200),
        flip in any::<Option<(prop::sample::Index, u8)>>(),
        last in prop_oneof![0u32..9, Just(u32::MAX - 1), Just(u32::MAX)],
    ) {
        let header = crate::journal::Header { last_session: Some(last), ..HEADER };
        let mut bytes = [&crate::nodes::encode_batches(&batches, 1).0[..], &rest].concat();
        if let Some((at, flip)) = flip.filter(|_| !bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        let bed = Bed::holding(&[&header.encode()[..], &bytes].concat());
        let mut log = bed.log();
        let joined = FileEngine::join(&real(), &bed.spec(50));
        if log.last_session() == Session(u32::MAX) {
            prop_assert!(joined.is_err());
            return Ok(());
        }
        let mut engine = joined.unwrap();
        let (session, records) = crate::nodes::join(&log, &bed.spec(50).node);
        Batch::by(session, records).iter().for_each(|batch| log.apply(batch));
        let is_in = log.member(session).is_some();
        prop_assert!(is_in);
        prop_assert_eq!(engine.log().spans(&(0..u64::MAX)), log.spans(&(0..u64::MAX)));
        append(&mut engine, &[changes(5, 6, 4)]).unwrap();
        prop_assert_eq!(&bed.log(), engine.log());
    }
}

#[test]
fn long_changes_are_several_batches_that_a_reader_takes() {
    let bed = Bed::new();
    let mut engine = bed.join(1);
    let span = |at: u64| crate::Span::new(at * 8..at * 8 + 4, crate::Mask::from_bits(2));
    let spans: Vec<_> = (0..100_000).map(span).collect();
    append(&mut engine, &[Record::Changes(spans.clone())]).unwrap();
    assert_eq!(bed.log().listed(), spans);
    engine.rewrite().unwrap();
    assert_eq!(bed.log().listed(), spans);
}

#[test]
fn what_a_reader_would_not_take_is_not_written() {
    let bed = Bed::new();
    let mut engine = bed.join(1);
    let before = bed.bytes();
    let error = append(&mut engine, &[changes(0, 10, 1 << 6)]).unwrap_err();
    assert_eq!(error.errno(), stripewise_sys::Errno::INVAL);
    assert_eq!(bed.bytes(), before);
    assert!(!engine.is_over());
    append(&mut engine, &[changes(0, 10, 2)]).unwrap();
}

/// As on one node, the journal's length is bounded by what its state needs.
#[test]
fn a_journal_is_written_anew_when_it_has_grown() {
    let bed = Bed::new();
    let (mut one, mut two) = (bed.join(1), bed.join(2));
    for number in 0..300u16 {
        let engine = if number % 2 == 0 { &mut one } else { &mut two };
        append(engine, &[changes(0, 10, 1 + (number % 7) as u8)]).unwrap();
    }
    let needed = rewritten(&bed.log()).restated();
    let needed = crate::journal::HEADER_BYTES + crate::nodes::encode_batches(&needed, 1).0.len();
    assert!(
        bed.bytes().len() as u64 <= crate::journal::limit_bytes(needed as u64) + 200,
        "{}",
        bed.bytes().len()
    );
}

/// Each of two nodes adds 1 to what it has read, at the same time.
#[test]
fn nodes_that_append_at_the_same_time_take_turns() {
    const EACH: u64 = 50;
    let bed = Bed::new();
    let engines = [bed.join(1), bed.join(2)];
    std::thread::scope(|scope| {
        for mut engine in engines {
            scope.spawn(move || {
                let author = engine.session();
                for _ in 0..EACH {
                    let decide = &mut |log: &Log| {
                        let count = log.listed().first().map_or(0, |span| span.end);
                        std::thread::yield_now();
                        Batch::by(author, vec![changes(0, count + 1, 2)])
                    };
                    engine.append(decide).unwrap();
                }
            });
        }
    });
    let spans: Vec<_> = bed.log().listed().iter().map(crate::Span::range).collect();
    assert_eq!(spans, [0..2 * EACH]);
}
