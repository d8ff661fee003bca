use std::path::Path;

use proptest::prelude::*;

use super::plan::{layout, plan};
use super::{assert_clear, mutated};
use crate::{CacheAdmission, CacheMode, CopySpec, Durability, Overlay, OverlayKind, Plan, Spread};

const PLAN: &str = r#"
version = 1
scheme = "cache"

[[rule]]
pattern = "/data/out.<n>"
scheme = "cache"
reason = "small requests"
predicted_s = 12.5
elapsed_s = 1.5
spread = { field = 0, stride = 2 }
layouts = [
  [{ cycle = "hdd/0-1:64K" }],
]
[[rule.copy]]
kind = "cache"
name = "1-DH"
layouts = [[{ cycle = "ssd/0-1:64K" }]]
[[rule.copy]]
kind = "cache"
name = "1-DV"
groups = 2
layouts = [[{ cycle = "ssd/0:1G" }], [{ cycle = "ssd/1:1G" }]]
[[rule.copy]]
kind = "cache"
name = "own spread"
spread = { stride = 1 }
layouts = [[{ cycle = "ssd/0:1G" }], [{ cycle = "ssd/1:1G" }]]
[rule.overlay]
mode = "sca"
admission = "as-printed"
capacity_per_server = "512M"
lazy_close = true
durability = "each-write"
background = "50M"
procs = 16
procs_per_node = 4

[[rule]]
pattern = "/data/shared"
scheme = "replicas"
reason = ""
predicted_s = 3
elapsed_s = 0.5
layouts = [[{ cycle = "hdd/0-1:64K" }]]
[[rule.copy]]
kind = "replica"
name = "stripe 4M"
layouts = [[{ end = "1G", cycle = "hdd/0-1:4M" }, { cycle = "ssd/0-1:4M" }]]

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

