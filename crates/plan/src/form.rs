//! What a candidate is, apart from its layouts: the shape, where it is used, and where it goes on.

use std::fmt;

use serde::{Deserialize, Serialize};
use stripewise_cluster::size;

/// The way in which a candidate divides files over servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Every request over all servers.
    OneDh,
    /// Every request on one server.
    OneDv,
    /// Every request over one of this many groups of servers.
    TwoD(usize),
    /// Files of one process each on one server each, more of them on faster servers.
    OneDvWeighted,
    /// Fixed stripes of this size, bytes.
    Striped(u64),
    /// Anything else, under its own name.
    Other(String),
}

impl Shape {
    /// CIL's layout with this number of groups of `servers` servers.
    pub fn grouped(groups: usize, servers: usize) -> Self {
        match groups {
            1 => Self::OneDh,
            groups if groups == servers => Self::OneDv,
            groups => Self::TwoD(groups),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneDh => f.write_str("1-DH"),
            Self::OneDv => f.write_str("1-DV"),
            Self::TwoD(groups) => write!(f, "2-D g={groups}"),
            Self::OneDvWeighted => f.write_str("1-DV weighted"),
            Self::Striped(bytes) => write!(f, "stripe {}", size::format(*bytes)),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// A candidate's shape and place. Its text is the candidate's name: `1-DH`, `2-D g=2 on ssd, then
/// hdd`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The shape.
    pub shape: Shape,
    /// The tier on whose servers alone the files are, as far as they fit; `None`: all servers.
    pub tier: Option<String>,
    /// The tiers on which the rest of the files goes on; empty if all of them fit.
    pub overflow: Vec<String>,
}

impl Form {
    /// A shape over all servers, or over those of one tier, on which the files fit.
    pub fn new(shape: Shape, tier: Option<String>) -> Self {
        Self { shape, tier, overflow: Vec::new() }
    }

    /// Whether it is one of CIL's layouts over all servers.
    pub fn is_cil_over_all(&self) -> bool {
        self.tier.is_none() && !matches!(self.shape, Shape::Striped(_) | Shape::Other(_))
    }

    /// The name without the tiers on which the files go on.
    pub fn title(&self) -> String {
        match &self.tier {
            Some(tier) => format!("{} on {tier}", self.shape),
            None => self.shape.to_string(),
        }
    }
}

impl From<String> for Form {
    fn from(name: String) -> Self {
        Self::new(Shape::Other(name), None)
    }
}

impl From<&str> for Form {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title())?;
        match &self.overflow[..] {
            [] => Ok(()),
            tiers => write!(f, ", then {}", tiers.join(" and ")),
        }
    }
}

/// Formats a byte count for humans, with at most one decimal.
pub fn about(bytes: f64) -> String {
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let power = (bytes.max(1.0).log2() / 10.0) as usize;
    let number = format!("{:.1}", bytes / (1u64 << (10 * power.min(6))) as f64);
    format!("{}{}", number.strip_suffix(".0").unwrap_or(&number), units[power.min(6)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(shape: Shape, tier: Option<&str>, overflow: &[&str]) -> Form {
        let overflow = overflow.iter().map(|&tier| tier.to_owned()).collect();
        Form { overflow, ..Form::new(shape, tier.map(str::to_owned)) }
    }

    #[test]
    fn names_tell_shape_tier_and_overflow() {
        for (name, form) in [
            ("1-DH", form(Shape::grouped(1, 8), None, &[])),
            ("1-DV on ssd", form(Shape::grouped(8, 8), Some("ssd"), &[])),
            ("2-D g=4, then hdd and ssd", form(Shape::grouped(4, 8), None, &["hdd", "ssd"])),
            ("1-DV weighted on ssd, then hdd", form(Shape::OneDvWeighted, Some("ssd"), &["hdd"])),
            ("stripe 64K", form(Shape::Striped(64 << 10), None, &[])),
            ("PSA <12K,4K>", "PSA <12K,4K>".into()),
        ] {
            assert_eq!(form.to_string(), name);
        }
    }

    #[test]
    fn layouts_of_the_papers_are_told_apart() {
        for known in [Shape::OneDh, Shape::OneDv, Shape::TwoD(7), Shape::OneDvWeighted] {
            assert!(form(known.clone(), None, &["hdd"]).is_cil_over_all(), "{known}");
            assert!(!form(known.clone(), Some("ssd"), &[]).is_cil_over_all(), "{known} on one tier");
        }
        assert!(!form(Shape::Striped(1 << 16), None, &[]).is_cil_over_all());
        assert!(!Form::from("1-DH of the user").is_cil_over_all(), "names are not read");
    }
}
