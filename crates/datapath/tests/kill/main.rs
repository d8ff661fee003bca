//! Kills writers with `kill -9` at random moments.
//!
//! Fault model: processes die between any two instructions, while the kernel and the disks
//! continue. Every byte acknowledged by a call must survive, synced or not. Of the one call in
//! flight, any part may be present.
//!
//! Each round starts writer processes (this binary again). They do random operations on a file of
//! their own, on the slots of a shared file and on a shared log, and record in a plain file each
//! operation they start and each one acknowledged. After a random time all are killed. Then fsck
//! must find only problems that it can repair, none after the repair, and every byte must match the
//! notes. With STRIPEWISE_LONG=1 there are 710 rounds: 200 of files with one copy, and 510 of files
//! with several, which are then drained, after which the original alone must hold everything.

#![allow(missing_docs, reason = "a test")]

mod notes;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stripewise_cluster::Spread;
use stripewise_cluster::{
    CacheAdmission, CacheMode, Cluster, CopySpec, Driver, Durability, Overlay, OverlayKind, Plan, Rule, Tier,
};
use stripewise_datapath::check::{Kind, Options, Report, check, walk};
use stripewise_datapath::{Around, Runtime, Settings};
use stripewise_layout::constructors::{on_one, striped, two_part};
use stripewise_model::{ByAccess, ClassParams, Service};
use stripewise_sys::{Real, SysRef};
use stripewise_target::Target;

const WRITERS: usize = 3;

/// The directories of a test: `t0` to `t4` are targets, `files` holds managed files, `notes` the
/// writers' notes, and `memory` the extent maps.
pub struct Stage {
    pub root: PathBuf,
    /// The kind of copies. Files with copies use all targets, the last two of which are fast.
    kind: String,
}

const TARGETS: [&str; 5] = ["t0", "t1", "t2", "t3", "t4"];
const SLOW: usize = 3;

impl Stage {
    fn make(root: &Path, kind: &str) -> Self {
        let directories = TARGETS.iter().chain(&["files", "notes", "memory"]);
        directories.for_each(|name| std::fs::create_dir(root.join(name)).unwrap());
        let sys: SysRef = Arc::new(Real);
        let stage = Self { root: root.to_owned(), kind: kind.to_owned() };
        // Prepare the targets as `place` does.
        for target in stage.plan().cluster.targets() {
            Target::prepare(&sys, &target.path, &target.name).unwrap();
        }
        stage
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join("files").join(name)
    }

    pub fn notes(&self, writer: usize) -> PathBuf {
        self.root.join("notes").join(writer.to_string())
    }

    fn targets(&self) -> Vec<PathBuf> {
        TARGETS.iter().map(|name| self.root.join(name)).collect()
    }

    /// Shared files are striped; the writers' own files have two regions.
    fn plan(&self) -> Plan {
        let rule = |pattern: &str, layout| Rule {
            pattern: format!("{}/files/{pattern}", self.root.display()),
            scheme: "test".into(),
            reason: String::new(),
            predicted_s: 0.0,
            elapsed_s: 0.0,
            layouts: vec![layout],
            spread: Spread::default(),
            overlay: overlay(&self.kind),
        };
        let mut slow = self.targets();
        let fast = slow.split_off(SLOW);
        let tier = |name: &str, servers| Tier {
            name: name.into(),
            class: name.into(),
            driver: Driver::Dirs { servers },
            capacity_per_server: 1 << 40,
            emulate: false,
        };
        let class = |startup_s: f64, per_byte_s: f64| {
            let service = Service { startup_s, per_byte_s };
            let both = ByAccess { random: service, sequential: service };
            ClassParams { read: both, write: both }
        };
        let own = two_part(&[(0, 1000), (2, 3000), (1, 500)], 20_000, &[(1, 700), (2, 900)]).unwrap();
        let shared = striped(&[0, 1, 2], 4096).unwrap();
        let cluster = Cluster {
            tiers: vec![tier("slow", slow), tier("fast", fast)],
            classes: [("slow".to_owned(), class(1e-3, 1e-8)), ("fast".to_owned(), class(1e-5, 2e-8))].into(),
            ..Cluster::default()
        };
        Plan { scheme: "test".into(), cluster, rules: vec![rule("own*", own), rule("*", shared)] }
    }

