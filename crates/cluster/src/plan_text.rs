//! Parsing (with every check) and writing `plan.toml`.

use std::fmt::Write;

use stripewise_layout::{Layout, LayoutError, Region, Stripe};

use crate::cluster::Cluster;
use crate::cluster_text::read_embedded;
use crate::driver::NativeTarget;
use crate::error::FileError;
use crate::overlay_text::{read_overlay, write_overlay};
use crate::plan::{KEEP, Plan, Rule, Spread};
use crate::profile::check_version;
use crate::reader::{Document, Item, Table};
use crate::size;
use crate::write::quoted;

/// The format that this version reads and writes.
pub const PLAN_VERSION: u64 = 1;

pub(crate) const REMEDY: &str = "write the plan again with `stripewise plan`";

impl Plan {
    /// Parses `plan.toml`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// Any deviation from the documented format, with line, key, value and remedy.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, FileError> {
        let document = Document::parse(text, file_name)?;
        let root = document.root();
        check_version(&root, PLAN_VERSION, REMEDY)?;
        root.allow_only(&["version", "scheme", "rule", "cluster"])?;
        let cluster = read_embedded(&root.need("cluster", REMEDY)?.table()?)?;
        let rules = root.tables("rule")?;
        Ok(Self {
            scheme: root.need("scheme", REMEDY)?.text()?.to_owned(),
            rules: rules.iter().map(|table| read_rule(table, &cluster)).collect::<Result<_, _>>()?,
            cluster,
        })
    }

    /// The text of a `plan.toml`, which [`Plan::parse`] reads back.
    pub fn to_toml(&self) -> String {
        let mut out =
            String::from("# Written by `stripewise plan`: which files get which layout; first match wins.\n");
        let _ = writeln!(out, "version = {PLAN_VERSION}\nscheme = {}", quoted(&self.scheme));
        for rule in &self.rules {
            write_rule(&mut out, rule, &self.cluster);
        }
        out.push_str("\n# The cluster that the plan was made for.\n");
        self.cluster.write(&mut out, "cluster.");
        out
    }
}

fn write_rule(out: &mut String, rule: &Rule, cluster: &Cluster) {
    let _ = writeln!(out, "\n[[rule]]\npattern = {}\nscheme = {}", quoted(&rule.pattern), quoted(&rule.scheme));
    let _ = writeln!(out, "reason = {}", quoted(&rule.reason));
    let _ = writeln!(out, "predicted_s = {:?}\nelapsed_s = {:?}", rule.predicted_s, rule.elapsed_s);
    write_layouts(out, &rule.layouts, &rule.spread, cluster);
    if let Some(overlay) = &rule.overlay {
        write_overlay(out, overlay, cluster);
    }
}

/// Writes the keys `spread` (where it matters) and `layouts`.
pub(crate) fn write_layouts(out: &mut String, layouts: &[Layout], spread: &Spread, cluster: &Cluster) {
    if layouts.len() > 1 {
        let field = spread.field.map_or(String::new(), |field| format!("field = {field}, "));
        let _ = writeln!(out, "spread = {{ {field}stride = {} }}", spread.stride);
    }
    out.push_str("layouts = [\n");
    for layout in layouts {
        let regions: Vec<String> = layout.regions().iter().map(|region| region_text(region, cluster)).collect();
        let _ = writeln!(out, "  [{}],", regions.join(", "));
    }
    out.push_str("]\n");
}

fn region_text(region: &Region, cluster: &Cluster) -> String {
    let end = region.end.map_or(String::new(), |end| format!("end = {}, ", quoted(&size::format(end))));
    format!("{{ {end}cycle = {} }}", quoted(&format_cycle(&region.cycle, cluster)))
}

/// A cycle as text, `hdd/0-3:64K ssd/0:8K`, with neighbors of the same width joined.
///
/// Targets that the cluster does not have are written `?index`, which no parser accepts.
pub fn format_cycle(cycle: &[Stripe], cluster: &Cluster) -> String {
    let mut out = String::new();
    let mut rest = cycle;
    while let Some(first) = rest.first() {
        let tier = cluster.tier_of(first.target);
        let native = cluster.native_target(first.target);
        let follows = |(index, stripe): (usize, &Stripe)| {
            native.is_none()
                && stripe.width == first.width
                && u64::from(stripe.target) == u64::from(first.target) + index as u64
                && cluster.tier_of(stripe.target) == tier
        };
        let run = rest.iter().enumerate().take_while(|&pair| follows(pair)).count();
        let separator = if out.is_empty() { "" } else { " " };
        let target = match (tier, native) {
            (None, _) => format!("?{}", first.target),
            (Some(tier), Some(native)) => format!("{}/{}", cluster.tiers[tier].name, native.label()),
            (Some(tier), None) => {
                let index = first.target - cluster.targets_of(tier).start;
                let last = if run > 1 { format!("-{}", index as usize + run - 1) } else { String::new() };
                format!("{}/{index}{last}", cluster.tiers[tier].name)
            }
        };
        let _ = write!(out, "{separator}{target}:{}", size::format(first.width));
        rest = &rest[if tier.is_some() { run.max(1) } else { 1 }..];
    }
    out
}

