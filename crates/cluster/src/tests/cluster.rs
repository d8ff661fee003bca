use std::path::Path;

use proptest::prelude::*;
use stripewise_model::{Access, ClassParams, Op};

use super::{CLUSTER, assert_clear, mutated};
use crate::{Cluster, Fit, MeasuredClass, MeasuredNetwork, Profile};

fn parse(text: &str) -> Cluster {
    Cluster::parse(text, "some.toml").unwrap()
}

#[test]
fn the_documented_file_is_read() {
    let cluster = parse(CLUSTER);
    assert_eq!(cluster.network.establish_s, 3.0e-4);
    assert_eq!(cluster.classes["hdd"].service(Op::Write, Access::Sequential).startup_s, 2.0e-4);
    let targets = cluster.targets();
    let names: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["hdd/0", "hdd/1", "ssd/0", "ssd/1"]);
    assert_eq!(targets[3].path, Path::new("/disks/s1"));
    assert_eq!((targets[0].capacity, targets[2].capacity), (1 << 40, 256 << 20));
    assert_eq!(cluster.targets_of(1), 2..4);
    assert_eq!(cluster.target_index("ssd/1"), Some(3));
    assert_eq!(cluster.target_index("hdd/2"), None);
    assert_eq!(cluster.class_of(2), Some(&cluster.classes["ssd"]));
    assert_eq!(cluster.class_of(4), None);
    assert!(cluster.emulation_of(1).is_some() && cluster.emulation_of(2).is_none());
}

#[test]
fn writing_reads_back() {
    let cluster = parse(CLUSTER);
    assert_eq!(parse(&cluster.to_toml()), cluster);
}

fn some_profile() -> Profile {
    let fit = |startup_s| Fit {
        service: stripewise_model::Service { startup_s, per_byte_s: 1e-9 },
        samples: 1000,
        ..Fit::default()
    };
    let class = MeasuredClass {
        target: "ssd/0".into(),
        fits: ClassParams::of(|op, access| match (op, access) {
            (Op::Read, Access::Random) => fit(1.0),
            (Op::Read, Access::Sequential) => fit(2.0),
            (Op::Write, Access::Random) => fit(3.0),
            (Op::Write, Access::Sequential) => fit(4.0),
        }),
        ..MeasuredClass::default()
    };
    let network = MeasuredNetwork { establish_s: 0.5, per_byte_s: 0.25, ..MeasuredNetwork::default() };
    let classes = [("hdd".to_owned(), class.clone()), ("new".to_owned(), class)].into();
    Profile { network: Some(network), classes, ..Profile::default() }
}

#[test]
fn a_profile_overrides_the_model_but_not_the_emulation() {
    let plain = parse(CLUSTER);
    let cluster = plain.clone().with_profile(&some_profile());
    assert_eq!(cluster.network.per_byte_s, 0.25);
    assert_eq!(cluster.class_of(0).unwrap().service(Op::Write, Access::Sequential).startup_s, 4.0);
    assert_eq!(cluster.emulation_of(0), plain.emulation_of(0));
    assert_eq!(cluster.class_of(2), plain.class_of(2));
}

#[test]
fn a_class_may_come_from_the_profile() {
    let text = CLUSTER.replace("class = \"ssd\"", "class = \"new\"");
    let error = Cluster::parse(&text, "some.toml").unwrap_err().to_string();
    assert!(error.contains("tier[1].class = \"new\"") && error.contains("calibrate"), "{error}");
    assert!(Cluster::parse_uncalibrated(&text, "some.toml").is_ok());
    let cluster = Cluster::parse_with(&text, "some.toml", Some(&some_profile())).unwrap();
    assert_eq!(cluster.class_of(2).unwrap().service(Op::Read, Access::Random).startup_s, 1.0);
}

