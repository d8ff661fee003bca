//! Formats layouts and sizes for the tables.

use stripewise_cluster::{format_cycle, size};
use stripewise_layout::Layout;

use super::planned::Planned;

/// Formats the first of several layouts, and their number.
pub fn layouts(planned: &Planned, layouts: &[Layout]) -> String {
    let regions = layouts.first().map(|layout| layout.regions()).unwrap_or_default();
    let region = |region: &stripewise_layout::Region| {
        let end = region.end.map_or(String::new(), |end| format!(" to {}", about(end)));
        format!("{}{end}", format_cycle(&region.cycle, &planned.cluster))
    };
    let first = regions.iter().map(region).collect::<Vec<_>>().join(", ");
    if layouts.len() > 1 { format!("{first}, ... ({} layouts)", layouts.len()) } else { first }
}

/// Formats a size for people, with at most one digit after the point.
pub fn about(bytes: u64) -> String {
    let exact = size::format(bytes);
    if exact.len() <= 5 {
        return exact;
    }
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    format!("{:.1}{}", bytes as f64 / (1u64 << (10 * power)) as f64, units[power])
}