/// Parses the output of [`format_cycle`].
///
/// # Errors
/// The problem, as text without a place.
pub fn parse_cycle(text: &str, cluster: &Cluster) -> Result<Vec<Stripe>, String> {
    let mut cycle = Vec::new();
    for word in text.split_whitespace() {
        let (range, width) = word.rsplit_once(':').ok_or_else(|| {
            format!("{word:?} is not TARGET:BYTES or TIER/FIRST-LAST:BYTES, like hdd/0-3:64K")
        })?;
        let width = size::parse(width).map_err(|error| error.to_string())?;
        let (tier, indices) =
            range.rsplit_once('/').ok_or_else(|| format!("{range:?} is no target like hdd/0"))?;
        let (first, last) = indices.split_once('-').unwrap_or((indices, indices));
        let index = |text: &str| {
            let name = format!("{tier}/{text}");
            cluster.target_index(&name).ok_or_else(|| format!("there is no target {name:?} in the cluster"))
        };
        let (first, last) = (index(first)?, index(last)?);
        if last < first {
            return Err(format!("{range:?}: the last target comes before the first"));
        }
        let turns = |native: &NativeTarget| native.count > 1 && native.turn() != width;
        if let Some(native) = cluster.native_target(first).filter(turns) {
            let turn = size::format(native.turn());
            return Err(format!("{word:?}: one turn over the servers of {range} is {turn}; write that width"));
        }
        cycle.extend((first..=last).map(|target| Stripe { target, width }));
    }
    Ok(cycle)
}

fn read_rule(table: &Table<'_>, cluster: &Cluster) -> Result<Rule, FileError> {
    table.allow_only(&[
        "pattern",
        "scheme",
        "reason",
        "predicted_s",
        "elapsed_s",
        "spread",
        "layouts",
        "copy",
        "overlay",
    ])?;
    let text = |key| table.need(key, REMEDY)?.text();
    let pattern = table.need("pattern", REMEDY)?;
    if !pattern.text()?.starts_with(['/', '*']) {
        return Err(pattern.error("must be an absolute path pattern, beginning with / or *"));
    }
    let layouts_item = table.need("layouts", "list at least one layout, or [] for scheme \"keep\"")?;
    let layouts = read_layouts(&layouts_item, cluster)?;
    let scheme = text("scheme")?;
    if layouts.is_empty() != (scheme == KEEP) {
        return Err(layouts_item.error("a rule has layouts exactly when its scheme is not \"keep\""));
    }
    let spread = table.get("spread").map_or(Ok(Spread::default()), |item| read_spread(&item))?;
    Ok(Rule {
        pattern: pattern.text()?.to_owned(),
        scheme: scheme.to_owned(),
        reason: text("reason")?.to_owned(),
        predicted_s: table.need("predicted_s", REMEDY)?.amount()?,
        elapsed_s: table.need("elapsed_s", REMEDY)?.amount()?,
        overlay: read_overlay(table, !layouts.is_empty(), spread, cluster)?,
        spread: if layouts.len() > 1 { spread } else { Spread::default() },
        layouts,
    })
}

pub(crate) fn read_layouts(item: &Item<'_>, cluster: &Cluster) -> Result<Vec<Layout>, FileError> {
    item.items()?.iter().map(|item| read_layout(item, cluster)).collect()
}

pub(crate) fn read_spread(item: &Item<'_>) -> Result<Spread, FileError> {
    let table = item.table()?;
    table.allow_only(&["field", "stride"])?;
    let stride_item = table.need("stride", "write stride = 1")?;
    let stride = stride_item.count()?;
    if stride == 0 {
        return Err(stride_item.error("must be at least 1"));
    }
    let field = match table.get("field") {
        None => None,
        Some(item) => Some(usize::try_from(item.count()?).map_err(|_| item.error("must be a small number"))?),
    };
    Ok(Spread { field, stride })
}

fn read_layout(item: &Item<'_>, cluster: &Cluster) -> Result<Layout, FileError> {
    let mut regions = Vec::new();
    let mut start = 0;
    for item in item.items()? {
        let table = item.table()?;
        table.allow_only(&["end", "cycle"])?;
        let end = table.get("end").map(|item| item.size()).transpose()?;
        let cycle_item = table.need("cycle", REMEDY)?;
        let cycle = parse_cycle(cycle_item.text()?, cluster).map_err(|problem| cycle_item.error(problem))?;
        regions.push(Region { start, end, cycle });
        start = end.unwrap_or(start);
    }
    Layout::new(regions).map_err(|error: LayoutError| item.error(error.to_string()))
}
