//! Lustre: fixed stripes, components by extent (PFL), and repeated OSTs (overstriping).
//!
//! In every component the OST of a byte follows from its offset in the *file*: stripe number =
//! offset / size modulo count (`lov_stripe_number` in lustre/lov/lov_offset.c). The list of a
//! component that begins in the middle of a cycle is therefore rotated.

use stripewise_cluster::size;

use crate::commands::{Call, words};
use crate::cycle::Cycle;
use crate::names::{Apart, Subject};
use crate::{Component, NativeLayout, Stripe};

/// Stripe sizes and the ends of components are multiples of this (LOV_MIN_STRIPE_SIZE in
/// lustre_user.h), bytes.
pub const UNIT: u64 = 64 << 10;
/// Stripe sizes are below this (`llapi_stripe_size_is_too_big`), bytes.
pub const STRIPE_MAX: u64 = 4 << 30;
/// Maximum number of stripes of one component (LOV_MAX_STRIPE_COUNT in lustre_user.h).
pub const STRIPES_MAX: u32 = 2000;
/// Maximum number of OSTs in a list (`lsa_args_stripe_count_check` in lustre/utils/lfs.c refuses
/// LOV_MAX_STRIPE_COUNT itself).
pub const LISTED_MAX: u32 = STRIPES_MAX - 1;
/// Maximum number of characters of a pool's name (LOV_MAXPOOLNAME in lustre_user.h).
pub const POOL_NAME_MAX: usize = 15;
/// Alternative widths for stripes on a single OST, bytes.
const SOLO: [u64; 2] = [1 << 20, UNIT];

pub(crate) fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let [cycles] = &subject.layouts[..] else {
        return several(subject);
    };
    let component = |cycle: &Cycle| Ok(Component { end: cycle.end, stripe: stripe(subject, cycle)? });
    Ok(NativeLayout { components: cycles.iter().map(component).collect::<Result<_, String>>()? })
}

/// Files that are spread over several layouts: Lustre itself spreads files with few stripes.
fn several(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let Some((count, width)) = subject.same_stripes() else {
        return Err("the files of one directory would need different stripes".into());
    };
    let stripe = width.clamp(UNIT, STRIPE_MAX - UNIT).next_multiple_of(UNIT);
    if count > 1 && stripe != width {
        return Err("its stripes are multiples of 64K".into());
    }
    let pool = subject.pool(&subject.targets(), false);
    let pool = pool.map_err(|Apart| "the files of one directory would need different pools")?;
    Ok(NativeLayout::uniform(Stripe::Even { width: stripe, count, pool }))
}

fn stripe(subject: &Subject<'_>, cycle: &Cycle) -> Result<Stripe, String> {
    let (width, targets) = equal_stripes(cycle)?;
    let once = cycle.even().is_some();
    if let (Ok(Some(pool)), true) = (subject.pool(&targets, false), once) {
        return Ok(Stripe::Even { width, count: targets.len() as u32, pool: Some(pool) });
    }
    // With placeholders, the reader knows which OSTs exist, so counts and pools say more than
    // numbers.
    if once && targets.len() > 1 && targets.iter().all(|&target| subject.members(target).is_none()) {
        let even = |pool| Ok(Stripe::Even { width, count: targets.len() as u32, pool });
        match subject.whole_tier(&targets) {
            _ if subject.whole_cluster(&targets) => return even(None),
            Some(tier) => return even(Some(format!("POOL({tier})"))),
            None => {}
        }
    }
    let mut servers: Vec<String> =
        targets.iter().map(|&target| subject.server(target)).collect::<Result<_, _>>()?;
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
    // Since 2.15.5 the servers cut the count to what a component's extent has room for
    // (`lod_comp_shrink_stripe_count` in lustre/lod/lod_object.c), which would move bytes.
    let room = cycle.end.map_or(u64::MAX, |end| (end - cycle.start) / unit);
    let stripes = cycle.stripes.iter().map(|stripe| stripe.1 / unit).sum::<u64>().min(room);
    if stripes > u64::from(LISTED_MAX) {
        return Err(format!("it would take {stripes} stripes of {}", size::format(unit)));
    }
    let targets =
        cycle.stripes.iter().flat_map(|&(target, width)| std::iter::repeat_n(target, (width / unit) as usize));
    Ok((unit, targets.take(stripes as usize).collect()))
}

