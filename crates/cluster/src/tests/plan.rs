use std::path::Path;

use proptest::prelude::*;
use stripewise_layout::{Layout, Region, Stripe, constructors};

use super::{CLUSTER, assert_clear, mutated};
use crate::{Cluster, Plan, Rule, Spread, format_cycle, parse_cycle};

const PLAN: &str = r#"
version = 1
scheme = "auto"

[[rule]]
pattern = "/data/out.<n>"
scheme = "1-DV"
reason = "small requests"
predicted_s = 12.5
elapsed_s = 1.5
spread = { field = 0, stride = 2 }
layouts = [
  [{ cycle = "hdd/0:1G" }],
  [{ cycle = "hdd/1:1G" }],
  [{ cycle = "ssd/0:1G" }],
]

[[rule]]
pattern = "/data/shared"
scheme = "PSA"
reason = "both \"tiers\""
predicted_s = 3
elapsed_s = 0.5
layouts = [
  [{ end = "1G", cycle = "hdd/0-1:120K ssd/0-1:8K" }, { cycle = "hdd/0-1:128K" }],
]

[[rule]]
pattern = "/data/**"
scheme = "keep"
reason = "nothing to gain"
predicted_s = 0
elapsed_s = 0
layouts = []

[cluster.network]
establish_s = 0
per_byte_s = 0
[cluster.class.d]
read = { random = { startup_s = 0, per_byte_s = 0 }, sequential = { startup_s = 0, per_byte_s = 0 } }
write = { random = { startup_s = 0, per_byte_s = 0 }, sequential = { startup_s = 0, per_byte_s = 0 } }
[[cluster.tier]]
name = "hdd"
class = "d"
driver = "dirs"
servers = ["/h0", "/h1"]
capacity_per_server = "1T"
[[cluster.tier]]
name = "ssd"
class = "d"
driver = "dirs"
servers = ["/s0", "/s1"]
capacity_per_server = "1G"
"#;

pub fn plan() -> Plan {
    Plan::parse(PLAN, "some.toml").unwrap()
}

#[test]
fn a_plan_is_read_and_written_back() {
    let plan = plan();
    assert_eq!(plan.rules.len(), 3);
    let psa = &plan.rules[1].layouts[0];
    let expected = constructors::two_part(
        &[(0, 120 << 10), (1, 120 << 10), (2, 8 << 10), (3, 8 << 10)],
        1 << 30,
        &[(0, 128 << 10), (1, 128 << 10)],
    );
    assert_eq!(psa, &expected.unwrap());
    assert_eq!(Plan::parse(&plan.to_toml(), "some.toml").unwrap(), plan);
}

#[test]
fn rules_that_differ_in_their_pattern_only_are_written_as_one() {
    let mut plan = plan();
    let like = |pattern: &str| Rule { pattern: pattern.into(), ..plan.rules[1].clone() };
    plan.rules.splice(2..2, [like("/data/a<n>"), like("/data/\\*")]);
    let text = plan.to_toml();
    assert_eq!(text.matches("[[rule]]").count(), 3, "{text}");
    let back = Plan::parse(&text, "some.toml").unwrap();
    assert_eq!(back, plan);
    let regions = |rule: usize| back.rules[rule].layouts[0].regions().as_ptr();
    assert_eq!(regions(1), regions(3), "they share their layouts");
}

#[test]
fn files_find_their_rule_and_layout() {
    let plan = plan();
    let layout = |path: &str| {
        let path = Path::new(path);
        plan.rule_for(path).and_then(|rule| rule.choose(path)).map(|layout| layout.locate(0).0)
    };
    assert_eq!(layout("/data/out.0"), Some(0));
    assert_eq!(layout("/data/out.1"), Some(0), "stride 2: two neighbours share a layout");
    assert_eq!(layout("/data/out.02"), Some(1));
    assert_eq!(layout("/data/out.4"), Some(2));
    assert_eq!(layout("/data/out.6"), Some(0));
    assert_eq!(layout("/data/other"), None, "kept");
    assert!(plan.rule_for(Path::new("/data/other")).is_some_and(|rule| rule.scheme == "keep"));
    assert!(plan.rule_for(Path::new("/elsewhere")).is_none());
}

#[test]
fn without_a_field_the_path_spreads_the_files() {
    let mut rule = plan().rules[0].clone();
    rule.spread = Spread::default();
    let mut counts = [0; 3];
    for file in 0..3000 {
        let path = format!("/data/out.{file}");
        counts[rule.choose(Path::new(&path)).unwrap().locate(0).0 as usize] += 1;
    }
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
}

#[test]
fn a_measured_class_stands_beside_the_one_given_by_hand() {
    let mut plan = plan();
    let mut params = plan.cluster.classes["d"];
    params.read.random.startup_s = 0.125;
    plan.cluster.measured.insert("d".into(), params);
    let back = Plan::parse(&plan.to_toml(), "some.toml").unwrap();
    assert_eq!(back, plan);
    assert_eq!(back.cluster.class_of(0), Some(&params));
}

