//! The files that the kernel knows, by number, and where each of them was last found.
//!
//! A node is kept by its name and not by a descriptor, because a kernel remembers as many files as
//! it has memory for. What is found under the name must be the node's file; otherwise the kernel
//! gets ESTALE, and looks the name up again.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use crate::opened::Opened;

/// The number of the directory that is mounted.
pub const ROOT: u64 = fuser::INodeNo::ROOT.0;
/// Numbers from here on are of files whose inode number is taken: those of other devices.
const FIRST_OTHER: u64 = 1 << 63;
/// More components than a path can have: the parents lead round in a circle.
const DEPTH_MAX: usize = 4096;

/// What makes a file this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device.
    pub dev: u64,
    /// The inode number on the device.
    pub ino: u64,
    /// When it was created, nanoseconds; 0 if the file system does not say. An inode number is used
    /// again after its file was removed.
    pub born_ns: u64,
}

/// All nodes. Every method locks.
pub struct Nodes(Mutex<Table>);

struct Table {
    device: u64,
    nodes: HashMap<u64, Node>,
    /// By directory and name. A file with several names is here with the last that was looked up.
    by_name: HashMap<(u64, OsString), u64>,
    /// The numbers of files of other devices, by device and inode number.
    others: HashMap<(u64, u64), u64>,
    next_other: u64,
}

struct Node {
    identity: Identity,
    /// Directory and name; `None` for the root, and after the name was removed.
    place: Option<(u64, OsString)>,
    /// How often the kernel was told the number, without what it has forgotten.
    lookups: u64,
    /// The descriptors that programs have open.
    opened: Vec<Arc<Opened>>,
}

/// How a file is reached.
#[derive(Clone)]
pub enum Reached {
    /// Through a descriptor that is open.
    Opened(Arc<Opened>),
    /// By its path below the root, if what is there is this file.
    Path(PathBuf, Identity),
}

