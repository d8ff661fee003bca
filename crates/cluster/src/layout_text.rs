//! Layouts in `plan.toml`: the keys `layouts` and `spread`, parsed with every check, and written.

use std::collections::HashMap;
use std::fmt::Write;

use stripewise_layout::{Layout, LayoutError, Region, Stripe};

use crate::cluster::Cluster;
use crate::driver::NativeTarget;
use crate::pattern::Spread;
use crate::reader::{FileError, Item};
use crate::size;
use crate::write::quoted;

pub(crate) const REMEDY: &str = "write the plan again with `stripewise plan`";

/// The texts of layouts that were written, by the place of their regions in memory: rules may share
/// layouts.
pub(crate) type Written = HashMap<*const Region, String>;

/// The layouts that were read, by the ends and cycles of their regions: layouts of the same text
/// share memory.
pub(crate) type Read = HashMap<Vec<(Option<u64>, String)>, Layout>;

/// Writes the keys `spread` (where it matters) and `layouts`.
pub(crate) fn write_layouts(
    out: &mut String,
    (layouts, spread): (&[Layout], &Spread),
    cluster: &Cluster,
    written: &mut Written,
) {
    if layouts.len() > 1 {
        let field = spread.field.map_or(String::new(), |field| format!("field = {field}, "));
        let _ = writeln!(out, "spread = {{ {field}stride = {} }}", spread.stride);
    }
    out.push_str("layouts = [\n");
    for layout in layouts {
        let text = || {
            let regions = layout.regions().iter().map(|region| region_text(region, cluster));
            format!("  [{}],", regions.collect::<Vec<_>>().join(", "))
        };
        let text = written.entry(layout.regions().as_ptr()).or_insert_with(text);
        let _ = writeln!(out, "{text}");
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
    let tier_of_server = |target| match cluster.native_target(target) {
        None => cluster.tier_of(target),
        Some(_) => None,
    };
    let goes_on = |one: &Stripe, next: &Stripe| {
        let tier = tier_of_server(one.target);
        one.width == next.width
            && one.target.checked_add(1) == Some(next.target)
            && tier.is_some()
            && tier == tier_of_server(next.target)
    };
    let word = |run: &[Stripe]| {
        let Stripe { target: first, width } = run[0];
        let target = match (cluster.tier_of(first), cluster.native_target(first)) {
            (None, _) => format!("?{first}"),
            (Some(tier), Some(native)) => format!("{}/{}", cluster.tiers[tier].name, native.label()),
            (Some(tier), None) => {
                let index = (first - cluster.targets_of(tier).start) as usize;
                let last = if run.len() > 1 { format!("-{}", index + run.len() - 1) } else { String::new() };
                format!("{}/{index}{last}", cluster.tiers[tier].name)
            }
        };
        format!("{target}:{}", size::format(width))
    };
    cycle.chunk_by(goes_on).map(word).collect::<Vec<_>>().join(" ")
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

pub(crate) fn read_layouts(
    item: &Item<'_>,
    cluster: &Cluster,
    read: &mut Read,
) -> Result<Vec<Layout>, FileError> {
    item.items()?.iter().map(|item| read_layout(item, cluster, read)).collect()
}

pub(crate) fn read_spread(item: &Item<'_>) -> Result<Spread, FileError> {
    let table = item.table()?;
    table.allow_only("field, stride")?;
    let stride_item = table.need("stride", "write stride = 1")?;
    let stride = stride_item.count()?;
    stride_item.ensure(stride > 0, "must be at least 1")?;
    let field = match table.get("field") {
        None => None,
        Some(item) => Some(usize::try_from(item.count()?).map_err(|_| item.error("must be a small number"))?),
    };
    Ok(Spread { field, stride })
}

fn read_layout(item: &Item<'_>, cluster: &Cluster, read: &mut Read) -> Result<Layout, FileError> {
    let mut cycles = Vec::new();
    for item in item.items()? {
        let table = item.table()?;
        table.allow_only("end, cycle")?;
        let end = table.get("end").map(|item| item.size()).transpose()?;
        cycles.push((end, table.need("cycle", REMEDY)?));
    }
    let texts = cycles.iter().map(|(end, cycle)| Ok((*end, cycle.text()?.to_owned())));
    let texts = texts.collect::<Result<Vec<_>, FileError>>()?;
    if let Some(known) = read.get(&texts) {
        return Ok(known.clone());
    }
    let mut regions = Vec::new();
    let mut start = 0;
    for (end, item) in cycles {
        let cycle = parse_cycle(item.text()?, cluster).map_err(|problem| item.error(problem))?;
        regions.push(Region { start, end, cycle });
        start = end.unwrap_or(start);
    }
    let layout = Layout::new(regions).map_err(|error: LayoutError| item.error(error.to_string()))?;
    read.insert(texts, layout.clone());
    Ok(layout)
}