/// Checks a component that begins at `start`. Returns where the next one begins.
pub(crate) fn check(start: u64, component: &Component) -> Result<u64, String> {
    let Some((width, count)) = component.stripe.equal() else {
        return Err("its stripes are equally long; a repeated OST makes the share of one larger".into());
    };
    let most = if matches!(component.stripe, Stripe::Listed { .. }) { LISTED_MAX } else { STRIPES_MAX };
    if !(1..=most as usize).contains(&count) {
        return Err(format!("{count} stripes: a component has 1 to {most}"));
    }
    match &component.stripe {
        Stripe::Even { pool: Some(pool), .. } => check_pool(pool)?,
        Stripe::Listed { servers, .. } => {
            if let Some(bad) = servers.iter().find(|server| server.parse::<u16>().is_err()) {
                return Err(format!("{bad:?} is no OST index (`lfs osts` lists them)"));
            }
        }
        _ => {}
    }
    if width == 0 || !width.is_multiple_of(UNIT) {
        return Err(format!("a stripe of {} is no multiple of 64K", size::format(width)));
    }
    if width >= STRIPE_MAX {
        return Err(format!("a stripe of {} is not below 4G", size::format(width)));
    }
    // lod_verify_striping in lustre/lod/lod_lov.c: "stripe size isn't aligned".
    match component.end {
        Some(end) if !end.is_multiple_of(width) => Err(format!(
            "a component of stripes of {} ends at {end}, which is no multiple",
            size::format(width)
        )),
        end => Ok(end.unwrap_or(start)),
    }
}

/// Placeholders such as `POOL(hdd)` pass: a person must replace them by a name.
fn check_pool(name: &str) -> Result<(), String> {
    let placeholder = name.starts_with("POOL(");
    if !placeholder && (name.is_empty() || name.len() > POOL_NAME_MAX || name.contains(['.', ' ', '/'])) {
        return Err(format!("{name:?} is no pool name (1 to {} characters, no dots)", POOL_NAME_MAX));
    }
    Ok(())
}

/// The call of `lfs setstripe`, with options as in lustre/doc/lfs-setstripe.1.
pub(crate) fn call(layout: &NativeLayout, path: String) -> Call {
    let mut call = words(&["lfs", "setstripe"]);
    let mut pool_before = false;
    for Component { end, stripe } in &layout.components {
        let several = layout.components.len() > 1;
        if several {
            call.extend(["-E".to_owned(), end.map_or("-1".to_owned(), size::format)]);
        }
        let (width, count) = stripe.equal().expect("check() lets no other layout pass");
        call.extend(["-S".to_owned(), size::format(width)]);
        let list = if let Stripe::Listed { servers, .. } = stripe { Some(servers.join(",")) } else { None };
        // A component without a count would inherit that of the previous one
        // (setstripe_args_init_inherit in lfs.c), which must match the list's length.
        if several || list.is_none() {
            call.extend(["-c".to_owned(), count.to_string()]);
        }
        call.extend(list.into_iter().flat_map(|list| ["-o".to_owned(), list]));
        let pool = if let Stripe::Even { pool, .. } = stripe { pool.as_deref() } else { None };
        match pool {
            Some(pool) => call.extend(words(&["-p", pool])),
            // A component without a pool would inherit that of the previous one.
            None if pool_before => call.extend(words(&["-p", "none"])),
            None => {}
        }
        pool_before = pool.is_some();
    }
    call.push(path);
    call
}
