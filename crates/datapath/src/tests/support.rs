//! A directory with targets, a plan over them, and reads and writes of ordinary slices.

use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use stripewise_cluster::Spread;
use stripewise_cluster::{Cluster, Driver, FileSystem, Members, Plan, Rule, Tier};
use stripewise_extents::Node;
use stripewise_faulty::Disk;
use stripewise_layout::Layout;
use stripewise_sys::{IoVec, Mode, OFlags, Real, Sys, SysRef};
use stripewise_target::{Engine, MARKER};

use super::setup::{Setup, classes};
use crate::{IoOptions, LogicalFile, Opened, Result, Runtime, Settings};

pub const MODE: Mode = Mode::from_raw_mode(0o644);

/// A test directory: `root/t0`, `root/t1`, ... are targets, and files are in `root/files`.
pub struct Stage {
    pub root: tempfile::TempDir,
    pub plan: Plan,
    /// The parent of the extent maps' run directories; a power cut clears it.
    memory: tempfile::TempDir,
    boot: AtomicU8,
}

impl Stage {
    /// All files in `root/files` get `layout`.
    pub fn new(layout: Layout) -> Self {
        Self::of(&Setup::single(layout))
    }

    /// All files in `root/files` get this setup.
    pub fn of(setup: &Setup) -> Self {
        let root = tempfile::tempdir_in(memory()).unwrap();
        std::fs::create_dir(root.path().join("files")).unwrap();
        let servers: Vec<PathBuf> = (0..setup.targets()).map(|n| root.path().join(format!("t{n}"))).collect();
        servers.iter().for_each(|server| std::fs::create_dir(server).unwrap());
        let plan = plan_over(servers, format!("{}/files/**", root.path().display()), setup);
        let memory = tempfile::tempdir_in(memory()).unwrap();
        Self { root, plan, memory, boot: AtomicU8::new(1) }
    }

    /// Replaces the fast servers by a pool over which the file system stripes, with the directories
    /// that the plan's layouts need.
    pub fn in_pool(mut self) -> Self {
        let tier = self.plan.cluster.tiers.last_mut().unwrap();
        let members = Members::Pool { name: "fast".into(), count: tier.driver.servers() as u32 };
        let root = self.root.path().join("pool");
        tier.driver = Driver::Native { system: FileSystem::OrangeFs, root, members };
        self.plan = self.plan.folded().unwrap();
        for (_, target) in self.plan.cluster.directories() {
            std::fs::create_dir_all(target.path).unwrap();
        }
        self
    }

    /// Prepares the targets. Files on them get sessions.
    pub fn with_sessions(self) -> Self {
        drop(open(&self.real_runtime(), &self.path("first"), CREATE).unwrap());
        let markers = self.plan.cluster.directories().map(|(_, target)| target.path.join(MARKER));
        for marker in markers.filter(|marker| marker.exists()) {
            let mut marker = std::fs::OpenOptions::new().append(true).open(marker).unwrap();
            std::io::Write::write_all(&mut marker, b"sessions = true\n").unwrap();
        }
        self.real_runtime().unlink(None, &self.path("first")).unwrap();
        assert_eq!(self.objects(), [""; 0]);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("files").join(name)
    }

    /// The runtime of a new process, on a disk with simulated power cuts.
    pub fn runtime(&self) -> Arc<Runtime> {
        self.runtime_on(super::rebuilt::rebuilt())
    }

    /// The runtime of a new process, on the real disk.
    pub fn real_runtime(&self) -> Arc<Runtime> {
        self.runtime_on(Arc::new(Real))
    }

    /// A new process of another node.
    pub fn elsewhere(&self) -> Arc<Runtime> {
        let node = Some(Node { name: "there".into(), boot: [99; 16] });
        let run_base = Some(self.memory().join("there"));
        let settings = Settings { node, run_base, ..self.settings() };
        let runtime = Runtime::with_settings(Arc::new(Real), Some(&self.plan), settings);
        runtime.set_procs(4, 4);
        runtime
    }

    pub fn runtime_on(&self, sys: SysRef) -> Arc<Runtime> {
        let runtime = Runtime::with_settings(sys, Some(&self.plan), self.settings());
        runtime.set_procs(4, 4);
        runtime
    }

    pub fn settings(&self) -> Settings {
        let boot = self.boot.load(Ordering::Relaxed);
        Settings {
            engine: Engine::Serial,
            node: Some(Node { name: "here".into(), boot: [boot; 16] }),
            run_base: Some(self.memory.path().to_owned()),
            ..Settings::default()
        }
    }

    /// The parent of the extent maps' run directories.
    pub fn memory(&self) -> &Path {
        self.memory.path()
    }

    /// The used space recorded for each cache server.
    pub fn used_words(&self) -> Vec<u64> {
        let words = std::fs::read_dir(self.memory().join("space")).unwrap().flatten();
        let used = |bytes: Vec<u8>| u64::from_ne_bytes(bytes[8..16].try_into().unwrap());
        words.map(|word| used(std::fs::read(word.path()).unwrap())).collect()
    }

    /// Simulates a power cut and a reboot.
    pub fn power_cut(&self, disk: &Disk, seed: u64) {
        disk.power_cut(seed).unwrap();
        self.reboot();
    }

    /// Simulates a reboot: memory is lost.
    pub fn reboot(&self) {
        self.boot.fetch_add(1, Ordering::Relaxed);
        for entry in std::fs::read_dir(self.memory.path()).unwrap().flatten() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }

