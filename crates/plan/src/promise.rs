//! Whether planned times are a promise: only if the model knows the present ones.

use serde::{Deserialize, Serialize};

/// A promised time may be off by this fraction of it. The models predict the present and the
/// planned layout in the same way, so one that is off by more for the present layout, of which the
/// traced time is known, promises nothing.
pub const OFF_MAX: f64 = 0.25;

/// The model's times of all files, held against the traced one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// Seconds of I/O in the present layouts, according to the model.
    pub model_s: f64,
    /// Seconds of I/O that the traces show.
    pub traced_s: f64,
    /// How much longer than in the model the I/O took, as a fraction of the model's time.
    pub off: f64,
    /// The most that `off` may be, more or less: [`OFF_MAX`].
    pub limit: f64,
    /// The fraction of the model's present time that the plan saves; `None`: it promises nothing.
    pub saves: Option<f64>,
}

impl Promise {
    /// Judges the model's times of the present and the planned layouts by the traced time, all in
    /// seconds. `None` if nothing was traced.
    pub fn of(model_s: f64, planned_s: f64, traced_s: f64) -> Option<Self> {
        if traced_s <= 0.0 {
            return None;
        }
        let off = traced_s / model_s.max(f64::MIN_POSITIVE) - 1.0;
        let saves = (off.abs() <= OFF_MAX).then(|| 1.0 - planned_s / model_s.max(f64::MIN_POSITIVE));
        Some(Self { model_s, traced_s, off, limit: OFF_MAX, saves })
    }

    /// One sentence on why nothing is promised; `None` if the promise holds.
    pub fn refusal(&self) -> Option<String> {
        let Self { model_s, traced_s, limit, saves, .. } = self;
        saves.is_none().then(|| {
            format!(
                "No promise: the model says {model_s:.3} s for the present layouts and the trace {traced_s:.3} s, which \
                 differ by more than {:.0} %, so only a measurement (`stripewise try`) tells what the plan saves.",
                100.0 * limit
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_does_not_know_the_present_time_promises_nothing() {
        let saves = |model_s, traced_s| Promise::of(model_s, 1.0, traced_s).unwrap().saves;
        assert_eq!(saves(4.0, 4.0), Some(0.75));
        assert_eq!(saves(4.0, 4.99), Some(0.75));
        assert_eq!(saves(4.0, 3.01), Some(0.75));
        assert_eq!(saves(4.0, 5.01), None);
        assert_eq!(saves(4.0, 2.99), None, "memory may have served the program");
        assert_eq!(saves(0.0, 1.0), None);
    }

    #[test]
    fn only_a_promise_that_is_not_made_needs_a_reason() {
        assert_eq!(Promise::of(4.0, 1.0, 0.0), None, "nothing was traced");
        assert_eq!(Promise::of(4.0, 1.0, 4.0).unwrap().refusal(), None);
        let refusal = Promise::of(4.0, 1.0, 2.0).unwrap().refusal().unwrap();
        assert!(refusal.contains("4.000 s") && refusal.contains("2.000 s") && refusal.contains("25 %"));
    }
}
