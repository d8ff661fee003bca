//! Why there is no plan.

/// A planner's refusal: what is in the way, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl PlanError {
    /// For one of these reasons.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
