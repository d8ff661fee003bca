//! Reads TOML with errors that name file, line, key, value and remedy.
//!
//! A thin layer over the `toml` crate's spanned tables: every value carries its full key and its
//! place, so that a wrong value is reported as precisely as wrong syntax.

use std::collections::BTreeMap;
use std::ops::Range;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::size;

/// An error in a file: one line that names file, line, key, value and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FileError(String);

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
    /// `None`: the top-level table, which has no place of its own.
    span: Option<Range<usize>>,
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
            Err(error) => Err(source.error(error.span(), "", &format!("not valid TOML: {}", error.message()))),
        }
    }

    /// The top-level table.
    pub fn root(&self) -> Table<'_> {
        Table { source: self.source, key: String::new(), entries: &self.root, span: None }
    }
}

impl Source<'_> {
    /// An error in the bytes `at`; `subject` is a key, perhaps with its value, or empty.
    fn error(&self, at: Option<Range<usize>>, subject: &str, problem: &str) -> FileError {
        let line = at.map_or(String::new(), |span| {
            let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
            format!(":{}", before.iter().filter(|&&byte| byte == b'\n').count() + 1)
        });
        let separator = if subject.is_empty() { "" } else { ": " };
        let message = format!("{subject}{separator}{problem}").replace(char::is_control, " ");
        FileError(format!("{}{line}: {message}", self.file))
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
        let missing =
            || self.source.error(self.span.clone(), &self.key_of(name), &format!("missing; {remedy}"));
        self.get(name).ok_or_else(missing)
    }

    /// The value of `name` as `read` reads it; `default` where it is missing.
    pub fn optional<T>(
        &self,
        name: &str,
        default: T,
        read: impl FnOnce(&Item<'d>) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        self.get(name).map_or(Ok(default), |item| read(&item))
    }

    /// Refuses every key that is not in `known`, which has a comma and a space between keys.
    pub fn allow_only(&self, known: &str) -> Result<(), FileError> {
        match self.entries.keys().find(|key| known.split(", ").all(|name| name != key.get_ref())) {
            None => Ok(()),
            Some(key) => {
                let problem = format!("unknown key; known here: {known}");
                Err(self.source.error(Some(key.span()), &self.key_of(key.get_ref()), &problem))
            }
        }
    }

    /// What `read` reads from the entries of the table `name`, by their names; empty where it is
    /// missing.
    pub fn by_name<T>(
        &self,
        name: &str,
        read: impl Fn(&str, Item<'d>) -> Result<T, FileError>,
    ) -> Result<BTreeMap<String, T>, FileError> {
        let Some(item) = self.get(name) else { return Ok(BTreeMap::new()) };
        let table = item.table()?;
        let names = table.entries.keys().map(|key| key.get_ref().as_ref());
        let items = names.filter_map(|name: &str| Some((name, table.get(name)?)));
        items.map(|(name, item)| Ok((name.to_owned(), read(name, item)?))).collect()
    }

    /// Refuses a text of another format version.
    pub fn check_version(&self, version: u64, remedy: &str) -> Result<(), FileError> {
        let item = self.need("version", remedy)?;
        if item.count()? == version {
            return Ok(());
        }
        Err(item.error(format!("this program reads version {version}; {remedy}")))
    }

    /// An error about this table as a whole.
    pub fn error(&self, problem: &str) -> FileError {
        self.source.error(self.span.clone(), &self.key, problem)
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

    /// An error with `problem` about this value unless it is good.
    pub fn ensure(&self, good: bool, problem: &str) -> Result<(), FileError> {
        if good { Ok(()) } else { Err(self.error(problem)) }
    }

    /// The value as a table.
    pub fn table(&self) -> Result<Table<'d>, FileError> {
        match self.value.get_ref() {
            DeValue::Table(entries) => {
                let span = Some(self.value.span());
                Ok(Table { source: self.source, key: self.key.clone(), entries, span })
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
    pub fn error(&self, problem: impl AsRef<str>) -> FileError {
        let written = match self.value.get_ref() {
            DeValue::Table(_) => "{ ... }",
            _ => self.source.text.get(self.value.span()).unwrap_or("?"),
        };
        let subject = format!("{} = {}", self.key, size::shorten(written));
        self.source.error(Some(self.value.span()), &subject, problem.as_ref())
    }

    fn integer(&self) -> Option<u64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }
}
