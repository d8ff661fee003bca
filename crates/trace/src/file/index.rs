//! Numbers file names for the writer of a trace. The names themselves go to a temporary file once
//! they are many.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use hashbrown::HashTable;

/// Bytes of names that are kept in memory before they go to the temporary file.
const MEMORY_BYTES: usize = 64 << 20;

/// Number of consecutive names that share a start in [`Texts::starts`].
const NAMES_PER_START: usize = 16;

/// Numbers for distinct names, from 0 on. Memory: 10 to 16 bytes for each name and
/// [`MEMORY_BYTES`], however long the names are.
///
/// Names with the same hash are told apart by their text, of which only the hash is in memory. It
/// has 32 bits, so a trace of 20 million files has some 50,000 pairs of names with the same one.
pub(super) struct NameIndex<H = RandomState> {
    texts: Texts,
    /// Hashes of the names, by number.
    hashes: Vec<u32>,
    /// Numbers, by hash.
    numbers: HashTable<u32>,
    hasher: H,
}

impl NameIndex {
    /// An index that keeps all names in memory.
    pub(super) fn in_memory() -> Self {
        Self::with_memory(PathBuf::new(), RandomState::new(), usize::MAX)
    }
}

impl<H: BuildHasher> NameIndex<H> {
    /// An index whose names go to a temporary file at `path`, which is created when needed and
    /// unlinked at once.
    pub(super) fn new(path: PathBuf, hasher: H) -> Self {
        Self::with_memory(path, hasher, MEMORY_BYTES)
    }

    fn with_memory(path: PathBuf, hasher: H, memory_bytes: usize) -> Self {
        let texts = Texts { path, memory_bytes, ..Texts::default() };
        Self { texts, hashes: Vec::new(), numbers: HashTable::new(), hasher }
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The number of a name, which is added if it is new.
    ///
    /// # Errors
    /// The temporary file cannot be written or read, or there are 2^32 names.
    pub(super) fn add(&mut self, name: &[u8]) -> io::Result<u32> {
        let Self { texts, hashes, numbers, hasher } = self;
        let hash = hasher.hash_one(name) as u32;
        let mut read = Ok(());
        let is_same = |&number: &u32| {
            hashes[number as usize] == hash
                && match texts.get(number) {
                    Ok(known) => known == name,
                    Err(error) => {
                        read = Err(error);
                        false
                    }
                }
        };
        let found = numbers.find(spread(hash), is_same).copied();
        read?;
        if let Some(number) = found {
            return Ok(number);
        }
        let number = u32::try_from(hashes.len()).map_err(|_| io::Error::other("too many file names"))?;
        texts.push(name)?;
        hashes.push(hash);
        numbers.insert_unique(spread(hash), number, |&number| spread(hashes[number as usize]));
        Ok(number)
    }

    /// The name with this number.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(super) fn name(&mut self, number: u32) -> io::Result<&[u8]> {
        self.texts.get(number)
    }
}

/// A hash in all bits, of which the table uses the lowest and the highest.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Names by number, each preceded by its length: the first ones in the file, the others in memory.
#[derive(Default)]
struct Texts {
    path: PathBuf,
    file: Option<File>,
    file_bytes: u64,
    memory: Vec<u8>,
    memory_bytes: usize,
    /// Positions of every [`NAMES_PER_START`]-th name, in file and memory together.
    starts: Vec<u64>,
    /// Number of names.
    count: usize,
    /// The names from a start to the next one that were read last, and the index of the start.
    block: (usize, Vec<u8>),
}

/// Size of the length of a name, bytes.
const LENGTH_BYTES: usize = 4;

