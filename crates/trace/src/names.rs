//! File names as a sequence, so that no reader needs all of them in memory.

use std::convert::Infallible;

/// The names of files, in order of their numbers ([`Request::file`](crate::Request::file)). A trace
/// reads them from its file each time; a list has them in memory.
pub trait FileNames {
    /// Why the names cannot be read.
    type Error;

    /// Number of files.
    fn count(&self) -> usize;

    /// Passes the name of every file to `each`, in order of number.
    ///
    /// # Errors
    /// The names cannot be read. `each` has had some of them then.
    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), Self::Error>;
}

impl<S: AsRef<str>> FileNames for [S] {
    type Error = Infallible;

    fn count(&self) -> usize {
        self.len()
    }

    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), Infallible> {
        self.iter().for_each(|name| each(name.as_ref()));
        Ok(())
    }
}

impl<S: AsRef<str>> FileNames for Vec<S> {
    type Error = Infallible;

    fn count(&self) -> usize {
        self.len()
    }

    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), Infallible> {
        self[..].for_each(each)
    }
}
