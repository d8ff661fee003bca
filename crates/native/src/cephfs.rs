//! CephFS: one pattern in one pool, expressed by the attributes `ceph.file.layout` and
//! `ceph.dir.layout`.
//!
//! A file is cut into stripe units, which go in turn to `stripe_count` objects. When these are
//! `object_size` bytes long, the next set of as many objects follows. Every object lies on one
//! server of the pool, chosen by a hash of its name. (docs.ceph.com, "File layouts"; verified on
//! Ceph 16.2.)

use crate::names::{Apart, Subject};
use crate::objects::{Sets, fullest};
use crate::{NativeLayout, Stripe};

/// Stripe units are multiples of this, bytes.
pub const UNIT: u64 = 64 << 10;
/// The largest object that servers accept by default (`osd_max_object_size`), bytes. Larger layouts
/// can be set, but then writes fail (EFBIG).
pub const OBJECT_MOST: u64 = 128 << 20;
/// The usual size of objects, bytes: Ceph's default.
const OBJECT_USUAL: u64 = 4 << 20;

/// The fields of the attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Size of a stripe, bytes.
    pub stripe_unit: u64,
    /// Number of objects that are filled in turn.
    pub stripe_count: u32,
    /// Size of an object, bytes.
    pub object_size: u64,
    /// The data pool, by name; `None`: that of the directory.
    pub pool: Option<String>,
}

/// The object size for stripes of `width` bytes: Ceph's usual size, in whole stripes.
///
/// A hash chooses the servers of a file's objects, so two objects may share a server while other
/// servers have none. With the longest possible objects (128 MiB) a file would keep its first draw.
/// With objects of the usual size it draws again every `stripe_count` objects, so long files even
/// out. A request reaches at most `stripe_count` servers either way, and in a pool of one server
/// nothing changes.
pub fn object_size(width: u64) -> u64 {
    (OBJECT_USUAL / width.max(1)).max(1) * width
}

/// How full the fullest of a pool's `servers` is on average, as a multiple of an even share, with
/// one file of `len` bytes that was created with `width` bytes times `count`.
pub fn unevenness(width: u64, count: u32, len: u64, servers: u32) -> f64 {
    let sets = Sets { width, count: count.max(1).into(), size: object_size(width) };
    fullest(sets.objects(len), servers)
}

impl Attribute {
    /// The attribute for a layout.
    ///
    /// # Errors
    /// Why CephFS does not support the layout, and an alternative.
    pub fn of(layout: &NativeLayout) -> Result<Self, String> {
        let Some(stripe) = layout.stripe() else {
            return Err("a file has one pattern from its first to its last byte".to_owned());
        };
        let (width, count, pool) = match stripe {
            Stripe::Even { width, count, pool } => (*width, *count, pool.clone()),
            Stripe::Listed { width, servers } => match &servers[..] {
                [pool] => (*width, 1, Some(pool.clone())),
                _ => return Err("servers cannot be listed: only pools can be named, one for a file".to_owned()),
            },
            Stripe::Varied { .. } => return Err("all stripes of a file are equally long".to_owned()),
            Stripe::Grouped { .. } => return Err("there are no groups of servers but pools".to_owned()),
        };
        let no_name = |pool: &String| pool.is_empty() || pool.contains(char::is_whitespace);
        let refused = [
            (width == 0 || !width.is_multiple_of(UNIT), "a stripe is a multiple of 64K"),
            (width > OBJECT_MOST, "a stripe is at most 128M, the largest object that servers take"),
            (count == 0, "a file has at least one stripe"),
            (pool.as_ref().is_some_and(no_name), "a pool's name is not empty and has no spaces"),
        ];
        if let Some((_, problem)) = refused.into_iter().find(|(refused, _)| *refused) {
            return Err(problem.to_owned());
        }
        Ok(Self { stripe_unit: width, stripe_count: count, object_size: object_size(width), pool })
    }

    /// Parses the attribute's value as CephFS returns it; `None`: it is not such a value. Skips
    /// unknown fields.
    pub fn parse(value: &str) -> Option<Self> {
        let field = |name: &str| {
            let fields = value.split_whitespace().filter_map(|field| field.split_once('='));
            fields.into_iter().find(|&(field, _)| field == name).map(|(_, value)| value)
        };
        Some(Self {
            stripe_unit: field("stripe_unit")?.parse().ok()?,
            stripe_count: field("stripe_count")?.parse().ok()?,
            object_size: field("object_size")?.parse().ok()?,
            pool: field("pool").map(str::to_owned),
        })
    }

    /// The attribute's value, as `setfattr -n ceph.file.layout -v` takes it.
    pub fn text(&self) -> String {
        let pool = self.pool.as_ref().map(|pool| format!(" pool={pool}")).unwrap_or_default();
        format!(
            "stripe_unit={} stripe_count={} object_size={}{pool}",
            self.stripe_unit, self.stripe_count, self.object_size
        )
    }

