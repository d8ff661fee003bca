//! Compares two places for the durable map: a checksummed journal next to an index in memory, and
//! LMDB on disk.
//!
//! `cargo bench -p stripewise-extents --bench durability [-- DIRECTORY]` prints the tables of
//! `docs/decisions/0005-extent-map.md`: the cost of a commit of N changes of a map with a million
//! extents on the disk of DIRECTORY (default: the temporary directory), and what power cuts leave
//! of LMDB. Power cuts are emulated: each page of LMDB's file has any of the contents that it had
//! since the last sync.

#![allow(missing_docs, reason = "a benchmark")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::time::Instant;
use stripewise_random::Random;

use lmdb_master_sys as ffi;
use stripewise_extents::{CopyId, Map, MapSpec, Mask, Node};
use stripewise_sys::Real;

const EXTENTS: u64 = 1_000_000;
const BLOCK: u64 = 4096;
const CHANGES: [u64; 5] = [1, 10, 100, 1000, 10_000];
const TIMES: usize = 7;
const CUTS: u64 = 1000;
const PAGE: usize = 4096;

fn main() {
    let base = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let base = base.unwrap_or_else(std::env::temp_dir);
    println!("| {EXTENTS} extents, changes | {} |", CHANGES.map(|changes| changes.to_string()).join(" | "));
    println!("|---|{}", "---|".repeat(CHANGES.len()));
    journal(&base);
    lmdb(&base, "LMDB, safe syncs, one transaction", 0, false);
    lmdb(&base, "LMDB, WRITEMAP NOSYNC, then mdb_env_sync", ffi::MDB_NOSYNC | ffi::MDB_WRITEMAP, false);
    lmdb(&base, "LMDB, safe syncs, a transaction for each change", 0, true);
    println!(
        "\n| {CUTS} power cuts each | as of some transaction since the sync | synced entries missing | other entries wrong | refused | signal |"
    );
    println!("|---|---|---|---|---|---|");
    cuts("LMDB, safe syncs", 0);
    cuts("LMDB, NOSYNC", ffi::MDB_NOSYNC);
    cuts("LMDB, WRITEMAP NOSYNC", ffi::MDB_NOSYNC | ffi::MDB_WRITEMAP);
}

/// Prints the median milliseconds of N changes and their commit, those of the commit alone, and the
/// bytes written. `commit` returns when the commit began, or `None` if the measurement would take
/// too long.
fn row(name: &str, mut commit: impl FnMut(u64) -> Option<Instant>) {
    let cell = |changes: u64, commit: &mut dyn FnMut(u64) -> Option<Instant>| {
        let mut measured = Vec::new();
        for _ in 0..TIMES {
            let (before, started) = (written_bytes(), Instant::now());
            let began = commit(changes)?;
            let ms = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
            measured.push((ms(started), ms(began), written_bytes() - before));
        }
        measured.sort_by(|one, other| one.0.total_cmp(&other.0));
        Some(measured[TIMES / 2])
    };
    let cells = CHANGES.map(|changes| match cell(changes, &mut commit) {
        Some((all, alone, bytes)) => format!("{all:.1}, {alone:.1} ms, {} KiB", bytes.div_ceil(1024)),
        None => "-".to_owned(),
    });
    println!("| {name} | {} |", cells.join(" | "));
}

/// Bytes that this process has sent to disks.
fn written_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").expect("/proc/self/io");
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: ")).expect("write_bytes");
    line.parse().expect("a number")
}

