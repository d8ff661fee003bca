//! The content of a disk after a power cut.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use stripewise_sys::{Real, SeekFrom, Sys};

use super::bytes::{Bytes, Change, Content, PAGE};
use stripewise_random::Random;

use super::kept::Kept;

/// The rule for names that survive a power cut. See the [module](super).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// Only those that POSIX guarantees.
    #[default]
    Posix,
    /// Those of ext4 with ordered data.
    Ordered,
}

/// A directory tree under observation. See the [module](super).
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    journal: Journal,
    state: Mutex<State>,
}

pub(super) type NodeNumber = usize;

/// (device, inode) in the real file system.
pub(super) type Inode = (u64, u64);

#[derive(Debug, Default)]
pub(super) struct State {
    nodes: Vec<Node>,
    by_inode: HashMap<Inode, NodeNumber>,
    /// Unsynced changes of names, in order.
    unsynced: Vec<Names>,
}

#[derive(Debug)]
struct Node {
    mode: u32,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    File(Content),
    /// The synced names.
    Directory(BTreeMap<OsString, NodeNumber>),
    Link(PathBuf),
}

/// Changes of names that happen atomically: (directory, name, its new node or none).
type Names = Vec<(NodeNumber, OsString, Option<NodeNumber>)>;

const ROOT: NodeNumber = 0;

impl Disk {
    /// Observes the directory `root`, whose present content counts as synced. From now on only
    /// [`super::Faulty`] processes of this disk may change it.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn new(root: &Path, journal: Journal) -> std::io::Result<Arc<Self>> {
        let mut state = State::default();
        state.scan(root)?;
        Ok(Arc::new(Self { root: root.to_owned(), journal, state: Mutex::new(state) }))
    }

    /// The observed directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn journal(&self) -> Journal {
        self.journal
    }

    /// Cuts and restores the power: replaces the content of the directory by what survived.
    /// Descriptors that were opened before are dead: drop them, and use new processes.
    ///
    /// # Errors
    /// The directory cannot be rewritten.
    pub fn power_cut(&self, seed: u64) -> std::io::Result<()> {
        let mut random = Random(seed);
        let mut state = self.state();
        state.keep_some_names(self.journal, &mut random);
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        let mut written = HashMap::new();
        state.write_directory(ROOT, &self.root, &mut random, &mut written)?;
        *state = State::default();
        state.scan(&self.root)
    }
}

impl State {
    /// The node of a real file, if the file is on this disk.
    pub fn node(&self, inode: Inode) -> Option<NodeNumber> {
        self.by_inode.get(&inode).copied()
    }

    /// Adds a new file or directory `name` in `directory`.
    pub fn created(
        &mut self,
        directory: NodeNumber,
        name: &OsStr,
        inode: Inode,
        mode: u32,
        is_directory: bool,
    ) {
        let kind = if is_directory {
            NodeKind::Directory(BTreeMap::new())
        } else {
            NodeKind::File(Content::default())
        };
        let node = self.add(inode, mode, kind);
        self.names_changed(vec![(directory, name.to_owned(), Some(node))]);
    }

