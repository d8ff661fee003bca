//! Parsing (with every check) and writing `plan.toml`.

use std::fmt::Write;

use crate::cluster::Cluster;
use crate::cluster_text::read_embedded;
use crate::layout_text::{REMEDY, Read, Written, read_layouts, read_spread, write_layouts};
use crate::overlay_text::{read_overlay, write_overlay};
use crate::pattern::Spread;
use crate::plan::{KEEP, Plan, Rule};
use crate::reader::{Document, FileError, Item, Table};
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
        let rules = root.tables("rule")?;
        Ok(Self {
            scheme: root.need("scheme", REMEDY)?.text()?.to_owned(),
            rules: read_rules(&rules, &cluster)?,
            cluster,
        })
    }

    /// The text of a `plan.toml`, which [`Plan::parse`] reads back.
    pub fn to_toml(&self) -> String {
        let mut out =
            String::from("# Written by `stripewise plan`: which files get which layout; first match wins.\n");
        let _ = writeln!(out, "version = {PLAN_VERSION}\nscheme = {}", quoted(&self.scheme));
        let mut written = Written::new();
        for rules in self.rules.chunk_by(differ_in_pattern_only) {
            write_rules(&mut out, rules, &self.cluster, &mut written);
        }
        out.push_str("\n# The cluster that the plan was made for.\n");
        self.cluster.write(&mut out, "cluster.");
        out
    }
}

fn differ_in_pattern_only(one: &Rule, next: &Rule) -> bool {
    let Rule { pattern: _, scheme, reason, predicted_s, elapsed_s, layouts, spread, overlay } = one;
    (scheme, reason, spread, overlay) == (&next.scheme, &next.reason, &next.spread, &next.overlay)
        && (predicted_s, elapsed_s) == (&next.predicted_s, &next.elapsed_s)
        && layouts == &next.layouts
}

/// Writes rules that differ in their patterns only, at least one.
fn write_rules(out: &mut String, rules: &[Rule], cluster: &Cluster, written: &mut Written) {
    out.push_str("\n[[rule]]\n");
    let rule = &rules[0];
    if let [rule] = rules {
        let _ = writeln!(out, "pattern = {}", quoted(&rule.pattern));
    } else {
        out.push_str("patterns = [\n");
        for rule in rules {
            let _ = writeln!(out, "  {},", quoted(&rule.pattern));
        }
        out.push_str("]\n");
    }
    let _ = writeln!(out, "scheme = {}", quoted(&rule.scheme));
    let _ = writeln!(out, "reason = {}", quoted(&rule.reason));
    let _ = writeln!(out, "predicted_s = {:?}\nelapsed_s = {:?}", rule.predicted_s, rule.elapsed_s);
    write_layouts(out, (&rule.layouts, &rule.spread), cluster, written);
    if let Some(overlay) = &rule.overlay {
        write_overlay(out, overlay, cluster);
    }
}

fn read_rules(tables: &[Table<'_>], cluster: &Cluster) -> Result<Vec<Rule>, FileError> {
    let (mut rules, mut read) = (Vec::new(), Read::new());
    for table in tables {
        let patterns = read_patterns(table)?;
        let rule = read_rule(table, cluster, &mut read)?;
        rules.extend(patterns.into_iter().map(|pattern| Rule { pattern, ..rule.clone() }));
    }
    Ok(rules)
}

/// The patterns of a rule, at least one.
fn read_patterns(table: &Table<'_>) -> Result<Vec<String>, FileError> {
    let patterns = match table.get("patterns") {
        None => vec![table.need("pattern", REMEDY)?],
        Some(several) => {
            several.ensure(table.get("pattern").is_none(), "write either pattern or patterns")?;
            let items = several.items()?;
            several.ensure(!items.is_empty(), "list at least one pattern")?;
            items
        }
    };
    let checked = |pattern: &Item<'_>| {
        let text = pattern.text()?;
        let problem = "must be an absolute path pattern, beginning with / or *";
        pattern.ensure(text.starts_with(['/', '*']), problem)?;
        Ok(text.to_owned())
    };
    patterns.iter().map(checked).collect()
}

/// Reads a rule, but for its patterns.
fn read_rule(table: &Table<'_>, cluster: &Cluster, read: &mut Read) -> Result<Rule, FileError> {
    table.allow_only(
        "pattern, patterns, scheme, reason, predicted_s, elapsed_s, spread, layouts, copy, overlay",
    )?;
    let text = |key| table.need(key, REMEDY)?.text();
    let layouts_item = table.need("layouts", "list at least one layout, or [] for scheme \"keep\"")?;
    let layouts = read_layouts(&layouts_item, cluster, read)?;
    let scheme = text("scheme")?;
    let consistent = layouts.is_empty() == (scheme == KEEP);
    layouts_item.ensure(consistent, "a rule has layouts exactly when its scheme is not \"keep\"")?;
    let spread = table.optional("spread", Spread::default(), read_spread)?;
    Ok(Rule {
        pattern: String::new(),
        scheme: scheme.to_owned(),
        reason: text("reason")?.to_owned(),
        predicted_s: table.need("predicted_s", REMEDY)?.amount()?,
        elapsed_s: table.need("elapsed_s", REMEDY)?.amount()?,
        overlay: read_overlay(table, !layouts.is_empty(), spread, cluster)?,
        spread: if layouts.len() > 1 { spread } else { Spread::default() },
        layouts,
    })
}
