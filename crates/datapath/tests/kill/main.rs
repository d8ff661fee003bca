//! `kill -9` of writers at random moments.
//!
//! Fault model: processes die between any two instructions; the kernel and the disks go on. So every byte that a call
//! acknowledged must be there afterwards, synced or not, and of the one call that was in flight any part.
//!
//! Each round starts writer processes (this binary again) that do random things to a file of their own, to the slots of a
//! shared file, and to a shared log, and note in a plain file what they are about to do and what was acknowledged.
//! After a random time all are killed. Then fsck must find nothing that it cannot repair, and after the repair nothing at
//! all, and every byte must be what the notes say. 200 rounds with STRIPEWISE_LONG=1.

#![allow(missing_docs, reason = "a test")]

mod notes;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use stripewise_cluster::plan::Spread;
use stripewise_cluster::{Cluster, Driver, Plan, Rule, Tier};
use stripewise_datapath::Runtime;
use stripewise_datapath::check::{Kind, Options, Report, check, walk};
use stripewise_layout::constructors::{striped, two_part};
use stripewise_sys::{Real, SysRef};
use stripewise_target::Target;

const WRITERS: usize = 3;

/// The test's directories: `t0` to `t2` are targets, `files` is managed, `notes` are the writers' notes.
pub struct Stage {
    pub root: PathBuf,
}

impl Stage {
    fn make(root: &Path) -> Self {
        ["t0", "t1", "t2", "files", "notes"]
            .iter()
            .for_each(|name| std::fs::create_dir(root.join(name)).unwrap());
        let sys: SysRef = Arc::new(Real);
        let stage = Self { root: root.to_owned() };
        // As `place` does.
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
        ["t0", "t1", "t2"].iter().map(|name| self.root.join(name)).collect()
    }

    /// Shared files are striped, own files are in two parts.
    fn plan(&self) -> Plan {
        let rule = |pattern: &str, layout| Rule {
            pattern: format!("{}/files/{pattern}", self.root.display()),
            scheme: "test".into(),
            reason: String::new(),
            predicted_s: 0.0,
            elapsed_s: 0.0,
            layouts: vec![layout],
            spread: Spread::default(),
            overlay: None,
        };
        let tier = Tier {
            name: "t".into(),
            class: "c".into(),
            driver: Driver::Dirs { servers: self.targets() },
            capacity_per_server: 1 << 40,
            emulate: false,
        };
        let own = two_part(&[(0, 1000), (2, 3000), (1, 500)], 20_000, &[(1, 700), (2, 900)]).unwrap();
        let shared = striped(&[0, 1, 2], 4096).unwrap();
        let cluster = Cluster { tiers: vec![tier], ..Cluster::default() };
        Plan { scheme: "test".into(), cluster, rules: vec![rule("own*", own), rule("*", shared)] }
    }

    pub fn runtime(&self) -> Arc<Runtime> {
        Runtime::new(Arc::new(Real), Some(&self.plan()))
    }

    fn fsck(&self, options: Options) -> Report {
        let runtime = self.runtime();
        let listing = walk(&runtime, &[self.root.join("files")]);
        check(&runtime, &listing, &self.targets(), options, &mut |_| {})
    }
}

fn is_long() -> bool {
    std::env::var_os("STRIPEWISE_LONG").is_some()
}

#[test]
fn every_acknowledged_byte_survives_kill_9() {
    let rounds = if is_long() { 200 } else { 15 };
    let seed = std::env::var("STRIPEWISE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let mut operations = 0;
    for round in 0..rounds {
        let root = tempfile::tempdir().unwrap();
        let stage = Stage::make(root.path());
        let mut children: Vec<Child> =
            (0..WRITERS).map(|writer| spawn(&stage, writer, seed + round * 100)).collect();
        // Some are killed while they create their files, some much later.
        std::thread::sleep(Duration::from_millis(2 + (round * round * 7) % 150));
        children.iter_mut().for_each(|child| child.kill().unwrap());
        for mut child in children {
            let status = child.wait().unwrap();
            assert!(status.code().is_none(), "round {round}: a writer ended by itself: {status}");
        }
        fsck_is_clean_after_repair(&stage, round);
        operations += verify::all(&stage, WRITERS, round);
    }
    println!("{operations} operations of {WRITERS} writers in {rounds} rounds");
    assert!(operations > rounds as usize * 10, "the writers did almost nothing");
}

fn fsck_is_clean_after_repair(stage: &Stage, round: u64) {
    let repair = Options { repair: true, remove_orphans: true, ..Options::default() };
    let report = stage.fsck(repair);
    assert!(report.is_clean(), "round {round}: {report:#?}");
    let allowed = |kind| {
        // Nothing else can come of a kill: an unlink between its two halves leaves an orphan, a creation what was not born.
        matches!(kind, Kind::Truncate | Kind::Lag | Kind::Orphan | Kind::Unborn | Kind::Temporary)
    };
    assert!(report.findings.iter().all(|finding| allowed(finding.kind)), "round {round}: {report:#?}");
    let report = stage.fsck(Options::default());
    assert!(report.findings.is_empty(), "round {round}: {report:#?}");
}

fn spawn(stage: &Stage, writer: usize, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer_process", "--nocapture"])
        .env("STRIPEWISE_TEST_KILLED_WRITER", format!("{writer} {seed} {}", stage.root.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn writer_process() {
    let Ok(job) = std::env::var("STRIPEWISE_TEST_KILLED_WRITER") else { return };
    let words: Vec<&str> = job.splitn(3, ' ').collect();
    let stage = Stage { root: words[2].into() };
    writer::run(&stage, words[0].parse().unwrap(), WRITERS, words[1].parse().unwrap());
}
