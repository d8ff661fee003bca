//! The common error of all files that users write.

use std::fmt;

/// An error in a file: one line that names file, line, key, value and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line, counted from 1; `None`: unknown.
    pub line: Option<usize>,
    /// Full key, such as `tier[1].class`; empty where the text is not TOML at all.
    pub key: String,
    /// The offending value as text, where there is one.
    pub value: Option<String>,
    /// The problem, and a correct value.
    pub problem: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": ")?;
        match (&self.key, &self.value) {
            (key, _) if key.is_empty() => {}
            (key, Some(value)) => write!(f, "{} = {}: ", one_line(key), one_line(value))?,
            (key, None) => write!(f, "{}: ", one_line(key))?,
        }
        write!(f, "{}", one_line(&self.problem))
    }
}

impl std::error::Error for FileError {}

/// A text without line breaks or other control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
