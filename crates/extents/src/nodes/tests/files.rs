//! The explorer's nodes on the engine on files: it has the state that the explorer says.

use std::collections::BTreeSet;

use super::world::machine;
use crate::MapSpec;
use crate::journal::Header;
use crate::nodes::files::tests::support::Bed;
use crate::nodes::{Batch, Engine, FileEngine, Log, Member, Record, Session, encode_batches};
use crate::tests::support::real;

/// A file and its nodes' engines.
pub struct Files {
    bed: Bed,
    copies: usize,
    engines: Vec<Option<FileEngine>>,
}

/// A world is cloned for each of several next steps, which files are not.
impl Clone for Files {
    fn clone(&self) -> Self {
        unreachable!("a world on files goes through one schedule")
    }
}

/// What both have. A journal that the engine has written anew has fewer acknowledgements.
fn compare(engine: &Log, explored: &Log) {
    let whole = 0..u64::MAX;
    assert_eq!(engine.spans(&whole), explored.spans(&whole));
    assert_eq!(engine.last_session(), explored.last_session());
    let sessions = |log: &Log| log.members().map(|(session, _)| session).collect::<Vec<_>>();
    assert_eq!(sessions(engine), sessions(explored));
    for ((_, own), (_, explored)) in engine.members().zip(explored.members()) {
        assert_eq!((&own.node, &own.holds), (&explored.node, &explored.holds));
        let acknowledged = |member: &Member| -> BTreeSet<Session> { member.acknowledged.clone() };
        assert!(acknowledged(own).is_subset(&acknowledged(explored)), "{own:?}\n{explored:?}");
    }
}

impl Files {
    pub fn new(nodes: usize, copies: usize, default: crate::Mask) -> Self {
        let bed = Bed::new();
        let header =
            Header { id: bed.spec(0).id, copies: copies as u8, default, last_session: Some(Session::NONE.0) };
        std::fs::write(bed.path(), header.encode()).unwrap();
        Self { bed, copies, engines: (0..nodes).map(|_| None).collect() }
    }

    fn spec(&self, node: usize, log: &Log) -> MapSpec {
        MapSpec { copies: self.copies, node: machine(node, log), ..self.bed.spec(node as u8) }
    }

    /// The log's state, as a reader finds it.
    fn log(&self) -> Log {
        self.bed.log()
    }

    pub fn end(&mut self, node: usize) {
        self.engines[node] = None;
    }

    /// Reads the log. Also finds every node alive that is.
    pub fn read(&mut self, node: usize, explored: &Log) {
        let living: Vec<Session> = self.engines.iter().flatten().map(FileEngine::session).collect();
        if let Some(engine) = &mut self.engines[node] {
            engine.read().unwrap();
            compare(engine.log(), explored);
            assert!(living.iter().all(|&session| !engine.lock_dead(session).unwrap()));
        }
    }

    /// Appends the first `kept` of the batches. The node dies if these are not all.
    pub fn append(&mut self, node: usize, batches: &[Batch], kept: usize) {
        if kept < batches.len() {
            return self.tear(batches, kept);
        }
        if matches!(batches[0].record, Record::Joined(..)) {
            let spec = self.spec(node, &self.log());
            self.engines[node] = Some(FileEngine::join(&real(), &spec).unwrap());
        } else if let Some(engine) = &mut self.engines[node] {
            engine.append(&mut |_| batches.to_vec()).unwrap();
        }
    }

    /// Leaves whole batches and the first half of the next one.
    fn tear(&mut self, batches: &[Batch], kept: usize) {
        let journal = crate::Journal::read(&real(), &self.bed.spec(0)).unwrap();
        let end = |count| encode_batches(&batches[..count], journal.next).0.len();
        let (whole, _) = encode_batches(batches, journal.next);
        let torn = &whole[..usize::midpoint(end(kept), end(kept + 1))];
        let valid = &self.bed.bytes()[..journal.valid_bytes as usize];
        std::fs::write(self.bed.path(), [valid, torn].concat()).unwrap();
    }

    pub fn rewrite(&mut self, node: usize) {
        if let Some(engine) = &mut self.engines[node] {
            engine.rewrite().unwrap();
        }
    }

    pub fn lock_dead(&mut self, node: usize, session: Session, is_dead: bool) {
        if let Some(engine) = &mut self.engines[node] {
            assert_eq!(engine.lock_dead(session).unwrap(), is_dead, "{session:?}");
        }
    }
}
