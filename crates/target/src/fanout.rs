//! One request on several servers at once.

use std::str::FromStr;

use stripewise_sys::{Errno, SysRef};

use crate::ComponentSet;

/// How the pieces of a request are done at once. Numbers: `docs/decisions/0004-fan-out.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The best that this kernel permits.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// A few threads of our own.
    Threads,
    /// One after the other, in the calling thread.
    Serial,
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "threads" => Ok(Self::Threads),
            "serial" => Ok(Self::Serial),
            _ => Err(format!("fan-out engine {text:?} is unknown; use auto, uring, threads or serial")),
        }
    }
}

/// A run of bytes between the caller's memory and one component.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Component index.
    pub component: u32,
    /// Offset in the component, bytes.
    pub offset: u64,
    /// The caller's memory; need not be valid.
    pub base: *mut u8,
    /// Bytes.
    pub len: usize,
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes transferred, from the piece's start on.
    pub done: usize,
    /// Why not all: `None` with `done < len` is the end of the component (reads) or a device that takes no more.
    pub error: Option<Errno>,
}

/// Does the pieces of requests. One per process, shared by all threads.
///
/// Starts nothing before the first request that needs it. Rings and threads are never shared with a forked child: it
/// gets its own when it needs them. Own threads block all signals.
pub struct FanOut {
    sys: SysRef,
    engine: Engine,
}

impl FanOut {
    /// With an engine; whatever is asked for, a kernel that does not permit it gets the next one.
    pub fn new(sys: SysRef, engine: Engine) -> Self {
        Self { sys, engine }
    }

    /// The engine asked for.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Reads all pieces; one outcome per piece, in order. Short transfers are continued up to the end of the
    /// component. Neighbouring pieces of one component become one vectored read.
    ///
    /// # Safety
    /// No Rust reference to the pieces' memory is alive. It need not be valid: then the outcome is EFAULT.
    pub unsafe fn read(&self, set: &ComponentSet, pieces: &[Piece]) -> Vec<Outcome> {
        let _ = (&self.sys, set, pieces);
        todo!()
    }

    /// Writes all pieces. As [`FanOut::read`]; pieces must not overlap in a component.
    ///
    /// # Safety
    /// No mutable Rust reference to the pieces' memory is in use. It need not be valid: then the outcome is EFAULT.
    pub unsafe fn write(&self, set: &ComponentSet, pieces: &[Piece]) -> Vec<Outcome> {
        let _ = (set, pieces);
        todo!()
    }
}