fn journal(base: &Path) {
    let (disk, memory) = (tempfile::tempdir_in(base).unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    let sys = Arc::new(Real);
    let spec = MapSpec {
        owner: None,
        run_dir: memory.path().join("file"),
        journal_base: disk.path().to_owned(),
        journal_below: Default::default(),
        journal_name: "f.extents".into(),
        id: [7; 16],
        copies: 2,
        default: Mask::ORIGINAL,
        node: Node::this(&(sys.clone() as stripewise_sys::SysRef)).unwrap(),
        create: true,
        sessions: false,
    };
    let map = Map::join(sys, spec).unwrap();
    let write = |number: u64, to: CopyId| {
        let range = 2 * number * BLOCK..(2 * number + 1) * BLOCK;
        let mut guard = map.begin_write(range.clone()).unwrap();
        guard.prepare(range.clone(), to).unwrap();
        guard.wrote(range, to).unwrap();
    };
    (0..EXTENTS).for_each(|number| write(number, CopyId::new(1)));
    map.sync(|| Ok(())).unwrap();
    let mut random = Random(1);
    row("journal, and the index in memory", |changes| {
        for _ in 0..changes {
            let number = random.below(EXTENTS);
            let dirty =
                map.begin_read(2 * number * BLOCK..2 * number * BLOCK + 1).unwrap().spans()[0].is_dirty();
            write(number, if dirty { CopyId::ORIGINAL } else { CopyId::new(1) });
        }
        let began = Instant::now();
        map.sync(|| Ok(())).unwrap();
        Some(began)
    });
}

fn lmdb(base: &Path, name: &str, flags: u32, alone: bool) {
    let disk = tempfile::tempdir_in(base).unwrap();
    let store = Store::open(disk.path(), flags, 1 << 30).unwrap();
    let txn = store.begin();
    (0..EXTENTS).for_each(|number| store.put(txn, number, 0));
    store.commit(txn);
    store.sync();
    let (mut random, mut value) = (Random(1), 0);
    row(name, |changes| {
        if alone && changes > 100 {
            return None;
        }
        let mut txn = store.begin();
        for change in 0..changes {
            value += 1;
            store.put(txn, random.below(EXTENTS), value);
            if alone && change + 1 < changes {
                store.commit(txn);
                txn = store.begin();
            }
        }
        let began = Instant::now();
        store.commit(txn);
        if flags & ffi::MDB_NOSYNC != 0 {
            store.sync();
        }
        Some(began)
    });
}

/// An environment with one table.
struct Store {
    env: *mut ffi::MDB_env,
    table: ffi::MDB_dbi,
}

impl Store {
    fn open(path: &Path, flags: u32, map_bytes: usize) -> Result<Self, i32> {
        let check = |code: i32| if code == 0 { Ok(()) } else { Err(code) };
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let (mut env, mut txn, mut table) = (ptr::null_mut(), ptr::null_mut(), 0);
        // SAFETY: out pointers of this frame; no handle is used after it was closed.
        unsafe {
            check(ffi::mdb_env_create(&raw mut env))?;
            check(ffi::mdb_env_set_mapsize(env, map_bytes))?;
            check(ffi::mdb_env_open(env, name.as_ptr(), flags | ffi::MDB_NORDAHEAD, 0o600))?;
            check(ffi::mdb_txn_begin(env, ptr::null_mut(), 0, &raw mut txn))?;
            check(ffi::mdb_dbi_open(txn, ptr::null(), ffi::MDB_CREATE | ffi::MDB_INTEGERKEY, &raw mut table))?;
            check(ffi::mdb_txn_commit(txn))?;
        }
        Ok(Self { env, table })
    }

    fn begin(&self) -> *mut ffi::MDB_txn {
        let mut txn = ptr::null_mut();
        // SAFETY: an open environment.
        assert_eq!(unsafe { ffi::mdb_txn_begin(self.env, ptr::null_mut(), 0, &raw mut txn) }, 0);
        txn
    }

    /// Stores an entry as large as the index's.
    fn put(&self, txn: *mut ffi::MDB_txn, key: u64, value: u64) {
        let (key, mut bytes) = (key.to_ne_bytes(), [0u8; 12]);
        bytes[..8].copy_from_slice(&value.to_ne_bytes());
        let mut key = ffi::MDB_val { mv_size: 8, mv_data: key.as_ptr().cast_mut().cast() };
        let mut value = ffi::MDB_val { mv_size: 12, mv_data: bytes.as_mut_ptr().cast() };
        // SAFETY: a live transaction; LMDB copies key and value.
        assert_eq!(unsafe { ffi::mdb_put(txn, self.table, &raw mut key, &raw mut value, 0) }, 0);
    }

    fn commit(&self, txn: *mut ffi::MDB_txn) {
        // SAFETY: live, and not used again.
        assert_eq!(unsafe { ffi::mdb_txn_commit(txn) }, 0);
    }

    fn sync(&self) {
        // SAFETY: an open environment.
        assert_eq!(unsafe { ffi::mdb_env_sync(self.env, 1) }, 0);
    }

    fn all(&self) -> Result<BTreeMap<u64, u64>, i32> {
        let (txn, mut cursor, mut all) = (self.begin(), ptr::null_mut(), BTreeMap::new());
        // SAFETY: a live transaction; the data is read at once.
        unsafe {
            let code = ffi::mdb_cursor_open(txn, self.table, &raw mut cursor);
            if code != 0 {
                return Err(code);
            }
            let (mut key, mut value) = (std::mem::zeroed::<ffi::MDB_val>(), std::mem::zeroed::<ffi::MDB_val>());
            loop {
                match ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut value, ffi::MDB_NEXT) {
                    ffi::MDB_NOTFOUND => break,
                    0 if key.mv_size == 8 && value.mv_size == 12 => {
                        let word = |val: &ffi::MDB_val| val.mv_data.cast::<u64>().read_unaligned();
                        all.insert(word(&key), word(&value));
                    }
                    0 => return Err(ffi::MDB_CORRUPTED),
                    code => return Err(code),
                }
            }
            ffi::mdb_cursor_close(cursor);
            ffi::mdb_txn_abort(txn);
        }
        Ok(all)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: no transaction is left.
        unsafe { ffi::mdb_env_close(self.env) };
    }
}

