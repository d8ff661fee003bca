//! Calls into the Parquet library, which panics on some damaged files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use crate::TraceError;

thread_local! {
    /// Whether this thread is in a [`call`], which turns a panic into an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// What the user can do about a damaged trace.
pub(super) const REMEDY: &str = "record it again";

/// Calls the library and turns its errors and panics into an error that names the file. State that
/// `call` modifies must not be used after an error.
pub(super) fn call<T>(path: &Path, call: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T, TraceError> {
    silence();
    let was_guarded = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(was_guarded);
    let damaged = |why: &str| TraceError::new(path, format!("damaged trace ({why}): {REMEDY}"));
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(damaged(&error.to_string().replace('\n', " "))),
        Err(_) => Err(damaged("its content makes no sense")),
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