    /// Adds a node. A new file may get the inode number of a removed one, so the last node with a
    /// number counts.
    fn add(&mut self, inode: Inode, mode: u32, kind: NodeKind) -> NodeNumber {
        self.nodes.push(Node { mode, kind });
        self.by_inode.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    pub fn names_changed(&mut self, names: Names) {
        self.unsynced.push(names);
    }

    pub fn content_changed(&mut self, node: NodeNumber, change: Change) {
        if let NodeKind::File(content) = &mut self.nodes[node].kind {
            content.change(change);
        }
    }

    pub fn mode_changed(&mut self, node: NodeNumber, mode: u32) {
        self.nodes[node].mode = mode;
    }

    pub fn synced(&mut self, node: NodeNumber, journal: Journal) {
        match &mut self.nodes[node].kind {
            NodeKind::File(content) => content.sync(),
            NodeKind::Directory(_) | NodeKind::Link(_) => {}
        }
        let is_directory = matches!(self.nodes[node].kind, NodeKind::Directory(_));
        let touches = |names: &Names| is_directory && names.iter().any(|&(directory, ..)| directory == node);
        let all = journal == Journal::Ordered;
        let (synced, rest) =
            std::mem::take(&mut self.unsynced).into_iter().partition(|names| all || touches(names));
        self.unsynced = rest;
        self.apply_names(synced);
    }

    pub fn sync_failed(&mut self, node: NodeNumber, random: &mut Random) {
        if let NodeKind::File(content) = &mut self.nodes[node].kind {
            content.sync_failed(random);
        }
    }

    fn apply_names(&mut self, changes: Vec<Names>) {
        for (directory, name, node) in changes.into_iter().flatten() {
            let NodeKind::Directory(entries) = &mut self.nodes[directory].kind else { continue };
            match node {
                Some(node) => entries.insert(name, node),
                None => entries.remove(&name),
            };
        }
    }

    fn keep_some_names(&mut self, journal: Journal, random: &mut Random) {
        let mut unsynced = std::mem::take(&mut self.unsynced);
        let kept = Kept::choose(random);
        match journal {
            Journal::Posix => unsynced.retain(|_| kept.keeps(random)),
            Journal::Ordered => unsynced.truncate(match kept {
                Kept::Nothing => 0,
                Kept::Everything => unsynced.len(),
                Kept::Some => random.below(unsynced.len() as u64 + 1) as usize,
            }),
        }
        self.apply_names(unsynced);
    }

    /// Adds everything below the directory `root` as synced.
    fn scan(&mut self, root: &Path) -> std::io::Result<()> {
        let metadata = fs::metadata(root)?;
        self.add((metadata.dev(), metadata.ino()), metadata.mode(), NodeKind::Directory(BTreeMap::new()));
        self.scan_directory(ROOT, root)
    }

    fn scan_directory(&mut self, directory: NodeNumber, path: &Path) -> std::io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (path, metadata) = (entry.path(), entry.metadata()?);
            let inode = (metadata.dev(), metadata.ino());
            let known = self.node(inode);
            let kind = if metadata.is_dir() {
                NodeKind::Directory(BTreeMap::new())
            } else if metadata.is_symlink() {
                NodeKind::Link(fs::read_link(&path)?)
            } else if known.is_none() {
                NodeKind::File(Content::synced(read(&path)?))
            } else {
                // Another name of a file that was read already.
                NodeKind::File(Content::default())
            };
            let node = match known {
                Some(node) => node,
                None => self.add(inode, metadata.mode(), kind),
            };
            if let NodeKind::Directory(entries) = &mut self.nodes[directory].kind {
                entries.insert(entry.file_name(), node);
            }
            if metadata.is_dir() {
                self.scan_directory(node, &path)?;
            }
        }
        Ok(())
    }

    fn write_directory(
        &self,
        directory: NodeNumber,
        path: &Path,
        random: &mut Random,
        written: &mut HashMap<NodeNumber, PathBuf>,
    ) -> std::io::Result<()> {
        let NodeKind::Directory(entries) = &self.nodes[directory].kind else { return Ok(()) };
        for (name, &number) in entries {
            let (path, node) = (path.join(name), &self.nodes[number]);
            if let Some(other) = written.get(&number) {
                // A renamed directory may survive under both names. The second one is lost then.
                if !matches!(node.kind, NodeKind::Directory(_)) {
                    fs::hard_link(other, &path)?;
                }
                continue;
            }
            written.insert(number, path.clone());
            match &node.kind {
                NodeKind::Link(target) => symlink(target, &path)?,
                NodeKind::File(content) => {
                    write(&path, &content.after_power_cut(random))?;
                    fs::set_permissions(&path, PermissionsExt::from_mode(node.mode & 0o7777))?;
                }
                NodeKind::Directory(_) => {
                    fs::create_dir(&path)?;
                    self.write_directory(number, &path, random, written)?;
                    fs::set_permissions(&path, PermissionsExt::from_mode(node.mode & 0o7777))?;
                }
            }
        }
        Ok(())
    }
}

/// The data of a file; holes are not read.
fn read(path: &Path) -> std::io::Result<Bytes> {
    let mut bytes = Bytes::default();
    let file = fs::File::open(path)?;
    let mut at = 0;
    while let Ok(start) = Real.seek(file.as_fd(), SeekFrom::Data(at)) {
        let end = Real.seek(file.as_fd(), SeekFrom::Hole(start))?;
        let mut data = vec![0; (end - start) as usize];
        file.read_exact_at(&mut data, start)?;
        bytes.write(start, &data);
        at = end;
    }
    bytes.set_size(file.metadata()?.len());
    Ok(bytes)
}

fn write(path: &Path, bytes: &Bytes) -> std::io::Result<()> {
    let file = fs::File::create_new(path)?;
    for (&page, data) in &bytes.pages {
        file.write_all_at(data, page * PAGE)?;
    }
    file.set_len(bytes.size)
}
