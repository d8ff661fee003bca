//! The error of the models' parameters, and the checks that return it.

use stripewise_layout::Layout;

/// A parameter that no model can be evaluated with. The message names the parameter, its value and
/// the valid values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub(crate) String);

/// Checks that a time is finite, and 0 or more.
pub(crate) fn time(name: &str, value: f64) -> Result<(), ModelError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(ModelError(format!("{name} is {value}; it must be a finite number of seconds, 0 or more")))
}

/// Checks that a count or a size is at least 1.
///
/// # Errors
/// It is 0.
pub fn at_least_1(name: &str, value: impl Into<u64>) -> Result<(), ModelError> {
    if value.into() > 0 { Ok(()) } else { Err(ModelError(format!("{name} is 0; it must be at least 1"))) }
}

/// Returns `value` if it is a finite size of more than 0 bytes.
pub(crate) fn request_size(value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(bad_size("the request size", value, "above 0"))
    }
}

/// A size in bytes that is not one of the `valid` ones.
pub(crate) fn bad_size(name: &str, value: f64, valid: &str) -> ModelError {
    ModelError(format!("{name} is {value} bytes; it must be a finite number {valid}"))
}

/// Checks p and c: at least one process, and at most all of them on one node.
pub(crate) fn processes(procs: u32, procs_per_node: u32) -> Result<(), ModelError> {
    at_least_1("the number of processes", procs)?;
    at_least_1("the number of processes per node", procs_per_node)?;
    if procs_per_node > procs {
        return Err(ModelError(format!(
            "{procs_per_node} processes per node, but only {procs} processes; give at most as many per node"
        )));
    }
    Ok(())
}

/// Checks that parameters of `known` targets are enough for a layout.
///
/// # Errors
/// The layout uses a target without parameters.
pub fn targets_known(layout: &Layout, known: usize) -> Result<(), ModelError> {
    match layout.targets().find(|&target| target as usize >= known) {
        None => Ok(()),
        Some(target) => Err(ModelError(format!(
            "the layout uses target {target}, but parameters were given for {known} targets only"
        ))),
    }
}
