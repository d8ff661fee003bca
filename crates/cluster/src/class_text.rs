//! The four services of a class in `cluster.toml` and `profile.toml`: `read.random` and so on.

use std::fmt::Write;

use stripewise_model::{ByAccess, ClassParams, Service};

use crate::reader::{FileError, Table};
use crate::write::amounts;

/// The keys of a service.
pub(crate) const SERVICE: [&str; 2] = ["startup_s", "per_byte_s"];

/// Reads the tables `read` and `write` of a class; `remedies` say how to write these tables, and
/// the tables in them, which `read` reads.
pub(crate) fn read_four<T>(
    class: &Table<'_>,
    remedies: [&str; 2],
    read: fn(&Table<'_>) -> Result<T, FileError>,
) -> Result<ClassParams<T>, FileError> {
    let by_access = |key| -> Result<ByAccess<T>, FileError> {
        let table = class.need(key, remedies[0])?.table()?;
        table.allow_only("random, sequential")?;
        let one = |key| read(&table.need(key, remedies[1])?.table()?);
        Ok(ByAccess { random: one("random")?, sequential: one("sequential")? })
    };
    Ok(ClassParams { read: by_access("read")?, write: by_access("write")? })
}

/// Writes what [`read_four`] reads; `keys` gives the keys of one of the four tables.
pub(crate) fn write_four<T>(out: &mut String, class: &ClassParams<T>, keys: fn(&T) -> String) {
    for (op, by_access) in [("read", &class.read), ("write", &class.write)] {
        for (access, one) in [("random", &by_access.random), ("sequential", &by_access.sequential)] {
            let _ = writeln!(out, "{op}.{access} = {{ {} }}", keys(one));
        }
    }
}

/// The keys of a service with their values.
pub(crate) fn service_keys(service: &Service) -> String {
    amounts(SERVICE, [service.startup_s, service.per_byte_s]).join(", ")
}