    /// The layout that the attribute means.
    pub fn layout(&self) -> NativeLayout {
        NativeLayout::even(self.stripe_unit, self.stripe_count, self.pool.as_deref())
    }
}

/// Stripe unit of a file on one server, where any size works, bytes: the size of Ceph's objects.
const SOLO: u64 = 4 << 20;

pub(crate) fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let [cycles] = &subject.layouts[..] else {
        return Err("files of one directory would need different pools".into());
    };
    let [cycle] = &cycles[..] else {
        return Err("a file has one layout from its first to its last byte".into());
    };
    let Some(width) = cycle.even() else {
        return Err("all stripes of a file are equally long; targets of their own pools can do it".into());
    };
    let targets = cycle.targets();
    let pool = subject.pool(&targets, true).map_err(
        |Apart| "a file lies in one pool, and its servers are in several; targets of their own pools can do it",
    )?;
    let pool = pool.unwrap_or_else(|| placeholder(subject, &targets));
    let width = if targets.len() == 1 { SOLO } else { width };
    Ok(NativeLayout::even(width, targets.len() as u32, Some(&pool)))
}

fn placeholder(subject: &Subject<'_>, targets: &[u32]) -> String {
    match subject.whole_tier(targets) {
        _ if subject.whole_cluster(targets) && targets.len() > 1 => "POOL(all)".to_owned(),
        Some(tier) => format!("POOL({tier})"),
        None => {
            let each: Vec<String> = targets.iter().map(|&target| subject.name_of(target)).collect();
            format!("POOL({})", each.join("+"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const K: u64 = 1 << 10;

    #[test]
    fn what_is_set_and_what_is_said() {
        let even = Attribute::of(&NativeLayout::even(64 * K, 4, Some("hdd"))).unwrap();
        assert_eq!(even.text(), "stripe_unit=65536 stripe_count=4 object_size=4194304 pool=hdd");
        let any = Attribute::of(&NativeLayout::even(192 * K, 2, None)).unwrap();
        assert_eq!(any.text(), "stripe_unit=196608 stripe_count=2 object_size=4128768");
        let one = NativeLayout::uniform(Stripe::Listed { width: 4096 * K, servers: vec!["hdd0".to_owned()] });
        assert_eq!(Attribute::of(&one).unwrap().layout(), NativeLayout::even(4096 * K, 1, Some("hdd0")));
        let said = "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=a-b pool_namespace=x";
        assert_eq!(Attribute::parse(said).unwrap().layout(), NativeLayout::even(4096 * K, 1, Some("a-b")));
        for wrong in ["", "stripe_unit=1", "stripe_unit=x stripe_count=1 object_size=1"] {
            assert_eq!(Attribute::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn layouts_that_it_does_not_have() {
        let servers = vec!["a".to_owned(), "b".to_owned()];
        for stripe in [
            Stripe::Even { width: 0, count: 1, pool: None },
            Stripe::Even { width: 28 * K, count: 1, pool: None },
            Stripe::Even { width: OBJECT_MOST + UNIT, count: 1, pool: None },
            Stripe::Even { width: 64 * K, count: 0, pool: None },
            Stripe::Even { width: 64 * K, count: 1, pool: Some("a pool=b".to_owned()) },
            Stripe::Even { width: 64 * K, count: 1, pool: Some(String::new()) },
            Stripe::Listed { width: 64 * K, servers: servers.clone() },
            Stripe::Listed { width: 64 * K, servers: Vec::new() },
            Stripe::Varied { stripes: vec![("a".to_owned(), 64 * K)] },
            Stripe::Grouped { width: 64 * K, groups: 1, factor: 1, servers },
        ] {
            Attribute::of(&NativeLayout::uniform(stripe.clone())).expect_err(&format!("{stripe:?}"));
        }
        let mut two = NativeLayout::even(64 * K, 1, None);
        two.components.insert(0, crate::Component { end: Some(64 * K), ..two.components[0].clone() });
        Attribute::of(&two).unwrap_err();
    }

    proptest! {
        #[test]
        fn what_is_set_is_what_is_read_back(units in 1u64..=2048, count in 1u32.., pool in "[a-z][a-z0-9._-]{0,9}") {
            let layout = NativeLayout::even(units * UNIT, count, Some(&pool));
            let attribute = Attribute::of(&layout).unwrap();
            prop_assert_eq!(attribute.layout(), layout);
            prop_assert_eq!(Attribute::parse(&attribute.text()), Some(attribute.clone()));
            // Whole stripes, without space for another one.
            let size = attribute.object_size;
            prop_assert!(size.is_multiple_of(attribute.stripe_unit) && size <= OBJECT_MOST);
            prop_assert!(size == attribute.stripe_unit || size <= OBJECT_USUAL);
            prop_assert!(size + attribute.stripe_unit > OBJECT_USUAL);
        }
    }
}