#[test]
fn wrong_values_are_named() {
    let cases = [
        ("version = 1", "version = 9", "version = 9: this program reads version 1; write the plan again"),
        ("hdd/0:1G", "hdd/2:1G", "rule[0].layouts[0][0].cycle = \"hdd/2:1G\": there is no target \"hdd/2\""),
        ("hdd/0:1G", "hdd/0:0", "0 bytes wide"),
        ("hdd/0:1G", "hdd/0", "is not TARGET:BYTES"),
        ("hdd/0:1G", "", "no stripes"),
        ("hdd/0-1:120K", "hdd/1-0:120K", "the last target comes before the first"),
        ("end = \"1G\"", "end = 0", "must lie between its start and 2^63"),
        ("end = \"1G\", ", "", "every region but the last has an end"),
        ("stride = 2", "stride = 0", "rule[0].spread.stride = 0: must be at least 1"),
        ("predicted_s = 3", "predicted_s = nan", "rule[1].predicted_s = nan"),
        ("scheme = \"keep\"", "scheme = \"1-DH\"", "a rule has layouts exactly when"),
        ("scheme = \"PSA\"", "scheme = \"keep\"", "a rule has layouts exactly when"),
        ("pattern = \"/data/shared\"", "pattern = \"shared\"", "absolute path pattern"),
        ("pattern = \"/data/shared\"", "", "rule[1].pattern: missing"),
        ("pattern = \"/data/shared\"", "patterns = []", "rule[1].patterns = []: list at least one pattern"),
        (
            "pattern = \"/data/shared\"",
            "patterns = [\"/a\", \"b\"]",
            "rule[1].patterns[1] = \"b\": must be an absolute",
        ),
        ("scheme = \"PSA\"", "scheme = \"PSA\"\npatterns = [\"/a\"]", "write either pattern or patterns"),
        ("servers = [\"/s0\", \"/s1\"]", "servers = []", "cluster.tier[1].servers = []"),
        ("reason = \"nothing to gain\"", "reasn = \"\"", "rule[2].reasn: unknown key"),
    ];
    for (from, to, part) in cases {
        let text = PLAN.replacen(from, to, 1);
        assert_ne!(text, PLAN, "{from} is in the file");
        let message = Plan::parse(&text, "some.toml").unwrap_err().to_string();
        assert_clear(&message);
        assert!(message.contains(part), "{part:?} in {message}");
    }
}

#[test]
fn neighbours_of_equal_width_are_written_together() {
    let cluster = Cluster::parse(CLUSTER, "c").unwrap();
    let cycle = [(0, 4096), (1, 4096), (2, 4096), (3, 8192), (0, 8192), (3, 7)];
    let cycle = cycle.map(|(target, width)| Stripe { target, width });
    let text = format_cycle(&cycle, &cluster);
    assert_eq!(text, "hdd/0-1:4K ssd/0:4K ssd/1:8K hdd/0:8K ssd/1:7");
    assert_eq!(parse_cycle(&text, &cluster).unwrap(), cycle);
}

pub fn layout() -> impl Strategy<Value = Layout> {
    let stripe = (0u32..4, 1u64..1 << 40).prop_map(|(target, width)| Stripe { target, width });
    let cycle = prop::collection::vec(stripe, 1..6);
    prop::collection::vec((cycle, 1u64..1 << 50), 1..4).prop_map(|parts| {
        let mut start = 0;
        let mut regions = Vec::new();
        for (cycle, len) in parts {
            regions.push(Region { start, end: Some(start + len), cycle });
            start += len;
        }
        regions.last_mut().unwrap().end = None;
        Layout::new(regions).unwrap()
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let spread = (prop::option::of(0usize..4), 1u64..1000);
    ("/(?s).{0,20}", ".{0,20}", 0.0..1e9f64, prop::collection::vec(layout(), 1..4), spread).prop_map(
        |(pattern, reason, seconds, layouts, (field, stride))| {
            let spread = if layouts.len() > 1 { Spread { field, stride } } else { Spread::default() };
            let scheme = "x".to_owned();
            Rule {
                pattern,
                scheme,
                reason,
                predicted_s: seconds,
                elapsed_s: seconds / 3.0,
                layouts,
                spread,
                overlay: None,
            }
        },
    )
}

proptest! {
    #[test]
    fn any_plan_reads_back(rules in prop::collection::vec(rule(), 0..4), scheme in ".{0,9}") {
        let plan = Plan { scheme, cluster: plan().cluster, rules };
        prop_assert_eq!(Plan::parse(&plan.to_toml(), "some.toml"), Ok(plan));
    }

    #[test]
    fn mutated_plans_never_panic(text in mutated(PLAN)) {
        match Plan::parse(&text, "some.toml") {
            Ok(plan) => prop_assert_eq!(&Plan::parse(&plan.to_toml(), "some.toml").unwrap(), &plan),
            Err(error) => assert_clear(&error.to_string()),
        }
    }

    #[test]
    fn cycles_never_panic(text in "[hsd/0-9:KMG ]{0,30}") {
        let _ = parse_cycle(&text, &plan().cluster);
    }
}
