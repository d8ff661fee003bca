use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;

use super::plan::plan;
use crate::{Plan, Reach, RuleIndex};

/// A plan with a rule for each pattern.
fn with(patterns: &[&str]) -> Plan {
    let mut plan = plan();
    let rule = plan.rules[0].clone();
    plan.rules =
        patterns.iter().map(|pattern| crate::Rule { pattern: pattern.to_string(), ..rule.clone() }).collect();
    plan
}

#[test]
fn only_what_begins_like_a_pattern_is_within_reach() {
    let reach = Reach::of(&with(&["/data/run/*.h5", "/data/run/a/**", "/d\\*/<n>", "/data/x"]));
    for within in ["/data/run/", "/data/run/a/b", "/data/run/f.h5", "/d*/7", "/data/x", "/data/xy"] {
        assert!(reach.has(within.as_bytes()), "{within}");
    }
    for without in ["", "/", "/data/run", "/data/rum/f.h5", "/data/w", "/dd/7", "/data/yy", "/e", "/data/run."]
    {
        assert!(!reach.has(without.as_bytes()), "{without}");
    }
    assert!(Reach::of(&with(&["/data/x", "**"])).has(b"/anything"));
}

#[test]
fn what_is_left_as_it_is_is_not_within_reach() {
    let mut plan = with(&["/kept/**", "/data/**"]);
    plan.rules[0].layouts.clear();
    assert!(!Reach::of(&plan).has(b"/kept/f") && Reach::of(&plan).has(b"/data/f"));
    assert!(!Reach::default().has(b"/data/f"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn whatever_a_rule_is_for_is_within_reach_and_in_the_index(
        patterns in prop::collection::vec(r"(/|a|b|7|<n>|<|\*|\\\*|\\<){0,6}", 0..5),
        path in r"[/ab78*<]{0,6}",
    ) {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let plan = with(&patterns);
        let path = Path::new(&path);
        let indexed = RuleIndex::of(&plan).rule_for(&plan, path).map(std::ptr::from_ref);
        prop_assert_eq!(indexed, plan.rule_for(path).map(std::ptr::from_ref));
        if plan.rule_for(path).is_some() {
            prop_assert!(Reach::of(&plan).has(path.as_os_str().as_bytes()));
        }
    }
}
