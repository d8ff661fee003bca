//! Writes manifests.

use stripewise_cluster::OverlayKind;
use stripewise_layout::{Layout, Region};
use stripewise_target::TargetRef;

use super::{
    CACHE, Copies, ExtraCopy, MAGIC_LINES, Manifest, ManifestError, PENDING_BYTES, REPLICA, TEXT_BYTES_MAX,
    check_size,
};

const COMMENT: &str = "\
# This file's bytes are stored in pieces on several targets; this text only says where.
# Read it with `stripewise cat FILE`, run programs over it with `stripewise run -- CMD`,
# or turn it back into a plain file with `stripewise export FILE`.
";

/// Digits of `length`: a fixed number, so that the text's length does not depend on the value.
const LENGTH_DIGITS: usize = 7;
pub(super) const CHECKSUM_KEY: &str = "checksum = \"crc32:";
pub(super) const CHECKSUM_DIGITS: usize = 8;
pub(super) const PENDING_KEY: &str = "pending_truncate = \"";

impl Manifest {
    /// Formats the manifest as text that parses to an equal manifest.
    ///
    /// # Errors
    /// The text would be longer than [`TEXT_BYTES_MAX`], there are too many regions and targets, or
    /// a target's path is not UTF-8.
    pub fn format(&self) -> Result<String, ManifestError> {
        let tables = self.all_copies().map(|copy| (copy.layout.regions().len(), copy.targets.len()));
        check_size(tables).map_err(|problem| ManifestError { file: self.path.clone(), problem })?;
        let mut text = format!(
            "{magic_line}{COMMENT}length = {blank:LENGTH_DIGITS$}\n{CHECKSUM_KEY}{blank:CHECKSUM_DIGITS$}\"\n\
             id = \"{id}\"\n{PENDING_KEY}{pending}\"\npath = {path}\ncreated = {created}\n",
            magic_line = MAGIC_LINES[usize::from(self.copies.is_some())],
            blank = "",
            id = self.id,
            pending = pending_text(self.pending_truncate),
            path = quoted(&self.path),
            created = quoted(&self.created),
        );
        if !self.anchor.is_unknown() {
            text += &format!("anchor = \"{}\"\n", self.anchor);
        }
        format_layout(&self.path, "", &self.targets, &self.layout, &mut text)?;
        if let Some(copies) = &self.copies {
            copies.format(&self.path, &mut text)?;
        }
        if text.len() > TEXT_BYTES_MAX {
            let problem = format!(
                "its manifest would be {} bytes long, more than {TEXT_BYTES_MAX}; use fewer regions or targets",
                text.len()
            );
            return Err(ManifestError { file: self.path.clone(), problem });
        }
        let length = format!("{:<LENGTH_DIGITS$}", text.len());
        patch(&mut text, "length = ", &length);
        let sum = format!("{:08x}", checksum(text.as_bytes()));
        patch(&mut text, CHECKSUM_KEY, &sum);
        Ok(text)
    }
}

impl Copies {
    fn format(&self, path: &str, text: &mut String) -> Result<(), ManifestError> {
        text.push_str("[overlay]\n");
        if let OverlayKind::Cache { mode, admission, capacity_per_server } = self.kind {
            let (mode, admission) = (mode.name(), admission.name());
            *text += &format!("mode = \"{mode}\"\nadmission = \"{admission}\"\n");
            *text += &format!("capacity_per_server = {capacity_per_server}\n");
        }
        let (lazy_close, durability) = (self.lazy_close, self.durability.name());
        *text += &format!("lazy_close = {lazy_close}\ndurability = \"{durability}\"\n");
        if let Some(background) = self.background {
            *text += &format!("background = {background}\n");
        }
        let Self { procs, procs_per_node, servers, .. } = self;
        *text += &format!("procs = {procs}\nprocs_per_node = {procs_per_node}\nservers = {servers}\n");
        let kind = if self.is_cache() { CACHE } else { REPLICA };
        for ExtraCopy { name, id, groups, servers, pool_servers, targets, layout } in &self.list {
            let name = quoted(name);
            *text += &format!("[[copy]]\nkind = \"{kind}\"\nname = {name}\nid = \"{id}\"\n");
            *text += &format!("groups = {groups}\nservers = {servers}\n");
            if !pool_servers.is_empty() {
                *text += &format!("pool_servers = {pool_servers:?}\n");
            }
            format_layout(path, "copy.", targets, layout, text)?;
        }
        Ok(())
    }
}

/// Appends the tables of a copy's targets and regions; `prefix` starts their names.
fn format_layout(
    file: &str,
    prefix: &str,
    targets: &[TargetRef],
    layout: &Layout,
    text: &mut String,
) -> Result<(), ManifestError> {
    for target in targets {
        let path = target.path.to_str().ok_or_else(|| ManifestError {
            file: file.to_owned(),
            problem: format!(
                "key `{prefix}target.path`: {} is not UTF-8; rename the target's directory",
                target.path.display()
            ),
        })?;
        let (name, path, id) = (quoted(&target.name), quoted(path), quoted(&target.id));
        *text += &format!("[[{prefix}target]]\nname = {name}\npath = {path}\nid = {id}\n");
    }
    for Region { start, end, cycle } in layout.regions() {
        *text += &format!("[[{prefix}region]]\nstart = {start}\n");
        if let Some(end) = end {
            *text += &format!("end = {end}\n");
        }
        let cycle: Vec<String> = cycle.iter().map(|s| format!("[{}, {}]", s.target, s.width)).collect();
        *text += &format!("cycle = [{}]\n", cycle.join(", "));
    }
    Ok(())
}

/// The value of `pending_truncate`: [`PENDING_BYTES`] digits or blanks, so that a partly written
/// value is not a valid size.
pub(crate) fn pending_text(pending: Option<u64>) -> String {
    match pending {
        Some(size) => format!("{size:0PENDING_BYTES$}"),
        None => " ".repeat(PENDING_BYTES),
    }
}

/// Offset of the value after the first line start that matches `key`.
pub(super) fn value_offset(text: &[u8], key: &str) -> Option<usize> {
    let key = key.as_bytes();
    let mut start = 0;
    loop {
        if text.get(start..)?.starts_with(key) {
            return Some(start + key.len());
        }
        start += text.get(start..)?.iter().position(|&byte| byte == b'\n')? + 1;
    }
}

/// CRC-32 of the text with the checksum's digits and the `pending_truncate` value read as blanks.
pub(super) fn checksum(text: &[u8]) -> u32 {
    let mut blanked = text.to_vec();
    for (key, len) in [(CHECKSUM_KEY, CHECKSUM_DIGITS), (PENDING_KEY, PENDING_BYTES)] {
        if let Some(value) = value_offset(text, key).and_then(|at| blanked.get_mut(at..at + len)) {
            value.fill(b' ');
        }
    }
    crc32fast::hash(&blanked)
}

fn patch(text: &mut String, key: &str, value: &str) {
    if let Some(at) = value_offset(text.as_bytes(), key) {
        text.replace_range(at..at + value.len(), value);
    }
}

/// Quotes a TOML basic string.
fn quoted(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
