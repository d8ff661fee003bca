use proptest::prelude::*;
use stripewise_model::ByAccess;
use stripewise_sys::{Action, Errno, SysRef};

use super::*;
use crate::tests::{real, set};
use crate::{Engine, FanOut, Piece};

fn service(startup_s: f64, per_byte_s: f64) -> Service {
    Service { startup_s, per_byte_s }
}

fn params() -> ClassParams {
    ClassParams {
        read: ByAccess { random: service(3e-6, 1e-9), sequential: service(1e-6, 1e-9) },
        write: ByAccess { random: service(4e-6, 2e-9), sequential: service(2e-6, 2e-9) },
    }
}

fn emulation(dir: &tempfile::TempDir) -> (SysRef, Arc<Emulation>) {
    let sys = real();
    let emulation = Emulation::attach(&sys, Some(&dir.path().join("state"))).unwrap();
    (sys, emulation)
}

#[test]
fn requests_queue_up_and_take_their_class_time() {
    let dir = tempfile::tempdir().unwrap();
    let (_, emulation) = emulation(&dir);
    let server = emulation.server("a", &params()).unwrap();
    assert_eq!(server.reserve(false, 0, 1000, 5_000), 9_000, "random: a new stream");
    assert_eq!(server.reserve(false, 1000, 1000, 5_000), 11_000, "sequential, behind the first");
    assert_eq!(server.reserve(true, 2000, 500, 20_000), 23_000, "sequential goes on over reads and writes");
    assert_eq!(server.reserve(true, 2400, 500, 20_000), 28_000, "random");
    let clone = server.clone();
    assert_eq!(clone.reserve(true, 2900, 0, 30_000), 30_000, "no bytes, no time");
    assert_eq!(clone.reserve(false, 2900, 1000, 30_000), 32_000, "sequential in its own stream");
    assert_eq!(server.reserve(false, 2900, 1000, 30_000), 34_000, "one queue for both");
    let other = emulation.server("b", &params()).unwrap();
    assert_eq!(other.reserve(false, 0, 1000, 5_000), 9_000, "another server has another queue");
    let again = emulation.server("a", &params()).unwrap();
    assert_eq!(
        again.usage(),
        Usage { requests: 7, bytes: 5000, busy_ns: 4_000 + 2_000 + 3_000 + 5_000 + 2_000 + 2_000 }
    );
}

#[test]
fn nonsense_parameters_hang_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (_, emulation) = emulation(&dir);
    for bad in [f64::NAN, f64::NEG_INFINITY, -1.0] {
        let class = ByAccess { random: service(bad, 0.0), sequential: service(bad, 0.0) };
        let server = emulation.server("a", &ClassParams { read: class, write: class }).unwrap();
        assert_eq!(server.reserve(false, 0, 1, 7), 7);
    }
    assert_eq!(service_ns(&service(f64::INFINITY, 1.0), 1), SERVICE_NS_MAX as u64);
}

#[test]
fn who_is_alone_finds_the_state_empty() {
    let dir = tempfile::tempdir().unwrap();
    let (sys, first) = emulation(&dir);
    let path = dir.path().join("state");
    let server = first.server("a", &params()).unwrap();
    let end = server.reserve(false, 0, 1000, 1 << 60);
    let second = Emulation::attach(&sys, Some(&path)).unwrap();
    let same = second.server("a", &params()).unwrap();
    assert!(same.reserve(false, 0, 1000, 0) > end, "the same queue");
    drop((first, server));
    let third = Emulation::attach(&sys, Some(&path)).unwrap();
    assert!(third.server("a", &params()).unwrap().usage().requests == 2, "somebody is still attached");
    drop((second, same, third));
    // A child that another test forked in the meantime is attached until it ends.
    let empty = || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        Some(emulation(&dir).1.server("a", &params()).unwrap())
            .filter(|server| server.usage() == Usage::default())
    };
    let fresh = (0..6000).find_map(|_| empty()).expect("nobody is attached");
    assert_eq!(fresh.reserve(false, 0, 1000, 5_000), 9_000);
}

#[test]
fn strange_files_are_refused_or_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    std::fs::write(&path, "something else").unwrap();
    let (sys, _held) = emulation(&dir);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(Emulation::attach(&sys, Some(&link)).unwrap_err(), Errno::LOOP);
    let absent = dir.path().join("absent/state");
    assert_eq!(Emulation::attach(&sys, Some(&absent)).unwrap_err(), Errno::NOENT);
}

#[test]
fn a_full_state_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (_, emulation) = emulation(&dir);
    for server in 0..1 << 14 {
        emulation.slot(&format!("server {server}")).unwrap();
    }
    assert_eq!(emulation.slot("one more").unwrap_err(), Errno::NOSPC);
    assert!(emulation.slot("server 77").is_ok());
}

/// Requests over several servers through the fan-out: every server gets its bytes as one request,
/// and the time is never shorter than the servers need.
#[test]
fn a_request_is_one_sub_request_per_server() {
    let dir = tempfile::tempdir().unwrap();
    let (sys, emulation) = emulation(&dir);
    let slow = ByAccess { random: service(1e-3, 1e-8), sequential: service(1e-3, 1e-8) };
    let class = ClassParams { read: slow, write: slow };
    let server = |name: &str| Some(emulation.server(name, &class).unwrap());
    let set = set(&sys, &dir, 3).with_servers(vec![server("a"), None, server("c")]);
    let fan_out = FanOut::new(sys.clone(), Engine::Auto);
    let mut buffer = vec![1u8; 6000];
    let base = buffer.as_mut_ptr();
    let piece = |index: usize| Piece {
        object: index as u32 % 3,
        offset: (index / 3 * 1000) as u64,
        base: base.wrapping_add(index * 1000),
        len: 1000,
    };
    let pieces: Vec<Piece> = (0..6).map(piece).collect();
    let began_ns = sys.now_ns();
    for _ in 0..10 {
        // SAFETY: the pieces lie in the buffer.
        let outcomes = unsafe { fan_out.transfer(Action::Write, &set, &pieces) };
        assert!(outcomes.iter().all(|outcome| outcome.done == 1000));
    }
    let busy = Usage { requests: 10, bytes: 20_000, busy_ns: 10 * 1_020_000 };
    for object in [0, 2] {
        assert_eq!(set.server(object).unwrap().usage(), busy);
    }
    assert!(set.server(1).is_none());
    assert!(sys.now_ns() - began_ns >= busy.busy_ns, "both at once, but not faster than one");
}

proptest! {
    /// A server never does two requests at once, whatever the processes do: the busy times fit
    /// between the first arrival and the last end.
    #[test]
    fn a_server_does_one_request_at_a_time(requests in prop::collection::vec((0u64..50_000, 1u64..5000), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let (_, emulation) = emulation(&dir);
        let server = emulation.server("a", &params()).unwrap();
        let mut intervals: Vec<(u64, u64)> = Vec::new();
        for &(arrival_ns, len) in &requests {
            let before = server.usage().busy_ns;
            let end = server.reserve(false, 0, len, arrival_ns);
            let start = end - (server.usage().busy_ns - before);
            prop_assert!(start >= arrival_ns);
            if let Some(&(_, last_end)) = intervals.last() {
                prop_assert!(start >= last_end);
                prop_assert!(start == last_end || start == arrival_ns, "no idling while somebody waits");
            }
            intervals.push((start, end));
        }
    }
}
