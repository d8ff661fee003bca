//! The error type of planning.

use std::fmt::Display;

use stripewise_layout::LayoutError;

/// A planner cannot plan. The text says what is in the way and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

impl PlanError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// An error of the planner with this name.
    pub(crate) fn by<E: Display>(planner: &str) -> impl Fn(E) -> Self {
        move |error| Self(format!("{planner}: {error}"))
    }
}

impl From<LayoutError> for PlanError {
    fn from(error: LayoutError) -> Self {
        Self(error.to_string())
    }
}
