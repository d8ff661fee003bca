//! Parses manifests: checks every key, and each error names the key and the remedy.

use serde::Deserialize;
use stripewise_cluster::overlay::MAX_COPIES;
use stripewise_cluster::{CacheAdmission, CacheMode, Durability, OverlayKind};
use stripewise_layout::{Layout, MAX_OFFSET, Region, Stripe};
use stripewise_target::{FileId, TargetRef};

use super::format::{CHECKSUM_DIGITS, CHECKSUM_KEY, PENDING_KEY, checksum, value_offset};
use super::{
    CACHE, Copies, ExtraCopy, MAGIC, MAGIC_LINES, Manifest, ManifestError, PENDING_BYTES, REPLICA,
    TEXT_BYTES_MAX, TEXT_BYTES_MIN, check_size, copy_id,
};
use crate::pool::servers_of;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    length: u64,
    checksum: String,
    id: String,
    pending_truncate: String,
    path: String,
    created: String,
    #[serde(default)]
    anchor: String,
    #[serde(default)]
    target: Vec<TextTarget>,
    #[serde(default)]
    region: Vec<TextRegion>,
    overlay: Option<TextOverlay>,
    #[serde(default)]
    copy: Vec<TextCopy>,
}

impl Manifest {
    /// The length of the text that begins with `head` (the first [`super::HEAD_BYTES`] of the file,
    /// or the whole file).
    ///
    /// # Errors
    /// `head` does not begin with the magic line of a known format, or has no valid `length`.
    pub fn text_length(head: &[u8], file: &str) -> Result<usize, ManifestError> {
        text_length(head).map_err(|problem| ManifestError { file: file.into(), problem })
    }

    /// The offset of the [`PENDING_BYTES`] bytes of the `pending_truncate` value in a valid text.
    pub fn pending_offset(text: &[u8]) -> Option<usize> {
        value_offset(text, PENDING_KEY)
    }

    /// Parses `bytes`, which may continue after the text. Errors call the file `file`.
    ///
    /// # Errors
    /// One line with key, value and remedy. No input makes this panic.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, ManifestError> {
        parse(bytes).map_err(|problem| ManifestError { file: file.into(), problem })
    }
}

/// Parses a `pending_truncate` value. A mix of digits and blanks is left by an interrupted write:
/// the truncate had not begun yet or was already finished.
pub(super) fn parse_pending(value: &str) -> Result<Option<u64>, String> {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let blanks = value.bytes().filter(|&byte| byte == b' ').count();
    let size = value.parse().ok().filter(|&size| size <= MAX_OFFSET);
    match size {
        Some(size) if digits == PENDING_BYTES => Ok(Some(size)),
        _ if digits < PENDING_BYTES && digits + blanks == PENDING_BYTES => Ok(None),
        _ => Err(format!(
            "key `pending_truncate`: {value:?} is neither {PENDING_BYTES} blanks nor a size in as many digits"
        )),
    }
}

fn magic_line(text: &[u8]) -> Option<usize> {
    MAGIC_LINES.iter().position(|line| text.starts_with(line.as_bytes()))
}

fn text_length(head: &[u8]) -> Result<usize, String> {
    if !head.starts_with(MAGIC) {
        return Err("does not begin with the line `stripewise file, format N`; it is not a managed file".into());
    }
    if magic_line(head).is_none() {
        let rest = &head[MAGIC.len()..head.len().min(MAGIC.len() + 20)];
        let number =
            String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or(rest)).into_owned();
        return Err(format!(
            "is of format {number:?}, this version knows formats 1 and 2; use a newer stripewise"
        ));
    }
    let Some(value) = value_offset(head, "length = ") else {
        return Err(damaged("key `length` is missing".into()));
    };
    let digits = head[value..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = std::str::from_utf8(&head[value..value + digits]).ok().and_then(|digits| digits.parse().ok());
    length.filter(|length| (TEXT_BYTES_MIN..=TEXT_BYTES_MAX).contains(length)).ok_or_else(|| {
        damaged(format!("key `length`: must be a number from {TEXT_BYTES_MIN} to {TEXT_BYTES_MAX}"))
    })
}

/// Appends the remedy for a damaged text.
fn damaged(problem: String) -> String {
    format!("{problem}; the text is damaged; restore it with `stripewise fsck --repair FILE`")
}

fn parse(bytes: &[u8]) -> Result<Manifest, String> {
    let length = text_length(bytes)?;
    let (text, id) = read(bytes, length).map_err(damaged)?;
    let tables = text.copy.iter().map(|copy| (copy.region.len(), copy.target.len()));
    check_size(tables.chain([(text.region.len(), text.target.len())]))?;
    manifest_of(text, id, magic_line(bytes) == Some(1)).map_err(damaged)
}

