//! `lfs setstripe`: fixed stripes, components by extent (PFL), and repeated OSTs (overstriping).

use stripewise_cluster::size;
use stripewise_layout::Region;

use super::{Native, Subject};

const SYSTEM: &str = "Lustre";
/// Stripe sizes are multiples of this.
const UNIT: u64 = 64 << 10;
/// Stripes of one component at most.
const STRIPES_MAX: u64 = 2000;
/// Stripe sizes are below this.
const STRIPE_MAX: u64 = 4 << 30;

pub fn native(subject: &Subject<'_>) -> Native {
    let [regions] = &subject.layouts[..] else {
        return several(subject);
    };
    let mut arguments = String::new();
    for region in regions {
        let part = match component(subject, region) {
            Ok(part) => part,
            Err(reason) => return Native::impossible(SYSTEM, &reason),
        };
        if regions.len() > 1 {
            let last = std::ptr::eq(region, &regions[regions.len() - 1]);
            let end = region.end.filter(|_| !last).map_or("-1".to_owned(), size::format);
            arguments += &format!("-E {end} ");
        }
        arguments += &format!("{part} ");
    }
    Native::commands(SYSTEM, vec![format!("lfs setstripe {arguments}{}", subject.path())], None)
}

/// Files that are spread over several layouts: Lustre spreads files with few stripes by itself.
fn several(subject: &Subject<'_>) -> Native {
    let parts = subject.layouts.iter().map(|regions| match &regions[..] {
        [region] => super::even(region).map(|even| (even.targets.len(), even.width)),
        _ => None,
    });
    let mut parts: Vec<Option<(usize, u64)>> = parts.collect();
    parts.dedup();
    match parts[..] {
        [Some((count, width))] => {
            let stripe = width.clamp(UNIT, STRIPE_MAX - UNIT).next_multiple_of(UNIT);
            if count > 1 && stripe != width {
                return Native::impossible(SYSTEM, "its stripes are multiples of 64K");
            }
            let command = format!("lfs setstripe -S {} -c {count} {}", size::format(stripe), subject.path());
            Native::commands(SYSTEM, vec![command], Some("Lustre itself spreads the files over its OSTs"))
        }
        _ => Native::impossible(SYSTEM, "the files of one directory would need different stripes"),
    }
}

/// The options for one region.
fn component(subject: &Subject<'_>, region: &Region) -> Result<String, String> {
    if let [only] = &region.cycle[..] {
        return Ok(format!("-c 1 -o {}", only.target));
    }
    let unit = region.cycle.iter().fold(0, |unit, stripe| gcd(stripe.width, unit));
    if unit % UNIT != 0 || unit >= STRIPE_MAX {
        let widths: Vec<u64> = region.cycle.iter().map(|stripe| stripe.width).collect();
        let width = widths.iter().find(|width| *width % UNIT != 0).copied().unwrap_or(unit);
        return Err(format!("a stripe of {} is no multiple of 64K", size::format(width)));
    }
    if let Some(even) = super::even(region) {
        let servers = match subject.whole_tier(&even.targets) {
            _ if subject.whole_cluster(&even.targets) => format!("-c {}", even.targets.len()),
            Some(tier) => format!("-c {} -p POOL({tier})", even.targets.len()),
            None => format!("-o {}", list(even.targets.iter().copied())),
        };
        return Ok(format!("-S {} {servers}", size::format(even.width)));
    }
    let stripes: u64 = region.cycle.iter().map(|stripe| stripe.width / unit).sum();
    if stripes > STRIPES_MAX {
        return Err(format!("it would take {stripes} stripes of {}", size::format(unit)));
    }
    let repeated = region
        .cycle
        .iter()
        .flat_map(|stripe| std::iter::repeat_n(stripe.target, (stripe.width / unit) as usize));
    Ok(format!("-S {} -o {}", size::format(unit), list(repeated)))
}

fn list(targets: impl Iterator<Item = u32>) -> String {
    targets.map(|target| target.to_string()).collect::<Vec<_>>().join(",")
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
