//! Several nodes take, release and give back space in random order; nodes die.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use stripewise_sys::Real;
use stripewise_target::MARKER;

use super::*;

const NODES: usize = 3;
const LIMIT: u64 = 100_000;
/// Nothing that a test waits for takes as long.
const STUCK: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
enum Act {
    Take(u64),
    /// Releases what was taken first.
    Give,
    GiveBack,
    /// All processes of the node end without notice, and the node's memory is lost.
    Die,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => prop_oneof![1u64..100, 1u64..5_000, 1u64..60_000].prop_map(Act::Take),
        5 => Just(Act::Give),
        1 => Just(Act::GiveBack),
        1 => Just(Act::Die),
    ]
}

/// A target with sessions, and a directory for each node's memory.
struct Bed {
    root: tempfile::TempDir,
    target: Arc<Target>,
}

impl Bed {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (path, sys): (_, SysRef) = (root.path().join("target"), Arc::new(Real));
        std::fs::create_dir(&path).unwrap();
        Target::prepare(&sys, &path, "ssd/0").unwrap();
        let marker = std::fs::OpenOptions::new().write(true).open(path.join(MARKER)).unwrap();
        let end = marker.metadata().unwrap().len();
        marker.write_all_at(b"sessions = true\n", end).unwrap();
        Self { root, target: Arc::new(Target::open(&sys, &path, None).unwrap()) }
    }

    /// The account of a process of a node, whose memory survives the process.
    fn account(&self, node: usize, life: usize) -> Accounts {
        let path = self.root.path().join(format!("node{node}-{life}"));
        std::fs::create_dir_all(&path).unwrap();
        let base = Base { path: &path, owner: None };
        Spaces::new(Arc::new(Real)).accounts(base, std::slice::from_ref(&self.target), &[]).unwrap()
    }
}

/// The account of a node's first process that counts the space, since nobody uses the ledger any
/// more; there are no objects. A process that another test has just forked may keep the ledger's
/// locks for a moment.
fn counted(bed: &Bed, node: usize) -> Accounts {
    let begun = Instant::now();
    for life in 0.. {
        let account = bed.account(node, life);
        if account[0].space.used() == 0 {
            return account;
        }
        assert!(begun.elapsed() < STUCK, "{} bytes are used", account[0].space.used());
        drop(account);
        std::thread::sleep(Duration::from_millis(1));
    }
    unreachable!()
}

/// Without waiting until the ledger may be asked again.
fn take_at_once(account: &Accounts, bytes: u64) -> bool {
    account[0].space.word(ASK_AT_NS).store(0, Ordering::Release);
    take(account, &[bytes], LIMIT)
}

proptest! {
    #[test]
    fn no_more_is_used_than_there_is(acts in vec((0..NODES, act()), 1..60)) {
        let bed = Bed::new();
        // Uses the ledger all the time: nothing is counted anew.
        let idle = bed.account(NODES, 0);
        let mut lives = [0; NODES];
        let mut nodes: Vec<_> = (0..NODES).map(|node| bed.account(node, 0)).collect();
        let (mut taken, mut lost) = (vec![Vec::new(); NODES], 0);
        for (node, act) in acts {
            match act {
                Act::Take(bytes) => {
                    let in_use: u64 = taken.iter().flatten().sum();
                    let others = |of: usize| nodes[of][0].space.word(FREE).load(Ordering::Acquire);
                    let with_others: u64 = (0..NODES).filter(|&of| of != node).map(others).sum();
                    let has = take_at_once(&nodes[node], bytes);
                    // It has what is not in use and not with others.
                    prop_assert_eq!(has, in_use + with_others + lost + bytes <= LIMIT);
                    taken[node].extend(has.then_some(bytes));
                }
                Act::Give if !taken[node].is_empty() => {
                    let bytes = taken[node].remove(0);
                    give([(&nodes[node][0], bytes)].into_iter());
                }
                Act::Give => {}
                Act::GiveBack => give_back(&nodes[node]),
                Act::Die => {
                    lost += nodes[node][0].space.word(FREE).load(Ordering::Acquire);
                    lives[node] += 1;
                    nodes[node] = bed.account(node, lives[node]);
                }
            }
            // A process that begins on a node sees what the node has.
            let other = bed.account(node, lives[node]);
            prop_assert_eq!(other[0].space.used(), nodes[node][0].space.used());
        }
        // Data stays in the cache when its node dies; others release it.
        for (node, taken) in taken.into_iter().enumerate() {
            taken.into_iter().for_each(|bytes| give([(&nodes[node][0], bytes)].into_iter()));
            give_back(&nodes[node]);
        }
        prop_assert_eq!(bed.account(NODES, 0)[0].space.used(), lost);
        drop((nodes, idle));
        counted(&bed, NODES + 1);
    }
}

/// A small cache is filled with few visits, though each request is larger than a part of it.
#[test]
fn nodes_that_fill_a_cache_visit_the_ledger_seldom() {
    const REQUEST: u64 = LIMIT / 50;
    let bed = Bed::new();
    let nodes: Vec<_> = (0..NODES).map(|node| bed.account(node, 0)).collect();
    let (mut visits, mut filled) = (0, 0);
    for node in (0..NODES).cycle() {
        let space = &nodes[node][0].space;
        let lacks = space.word(FREE).load(Ordering::Acquire) < REQUEST;
        if !take_at_once(&nodes[node], REQUEST) {
            break;
        }
        visits += u64::from(lacks);
        filled += REQUEST;
    }
    let free: u64 = nodes.iter().map(|node| node[0].space.word(FREE).load(Ordering::Acquire)).sum();
    assert!(visits <= 24, "{visits} visits");
    assert!(filled + free > LIMIT - REQUEST && free < LIMIT / 8, "{filled} of {LIMIT}, {free} free");
}

/// The words of a node survive its processes, and say what the node had been handed.
#[test]
fn what_a_node_was_handed_is_void_after_a_count() {
    let bed = Bed::new();
    assert!(take(&bed.account(0, 0), &[1000], LIMIT));
    let other = counted(&bed, 1);
    let again = bed.account(0, 0);
    assert!(take(&other, &[LIMIT], LIMIT));
    assert!(!take_at_once(&again, 1));
    give([(&other[0], LIMIT)].into_iter());
    give_back(&other);
    assert!(take_at_once(&again, LIMIT));
}

#[test]
fn what_a_node_was_handed_does_not_count_once_sessions_are_switched_off() {
    let mut bed = Bed::new();
    assert!(take(&bed.account(0, 0), &[1000], LIMIT));
    let marker = bed.target.path().join(MARKER);
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace("sessions = true", "sessions = false")).unwrap();
    let sys: SysRef = Arc::new(Real);
    bed.target = Arc::new(Target::open(&sys, bed.target.path(), None).unwrap());
    let account = bed.account(0, 0);
    assert!(take(&account, &[LIMIT - 500], LIMIT) && !take(&account, &[501], LIMIT));
    assert_eq!(account[0].space.used(), LIMIT - 500);
}