fn read(bytes: &[u8], length: usize) -> Result<(Text, FileId), String> {
    let text = bytes
        .get(..length)
        .ok_or_else(|| format!("key `length`: says {length}, but only {} bytes are there", bytes.len()))?;
    verify_checksum(text)?;
    let text = std::str::from_utf8(text).map_err(|error| format!("is not UTF-8 ({error})"))?;
    let body = &text[TEXT_BYTES_MIN..];
    let parsed: Text = toml::from_str(body).map_err(|error| toml_problem(body, &error))?;
    if parsed.length != length as u64 || !parsed.checksum.starts_with("crc32:") {
        return Err("keys `length` and `checksum` must stand once, each on a line of its own".into());
    }
    let id = id_of("", &parsed.id)?;
    Ok((parsed, id))
}

fn id_of(prefix: &str, id: &str) -> Result<FileId, String> {
    FileId::from_hex(id).ok_or_else(|| format!("key `{prefix}id`: {id:?} must be 32 hexadecimal digits"))
}

fn manifest_of(text: Text, id: FileId, has_copies: bool) -> Result<Manifest, String> {
    let copies = match text.overlay {
        Some(overlay) if has_copies => Some(Box::new(copies_of(overlay, text.copy, id, text.target.len())?)),
        None if !has_copies && text.copy.is_empty() => None,
        _ => return Err("keys `overlay` and `copy`: manifests of format 2 have both, of format 1 none".into()),
    };
    let anchor = text.anchor.parse().map_err(|part| format!("key `anchor`: {part}"))?;
    Ok(Manifest {
        id,
        anchor,
        pending_truncate: parse_pending(&text.pending_truncate)?,
        path: text.path,
        created: text.created,
        layout: layout_of("", text.region, text.target.len())?,
        targets: targets_of("", text.target)?,
        copies,
    })
}

/// Quotes the line, because the parser's message does not always name the key.
fn toml_problem(body: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start).min(body.len());
    let number = body.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
    let line: String = body.lines().nth(number).unwrap_or_default().chars().take(60).collect();
    let message = error.message().replace('\n', " ");
    // Add one: the magic line is not part of the body.
    format!("line {} ({line:?}): {message}", number + 2)
}