impl Nodes {
    /// A table that has the root only.
    pub fn new(root: Identity) -> Self {
        let node = Node { identity: root, place: None, lookups: 1, opened: Vec::new() };
        Self(Mutex::new(Table {
            device: root.dev,
            nodes: HashMap::from([(ROOT, node)]),
            by_name: HashMap::new(),
            others: HashMap::new(),
            next_other: FIRST_OTHER,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the kernel is told of a file under this name. Returns the file's number.
    pub fn enter(&self, parent: u64, name: &OsStr, identity: Identity) -> u64 {
        let table = &mut *self.lock();
        let number = table.number_of(identity);
        let place = (parent, name.to_owned());
        let node =
            table.nodes.entry(number).or_insert(Node { identity, place: None, lookups: 0, opened: Vec::new() });
        if node.identity != identity {
            // Its inode number has become another file's.
            (node.identity, node.opened) = (identity, Vec::new());
        }
        node.lookups += 1;
        table.set_place(number, Some(place));
        number
    }

    /// Notes that the kernel has forgotten a number so many times.
    pub fn forget(&self, number: u64, times: u64) {
        let table = &mut *self.lock();
        let Some(node) = table.nodes.get_mut(&number) else { return };
        node.lookups = node.lookups.saturating_sub(times);
        if node.lookups > 0 || number == ROOT {
            return;
        }
        table.set_place(number, None);
        if let Some(node) = table.nodes.remove(&number) {
            table.others.remove(&(node.identity.dev, node.identity.ino));
        }
    }

    /// How to reach a file. An open descriptor is preferred: it is the file's whatever happens to
    /// its name.
    ///
    /// # Errors
    /// ESTALE: the file has no name that is known. ENAMETOOLONG.
    pub fn reach(&self, number: u64) -> Result<Reached, Errno> {
        let table = self.lock();
        let node = table.nodes.get(&number).ok_or(Errno::ESTALE)?;
        if let Some(opened) = node.opened.last() {
            return Ok(Reached::Opened(opened.clone()));
        }
        Ok(Reached::Path(table.path(number)?, node.identity))
    }

    /// Notes that a program has the file open.
    pub fn add_opened(&self, number: u64, opened: &Arc<Opened>) {
        if let Some(node) = self.lock().nodes.get_mut(&number) {
            node.opened.push(opened.clone());
        }
    }

    /// Notes that a program has closed the file.
    pub fn remove_opened(&self, number: u64, closed: &Arc<Opened>) {
        if let Some(node) = self.lock().nodes.get_mut(&number) {
            node.opened.retain(|opened| !Arc::ptr_eq(opened, closed));
        }
    }

    /// Notes that a name was removed.
    pub fn removed(&self, parent: u64, name: &OsStr) {
        let table = &mut *self.lock();
        if let Some(&number) = table.by_name.get(&(parent, name.to_owned())) {
            table.set_place(number, None);
        }
    }

    /// Notes that a file has another name; the file that had it is removed, or has the former one
    /// if the two were exchanged.
    pub fn renamed(&self, from: (u64, &OsStr), to: (u64, &OsStr), is_exchange: bool) {
        let table = &mut *self.lock();
        let owned = |(parent, name): (u64, &OsStr)| (parent, name.to_owned());
        let (from, to) = (owned(from), owned(to));
        let (moved, replaced) = (table.by_name.get(&from).copied(), table.by_name.get(&to).copied());
        if moved == replaced {
            // Two names of one file: rename(2) leaves both.
            return;
        }
        if let Some(number) = replaced {
            table.set_place(number, None);
        }
        if let Some(number) = moved {
            table.set_place(number, Some(to));
        }
        if let (Some(number), true) = (replaced, is_exchange) {
            table.set_place(number, Some(from));
        }
    }
}

impl Table {
    fn number_of(&mut self, Identity { dev, ino, .. }: Identity) -> u64 {
        let root = self.nodes[&ROOT].identity;
        if (dev, ino) == (root.dev, root.ino) {
            return ROOT;
        }
        if dev == self.device && ino != ROOT && ino < FIRST_OTHER {
            return ino;
        }
        *self.others.entry((dev, ino)).or_insert_with(|| {
            self.next_other += 1;
            self.next_other
        })
    }

    fn set_place(&mut self, number: u64, place: Option<(u64, OsString)>) {
        if number == ROOT {
            return;
        }
        let Some(node) = self.nodes.get_mut(&number) else { return };
        if node.place == place {
            return;
        }
        if let Some(former) = std::mem::replace(&mut node.place, place.clone())
            && self.by_name.get(&former) == Some(&number)
        {
            self.by_name.remove(&former);
        }
        let Some(place) = place else { return };
        if let Some(former) = self.by_name.insert(place, number)
            && let Some(node) = self.nodes.get_mut(&former)
        {
            node.place = None;
        }
    }

    /// The path below the root; `.` for the root.
    fn path(&self, number: u64) -> Result<PathBuf, Errno> {
        let mut names = Vec::new();
        let mut at = number;
        while at != ROOT {
            let (parent, name) =
                self.nodes.get(&at).and_then(|node| node.place.as_ref()).ok_or(Errno::ESTALE)?;
            names.push(name);
            at = *parent;
            if names.len() > DEPTH_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
        }
        if names.is_empty() {
            return Ok(PathBuf::from("."));
        }
        Ok(names.into_iter().rev().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn identity(ino: u64) -> Identity {
        Identity { dev: 7, ino, born_ns: ino }
    }

    fn path(nodes: &Nodes, number: u64) -> Result<PathBuf, Errno> {
        match nodes.reach(number)? {
            Reached::Path(path, _) => Ok(path),
            Reached::Opened(_) => panic!("nothing is open"),
        }
    }

    fn enter(nodes: &Nodes, parent: u64, name: &str, ino: u64) -> u64 {
        nodes.enter(parent, OsStr::new(name), identity(ino))
    }

    #[test]
    fn a_file_is_found_under_its_last_name() {
        let nodes = Nodes::new(identity(2));
        let dir = enter(&nodes, ROOT, "dir", 10);
        let file = enter(&nodes, dir, "file", 11);
        assert_eq!((dir, file), (10, 11), "numbers are those of the file system");
        assert_eq!(path(&nodes, ROOT).unwrap(), Path::new("."));
        assert_eq!(path(&nodes, file).unwrap(), Path::new("dir/file"));
        let name = OsStr::new;
        nodes.renamed((ROOT, name("dir")), (ROOT, name("moved")), false);
        assert_eq!(path(&nodes, file).unwrap(), Path::new("moved/file"));
        assert_eq!(enter(&nodes, ROOT, "link", 11), file);
        assert_eq!(path(&nodes, file).unwrap(), Path::new("link"));
        nodes.removed(ROOT, name("link"));
        assert_eq!(path(&nodes, file), Err(Errno::ESTALE), "its other name is not known any more");
    }

    #[test]
    fn a_rename_replaces_or_exchanges() {
        let nodes = Nodes::new(identity(2));
        let (one, two) = (enter(&nodes, ROOT, "one", 11), enter(&nodes, ROOT, "two", 12));
        let name = OsStr::new;
        nodes.renamed((ROOT, name("one")), (ROOT, name("two")), true);
        assert_eq!((path(&nodes, one).unwrap(), path(&nodes, two).unwrap()), ("two".into(), "one".into()));
        nodes.renamed((ROOT, name("one")), (ROOT, name("two")), false);
        assert_eq!((path(&nodes, one), path(&nodes, two).unwrap()), (Err(Errno::ESTALE), "two".into()));
        // The kernel may not have looked up what a rename replaces or moves.
        nodes.renamed((ROOT, name("never seen")), (ROOT, name("two")), false);
        assert_eq!(path(&nodes, two), Err(Errno::ESTALE));
    }

    #[test]
    fn a_name_has_one_file_at_a_time() {
        let nodes = Nodes::new(identity(2));
        let former = enter(&nodes, ROOT, "name", 11);
        let new = enter(&nodes, ROOT, "name", 12);
        assert_eq!((path(&nodes, former), path(&nodes, new).unwrap()), (Err(Errno::ESTALE), "name".into()));
        nodes.forget(former, 1);
        assert_eq!(path(&nodes, new).unwrap(), Path::new("name"), "its name is not the forgotten one's");
    }

    #[test]
    fn what_is_forgotten_as_often_as_it_was_told_is_gone() {
        let nodes = Nodes::new(identity(2));
        let file = enter(&nodes, ROOT, "file", 11);
        enter(&nodes, ROOT, "file", 11);
        nodes.forget(file, 1);
        assert!(path(&nodes, file).is_ok());
        nodes.forget(file, 1);
        assert_eq!(path(&nodes, file), Err(Errno::ESTALE));
        nodes.forget(ROOT, 100);
        assert!(path(&nodes, ROOT).is_ok());
    }

    #[test]
    fn a_number_that_was_used_again_is_of_the_new_file() {
        let nodes = Nodes::new(identity(2));
        let file = enter(&nodes, ROOT, "former", 11);
        let new = Identity { born_ns: 99, ..identity(11) };
        assert_eq!(nodes.enter(ROOT, OsStr::new("new"), new), file);
        let Reached::Path(path, identity) = nodes.reach(file).unwrap() else { panic!("nothing is open") };
        assert_eq!((path.as_path(), identity), (Path::new("new"), new));
        nodes.forget(file, 1);
        assert!(nodes.reach(file).is_ok(), "the kernel still knows the new one");
    }

    #[test]
    fn files_of_other_devices_have_numbers_of_their_own() {
        let nodes = Nodes::new(identity(2));
        let here = enter(&nodes, ROOT, "here", 11);
        let there = nodes.enter(ROOT, OsStr::new("there"), Identity { dev: 8, ..identity(11) });
        let one = enter(&nodes, ROOT, "one", ROOT);
        assert!(here != there && one != ROOT && there != one);
        assert_eq!(enter(&nodes, here, "..", 2), ROOT);
    }
}