type State = BTreeMap<u64, u64>;

/// The states since the last sync: the map after each transaction, and the file after each step.
struct History {
    states: Vec<State>,
    images: Vec<Vec<u8>>,
}

fn history(dir: &Path, flags: u32, random: &mut Random) -> History {
    const KEYS: u64 = 2000;
    let store = Store::open(dir, flags, 8 << 20).unwrap();
    let mut state = State::new();
    let mut change = |count: u64, random: &mut Random| {
        let txn = store.begin();
        for _ in 0..count {
            let (key, value) = (random.below(KEYS), random.below(u64::MAX));
            store.put(txn, key, value);
            state.insert(key, value);
        }
        store.commit(txn);
        state.clone()
    };
    (0..10).for_each(|_| drop(change(200, random)));
    let mut states = vec![change(1, random)];
    store.sync();
    let image = || std::fs::read(dir.join("data.mdb")).unwrap();
    let mut images = vec![image()];
    // With safe syncs, at most one commit is not on disk.
    let transactions = if flags & ffi::MDB_NOSYNC == 0 { 1 } else { 1 + random.below(20) };
    for _ in 0..transactions {
        states.push(change(1 + random.below(30), random));
        images.push(image());
    }
    History { states, images }
}

/// A possible image of the file after a power cut: any page may have its content of any time. With
/// safe syncs, the pages with the roots (0 and 1) change only after all others have.
fn cut(history: &History, safe: bool, random: &mut Random) -> Vec<u8> {
    let mut image = history.images[0].clone();
    image.resize(history.images.iter().map(Vec::len).max().unwrap_or(0), 0);
    let roots_are_new = safe && random.below(2) == 0;
    for page in 0..image.len() / PAGE {
        let at = page * PAGE..(page + 1) * PAGE;
        let chosen = match (safe, page < 2) {
            (true, true) => usize::from(roots_are_new),
            (true, false) if roots_are_new => 1,
            _ => random.below(history.images.len() as u64) as usize,
        };
        if let Some(bytes) = history.images[chosen].get(at.clone()) {
            image[at].copy_from_slice(bytes);
        }
    }
    image
}

#[derive(Clone, Copy)]
enum Found {
    Right,
    Lost,
    Wrong,
    Refused,
    Signal,
}

fn cuts(name: &str, flags: u32) {
    let mut found = [0u64; 5];
    for seed in 0..CUTS {
        let mut random = Random(seed);
        let (dir, after) =
            (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let history = history(dir.path(), flags, &mut random);
        let image = cut(&history, flags & ffi::MDB_NOSYNC == 0, &mut random);
        std::fs::write(after.path().join("data.mdb"), image).unwrap();
        found[look(after.path(), flags, &history) as usize] += 1;
    }
    println!("| {name} | {} |", found.map(|count| count.to_string()).join(" | "));
}

/// Reads the image in a process of its own, because LMDB may crash.
fn look(dir: &Path, flags: u32, history: &History) -> Found {
    let judge = || match Store::open(dir, flags, 8 << 20).and_then(|store| store.all()) {
        Ok(all) if history.states.contains(&all) => Found::Right,
        Ok(all) if history.states[0].keys().any(|key| !all.contains_key(key)) => Found::Lost,
        Ok(_) => Found::Wrong,
        Err(_) => Found::Refused,
    };
    // SAFETY: single-threaded; the child exits without returning.
    unsafe {
        match libc::fork() {
            0 => {
                libc::alarm(10);
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY);
                libc::dup2(null, 2);
                libc::_exit(judge() as i32);
            }
            pid => {
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
                let all = [Found::Right, Found::Lost, Found::Wrong, Found::Refused];
                if libc::WIFEXITED(status) {
                    all[libc::WEXITSTATUS(status) as usize % 4]
                } else {
                    Found::Signal
                }
            }
        }
    }
}
