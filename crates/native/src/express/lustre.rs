//! Lustre: fixed stripes, components by extent (PFL), and repeated OSTs (overstriping).
//!
//! In every component the OST of a byte follows from its offset in the *file*: stripe number =
//! offset / size modulo count (`lov_stripe_number` in lustre/lov/lov_offset.c). The list of a
//! component that begins in the middle of a cycle is therefore rotated.

use stripewise_cluster::size;

use super::subject::Subject;
use crate::check::lustre::{STRIPE_MAX, STRIPES_MAX, UNIT};
use crate::cycle::Cycle;
use crate::names::PoolName;
use crate::{Component, NativeLayout, Stripe};

/// Alternative widths for stripes on a single OST, bytes.
const SOLO: [u64; 2] = [1 << 20, UNIT];

pub fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let [cycles] = &subject.layouts[..] else {
        return several(subject);
    };
    let component = |cycle: &Cycle| Ok(Component { end: cycle.end, stripe: stripe(subject, cycle)? });
    Ok(NativeLayout { components: cycles.iter().map(component).collect::<Result<_, String>>()? })
}

/// Files that are spread over several layouts: Lustre itself spreads files with few stripes.
fn several(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let shape = |cycles: &Vec<Cycle>| match &cycles[..] {
        [cycle] => cycle.even().map(|width| (cycle.stripes.len() as u32, width)),
        _ => None,
    };
    let mut shapes: Vec<_> = subject.layouts.iter().map(shape).collect();
    shapes.dedup();
    let [Some((count, width))] = shapes[..] else {
        return Err("the files of one directory would need different stripes".into());
    };
    let stripe = width.clamp(UNIT, STRIPE_MAX - UNIT).next_multiple_of(UNIT);
    if count > 1 && stripe != width {
        return Err("its stripes are multiples of 64K".into());
    }
    let targets: Vec<u32> = subject.layouts.iter().flatten().flat_map(Cycle::targets).collect();
    let pool = match subject.names.pool(&targets, false) {
        PoolName::Known(pool) => Some(pool),
        PoolName::Apart => return Err("the files of one directory would need different pools".into()),
        PoolName::Unknown => None,
    };
    Ok(NativeLayout::uniform(Stripe::Even { width: stripe, count, pool }))
}

fn stripe(subject: &Subject<'_>, cycle: &Cycle) -> Result<Stripe, String> {
    let names = &subject.names;
    let (width, targets) = equal_stripes(cycle)?;
    let once = cycle.even().is_some();
    if let (PoolName::Known(pool), true) = (names.pool(&targets, false), once) {
        return Ok(Stripe::Even { width, count: targets.len() as u32, pool: Some(pool) });
    }
    // With placeholders, the reader knows which OSTs exist, so counts and pools say more than
    // numbers.
    if once && targets.len() > 1 && !targets.iter().any(|&target| names.is_known(target)) {
        let even = |pool| Ok(Stripe::Even { width, count: targets.len() as u32, pool });
        match names.whole_tier(&targets) {
            _ if names.whole_cluster(&targets) => return even(None),
            Some(tier) => return even(Some(format!("POOL({tier})"))),
            None => {}
        }
    }
    let mut servers: Vec<String> =
        targets.iter().map(|&target| names.server(target)).collect::<Result<_, _>>()?;
    let passed = (cycle.start / width) % servers.len() as u64;
    servers.rotate_right(passed as usize);
    Ok(Stripe::Listed { width, servers })
}

/// The cycle as stripes of one width: (width, the target of each).
fn equal_stripes(cycle: &Cycle) -> Result<(u64, Vec<u32>), String> {
    let fits = |width: u64| {
        width.is_multiple_of(UNIT)
            && width < STRIPE_MAX
            && cycle.start.is_multiple_of(width)
            && cycle.end.is_none_or(|end| end.is_multiple_of(width))
    };
    if let [(target, width)] = cycle.stripes[..] {
        let width = [width, SOLO[0], SOLO[1]].into_iter().find(|&width| fits(width));
        let width = width.ok_or("its components begin and end at multiples of 64K")?;
        return Ok((width, vec![target]));
    }
    let unit = cycle.unit();
    if !unit.is_multiple_of(UNIT) || unit >= STRIPE_MAX {
        let odd = cycle.stripes.iter().map(|stripe| stripe.1).find(|width| !width.is_multiple_of(UNIT));
        return Err(match odd {
            Some(width) => format!("a stripe of {} is no multiple of 64K", size::format(width)),
            None => format!("stripes are smaller than {}", size::format(STRIPE_MAX)),
        });
    }
    if !fits(unit) {
        let unit = size::format(unit);
        return Err(format!("a component with stripes of {unit} begins and ends at multiples of {unit}"));
    }
    let stripes: u64 = cycle.stripes.iter().map(|stripe| stripe.1 / unit).sum();
    if stripes > u64::from(STRIPES_MAX) {
        return Err(format!("it would take {stripes} stripes of {}", size::format(unit)));
    }
    let targets =
        cycle.stripes.iter().flat_map(|&(target, width)| std::iter::repeat_n(target, (width / unit) as usize));
    Ok((unit, targets.collect()))
}
