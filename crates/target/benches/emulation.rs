//! Compares emulated servers with the analytic value: the makespan of forked clients in a closed
//! loop.
//!
//! `cargo bench -p stripewise-target --bench emulation [-- RUNS]` prints the table of
//! `bench/results.d/emulation.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use stripewise_model::{ByAccess, ClassParams, Service};
use stripewise_sys::{Action, Mode, Real, SysRef};
use stripewise_target::{Access, Emulation, Engine, FanOut, FileId, ObjectSet, Objects, Piece, Target};

const SERVERS: usize = 4;
/// The shortest makespan worth measuring, seconds.
const MAKESPAN_S: f64 = 1.5;

struct Case {
    clients: usize,
    /// Whether each request is spread over all servers; otherwise each client uses one server.
    spread: bool,
    write: bool,
    /// Bytes of one request.
    bytes: usize,
    service: Service,
}

impl Case {
    /// Busy time of one sub-request in seconds, and the number of them that each server gets per
    /// round of all clients.
    fn sub_request_s(&self) -> f64 {
        let bytes = if self.spread { self.bytes / SERVERS } else { self.bytes };
        self.service.busy_s(bytes as u64)
    }

    fn per_round(&self) -> usize {
        if self.spread { self.clients } else { self.clients.div_ceil(SERVERS) }
    }

    fn rounds(&self) -> usize {
        (MAKESPAN_S / (self.sub_request_s() * self.per_round() as f64)).ceil() as usize
    }

    fn analytic_s(&self) -> f64 {
        self.sub_request_s() * (self.per_round() * self.rounds()) as f64
    }
}

fn main() {
    let runs: usize = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(5);
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let sys: SysRef = Arc::new(Real);
    let targets: Vec<_> = (0..SERVERS).map(|index| target(&sys, dir.path(), index)).collect();
    println!(
        "| clients | request | over | op | startup ms | analytic s | median error | range | share of the sum |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for case in cases() {
        let mut errors: Vec<f64> =
            (0..runs).map(|_| measure(&sys, dir.path(), &targets, &case) / case.analytic_s() - 1.0).collect();
        errors.sort_by(f64::total_cmp);
        println!(
            "| {} | {} KiB | {} | {} | {} | {:.2} | {:+.2} % | {:+.2} .. {:+.2} % | {:.1} % |",
            case.clients,
            case.bytes >> 10,
            if case.spread { "4 servers" } else { "1 server each" },
            if case.write { "write" } else { "read" },
            case.service.startup_s * 1e3,
            case.analytic_s(),
            errors[runs / 2] * 100.0,
            errors[0] * 100.0,
            errors[runs - 1] * 100.0,
            // As a percentage of the throughput of all servers working all the time.
            100.0 / (1.0 + errors[runs / 2]),
        );
    }
}

fn cases() -> Vec<Case> {
    let hdd = Service { startup_s: 3e-4, per_byte_s: 7.95e-9 };
    let ssd = Service { startup_s: 5e-5, per_byte_s: 2.38e-9 };
    let slow = Service { startup_s: 8e-3, per_byte_s: 7.95e-9 };
    let mut cases = Vec::new();
    for clients in [16, 64] {
        for bytes in [64 << 10, 512 << 10, 4 << 20] {
            for spread in [true, false] {
                cases.push(Case { clients, spread, write: bytes == 512 << 10, bytes, service: hdd });
            }
        }
    }
    cases.push(Case { clients: 16, spread: true, write: false, bytes: 64 << 10, service: slow });
    cases.push(Case { clients: 16, spread: false, write: false, bytes: 64 << 10, service: ssd });
    cases.push(Case { clients: 4, spread: false, write: false, bytes: 64 << 10, service: hdd });
    cases.push(Case { clients: 1, spread: true, write: false, bytes: 64 << 10, service: hdd });
    cases.push(Case { clients: 1, spread: true, write: false, bytes: 4 << 20, service: ssd });
    cases
}

fn target(sys: &SysRef, dir: &Path, index: usize) -> Arc<Target> {
    let path = dir.join(format!("t{index}"));
    std::fs::create_dir(&path).expect("a new directory");
    Arc::new(Target::prepare(sys, &path, &format!("t/{index}")).expect("a target"))
}

/// The makespan of forked clients, seconds.
fn measure(sys: &SysRef, dir: &Path, targets: &[Arc<Target>], case: &Case) -> f64 {
    let emulation = Emulation::attach(sys, Some(&dir.join("state"))).expect("the shared state");
    let class = ByAccess { random: case.service, sequential: case.service };
    let class = ClassParams { read: class, write: class };
    let servers =
        targets.iter().map(|target| Some(emulation.server(target.id(), &class).expect("a slot"))).collect();
    let id = FileId::random(sys.as_ref()).expect("random bytes");
    let mode = Mode::RUSR | Mode::WUSR;
    let set =
        ObjectSet::create(sys, targets.to_vec(), Objects { id, owner: sys.user() }, &Access::of_mode(mode))
            .expect("objects")
            .with_servers(servers);
    for index in 0..SERVERS {
        set.grow(index, case.bytes as u64).expect("space");
    }
    let began = Instant::now();
    let children: Vec<_> =
        (0..case.clients).map(|client| fork(|| run_client(sys, &set, case, client))).collect();
    for child in children {
        let mut status = 0;
        // SAFETY: our child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "a client failed");
    }
    let makespan_s = began.elapsed().as_secs_f64();
    ObjectSet::remove(targets, Objects { id, owner: sys.user() }).expect("removed");
    makespan_s
}

fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: this process has one thread.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    pid
}

fn run_client(sys: &SysRef, set: &ObjectSet, case: &Case, client: usize) {
    let fan_out = FanOut::new(sys.clone(), Engine::Auto);
    let mut buffer = vec![1u8; case.bytes];
    let base = buffer.as_mut_ptr();
    let count = if case.spread { SERVERS } else { 1 };
    let len = case.bytes / count;
    let piece = |index: usize| Piece {
        object: ((client + index) % SERVERS) as u32,
        offset: 0,
        base: base.wrapping_add(index * len),
        len,
    };
    let pieces: Vec<Piece> = (0..count).map(piece).collect();
    for _ in 0..case.rounds() {
        // SAFETY: the pieces lie in the buffer.
        let outcomes =
            unsafe { fan_out.transfer(if case.write { Action::Write } else { Action::Read }, set, &pieces) };
        assert!(outcomes.iter().all(|outcome| outcome.done == len));
    }
}
