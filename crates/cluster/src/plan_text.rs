//! Parsing (with every check) and writing `plan.toml`.

use std::fmt::Write;

use crate::cluster::Cluster;
use crate::cluster_text::read_embedded;
use crate::layout_text::{REMEDY, Read, Written, read_layouts, read_spread, write_layouts};
use crate::overlay_text::{read_overlay, write_overlay};
use crate::pattern::Spread;
use crate::plan::{KEEP, Plan, Rule};
use crate::reader::{Document, FileError, Table};
use crate::write::quoted;

/// The format that this version reads and writes.
const PLAN_VERSION: u64 = 1;

impl Plan {
    /// Parses `plan.toml`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// Any deviation from the documented format, with line, key, value and remedy.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, FileError> {
        let document = Document::parse(text, file_name)?;
        let root = document.root();
        root.check_version(PLAN_VERSION, REMEDY)?;
        root.allow_only("version, scheme, rule, cluster")?;
        let cluster = read_embedded(&root.need("cluster", REMEDY)?.table()?)?;
        let (rules, mut read) = (root.tables("rule")?, Read::new());
        Ok(Self {
            scheme: root.need("scheme", REMEDY)?.text()?.to_owned(),
            rules: rules.iter().map(|table| read_rule(table, &cluster, &mut read)).collect::<Result<_, _>>()?,
            cluster,
        })
    }

    /// The text of a `plan.toml`, which [`Plan::parse`] reads back.
    pub fn to_toml(&self) -> String {
        let mut out =
            String::from("# Written by `stripewise plan`: which files get which layout; first match wins.\n");
        let _ = writeln!(out, "version = {PLAN_VERSION}\nscheme = {}", quoted(&self.scheme));
        let mut written = Written::new();
        for rule in &self.rules {
            write_rule(&mut out, rule, &self.cluster, &mut written);
        }
        out.push_str("\n# The cluster that the plan was made for.\n");
        self.cluster.write(&mut out, "cluster.");
        out
    }
}

fn write_rule(out: &mut String, rule: &Rule, cluster: &Cluster, written: &mut Written) {
    let _ = writeln!(out, "\n[[rule]]\npattern = {}\nscheme = {}", quoted(&rule.pattern), quoted(&rule.scheme));
    let _ = writeln!(out, "reason = {}", quoted(&rule.reason));
    let _ = writeln!(out, "predicted_s = {:?}\nelapsed_s = {:?}", rule.predicted_s, rule.elapsed_s);
    write_layouts(out, (&rule.layouts, &rule.spread), cluster, written);
    if let Some(overlay) = &rule.overlay {
        write_overlay(out, overlay, cluster);
    }
}

fn read_rule(table: &Table<'_>, cluster: &Cluster, read: &mut Read) -> Result<Rule, FileError> {
    table.allow_only("pattern, scheme, reason, predicted_s, elapsed_s, spread, layouts, copy, overlay")?;
    let text = |key| table.need(key, REMEDY)?.text();
    let pattern = table.need("pattern", REMEDY)?;
    let absolute = pattern.text()?.starts_with(['/', '*']);
    pattern.ensure(absolute, "must be an absolute path pattern, beginning with / or *")?;
    let layouts_item = table.need("layouts", "list at least one layout, or [] for scheme \"keep\"")?;
    let layouts = read_layouts(&layouts_item, cluster, read)?;
    let scheme = text("scheme")?;
    let consistent = layouts.is_empty() == (scheme == KEEP);
    layouts_item.ensure(consistent, "a rule has layouts exactly when its scheme is not \"keep\"")?;
    let spread = table.optional("spread", Spread::default(), read_spread)?;
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
