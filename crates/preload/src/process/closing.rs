//! Short-lived descriptors of the library, closed without its interposed `close`.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use crate::process::kernel;

/// A descriptor that is closed on drop, by the system call.
pub struct Closing(ManuallyDrop<OwnedFd>);

impl Closing {
    /// Takes ownership of the descriptor.
    pub fn new(fd: OwnedFd) -> Self {
        Self(ManuallyDrop::new(fd))
    }
}

impl AsFd for Closing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        // SAFETY: taken out only here.
        let fd = unsafe { ManuallyDrop::take(&mut self.0) };
        kernel::close(fd.into_raw_fd());
    }
}
