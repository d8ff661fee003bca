//! The layout that a parallel file system is asked for, or that it reports for a file.

use std::fmt;

use serde::{Deserialize, Serialize};
use stripewise_cluster::size;

/// The placement of a file's bytes, in the terms of one parallel file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeLayout {
    /// The components in order, from the first byte on; the last has no end. There is one, except
    /// in Lustre's progressive layouts.
    pub components: Vec<Component>,
}

/// A byte range of a file with one striping pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// One past its last byte; `None`: to the end of the file.
    pub end: Option<u64>,
    /// The striping of its bytes.
    pub stripe: Stripe,
}

/// The distribution of bytes over servers. Widths are in bytes and never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stripe {
    /// Equal stripes; the file system chooses the servers.
    Even {
        /// Width of a stripe, bytes.
        width: u64,
        /// Number of stripes until the first server comes again.
        count: u32,
        /// The pool of the servers; `None`: any servers of the file system.
        pool: Option<String>,
    },
    /// Equal stripes over servers in this order; a server may occur several times.
    Listed {
        /// Width of a stripe, bytes.
        width: u64,
        /// The file system's names of the servers.
        servers: Vec<String>,
    },
    /// Stripes of different widths (OrangeFS `varstrip_dist`).
    Varied {
        /// (server, bytes) in the order of the cycle; a server may occur several times.
        stripes: Vec<(String, u64)>,
    },
    /// Groups of servers (OrangeFS `twod_stripe`): `factor` rounds over one group before the next.
    Grouped {
        /// Width of a stripe, bytes.
        width: u64,
        /// Number of groups of servers.
        groups: u32,
        /// Stripes on each server of a group before the next group's turn.
        factor: u32,
        /// The file system's names of the servers.
        servers: Vec<String>,
    },
}

impl NativeLayout {
    /// A layout with one pattern from the first byte to the last.
    pub fn uniform(stripe: Stripe) -> Self {
        Self { components: vec![Component { end: None, stripe }] }
    }

    /// Equal stripes of `width` bytes over `count` servers of a pool.
    pub fn even(width: u64, count: u32, pool: Option<&str>) -> Self {
        Self::uniform(Stripe::Even { width, count, pool: pool.map(str::to_owned) })
    }

    /// The stripe of a layout with one pattern; `None`: it has several components.
    pub fn stripe(&self) -> Option<&Stripe> {
        match &self.components[..] {
            [Component { end: None, stripe }] => Some(stripe),
            _ => None,
        }
    }

    /// Whether a file with the layout `got` has what this layout requests: the same, except that a
    /// request without a pool accepts any pool, and a request without servers accepts any servers.
    pub fn is_met_by(&self, got: &Self) -> bool {
        let met = |(asked, got): (&Component, &Component)| {
            asked.end == got.end && asked.stripe.is_met_by(&got.stripe)
        };
        self.components.len() == got.components.len() && self.components.iter().zip(&got.components).all(met)
    }
}

impl Stripe {
    /// The width and the number of the stripes until the cycle repeats, if the file system has no
    /// other pattern for them than equal stripes in turn.
    pub(crate) fn equal(&self) -> Option<(u64, usize)> {
        match self {
            Self::Even { width, count, .. } => Some((*width, *count as usize)),
            Self::Listed { width, servers } => Some((*width, servers.len())),
            Self::Varied { .. } | Self::Grouped { .. } => None,
        }
    }

    fn is_met_by(&self, got: &Self) -> bool {
        match (self, got) {
            (Self::Even { pool: None, .. }, Self::Even { .. }) => self.equal() == got.equal(),
            // The servers that the file system chose.
            (Self::Even { pool: None, .. }, Self::Listed { servers, .. }) => {
                self.equal() == got.equal() && are_different(servers)
            }
            _ => self == got,
        }
    }
}

/// Whether no server occurs twice.
pub(crate) fn are_different(servers: &[String]) -> bool {
    let mut once = servers.to_vec();
    once.sort_unstable();
    once.dedup();
    once.len() == servers.len()
}

impl fmt::Display for NativeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, component) in self.components.iter().enumerate() {
            if index > 0 {
                f.write_str(", then ")?;
            }
            write!(f, "{}", component.stripe)?;
            if let Some(end) = component.end {
                write!(f, " up to {}", size::format(end))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even { width, count, pool } => {
                write!(f, "{} x {count}", size::format(*width))?;
                pool.iter().try_for_each(|pool| write!(f, " in pool {pool}"))
            }
            Self::Listed { width, servers } => write!(f, "{} on {}", size::format(*width), servers.join(", ")),
            Self::Varied { stripes } => {
                let shown: Vec<_> = stripes
                    .iter()
                    .map(|(server, width)| format!("{} on {server}", size::format(*width)))
                    .collect();
                f.write_str(&shown.join(", "))
            }
            Self::Grouped { width, groups, factor, servers } => write!(
                f,
                "{} on {} in {groups} groups, {factor} rounds each",
                size::format(*width),
                servers.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;

    #[test]
    fn a_layout_is_met_by_itself_and_without_a_pool_by_any_pool() {
        let (any, hdd, ssd) = (
            NativeLayout::even(64 * K, 4, None),
            NativeLayout::even(64 * K, 4, Some("hdd")),
            NativeLayout::even(64 * K, 4, Some("ssd")),
        );
        assert!(any.is_met_by(&any) && any.is_met_by(&hdd) && hdd.is_met_by(&hdd));
        assert!(!hdd.is_met_by(&ssd) && !hdd.is_met_by(&any));
        assert!(!any.is_met_by(&NativeLayout::even(128 * K, 4, None)));
        assert!(!any.is_met_by(&NativeLayout::even(64 * K, 3, Some("hdd"))));
        let picked = |servers: &[&str]| {
            let servers = servers.iter().map(|&server| server.to_owned()).collect();
            NativeLayout::uniform(Stripe::Listed { width: 64 * K, servers })
        };
        assert!(
            any.is_met_by(&picked(&["a", "b", "c", "d"])) && !hdd.is_met_by(&picked(&["a", "b", "c", "d"]))
        );
        assert!(!any.is_met_by(&picked(&["a", "b", "c"])) && !any.is_met_by(&picked(&["a", "b", "c", "a"])));
    }

    #[test]
    fn components_count_with_their_ends() {
        let part = |end, count| Component { end, stripe: Stripe::Even { width: 64 * K, count, pool: None } };
        let two = |end| NativeLayout { components: vec![part(Some(end), 1), part(None, 4)] };
        assert!(two(K).is_met_by(&two(K)) && !two(K).is_met_by(&two(2 * K)));
        assert!(!two(K).is_met_by(&NativeLayout::even(64 * K, 1, None)));
        assert_eq!((two(K).stripe(), two(K).to_string()), (None, "64K x 1 up to 1K, then 64K x 4".to_owned()));
    }

    #[test]
    fn shown_to_people() {
        let servers = vec!["0".to_owned(), "3".to_owned()];
        for (stripe, text) in [
            (Stripe::Even { width: 64 * K, count: 4, pool: Some("hdd".into()) }, "64K x 4 in pool hdd"),
            (Stripe::Listed { width: 64 * K, servers: servers.clone() }, "64K on 0, 3"),
            (Stripe::Varied { stripes: vec![("a".into(), 28 * K), ("b".into(), K)] }, "28K on a, 1K on b"),
            (
                Stripe::Grouped { width: 64 * K, groups: 2, factor: 4, servers },
                "64K on 0, 3 in 2 groups, 4 rounds each",
            ),
        ] {
            assert_eq!(NativeLayout::uniform(stripe).to_string(), text);
        }
    }
}