    pub fn runtime(&self) -> Arc<Runtime> {
        self.runtime_with(None)
    }

    /// A runtime with a background thread.
    pub fn working_runtime(&self) -> Arc<Runtime> {
        self.runtime_with(Some(|work| work()))
    }

    fn runtime_with(&self, background: Option<Around>) -> Arc<Runtime> {
        let run_base = Some(self.root.join("memory"));
        let settings = Settings { run_base, background, ..Settings::default() };
        let runtime = Runtime::with_settings(Arc::new(Real), Some(&self.plan()), settings);
        runtime.set_procs(4, 4);
        runtime
    }

    fn fsck(&self, options: Options) -> Report {
        let runtime = self.runtime();
        let listing = walk(&runtime, &[self.root.join("files")]);
        check(&runtime, &listing, &self.targets(), options, &mut |_| {})
    }
}

/// The extra copies for a kind of file.
fn overlay(kind: &str) -> Option<Overlay> {
    let copy = |name: &str, layout| CopySpec {
        name: name.to_owned(),
        layouts: vec![layout],
        spread: Spread::default(),
        groups: 1,
    };
    let cache = |mode| {
        let admission = CacheAdmission::AsPrinted;
        let kind = OverlayKind::Cache { mode, admission, capacity_per_server: 120_000 };
        let copies = vec![
            copy("1-DH", striped(&[3, 4], 2048).unwrap()),
            copy("1-DV", on_one(3).unwrap()),
            copy("2-D", on_one(4).unwrap()),
        ];
        (kind, copies)
    };
    let (kind, copies) = match kind {
        "single" => return None,
        "replicas" => {
            let copies = vec![copy("1-DH", striped(&[3, 4], 2048).unwrap()), copy("1-DV", on_one(1).unwrap())];
            (OverlayKind::Replicas, copies)
        }
        "sla" => cache(CacheMode::Sla),
        "nsca" => cache(CacheMode::Nsca),
        other => panic!("{other}"),
    };
    Some(Overlay {
        kind,
        copies,
        lazy_close: false,
        durability: Durability::Sync,
        background: None,
        procs: 4,
        procs_per_node: 4,
    })
}

fn is_long() -> bool {
    std::env::var_os("STRIPEWISE_LONG").is_some()
}

fn first_seed() -> u64 {
    std::env::var("STRIPEWISE_SEED").map_or(1, |seed| seed.parse().unwrap())
}

#[test]
fn every_acknowledged_byte_survives_kill_9() {
    campaign("single", if is_long() { 200 } else { 15 });
}

#[test]
fn every_acknowledged_byte_of_replicas_survives_kill_9() {
    campaign("replicas", if is_long() { 170 } else { 5 });
}

#[test]
fn every_acknowledged_byte_of_a_selective_cache_survives_kill_9() {
    campaign("sla", if is_long() { 170 } else { 5 });
}

#[test]
fn every_acknowledged_byte_of_a_cache_of_everything_survives_kill_9() {
    campaign("nsca", if is_long() { 170 } else { 5 });
}

