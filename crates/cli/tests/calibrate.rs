//! `stripewise calibrate` on emulated servers and on a network. Whether it finds the right
//! parameters is tested in `crates/calibrate/tests/emulated.rs`, with a clock that other programs
//! do not disturb.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use stripewise_cluster::{Cluster, Profile};
use stripewise_model::{Access, Op};
use support::{Place, tier};

const HDD: [(f64, f64); 4] = [(3e-4, 7.95e-9), (1e-4, 8.5e-9), (4e-4, 9e-9), (1.5e-4, 7e-9)];
const SSD: [(f64, f64); 4] = [(5e-5, 2.38e-9), (3e-5, 2e-9), (7e-5, 3e-9), (4e-5, 2.5e-9)];

/// Creates two emulated servers of each class.
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

/// Checks that the profile matches the report, and that no server was faster than its emulation
/// permits.
fn check(report: &Value, place: &Place) {
    let cluster = Cluster::parse(&place.read("cluster.toml"), "").unwrap();
    let profile = Profile::parse(&place.read("profile.toml"), "").unwrap();
    for server in report["servers"].as_array().unwrap() {
        let class = server["class"].as_str().unwrap();
        let kinds = server["kinds"].as_array().unwrap();
        assert_eq!((&server["mode"], kinds.len()), (&json!("emulated"), 4));
        for kind in kinds {
            let op: Op = serde_json::from_value(kind["op"].clone()).unwrap();
            let access: Access = serde_json::from_value(kind["access"].clone()).unwrap();
            let found = profile.classes[class].params().service(op, access);
            for (name, value) in [("startup_s", found.startup_s), ("per_byte_s", found.per_byte_s)] {
                let fitted = kind["line"][name].as_f64().unwrap();
                assert!((value - fitted).abs() <= 1e-6 * fitted.abs(), "{class} {kind}: {value}");
            }
            let points = kind["points"].as_array().unwrap();
            assert_eq!(points.len(), 11);
            let (least, largest) = (cluster.classes[class].service(op, access), points.last().unwrap());
            let least_s = least.startup_s + least.per_byte_s * largest["bytes"].as_f64().unwrap();
            assert!(largest["mean_s"].as_f64().unwrap() > 0.95 * least_s, "{class} {kind}");
        }
    }
}

#[test]
fn measures_emulated_servers() {
    let place = emulated();
    let report = place.json("calibrate --quick --seconds-per-point 0.03 --json");
    let servers = report["servers"].as_array().unwrap();
    let targets: Vec<_> = servers.iter().map(|server| &server["target"]).collect();
    assert_eq!(targets, ["hdd/0", "ssd/0"], "one server of each class");
    check(&report, &place);
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
        ("--network 127.0.0.1:1,absent:2 --only-network --quick -q", "absent"),
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

/// Ends the server, whether the test passes or fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and returns it with its address.
fn serve(place: &Place) -> (Server, String) {
    let mut command = place.command("calibrate --serve 127.0.0.1:0");
    let mut server = Server(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.split([' ', ';']).find(|word| word.starts_with("127.0.0.1:")).unwrap();
    (server, address.to_owned())
}

#[test]
fn of_several_hosts_that_measure_at_once_one_writes_the_profile() {
    let place = Place::new();
    let (one, other) = (serve(&place), serve(&place));
    let measure = |number: u32| {
        let arguments = "--only-network --quick --seconds-per-point 0.01 --clients 3";
        let mut command =
            place.command(&format!("calibrate {arguments} --network {},{} -o {number}.toml", one.1, other.1));
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let said: Vec<String> = [1, 2, 3]
        .map(measure)
        .map(|client| {
            let done = client.wait_with_output().unwrap();
            assert!(done.status.success());
            String::from_utf8(done.stdout).unwrap()
        })
        .into();
    let wrote: Vec<usize> = (0..3).filter(|&client| !said[client].is_empty()).collect();
    assert_eq!(wrote.len(), 1, "{said:?}");
    assert!(said[wrote[0]].contains("from 3 hosts at once"), "{said:?}");
    let exists = |number: &usize| place.path(&format!("{number}.toml")).exists();
    assert_eq!([1, 2, 3].iter().filter(|number| exists(number)).collect::<Vec<_>>(), [&(wrote[0] + 1)]);
}

#[test]
fn measures_a_network_between_two_processes() {
    let place = Place::new();
    let (_server, address) = serve(&place);
    let measure = || {
        place.run(&format!(
            "calibrate --only-network --quick --seconds-per-point 0.01 --network {address} --force"
        ));
        Profile::parse(&place.read("profile.toml"), "").unwrap()
    };
    // Other load on the machine may take longer than the transfer of a few more bytes, so the
    // measurement is repeated, up to five times.
    let plausible = |profile: &Profile| {
        let network = profile.network.as_ref().unwrap();
        assert!(network.samples > 20, "{network:?}");
        network.establish_s > 0.0 && network.per_byte_s > 0.0
    };
    let profile =
        (0..5).map(|_| measure()).find(plausible).expect("five times without a positive slope or start");
    assert!(profile.classes.is_empty());
}
