//! Reads TOML with errors that name file, line, key, value and remedy.
//!
//! A thin layer over the `toml` crate's spanned tables: every value carries its full key and its
//! place, so that a wrong value is reported as precisely as wrong syntax.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::FileError;
use crate::size;

/// A parsed text with its file name.
#[derive(Debug)]
pub struct Document<'t> {
    source: Source<'t>,
    root: DeTable<'t>,
}

#[derive(Clone, Copy, Debug)]
struct Source<'t> {
    file: &'t str,
    text: &'t str,
}

/// A table in a document.
#[derive(Clone, Debug)]
pub struct Table<'d> {
    source: Source<'d>,
    key: String,
    entries: &'d DeTable<'d>,
    span: Range<usize>,
}

/// A value in a document, with its full key.
#[derive(Clone, Debug)]
pub struct Item<'d> {
    source: Source<'d>,
    key: String,
    value: &'d Spanned<DeValue<'d>>,
}

impl<'t> Document<'t> {
    /// Parses `text`; `file` is only used in messages. A syntax error says what the parser
    /// expected.
    pub fn parse(text: &'t str, file: &'t str) -> Result<Self, FileError> {
        let source = Source { file, text };
        match DeTable::parse(text) {
            Ok(root) => Ok(Self { source, root: root.into_inner() }),
            Err(error) => {
                let problem = format!("not valid TOML: {}", error.message());
                Err(source.error(error.span(), String::new(), None, problem))
            }
        }
    }

    /// The top-level table.
    pub fn root(&self) -> Table<'_> {
        Table { source: self.source, key: String::new(), entries: &self.root, span: 0..0 }
    }
}

impl Source<'_> {
    fn error(
        &self,
        at: Option<Range<usize>>,
        key: String,
        value: Option<String>,
        problem: String,
    ) -> FileError {
        let line = at
            .map(|span| self.text.as_bytes()[..span.start.min(self.text.len())].iter())
            .map(|before| before.filter(|&&byte| byte == b'\n').count() + 1);
        FileError { file: self.file.to_owned(), line, key, value, problem }
    }
}

impl<'d> Table<'d> {
    /// The value of `name`; `None`: it is missing.
    pub fn get(&self, name: &str) -> Option<Item<'d>> {
        let value = self.entries.get(name)?;
        Some(Item { source: self.source, key: self.key_of(name), value })
    }

    /// The value of `name`, which must be there; `remedy` says what to write.
    pub fn need(&self, name: &str, remedy: &str) -> Result<Item<'d>, FileError> {
        self.get(name)
            .ok_or_else(|| FileError { key: self.key_of(name), ..self.error(format!("missing; {remedy}")) })
    }

    /// Refuses every key that is not in `known`.
    pub fn allow_only(&self, known: &[&str]) -> Result<(), FileError> {
        match self.entries.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(key) => {
                let problem = format!("unknown key; known here: {}", known.join(", "));
                Err(self.source.error(Some(key.span()), self.key_of(key.get_ref()), None, problem))
            }
        }
    }

    /// All entries, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&'d str, Item<'d>)> + '_ {
        self.entries.iter().map(|(key, value)| {
            let name: &'d str = key.get_ref();
            (name, Item { source: self.source, key: self.key_of(name), value })
        })
    }

    /// An error about this table as a whole.
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        let line = (!self.key.is_empty()).then(|| self.span.clone());
        self.source.error(line, self.key.clone(), None, problem.into())
    }

    /// The numbers of these keys, which must be there.
    pub fn amounts<const N: usize>(&self, keys: [&str; N], remedy: &str) -> Result<[f64; N], FileError> {
        let mut amounts = [0.0; N];
        for (amount, key) in amounts.iter_mut().zip(keys) {
            *amount = self.need(key, remedy)?.amount()?;
        }
        Ok(amounts)
    }

    /// The array of tables `name`; empty where it is missing.
    pub fn tables(&self, name: &str) -> Result<Vec<Table<'d>>, FileError> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(item) => item.items()?.into_iter().map(|item| item.table()).collect(),
        }
    }

    fn key_of(&self, name: &str) -> String {
        if self.key.is_empty() { name.to_owned() } else { format!("{}.{name}", self.key) }
    }
}

impl<'d> Item<'d> {
    /// The value as a text.
    pub fn text(&self) -> Result<&'d str, FileError> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.error("must be a text in quotes")),
        }
    }

    /// The value as a finite number that is not negative.
    pub fn amount(&self) -> Result<f64, FileError> {
        let number = match self.value.get_ref() {
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(_) => self.integer().map(|number| number as f64),
            _ => None,
        };
        match number {
            Some(number) if f64::is_finite(number) && number >= 0.0 => Ok(number),
            Some(_) => Err(self.error("must be a finite number, 0 or more")),
            None => Err(self.error("must be a number, like 3.0e-4")),
        }
    }

    /// The value as a whole number, 0 or more.
    pub fn count(&self) -> Result<u64, FileError> {
        self.integer().ok_or_else(|| self.error("must be a whole number, 0 or more"))
    }

    /// The value as a whole number from 1 to `most`, which the error explains with `why`.
    pub fn number(&self, most: usize, why: &str) -> Result<u32, FileError> {
        let number = self.count()?;
        let number = u32::try_from(number).ok().filter(|&number| number > 0 && number as usize <= most);
        number.ok_or_else(|| self.error(format!("must be 1 to {most}{why}")))
    }

    /// The value as bytes: a whole number, or a text such as `"64K"`.
    pub fn size(&self) -> Result<u64, FileError> {
        match self.value.get_ref() {
            DeValue::String(text) => size::parse(text).ok(),
            _ => self.integer(),
        }
        .ok_or_else(|| self.error("must be a size: bytes, or a text with K, M, G or T, like \"64K\""))
    }

    /// The value as `true` or `false`.
    pub fn flag(&self) -> Result<bool, FileError> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.error("must be true or false")),
        }
    }

    /// The value as one of several words; `choices` lists them.
    pub fn one_of<T>(&self, by_name: fn(&str) -> Option<T>, choices: &str) -> Result<T, FileError> {
        by_name(self.text()?).ok_or_else(|| self.error(format!("must be {choices}")))
    }

    /// The value as a table.
    pub fn table(&self) -> Result<Table<'d>, FileError> {
        match self.value.get_ref() {
            DeValue::Table(entries) => {
                Ok(Table { source: self.source, key: self.key.clone(), entries, span: self.value.span() })
            }
            _ => Err(self.error("must be a table")),
        }
    }

    /// The elements of the value as an array.
    pub fn items(&self) -> Result<Vec<Item<'d>>, FileError> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Err(self.error("must be an array in [ ]"));
        };
        let item = |(index, value)| Item { source: self.source, key: format!("{}[{index}]", self.key), value };
        Ok(array.iter().enumerate().map(item).collect())
    }

    /// An error about this value.
    pub fn error(&self, problem: impl Into<String>) -> FileError {
        let written = match self.value.get_ref() {
            DeValue::Table(_) => "{ ... }",
            _ => self.source.text.get(self.value.span()).unwrap_or("?"),
        };
        let value = Some(size::shorten(written));
        self.source.error(Some(self.value.span()), self.key.clone(), value, problem.into())
    }

    fn integer(&self) -> Option<u64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }
}
