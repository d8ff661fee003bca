//! The files' present layout, which a change must improve on.

use std::collections::HashMap;
use std::sync::Arc;

use stripewise_cluster::{Cluster, parse_cycle, size};
use stripewise_layout::{Layout, constructors};

use crate::error::PlanError;

/// What is known about the present layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Present {
    /// Nothing is known. A plain file lies on one disk; the first server of the slowest tier is
    /// assumed.
    #[default]
    Plain,
    /// The default of a hybrid file system: DEF, as far as the faster servers have space.
    Def,
    /// The layout is known from the files or given by the user.
    Known {
        /// The layout in the words of the user or of the files.
        name: String,
        /// Target indices as in the cluster; at least one layout.
        layouts: Vec<Layout>,
        /// By file name: index of the file's layout. Files that are not in the map have the first.
        layout_of: Option<HashMap<Arc<str>, u32>>,
        /// Whether stripewise manages the files, so that their calls cost what those of managed
        /// files do. Otherwise they are files of the file system.
        managed: bool,
    },
}

/// The syntax that [`Present::parse`] accepts.
pub const GRAMMAR: &str = "plain, def, one:TARGET (one:hdd/0), 1-DH:STRIPE (1-DH:64K), 1-DH:STRIPE@TIER (1-DH:64K@hdd) or \
                           cycle:STRIPES (\"cycle:hdd/0-3:64K ssd/0-3:8K\")";

impl Present {
    /// Parses the user's description of the present layout ([`GRAMMAR`]).
    ///
    /// # Errors
    /// The text does not follow [`GRAMMAR`], or names targets or tiers that the cluster does not
    /// have.
    pub fn parse(text: &str, cluster: &Cluster) -> Result<Self, PlanError> {
        if text == "plain" {
            return Ok(Self::Plain);
        }
        if text == "def" {
            return Ok(Self::Def);
        }
        let bad =
            |problem: String| PlanError::new(format!("present layout {text:?}: {problem}; write {GRAMMAR}"));
        let (kind, rest) = text.split_once(':').ok_or_else(|| bad("not understood".into()))?;
        let layout = match kind {
            "one" => {
                let target = cluster.target_index(rest);
                let target = target.ok_or_else(|| bad(format!("the cluster has no target {rest:?}")))?;
                constructors::on_one(target)
            }
            "1-DH" => {
                let (stripe, tier) = rest.split_once('@').map_or((rest, None), |(s, tier)| (s, Some(tier)));
                let stripe = size::parse(stripe).map_err(|error| bad(error.to_string()))?;
                let targets: Vec<u32> = match tier {
                    None => (0..cluster.target_count() as u32).collect(),
                    Some(name) => {
                        let tier = cluster.tiers.iter().position(|tier| tier.name == name);
                        let tier = tier.ok_or_else(|| bad(format!("the cluster has no tier {name:?}")))?;
                        cluster.targets_of(tier).collect()
                    }
                };
                constructors::striped(&targets, stripe)
            }
            "cycle" => parse_cycle(rest, cluster).map_err(bad).map(Layout::single)?,
            _ => return Err(bad("not understood".into())),
        };
        let layout = layout.map_err(|error| bad(error.to_string()))?;
        Ok(Self::Known { name: text.to_owned(), layouts: vec![layout], layout_of: None, managed: false })
    }
}
