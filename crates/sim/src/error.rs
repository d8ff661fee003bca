//! The error of setting up a simulation.

use stripewise_model::ModelError;

/// The reason why a simulation cannot begin, as one line with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SimError(pub(crate) String);

impl From<ModelError> for SimError {
    fn from(error: ModelError) -> Self {
        Self(error.to_string())
    }
}
