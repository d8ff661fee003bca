//! Which copy of a candidate serves which request, and the background copying between the copies.
//!
//! With replicas, the copy on which requests of the same class cost least serves a request, as if
//! all of them went there (CIL §5.1). With a cache, the copy that SLA's model finds best serves a
//! critical request, as far as the critical data fits. This predicts a run that finds the cache as
//! an earlier, similar run left it.

mod assign;
mod background;
pub mod cached;
mod classes;
pub mod expected;

pub use assign::Serving;
pub use cached::Admission;
pub use classes::Classes;