fn campaign(kind: &str, rounds: u64) {
    let mut operations = 0;
    for round in 0..rounds {
        let root = tempfile::tempdir().unwrap();
        let stage = Stage::make(root.path(), kind);
        let mut children: Vec<Child> =
            (0..WRITERS).map(|writer| spawn(&stage, writer, first_seed() + round * 100, 0)).collect();
        // Some writers are killed while they create their files, some much later, and some only
        // after they have noted operations.
        if round % 2 == 1 {
            wait_for_notes(&stage, &mut children);
        }
        let more_ms = if kind == "single" { 0 } else { (round % 3) * 150 };
        std::thread::sleep(Duration::from_millis(2 + (round * round * 7) % 150 + more_ms));
        children.iter_mut().for_each(|child| child.kill().unwrap());
        for mut child in children {
            let status = child.wait().unwrap();
            assert!(status.code().is_none(), "round {round}: a writer ended by itself: {status}");
        }
        fsck_is_clean_after_repair(&stage, round);
        operations += verify::all(&stage, WRITERS, round);
        if kind != "single" {
            verify::drained(&stage, WRITERS, round);
            verify::all(&stage, WRITERS, round);
        }
    }
    println!("{operations} operations of {WRITERS} writers in {rounds} rounds");
    assert!(operations > rounds as usize * 5, "the writers did almost nothing");
}

/// Waits until each writer has noted some operations. The caller detects a writer that has ended by
/// itself.
fn wait_for_notes(stage: &Stage, children: &mut [Child]) {
    const ENOUGH_BYTES: u64 = 1000;
    /// Limit that no operation reaches, even on a busy machine.
    const HANGS: Duration = Duration::from_secs(1800);
    let began = Instant::now();
    for (writer, child) in children.iter_mut().enumerate() {
        let len = || std::fs::metadata(stage.notes(writer)).map_or(0, |notes| notes.len());
        while len() <= ENOUGH_BYTES && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < HANGS, "writer {writer} hangs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Without kills: writers of adjacent ranges, appends, truncates, renames and forks, while copiers
/// run at full speed.
#[test]
fn processes_and_their_copiers_side_by_side() {
    for (round, kind) in (0..if is_long() { 60 } else { 3 }).zip(["replicas", "sla", "nsca"].iter().cycle()) {
        let root = tempfile::tempdir().unwrap();
        let stage = Stage::make(root.path(), kind);
        let start = |writer| spawn(&stage, writer, first_seed() + round * 100, 400);
        let children: Vec<Child> = (0..WRITERS).map(start).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "round {round}");
        }
        assert!(verify::all(&stage, WRITERS, round) >= WRITERS * 400);
        verify::drained(&stage, WRITERS, round);
        verify::all(&stage, WRITERS, round);
    }
}

fn fsck_is_clean_after_repair(stage: &Stage, round: u64) {
    let repair = Options { repair: true, remove_orphans: true, ..Options::default() };
    let report = stage.fsck(repair);
    assert!(report.is_clean(), "round {round}: {report:#?}");
    let allowed = |kind| {
        // Only these can follow from a kill: an interrupted unlink leaves an orphan, and an
        // interrupted creation leaves unborn objects or a temporary.
        let of_single = matches!(kind, Kind::Truncate | Kind::Orphan | Kind::Unborn | Kind::Temporary);
        of_single || (stage.kind != "single" && matches!(kind, Kind::Interrupted | Kind::Space))
    };
    assert!(report.findings.iter().all(|finding| allowed(finding.kind)), "round {round}: {report:#?}");
    let report = stage.fsck(Options::default());
    // Unused space is freed later if another process was still examining the file.
    let rest = report.findings.iter().filter(|finding| finding.kind != Kind::Space || stage.kind == "single");
    assert_eq!(rest.count(), 0, "round {round}: {report:#?}");
}

/// Starts a writer that does `operations` operations, or with 0 runs until it is killed.
fn spawn(stage: &Stage, writer: usize, seed: u64, operations: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer_process", "--nocapture"])
        .env(
            "STRIPEWISE_TEST_KILLED_WRITER",
            format!("{writer} {seed} {operations} {} {}", stage.kind, stage.root.display()),
        )
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn writer_process() {
    let Ok(job) = std::env::var("STRIPEWISE_TEST_KILLED_WRITER") else { return };
    let words: Vec<&str> = job.splitn(5, ' ').collect();
    let stage = Stage { root: words[4].into(), kind: words[3].into() };
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    writer::run(&stage, (number(0) as usize, WRITERS), number(1), number(2));
}
