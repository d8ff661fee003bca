//! Pieces of TOML.

use stripewise_model::Service;

/// A text as a TOML basic string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The two keys of a service, for an inline table.
pub(crate) fn service_line(service: &Service) -> String {
    format!("startup_s = {:?}, per_byte_s = {:?}", service.startup_s, service.per_byte_s)
}