impl Texts {
    fn push(&mut self, name: &[u8]) -> io::Result<()> {
        let length = u32::try_from(name.len()).map_err(|_| io::Error::other("a file name is too long"))?;
        if self.count.is_multiple_of(NAMES_PER_START) {
            // Names that share a start are all in the file or all in memory.
            if self.memory.len() >= self.memory_bytes {
                self.spill()?;
            }
            self.starts.push(self.file_bytes + self.memory.len() as u64);
        }
        self.memory.extend(length.to_le_bytes());
        self.memory.extend(name);
        self.count += 1;
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file =
                    File::options().read(true).write(true).create(true).truncate(true).open(&self.path)?;
                fs::remove_file(&self.path)?;
                self.file.insert(file)
            }
        };
        file.write_all_at(&self.memory, self.file_bytes)?;
        self.file_bytes += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }

    fn get(&mut self, number: u32) -> io::Result<&[u8]> {
        let index = number as usize / NAMES_PER_START;
        let start = self.starts[index];
        let names = if let Some(at) = start.checked_sub(self.file_bytes) {
            &self.memory[at as usize..]
        } else {
            self.read_block(index)?;
            &self.block.1[..]
        };
        Ok(nth(names, number as usize % NAMES_PER_START))
    }

    fn read_block(&mut self, index: usize) -> io::Result<()> {
        if self.block.0 == index && !self.block.1.is_empty() {
            return Ok(());
        }
        let (start, end) = (self.starts[index], self.starts.get(index + 1).copied());
        let bytes = (end.unwrap_or(self.file_bytes) - start) as usize;
        let (known, block) = &mut self.block;
        block.clear();
        block.resize(bytes, 0);
        *known = index;
        let file = self.file.as_ref().ok_or_else(|| io::Error::other("the file of names is missing"))?;
        file.read_exact_at(block, start).inspect_err(|_| block.clear())
    }
}

/// The n-th of some names with their lengths.
fn nth(mut names: &[u8], n: usize) -> &[u8] {
    let length = |names: &[u8]| u32::from_le_bytes(names[..LENGTH_BYTES].try_into().expect("4 bytes")) as usize;
    for _ in 0..n {
        names = &names[LENGTH_BYTES + length(names)..];
    }
    &names[LENGTH_BYTES..][..length(names)]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::hash::{DefaultHasher, Hasher};

    use proptest::prelude::*;

    use super::*;

    /// A hash with few values, so that most names have the hash of another one.
    #[derive(Clone, Default)]
    struct Colliding(DefaultHasher);

    impl Hasher for Colliding {
        fn write(&mut self, bytes: &[u8]) {
            self.0.write(bytes);
        }

        fn finish(&self) -> u64 {
            self.0.finish() % 3
        }
    }

    /// Compares the numbers with those of a map of names.
    fn compare<H: BuildHasher>(names: &[String], hasher: H, memory_bytes: usize) {
        let dir = tempfile::tempdir().unwrap();
        let mut index = NameIndex::with_memory(dir.path().join("names"), hasher, memory_bytes);
        let mut expected: HashMap<&str, u32> = HashMap::new();
        for name in names {
            let next = expected.len() as u32;
            assert_eq!(index.add(name.as_bytes()).unwrap(), *expected.entry(name).or_insert(next));
        }
        assert_eq!(index.len(), expected.len());
        for (name, number) in expected {
            assert_eq!(index.name(number).unwrap(), name.as_bytes());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is unlinked");
    }

    proptest! {
        #[test]
        fn names_have_the_numbers_that_a_map_gives(
            names in prop::collection::vec("[a-c/]{0,4}|.{0,40}", 0..300),
            memory_bytes in prop_oneof![Just(0), 1usize..2000, Just(1 << 20)],
        ) {
            compare(&names, RandomState::new(), memory_bytes);
            compare(&names, std::hash::BuildHasherDefault::<Colliding>::default(), memory_bytes);
        }
    }

    #[test]
    fn many_names_take_little_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = NameIndex::with_memory(dir.path().join("names"), RandomState::new(), 1 << 16);
        let name = |number: u32| format!("/data/{}/{number}", "x".repeat(100));
        (0..100_000).for_each(|number| assert_eq!(index.add(name(number).as_bytes()).unwrap(), number));
        let NameIndex { texts, hashes, numbers, .. } = &index;
        let bytes = 4 * hashes.len() + 5 * numbers.capacity() * 8 / 7 + 8 * texts.starts.len();
        assert!(bytes <= 16 * 100_000, "{bytes}");
        assert!(texts.memory.capacity() <= 1 << 18 && texts.block.1.capacity() <= 1 << 14);
        (0..100_000)
            .step_by(37)
            .for_each(|number| assert_eq!(index.add(name(number).as_bytes()).unwrap(), number));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        let mut index = NameIndex::with_memory("/nonexistent/names".into(), RandomState::new(), 0);
        let added = (0..100).try_for_each(|number: u32| index.add(&number.to_le_bytes()).map(drop));
        assert_eq!(added.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