fn verify_checksum(text: &[u8]) -> Result<(), String> {
    let at = value_offset(text, CHECKSUM_KEY).ok_or("key `checksum` is missing")?;
    let digits = text.get(at..at + CHECKSUM_DIGITS).unwrap_or_default();
    let (said, is) = (String::from_utf8_lossy(digits).into_owned(), format!("{:08x}", checksum(text)));
    if said == is { Ok(()) } else { Err(format!("key `checksum`: says {said:?}, the text has {is:?}")) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextOverlay {
    mode: Option<String>,
    admission: Option<String>,
    capacity_per_server: Option<u64>,
    lazy_close: bool,
    durability: String,
    background: Option<u64>,
    procs: u32,
    procs_per_node: u32,
    servers: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextCopy {
    kind: String,
    name: String,
    id: String,
    groups: u32,
    servers: u32,
    #[serde(default)]
    pool_servers: Vec<u32>,
    #[serde(default)]
    target: Vec<TextTarget>,
    #[serde(default)]
    region: Vec<TextRegion>,
}

/// Converts the extra copies of file `id`, whose original lies on `targets` targets, and checks
/// them.
fn copies_of(
    overlay: TextOverlay,
    copies: Vec<TextCopy>,
    id: FileId,
    targets: usize,
) -> Result<Copies, String> {
    if copies.is_empty() || copies.len() >= MAX_COPIES {
        let most = MAX_COPIES - 1;
        return Err(format!("key `copy`: {} copies, there must be 1 to {most}", copies.len()));
    }
    let cache = copies[0].kind == CACHE;
    let kind = kind_of(&overlay, cache)?;
    let (procs, procs_per_node) = (overlay.procs, overlay.procs_per_node);
    let bad = |key: &str| Err(format!("key `overlay.{key}`: is not in its range"));
    if procs_per_node == 0 || procs < procs_per_node {
        return bad("procs");
    }
    if overlay.background == Some(0) {
        return bad("background");
    }
    if (overlay.servers as usize) < targets {
        return bad("servers");
    }
    let durability = known("durability", &overlay.durability, Durability::by_name)?;
    let list: Vec<_> = copies.into_iter().map(|copy| copy_of(copy, cache)).collect::<Result<_, _>>()?;
    for (index, copy) in list.iter().enumerate() {
        if copy.id != copy_id(id, index + 1) {
            return Err(format!("key `copy.id`: {} is not that of copy {}", copy.id, index + 1));
        }
        if list[..index].iter().any(|other| other.name == copy.name) {
            return Err(format!("key `copy.name`: {:?} is that of another copy", copy.name));
        }
    }
    let TextOverlay { lazy_close, background, servers, .. } = overlay;
    Ok(Copies { kind, lazy_close, durability, background, procs, procs_per_node, servers, list })
}

fn known<T>(key: &str, name: &str, by_name: fn(&str) -> Option<T>) -> Result<T, String> {
    by_name(name).ok_or_else(|| format!("key `overlay.{key}`: {name:?} is unknown"))
}

fn kind_of(overlay: &TextOverlay, cache: bool) -> Result<OverlayKind, String> {
    match (&overlay.mode, &overlay.admission, overlay.capacity_per_server) {
        (None, None, None) if !cache => Ok(OverlayKind::Replicas),
        (Some(mode), Some(admission), Some(capacity_per_server)) if cache && capacity_per_server > 0 => {
            let mode = known("mode", mode, CacheMode::by_name)?;
            let admission = known("admission", admission, CacheAdmission::by_name)?;
            Ok(OverlayKind::Cache { mode, admission, capacity_per_server })
        }
        _ => Err("keys `overlay.mode`, `overlay.admission` and `overlay.capacity_per_server`: caches have all, replicas \
                  none"
            .into()),
    }
}

fn copy_of(text: TextCopy, cache: bool) -> Result<ExtraCopy, String> {
    if text.kind != if cache { CACHE } else { REPLICA } {
        return Err(format!(
            "key `copy.kind`: {:?}, but all must be \"{REPLICA}\" or all \"{CACHE}\"",
            text.kind
        ));
    }
    let id = id_of("copy.", &text.id)?;
    let count = text.target.len();
    let layout = layout_of("copy.", text.region, count)?;
    let targets = targets_of("copy.", text.target)?;
    let all = || targets.iter().map(|target| u64::from(servers_of(&target.name, &target.path))).sum();
    let groups_max = if cache { all() } else { 1 };
    if text.groups == 0 || u64::from(text.groups) > groups_max || (text.servers as usize) < count {
        return Err("keys `copy.groups` and `copy.servers`: are not in their ranges".into());
    }
    if !text.pool_servers.is_empty() && text.pool_servers.len() != count {
        let said = text.pool_servers.len();
        return Err(format!("key `copy.pool_servers`: has {said} numbers for {count} targets"));
    }
    let TextCopy { name, groups, servers, pool_servers, .. } = text;
    Ok(ExtraCopy { name, id, groups, servers, pool_servers, targets, layout })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextTarget {
    name: String,
    path: String,
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextRegion {
    start: u64,
    end: Option<u64>,
    cycle: Vec<(u32, u64)>,
}

fn targets_of(prefix: &str, targets: Vec<TextTarget>) -> Result<Vec<TargetRef>, String> {
    let target_of = |target: TextTarget| {
        if target.path.starts_with('/') {
            return Ok(TargetRef { name: target.name, path: target.path.into(), id: target.id });
        }
        Err(format!("key `{prefix}target.path`: {:?} must be an absolute directory", target.path))
    };
    targets.into_iter().map(target_of).collect()
}

/// Checks that every index names a target and every target is used, and builds the layout.
fn layout_of(prefix: &str, regions: Vec<TextRegion>, targets: usize) -> Result<Layout, String> {
    // Check the indexes first: a layout keeps tables as long as the largest index.
    let stripes = || regions.iter().flat_map(|region| &region.cycle);
    if let Some((target, _)) = stripes().find(|(target, _)| *target as usize >= targets) {
        return Err(format!(
            "key `{prefix}region.cycle`: target {target} is not in the list of {targets} targets"
        ));
    }
    let mut used = vec![false; targets];
    stripes().for_each(|(target, _)| used[*target as usize] = true);
    if let Some(unused) = used.iter().position(|used| !used) {
        return Err(format!("key `{prefix}target`: no region uses target {unused}"));
    }
    let regions = regions.into_iter().map(|region| Region {
        start: region.start,
        end: region.end,
        cycle: region.cycle.into_iter().map(|(target, width)| Stripe { target, width }).collect(),
    });
    Layout::new(regions.collect()).map_err(|error| format!("key `{prefix}region`: {error}"))
}