    /// The names of all objects and `ID.manifest` files on all targets.
    pub fn objects(&self) -> Vec<String> {
        let mut found = Vec::new();
        for target in self.plan.cluster.targets() {
            let directory = target.path.join("stripewise");
            for sub in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let files = std::fs::read_dir(sub.path()).unwrap().flatten();
                found.extend(files.map(|file| file.file_name().into_string().unwrap()));
            }
        }
        found
    }
}

fn plan_over(mut servers: Vec<PathBuf>, pattern: String, setup: &Setup) -> Plan {
    let fast = servers.split_off(setup.slow as usize);
    let tier = |name: &str, servers| Tier {
        name: name.into(),
        class: if name == "t" { "slow".into() } else { "fast".into() },
        driver: Driver::Dirs { servers },
        capacity_per_server: 1 << 40,
        emulate: false,
    };
    let rule = Rule {
        pattern,
        scheme: "test".into(),
        reason: String::new(),
        predicted_s: 0.0,
        elapsed_s: 0.0,
        layouts: vec![setup.original.clone()],
        spread: Spread::default(),
        overlay: setup.overlay.clone(),
    };
    let tiers = [("t", servers), ("u", fast)].into_iter().filter(|(_, servers)| !servers.is_empty());
    let tiers = tiers.map(|(name, servers)| tier(name, servers)).collect();
    let cluster = Cluster { tiers, classes: classes().into(), ..Cluster::default() };
    Plan { scheme: "test".into(), cluster, rules: vec![rule] }
}

/// A managed file opened like an application does; its descriptor is closed on drop.
pub struct Opener {
    pub raw: RawFd,
    pub file: Arc<LogicalFile>,
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.file.closing();
        stripewise_sys::fd::close_public(self.raw);
    }
}

pub fn open(runtime: &Runtime, path: &Path, flags: OFlags) -> Result<Opener> {
    match runtime.open(None, path, flags, MODE)? {
        Opened::Managed(raw, file) => Ok(Opener { raw, file }),
        Opened::Plain(_) => panic!("{} is plain", path.display()),
    }
}

pub const CREATE: OFlags = OFlags::RDWR.union(OFlags::CREATE);

/// A file that both runtimes have open.
pub fn on_two_nodes(stage: &Stage, [here, there]: &[Arc<Runtime>; 2]) -> [Opener; 2] {
    let here = open(here, &stage.path("f"), CREATE).unwrap();
    let there = std::thread::scope(|scope| {
        let opening = scope.spawn(|| open(there, &stage.path("f"), CREATE).unwrap());
        while !opening.is_finished() {
            here.file.background_work();
        }
        opening.join().unwrap()
    });
    [here, there]
}

fn vectors(memory: &mut [u8], parts: usize) -> Vec<IoVec> {
    let size = memory.len().div_ceil(parts.max(1)).max(1);
    memory.chunks_mut(size).map(|part| IoVec { base: part.as_mut_ptr(), len: part.len() }).collect()
}

impl LogicalFile {
    pub fn read(&self, len: usize, offset: u64, parts: usize) -> Result<Vec<u8>> {
        let mut memory = vec![0xee; len];
        let vectors = vectors(&mut memory, parts);
        // SAFETY: the memory belongs to this frame.
        let done = unsafe { self.read_at(&vectors, offset, IoOptions::default())? };
        memory.truncate(done);
        Ok(memory)
    }

    pub fn write(&self, bytes: &[u8], offset: u64, parts: usize) -> Result<usize> {
        let mut memory = bytes.to_vec();
        let vectors = vectors(&mut memory, parts);
        // SAFETY: the memory belongs to this frame.
        unsafe { self.write_at(&vectors, offset, IoOptions::default()) }
    }

    pub fn append_bytes(&self, bytes: &[u8]) -> Result<(u64, usize)> {
        let mut memory = bytes.to_vec();
        // SAFETY: the memory belongs to this frame.
        unsafe { self.append(&vectors(&mut memory, 2), IoOptions::default()) }
    }

    /// Does one unit of background work on a file with several copies.
    pub fn work_a_little(&self) -> Result<u64> {
        let step = stripewise_policy::background::Step::Work;
        self.copies()?.map_or(Ok(0), |copies| copies.work_once(step, 3))
    }

    /// Does what the background threads do on a file with several copies.
    pub fn background_work(&self) -> u64 {
        let copies = self.copies().unwrap().unwrap();
        copies.serve_other_nodes().unwrap();
        copies.work().unwrap()
    }

    pub fn all(&self) -> Result<Vec<u8>> {
        self.read(self.size()? as usize + 100, 0, 3)
    }
}

/// A layout with small stripe widths over three targets, in two regions.
pub fn small() -> Layout {
    stripewise_layout::constructors::two_part(&[(0, 3), (2, 7), (0, 5)], 100, &[(1, 4), (2, 6)]).unwrap()
}

/// `len` bytes that depend on position and seed.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1).collect()
}

/// A directory on a file system in memory, if there is one: syncs are free there.
fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Number of cases of a property test on real files; more with STRIPEWISE_LONG=1.
pub fn cases() -> u32 {
    if is_long() { 3000 } else { 60 }
}

pub fn is_long() -> bool {
    std::env::var_os("STRIPEWISE_LONG").is_some()
}

/// The name of the directory for the test user's objects in a target.
pub fn home() -> String {
    format!("u{}", Real.user())
}
