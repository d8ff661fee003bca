use proptest::prelude::*;
use stripewise_model::{ByAccess, ByCall, CallCost, ClassParams};

use super::{assert_clear, mutated};
use crate::{CallFit, Fit, MeasuredClass, MeasuredClient, MeasuredNetwork, Profile};

const PROFILE: &str = r#"
version = 1
date = "2026-11-21T01:00:00Z"
method = "4K-4M, 2000 repeats, direct"
[network]
establish_s = 1e-4
per_byte_s = 1e-9
establish_spread_s = 1e-6
per_byte_spread_s = 1e-11
samples = 2000
[class.hdd]
target = "hdd/0"
direct_io = true
read.random = { startup_s = 3e-4, per_byte_s = 8e-9, startup_spread_s = 1e-6, per_byte_spread_s = 1e-11, residual_relative = 0.01, samples = 4000, outliers = 3 }
read.sequential = { startup_s = 1e-4, per_byte_s = 8e-9, startup_spread_s = 1e-6, per_byte_spread_s = 1e-11, residual_relative = 0.01, samples = 4000, outliers = 3 }
write.random = { startup_s = 4e-4, per_byte_s = 8e-9, startup_spread_s = 1e-6, per_byte_spread_s = 1e-11, residual_relative = 0.01, samples = 4000, outliers = 3 }
write.sequential = { startup_s = 2e-4, per_byte_s = 8e-9, startup_spread_s = 1e-6, per_byte_spread_s = 1e-11, residual_relative = 0.01, samples = 4000, outliers = 3 }
[client.hdd]
objects = 16
open = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
create = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
close = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
stat = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
unlink = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
read = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
write = { base_s = 2e-5, per_object_s = 7e-6, plain_s = 2e-6, base_spread_s = 1e-7, per_object_spread_s = 1e-8, residual_relative = 0.05, samples = 100 }
"#;

#[test]
fn a_profile_is_read_and_written_back() {
    let profile = Profile::parse(PROFILE, "some.toml").unwrap();
    assert_eq!(profile.classes["hdd"].fits.write.random.service.startup_s, 4e-4);
    assert_eq!(profile.classes["hdd"].params().read.sequential.startup_s, 1e-4);
    assert_eq!(profile.network.unwrap().samples, 2000);
    assert_eq!(profile.client["hdd"].costs().open.seconds(4.0), 2e-5 + 4.0 * 7e-6);
    assert_eq!(Profile::parse(&profile.to_toml(), "some.toml").unwrap(), profile);
}

#[test]
fn a_profile_of_an_earlier_version_has_no_costs_of_the_client() {
    let (before, _) = PROFILE.split_once("[client").unwrap();
    let profile = Profile::parse(before, "some.toml").unwrap();
    assert!(profile.client.is_empty());
    assert!(!profile.to_toml().contains("client"));
}

#[test]
fn wrong_values_are_named() {
    let cases = [
        ("version = 1", "version = 2", "version = 2: this program reads version 1"),
        ("version = 1", "", "version: missing"),
        ("samples = 4000", "samples = -1", "samples = -1"),
        (
            "residual_relative = 0.01",
            "residual_relative = nan",
            "class.hdd.read.random.residual_relative = nan",
        ),
        ("open = { base_s = 2e-5", "open = { base_s = -1", "client.hdd.open.base_s = -1"),
        ("unlink = { base_s", "link = { base_s", "client.hdd.link"),
        ("objects = 16", "", "client.hdd.objects: missing"),
        ("direct_io = true", "direct_io = 7", "class.hdd.direct_io = 7"),
        ("method = \"4K-4M, 2000 repeats, direct\"", "", "method: missing; run `stripewise calibrate` again"),
    ];
    for (from, to, part) in cases {
        let message = Profile::parse(&PROFILE.replacen(from, to, 1), "some.toml").unwrap_err().to_string();
        assert_clear(&message);
        assert!(message.contains(part), "{part:?} in {message}");
    }
}

fn fit() -> impl Strategy<Value = Fit> {
    let amount = 0.0..1e9f64;
    (amount.clone(), amount.clone(), amount.clone(), amount.clone(), amount, any::<u32>(), any::<u32>())
        .prop_map(
            |(
                startup_s,
                per_byte_s,
                startup_spread_s,
                per_byte_spread_s,
                residual_relative,
                samples,
                outliers,
            )| Fit {
                service: stripewise_model::Service { startup_s, per_byte_s },
                startup_spread_s,
                per_byte_spread_s,
                residual_relative,
                samples: samples.into(),
                outliers: outliers.into(),
            },
        )
}

fn class() -> impl Strategy<Value = MeasuredClass> {
    let by_access = || (fit(), fit()).prop_map(|(random, sequential)| ByAccess { random, sequential });
    (".{0,20}", any::<bool>(), by_access(), by_access()).prop_map(|(target, direct_io, read, write)| {
        MeasuredClass { target, direct_io, fits: ClassParams { read, write } }
    })
}

fn client() -> impl Strategy<Value = MeasuredClient> {
    let fit = (0.0..1.0f64, 0.0..1.0f64, any::<u32>()).prop_map(|(base_s, per_object_s, samples)| CallFit {
        cost: CallCost { base_s, per_object_s, plain_s: base_s / 3.0 },
        base_spread_s: base_s / 7.0,
        per_object_spread_s: per_object_s / 7.0,
        residual_relative: 0.1,
        samples: samples.into(),
    });
    (any::<u32>(), prop::array::uniform7(fit)).prop_map(|(objects, fits)| {
        let of_call = |call| Ok::<_, ()>(fits[call as usize]);
        MeasuredClient { objects: objects.into(), fits: ByCall::try_of(of_call).unwrap() }
    })
}

proptest! {
    #[test]
    fn any_profile_reads_back(
        date in ".{0,20}",
        method in "(?s).{0,20}",
        classes in prop::collection::btree_map(".{0,8}", class(), 0..3),
        client in prop::collection::btree_map(".{0,8}", client(), 0..3),
        network: bool,
    ) {
        let network = network.then_some(MeasuredNetwork { establish_s: 1e-4, samples: 7, ..Default::default() });
        let profile = Profile { date, method, network, classes, client };
        prop_assert_eq!(Profile::parse(&profile.to_toml(), "some.toml"), Ok(profile));
    }

    #[test]
    fn mutated_profiles_never_panic(text in mutated(PROFILE)) {
        if let Err(error) = Profile::parse(&text, "some.toml") {
            assert_clear(&error.to_string());
        }
    }
}
