//! Whether planned times are a promise: only if the model knows the present ones, and servers
//! decide about the planned ones.

use serde::{Deserialize, Serialize};

/// A promised time may be off by this fraction of it. The models predict the present and the
/// planned layout in the same way, so one that is off by more for the present layout, of which the
/// traced time is known, promises nothing.
pub const OFF_MAX: f64 = 0.25;

/// Seconds of I/O on all files of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoSeconds {
    /// In the present layouts, according to the model.
    pub model_s: f64,
    /// In the planned layouts, according to the model.
    #[serde(default)]
    pub planned_s: f64,
    /// The most that it takes if memory serves all of it
    /// ([`in_memory_s`](crate::Workload::in_memory_s)).
    #[serde(default)]
    pub memory_s: f64,
    /// What the traces show.
    pub traced_s: f64,
}

/// The model's times of all files, held against the traced one and against memory's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// What is compared.
    #[serde(flatten)]
    pub io: IoSeconds,
    /// How much longer than in the model the I/O took, as a fraction of the model's time.
    pub off: f64,
    /// The most that `off` may be, more or less: [`OFF_MAX`].
    pub limit: f64,
    /// The fraction of the model's present time that the plan saves; `None`: it promises nothing.
    pub saves: Option<f64>,
}

impl Promise {
    /// Judges the model's times by the traced time of the present layouts, and by what memory takes
    /// at most: below that, processors decide as much as servers do, of which alone the model
    /// knows. `None` if nothing was traced.
    pub fn of(io: IoSeconds) -> Option<Self> {
        if io.traced_s <= 0.0 {
            return None;
        }
        let model_s = io.model_s.max(f64::MIN_POSITIVE);
        let off = io.traced_s / model_s - 1.0;
        let is_sure = off.abs() <= OFF_MAX && io.planned_s >= io.memory_s;
        Some(Self { io, off, limit: OFF_MAX, saves: is_sure.then(|| 1.0 - io.planned_s / model_s) })
    }

    /// Why nothing is promised, as a part of a sentence; `None` if the promise holds.
    pub fn why_not(&self) -> Option<String> {
        let Self { io: IoSeconds { model_s, planned_s, memory_s, traced_s }, off, limit, saves } = self;
        saves.is_none().then(|| match off.abs() > *limit {
            true => format!(
                "the model says {model_s:.3} s for the traced layouts and the trace {traced_s:.3} s, which differ by more \
                 than {:.0} %",
                100.0 * limit
            ),
            false => format!(
                "the model says {planned_s:.3} s for the planned layouts, where memory alone may take {memory_s:.3} s, and \
                 it does not know how fast the processors are"
            ),
        })
    }

    /// One sentence on why nothing is promised; `None` if the promise holds.
    pub fn refusal(&self) -> Option<String> {
        let only = "so only a measurement (`stripewise try`) tells what the plan saves";
        self.why_not().map(|why| format!("No promise: {why}, {only}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model_s: f64, planned_s: f64, memory_s: f64, traced_s: f64) -> Promise {
        Promise::of(IoSeconds { model_s, planned_s, memory_s, traced_s }).unwrap()
    }

    #[test]
    fn a_model_that_does_not_know_the_present_time_promises_nothing() {
        let saves = |model_s, traced_s| of(model_s, 1.0, 0.0, traced_s).saves;
        assert_eq!(saves(4.0, 4.0), Some(0.75));
        assert_eq!(saves(4.0, 4.99), Some(0.75));
        assert_eq!(saves(4.0, 3.01), Some(0.75));
        assert_eq!(saves(4.0, 5.01), None);
        assert_eq!(saves(4.0, 2.99), None, "memory may have served the program");
        assert_eq!(saves(0.0, 1.0), None);
    }

    #[test]
    fn a_plan_as_quick_as_memory_promises_nothing() {
        assert_eq!(of(4.0, 1.0, 1.0, 4.0).saves, Some(0.75));
        assert_eq!(of(4.0, 1.0, 1.01, 4.0).saves, None);
        let refusal = of(4.0, 1.0, 1.25, 4.0).refusal().unwrap();
        assert!(refusal.contains("1.000 s") && refusal.contains("memory alone may take 1.250 s"), "{refusal}");
    }

    #[test]
    fn only_a_promise_that_is_not_made_needs_a_reason() {
        let nothing = IoSeconds { model_s: 4.0, planned_s: 1.0, memory_s: 0.0, traced_s: 0.0 };
        assert_eq!(Promise::of(nothing), None, "nothing was traced");
        assert_eq!(of(4.0, 1.0, 0.0, 4.0).refusal(), None);
        let refusal = of(4.0, 1.0, 0.0, 2.0).refusal().unwrap();
        assert!(refusal.contains("4.000 s") && refusal.contains("2.000 s") && refusal.contains("25 %"));
    }
}
