//! The Parquet library: its input, a file that is read by position, so that column readers do not
//! interfere with each other; and calls into it, because it panics on some damaged files.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};

use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::TraceError;

/// A file that is only read by position.
#[derive(Clone)]
pub(super) struct Source {
    file: Arc<File>,
    length_bytes: u64,
}

impl Source {
    pub(super) fn new(file: File) -> io::Result<Source> {
        let length_bytes = file.metadata()?.len();
        Ok(Source { file: Arc::new(file), length_bytes })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

/// Reads sequentially from a position on.
pub(super) struct SourceReader {
    file: Arc<File>,
    position: u64,
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buffer, self.position)?;
        self.position += n as u64;
        Ok(n)
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.length_bytes
    }
}

impl ChunkReader for Source {
    type T = BufReader<SourceReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        // Page headers are small. A larger buffer would be filled in vain at every page.
        let reader = SourceReader { file: self.file.clone(), position: start };
        Ok(BufReader::with_capacity(512, reader))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        // Checked first, so that a damaged length does not become a huge allocation.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length_bytes) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} lie beyond the end of the file")));
        }
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

thread_local! {
    /// Whether this thread is in a [`call`], which turns a panic into an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The content of the file is not such as a trace writer makes it.
pub(super) fn damaged(path: &Path, why: &str) -> TraceError {
    TraceError::new(path, format!("damaged trace ({why}): record it again"))
}

/// Calls the library and turns its errors and panics into an error that names the file. State that
/// `call` modifies must not be used after an error.
pub(super) fn call<T>(path: &Path, call: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T, TraceError> {
    silence();
    let was_guarded = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(was_guarded);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(damaged(path, &error.to_string().replace('\n', " "))),
        Err(_) => Err(damaged(path, "its content makes no sense")),
    }
}

/// Installs a panic hook that keeps panics in [`call`] off stderr and reports all others as before.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
}