#[test]
fn copies_are_read_and_written_back() {
    let plan = Plan::parse(PLAN, "some.toml").unwrap();
    let overlay = plan.rules[0].overlay.as_ref().unwrap();
    let (mode, admission) = (CacheMode::Sca, CacheAdmission::AsPrinted);
    let expected = OverlayKind::Cache { mode, admission, capacity_per_server: 512 << 20 };
    assert_eq!(overlay.kind, expected);
    assert_eq!((overlay.procs, overlay.procs_per_node, overlay.background), (16, 4, Some(50 << 20)));
    assert!(overlay.lazy_close && overlay.durability == Durability::EachWrite);
    assert_eq!(overlay.copies.iter().map(|copy| copy.groups).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(overlay.copies[1].targets(), [2, 3]);
    let replicas = plan.rules[1].overlay.as_ref().unwrap();
    assert_eq!((replicas.kind, replicas.procs, replicas.background), (OverlayKind::Replicas, 1, None));
    assert!(!replicas.lazy_close && replicas.durability == Durability::Sync);
    assert_eq!(Plan::parse(&plan.to_toml(), "some.toml").unwrap(), plan);
}

#[test]
fn files_find_their_copies() {
    let plan = Plan::parse(PLAN, "some.toml").unwrap();
    let copies = |path: &str| -> Vec<(String, u32)> {
        let (rule, path) = (&plan.rules[0], Path::new(path));
        rule.copies_for(path).map(|(copy, layout)| (copy.name.clone(), layout.locate(0).0)).collect()
    };
    let first = |copies: &[(String, u32)]| copies.iter().map(|copy| copy.1).take(2).collect::<Vec<_>>();
    assert_eq!(copies("/data/out.1").len(), 3);
    assert_eq!(
        first(&copies("/data/out.1")),
        [2, 2],
        "the rule's stride of 2 goes for a copy without a spread"
    );
    assert_eq!(first(&copies("/data/out.2")), [2, 3]);
    assert_eq!(copies("/data/other"), []);
    let own = |file: u32| copies(&format!("/data/out.{file}"))[2].1;
    let third: Vec<u32> = (0..8).map(own).collect();
    assert_ne!(third, [2, 2, 3, 3, 2, 2, 3, 3], "by a hash of the path");
    let shared = Path::new("/data/shared");
    assert_eq!(plan.rule_for(shared).map(|rule| rule.copies_for(shared).count()), Some(1));
}

#[test]
fn wrong_values_are_named() {
    let eight = "[[rule.copy]]\nkind = \"replica\"\nname = \"n\"\nlayouts = []\n".repeat(7);
    let cases = [
        ("kind = \"cache\"", "kind = \"tape\"", "rule[0].copy[0].kind = \"tape\": must be \"replica\" or"),
        (
            "kind = \"cache\"",
            "kind = \"replica\"",
            "rule[0].copy[1].kind = \"cache\": the copies of a rule are all",
        ),
        ("kind = \"cache\"", "", "rule[0].copy[0].kind: missing; write \"replica\" or"),
        ("name = \"1-DV\"", "name = \"1-DH\"", "rule[0].copy[1].name = \"1-DH\": another copy"),
        ("name = \"1-DV\"", "name = \"\"", "must not be empty"),
        ("groups = 2", "groups = 3", "rule[0].copy[1].groups = 3: must be 1 to 2: the copy has 2 servers"),
        ("groups = 2", "groups = 0", "must be 1 to 2"),
        ("name = \"stripe 4M\"", "name = \"a\"\ngroups = 1", "rule[1].copy[0].groups = 1: only cache copies"),
        ("layouts = [[{ cycle = \"ssd/0-1:64K\" }]]", "layouts = []", "a copy has at least one layout"),
        ("ssd/0-1:64K", "ssd/0-2:64K", "there is no target \"ssd/2\""),
        ("mode = \"sca\"", "mode = \"scan\"", "rule[0].overlay.mode = \"scan\": must be \"sla\", \"sca\""),
        ("= \"as-printed\"", "= \"fair\"", "rule[0].overlay.admission = \"fair\": must be \"balanced\" or"),
        ("capacity_per_server = \"512M\"", "", "rule[0].overlay.capacity_per_server: missing"),
        ("= \"512M\"", "= 0", "must be at least 1 byte; write mode"),
        ("= \"512M\"", "= \"2G\"", "the cluster allows only 1G on ssd/0"),
        ("= \"each-write\"", "= \"never\"", "must be \"sync\" or \"each-write\""),
        ("lazy_close = true", "lazy_close = 1", "must be true or false"),
        ("background = \"50M\"", "background = 0", "must be at least 1 byte per second; leave it out"),
        ("procs = 16", "procs = 0", "rule[0].overlay.procs = 0: must be 1 to 4294967295"),
        ("procs = 16", "procs = 3", "rule[0].overlay.procs_per_node = 4: must be at most procs = 3"),
        ("[rule.overlay]\nmode", "[rule.overlaid]\nmode", "rule[0].overlaid: unknown key"),
        (
            "[cluster.network]",
            "[rule.overlay]\nmode = \"sla\"\n[cluster.network]",
            "rule[1].overlay.mode: unknown key",
        ),
        ("scheme = \"replicas\"\n", "scheme = \"keep\"\n", "a rule has layouts exactly when"),
        ("[[rule.copy]]\nkind = \"replica\"", "[rule.overlay]\n[[rule.cop]]", "unknown key"),
        (
            "[[rule.copy]]\nkind = \"replica\"",
            &format!("{eight}[[rule.copy]]\nkind = \"replica\""),
            "at most 7 copies",
        ),
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
fn modes_that_cache_in_1dh_need_such_a_copy() {
    let text =
        PLAN.replace("kind = \"cache\"\nname = \"1-DH\"", "kind = \"cache\"\ngroups = 2\nname = \"1-DH\"");
    let text = text.replace("name = \"own spread\"", "name = \"own spread\"\ngroups = 2");
    let message = Plan::parse(&text, "some.toml").unwrap_err().to_string();
    assert!(message.contains("rule[0].overlay.mode = \"sca\": this mode caches in 1-DH"), "{message}");
    assert!(Plan::parse(&text.replace("\"sca\"", "\"sla\""), "some.toml").is_ok());
}

#[test]
fn an_overlay_needs_copies_and_the_copies_a_managed_file() {
    let kept = "[[rule]]\npattern = \"/x\"\nscheme = \"keep\"\nreason = \"\"\npredicted_s = 0\nelapsed_s = 0\nlayouts = []\n";
    let replica = "[[rule.copy]]\nkind = \"replica\"\nname = \"n\"\nlayouts = [[{ cycle = \"hdd/0:1G\" }]]\n";
    let cases = [
        (format!("{kept}[rule.overlay]\nprocs = 1\n"), "the rule has no further copies; add [[rule.copy]]"),
        (format!("{kept}{replica}"), "a rule with scheme \"keep\" has no further copies"),
    ];
    for (rule, part) in cases {
        let text = PLAN.replacen("[cluster.network]", &format!("{rule}[cluster.network]"), 1);
        let message = Plan::parse(&text, "some.toml").unwrap_err().to_string();
        assert_clear(&message);
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let no_table = PLAN.replacen("[rule.overlay]", "[rule.overlay.x]", 1);
    assert!(Plan::parse(&no_table, "some.toml").is_err());
}

fn copy(cache: bool) -> impl Strategy<Value = CopySpec> {
    let spread = (prop::option::of(0usize..4), 1u64..1000);
    (".{1,9}", prop::collection::vec(layout(), 1..4), spread, any::<u32>()).prop_map(
        move |(name, layouts, (field, stride), groups)| {
            let spread = if layouts.len() > 1 { Spread { field, stride } } else { Spread::default() };
            let mut copy = CopySpec { name, layouts, spread, groups: 1 };
            if cache {
                copy.groups = 1 + groups % copy.targets().len() as u32;
            }
            copy
        },
    )
}

/// Any valid overlay of the cluster of the tests' plan.
pub fn overlay() -> impl Strategy<Value = Overlay> {
    let limits = (prop::option::of(1..=u64::MAX), 1u32.., 1u32.., 1u64..=1 << 30);
    (any::<bool>(), any::<bool>(), any::<bool>(), 0..4usize, limits)
        .prop_flat_map(|switches| (Just(switches), prop::collection::vec(copy(switches.0), 1..8)))
        .prop_map(|((cache, lazy_close, each, mode, limits), mut copies)| {
            for (number, copy) in copies.iter_mut().enumerate() {
                copy.name = format!("{number}{}", copy.name);
            }
            let (background, procs, per_node, capacity_per_server) = limits;
            copies[0].groups = 1;
            let admission = CacheAdmission::ALL[usize::from(lazy_close)];
            let kind = OverlayKind::Cache { mode: CacheMode::ALL[mode], admission, capacity_per_server };
            Overlay {
                kind: if cache { kind } else { OverlayKind::Replicas },
                copies,
                lazy_close,
                durability: Durability::ALL[usize::from(each)],
                background,
                procs,
                procs_per_node: per_node.min(procs),
            }
        })
}

proptest! {
    #[test]
    fn any_overlay_reads_back(overlays in prop::collection::vec(prop::option::of(overlay()), 3)) {
        let mut plan = plan();
        plan.rules.pop();
        for (rule, overlay) in plan.rules.iter_mut().zip(overlays) {
            rule.overlay = overlay;
        }
        prop_assert_eq!(Plan::parse(&plan.to_toml(), "some.toml"), Ok(plan));
    }

    #[test]
    fn mutated_plans_never_panic(text in mutated(PLAN)) {
        match Plan::parse(&text, "some.toml") {
            Ok(plan) => prop_assert_eq!(&Plan::parse(&plan.to_toml(), "some.toml").unwrap(), &plan),
            Err(error) => assert_clear(&error.to_string()),
        }
    }
}
