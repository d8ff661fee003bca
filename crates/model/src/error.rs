//! Errors of the models' parameters.

/// A parameter that no model can be evaluated with. The message names the parameter, its value and
/// the valid values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A time that is negative, infinite or not a number.
    #[error("{name} is {value}; it must be a finite number of seconds, 0 or more")]
    BadTime {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A count or size of 0 where at least 1 is needed.
    #[error("{name} is 0; it must be at least 1")]
    Zero {
        /// Name of the parameter.
        name: &'static str,
    },
    /// A size in bytes that is negative, infinite, not a number or, for a request, 0.
    #[error("{name} is {value} bytes; it must be a finite number {least}")]
    BadSize {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The valid values: `of 0 or more` or `above 0`.
        least: &'static str,
    },
    /// More processes on one node than there are in total.
    #[error("{procs_per_node} processes per node, but only {procs} processes; give at most as many per node")]
    ProcsPerNode {
        /// c, the number of processes per node.
        procs_per_node: u32,
        /// p, the number of processes.
        procs: u32,
    },
    /// 2-D with no groups, or with more groups than servers.
    #[error("{groups} groups of {servers} servers; 2-D needs 1 to {servers} groups")]
    Groups {
        /// g, the number of groups.
        groups: u32,
        /// n, the number of servers.
        servers: u32,
    },
    /// The extent ends past the largest file offset.
    #[error("a request of {size} bytes at offset {offset} ends past 2^63")]
    PastEnd {
        /// Offset of the request, bytes.
        offset: u64,
        /// Size of the request, bytes.
        size: u64,
    },
    /// A layout uses a target without parameters.
    #[error("the layout uses target {target}, but parameters were given for {known} targets only")]
    UnknownTarget {
        /// Index of the target.
        target: u32,
        /// Number of targets with parameters.
        known: usize,
    },
}

/// Returns `value` if it is a finite time of 0 or more.
pub(crate) fn time(name: &'static str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(ModelError::BadTime { name, value }) }
}

/// Returns `value` if it is at least 1.
pub(crate) fn count(name: &'static str, value: u32) -> Result<u32, ModelError> {
    if value > 0 { Ok(value) } else { Err(ModelError::Zero { name }) }
}

/// Returns `value` if it is a finite size of more than 0 bytes.
pub(crate) fn request_size(value: f64) -> Result<f64, ModelError> {
    let name = "the request size";
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(ModelError::BadSize { name, value, least: "above 0" })
    }
}

/// Checks p and c: at least one process, and at most all of them on one node.
pub(crate) fn processes(procs: u32, procs_per_node: u32) -> Result<(), ModelError> {
    count("the number of processes", procs)?;
    count("the number of processes per node", procs_per_node)?;
    if procs_per_node > procs {
        return Err(ModelError::ProcsPerNode { procs_per_node, procs });
    }
    Ok(())
}
