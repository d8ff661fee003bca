//! Results of measurements ([`Results`]), and one self-contained HTML page ([`render`]) on what an
//! application does, how its files are laid out, and what was predicted and measured.
//!
//! Other drawings use the same building blocks: [`draw`], [`ticks`], [`html`].
//!
//! Pure: no I/O and no clock, and the same input gives the same bytes. All types are plain values.
//!
//! ```text
//! let summary = Summary::of(&trace)?;
//! let (processes, all_times) = (trace.processes(), 0..u64::MAX);
//! let mut collector = Collector::new("t.parquet", trace.meta(), processes, summary, all_times);
//! while let Some(batch) = requests.next_batch()? { collector.add(batch); }
//! let activities = [collector.finish()];
//! let plans = [PlanView::new("plan.toml", plan, &activities)];
//! let report = Report { activities: &activities, plans: &plans, results: Some(&results), .. };
//! let html = render(&report);
//! ```

pub mod activity;
pub mod calls;
pub mod compare;
mod density;
pub mod draw;
pub mod html;
mod page;
pub mod predictions;
pub mod results;
pub mod statistics;
pub mod ticks;
pub mod trial;
pub mod units;
mod view;

pub use activity::{Activity, Collector, span_of};
pub use page::{missing_parts, render};
pub use predictions::Predictions;
pub use results::{Candidate, InputError, Machine, Results, Servers, Workload};
pub use statistics::{FileStatistics, Statistics};
pub use view::{MissingPart, PlanView, Report, RuleDetails};
