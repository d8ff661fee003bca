//! Planners that choose a layout per file-name pattern.
//!
//! ```text
//! // One pass over the trace.
//! let mut collector = Collector::new(trace.processes(), &trace, options.sets_max())?;
//! for request in batch { collector.add(request) }
//! let workload = collector.finish().divided(&cluster, &options)?;
//! let planned = plan(&workload, &cluster, &options)?;
//! let file = to_plan(&planned.decisions, &cluster, &options).to_toml();
//! ```
//!
//! Every candidate gets two predictions: the papers' overall cost and the expected elapsed time
//! (`docs/decisions/0002-costs-and-elapsed.md`).
//!
//! The crate does no I/O and uses neither clock nor randomness: the same input gives the same plan.
//! All types are plain data that threads can share.

mod activity;
mod applications;
mod call_costs;
mod candidate;
mod choose;
mod client;
mod collect;
mod collected;
mod counts;
mod divide;
mod elapsed;
mod error;
mod evaluate;
mod existing;
mod feasible;
mod form;
mod joint;
mod kinds;
mod layouts;
mod limits;
mod loads;
mod mapping;
mod memory;
mod native;
mod options;
mod plan;
pub mod planners;
mod present;
mod problem;
mod promise;
mod regions;
mod sampled;
mod servers;
mod serving;
mod space;
mod spread;
mod ties;
pub mod workload;

#[cfg(test)]
mod tests;

pub use applications::{ApplicationTimes, times_of};
pub use candidate::{Background, Candidate, Judged, Method, Proposal};
pub use choose::{Decision, decide};
pub use collect::{Busiest, Collector, LeftOut};
pub use error::PlanError;
pub use evaluate::judge;
pub use form::{Form, Shape};
pub use joint::{Joint, MoveLimit, SpaceCurve, SpacePoint, SpaceValue, StageTimes, Waits};
pub use kinds::{Compared, KindTimes, compare_kinds};
pub use layouts::Layouts;
pub use loads::{Demand, ServerLoad, loads_of};
pub use native::{Native, OnlyNative, native};
pub use options::{CopyOptions, MIN_GAIN, Objective, Options, STEP, Scheme};
pub use plan::{Planned, plan, sort_rules, to_plan};
pub use present::{GRAMMAR as PRESENT_GRAMMAR, Present};
pub use problem::{PAGE, Problem};
pub use promise::{IoSeconds, OFF_MAX, Promise};
pub use servers::Servers;
pub use serving::cached::{CacheLayout, ExpectedCache};
pub use serving::expected::{self, Alone, Expected, ExpectedCopy, RequestClass};
pub use ties::Tie;
pub use workload::{Existing, ExistingFile, FromMemory, Workload};