#[test]
fn impossible_values_are_named_with_line_key_value_and_remedy() {
    let cases = [
        // (text to replace, replacement, parts of the message)
        (
            "per_byte_s  = 7.95e-9",
            "per_byte_s = nan",
            vec!["some.toml:4", "network.per_byte_s = nan", "finite"],
        ),
        ("3.0e-4            # e", "-1", vec!["network.establish_s = -1", "must be"]),
        ("startup_s = 2.0e-4", "startup_s = inf", vec!["class.hdd.write.sequential.startup_s = inf"]),
        ("startup_s = 2.0e-4", "startup = 2.0e-4", vec!["class.hdd.write.sequential.startup: unknown key"]),
        ("startup_s = 2.0e-4", "startup_s = \"fast\"", vec!["= \"fast\"", "number"]),
        (
            "write.random     = { startup_s = 4.0e-4, per_byte_s = 7.95e-9 }",
            "",
            vec!["class.hdd.write.random: missing"],
        ),
        ("[\"/disks/h0\", \"/disks/h1\"]", "[]", vec!["tier[0].servers = []", "at least one server"]),
        ("/disks/h1", "/disks/h0/", vec!["tier[0].servers[1]", "already a server"]),
        ("/disks/s1", "/disks/h1", vec!["tier[1].servers[1] = \"/disks/h1\"", "already a server"]),
        ("/disks/h1", "disks/h1", vec!["absolute"]),
        ("name = \"ssd\"", "name = \"hdd\"", vec!["tier[1].name = \"hdd\"", "another tier"]),
        ("name = \"ssd\"", "name = \"s/d\"", vec!["tier[1].name = \"s/d\"", "letters"]),
        ("\"256M\"", "\"63K\"", vec!["tier[1].capacity_per_server = \"63K\"", "64K"]),
        ("\"256M\"", "\"lots\"", vec!["= \"lots\"", "size"]),
        ("\"256M\"", "-5", vec!["= -5", "size"]),
        ("class = \"ssd\"", "class = \"tape\"", vec!["tier[1].class = \"tape\"", "[class.tape]"]),
        ("driver = \"dirs\"\nservers", "driver = \"cephfs\"\nservers", vec!["tier[1].root: missing", "CephFS"]),
        ("driver = \"dirs\"\nservers", "driver = \"zfs\"\nservers", vec!["\"zfs\"", "\"dirs\", \"cephfs\""]),
        ("emulate = true", "emulate = 1", vec!["tier[0].emulate = 1", "true or false"]),
        ("emulate = true", "emulte = true", vec!["tier[0].emulte: unknown key"]),
        ("[network]", "[netwrk]", vec!["netwrk: unknown key"]),
        ("[network]", "[network", vec!["some.toml:2", "TOML"]),
    ];
    for (from, to, parts) in cases {
        let text = CLUSTER.replacen(from, to, 1);
        assert_ne!(text, CLUSTER, "{from} is in the file");
        let message = Cluster::parse(&text, "some.toml").unwrap_err().to_string();
        assert_clear(&message);
        for part in parts {
            assert!(message.contains(part), "{part:?} in {message}");
        }
    }
}

#[test]
fn no_tier_is_no_cluster() {
    for text in ["", "[network]\nestablish_s = 0\nper_byte_s = 0", "tier = []"] {
        let message = Cluster::parse(text, "some.toml").unwrap_err().to_string();
        assert!(message.contains("no [[tier]]"), "{message}");
    }
}

#[test]
fn measured_tables_belong_to_plans_only() {
    let text = CLUSTER.replace("[class.ssd]", "[measured.ssd]");
    let message = Cluster::parse(&text, "some.toml").unwrap_err().to_string();
    assert!(message.contains("measured: unknown key"), "{message}");
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match Cluster::parse(text, "some.toml") {
        Ok(cluster) => prop_assert_eq!(&parse(&cluster.to_toml()), &cluster),
        Err(error) => assert_clear(&error.to_string()),
    }
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn mutated_files_never_panic(text in mutated(CLUSTER)) {
        check(&text)?;
    }
}
