//! `stripewise calibrate` on emulated servers: the binary finds every parameter within 5 %.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use stripewise_cluster::{Cluster, Profile};
use stripewise_model::{Access, Op};
use support::{Place, tier};

const HDD: [(f64, f64); 4] = [(3e-4, 7.95e-9), (1e-4, 8.5e-9), (4e-4, 9e-9), (1.5e-4, 7e-9)];
const SSD: [(f64, f64); 4] = [(5e-5, 2.38e-9), (3e-5, 2e-9), (7e-5, 3e-9), (4e-5, 2.5e-9)];

/// Two emulated servers of each class.
fn emulated() -> Place {
    let place = Place::new();
    let tiers = [("hdd", HDD), ("ssd", SSD)].map(|(name, services)| {
        let servers = [0, 1].map(|index| place.path(&format!("{name}{index}")));
        servers.iter().for_each(|server| std::fs::create_dir(server).unwrap());
        tier(name, services, &servers, "1G", true)
    });
    place.write("cluster.toml", &tiers.concat());
    place
}

/// The largest relative error of any parameter of the profile, and which it is.
fn worst(place: &Place) -> (f64, String) {
    let cluster = Cluster::parse(&place.read("cluster.toml"), "").unwrap();
    let profile = Profile::parse(&place.read("profile.toml"), "").unwrap();
    let mut worst = (0.0, String::new());
    for (name, class) in &cluster.classes {
        for op in [Op::Read, Op::Write] {
            for access in [Access::Random, Access::Sequential] {
                let (expected, found) =
                    (class.service(op, access), profile.classes[name].params().service(op, access));
                for (parameter, error) in [
                    ("alpha", found.startup_s / expected.startup_s - 1.0),
                    ("beta", found.per_byte_s / expected.per_byte_s - 1.0),
                ] {
                    if error.abs() >= worst.0 {
                        worst = (error.abs(), format!("{name} {op:?} {access:?} {parameter}: {error:+.3}"));
                    }
                }
            }
        }
    }
    worst
}

#[test]
fn finds_the_emulated_parameters() {
    let place = emulated();
    // A machine that is busy with other things for a while may spoil a measurement, not three of them.
    let spoiled: Vec<String> = (0..3)
        .map_while(|_| {
            let report = place.json("calibrate --quick --seconds-per-point 0.03 --json");
            let targets: Vec<_> =
                report["servers"].as_array().unwrap().iter().map(|server| &server["target"]).collect();
            assert_eq!(targets, ["hdd/0", "ssd/0"], "one server of each class");
            assert_eq!(report["servers"][0]["mode"], "emulated");
            assert_eq!(report["servers"][0]["kinds"][0]["points"].as_array().unwrap().len(), 11);
            let (error, which) = worst(&place);
            (error > 0.05).then_some(which)
        })
        .collect();
    assert!(spoiled.len() < 3, "{spoiled:?}");
    for server in ["hdd0", "ssd0"] {
        assert_eq!(std::fs::read_dir(place.path(server)).unwrap().count(), 0, "nothing is left");
    }
    part_of_a_profile_stays(&place);
}

/// Measuring one tier keeps the classes of the others.
fn part_of_a_profile_stays(place: &Place) {
    let profile = || Profile::parse(&place.read("profile.toml"), "").unwrap();
    let before = profile();
    let few = "calibrate --quick --seconds-per-point 0.001 --repeats 4 --tier ssd --all-servers -q";
    let output = place.output(few);
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ssd/1 (class ssd): emulated server") && text.contains("Profile written"), "{text}");
    let after = profile();
    assert_eq!(after.classes["hdd"], before.classes["hdd"]);
    assert_eq!(after.classes["ssd"].target, "ssd/0, ssd/1");
}

#[test]
fn what_cannot_be_done_is_said_in_one_line_and_writes_nothing() {
    let place = emulated();
    place.write("notes.txt", "not a profile");
    for (arguments, word) in [
        ("-c absent.toml", "absent.toml"),
        ("--tier tape", "there are hdd, ssd"),
        ("-o notes.txt", "notes.txt"),
        ("-o absent/profile.toml", "absent is no directory"),
        ("--file-size 1M", "at least 64M"),
        ("--repeats 0", "repeats"),
        ("--network 127.0.0.1:1 --only-network --quick -q", "--serve"),
    ] {
        let message = place.error(&format!("calibrate {arguments}"));
        assert!(message.contains(word), "{arguments:?}: {message}");
        assert!(!place.path("profile.toml").exists());
    }
    assert_eq!(place.read("notes.txt"), "not a profile");
    assert_eq!(place.output("calibrate --only-network").status.code(), Some(2), "it needs --network");
    std::fs::remove_dir(place.path("hdd0")).unwrap();
    assert!(place.error("calibrate --quick -q").contains("hdd0: cannot open the server's directory"));
}

/// Ends the server however the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn measures_a_network_between_two_processes() {
    let place = Place::new();
    let mut serve = place.command("calibrate --serve 127.0.0.1:0");
    let mut server = Server(serve.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.split([' ', ';']).find(|word| word.starts_with("127.0.0.1:")).unwrap();
    let measure = || {
        place.run(&format!(
            "calibrate --only-network --quick --seconds-per-point 0.01 --network {address} --force"
        ));
        Profile::parse(&place.read("profile.toml"), "").unwrap()
    };
    // Whatever else the machine does may be longer than a few bytes more take: then once more.
    let plausible = |profile: &Profile| {
        let network = profile.network.as_ref().unwrap();
        assert!(network.samples > 20, "{network:?}");
        network.establish_s > 0.0 && network.per_byte_s > 0.0
    };
    let profile =
        (0..5).map(|_| measure()).find(plausible).expect("five times without a positive slope or start");
    assert!(profile.classes.is_empty());
}
