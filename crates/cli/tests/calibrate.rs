//! `stripewise calibrate` on emulated servers: the binary finds every parameter within 5 %.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use stripewise_cluster::{Cluster, Profile};
use stripewise_model::{Access, Op};

const CLASSES: &str = "
[class.hdd]
read.random      = { startup_s = 3.0e-4, per_byte_s = 7.95e-9 }
read.sequential  = { startup_s = 1.0e-4, per_byte_s = 8.5e-9 }
write.random     = { startup_s = 4.0e-4, per_byte_s = 9.0e-9 }
write.sequential = { startup_s = 1.5e-4, per_byte_s = 7.0e-9 }
[class.ssd]
read.random      = { startup_s = 5.0e-5, per_byte_s = 2.38e-9 }
read.sequential  = { startup_s = 3.0e-5, per_byte_s = 2.0e-9 }
write.random     = { startup_s = 7.0e-5, per_byte_s = 3.0e-9 }
write.sequential = { startup_s = 4.0e-5, per_byte_s = 2.5e-9 }
";

/// A directory with a cluster of emulated servers.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let mut text = CLASSES.to_owned();
        for tier in ["hdd", "ssd"] {
            let servers: Vec<PathBuf> = (0..2).map(|index| place.path(&format!("{tier}{index}"))).collect();
            servers.iter().for_each(|server| std::fs::create_dir(server).unwrap());
            text += &format!(
                "[[tier]]\nname = {tier:?}\nclass = {tier:?}\ndriver = \"dirs\"\nservers = {servers:?}\n\
                 capacity_per_server = \"1G\"\nemulate = true\n"
            );
        }
        std::fs::write(place.path("cluster.toml"), text).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn calibrate(&self, arguments: &[&str]) -> Output {
        command(self.0.path()).args(arguments).output().unwrap()
    }
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stripewise"));
    command.arg("calibrate").current_dir(directory);
    command
}

fn error(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The largest relative error of any parameter of the profile, and which it is.
fn worst(place: &Place) -> (f64, String) {
    let read = |name| std::fs::read_to_string(place.path(name)).unwrap();
    let cluster = Cluster::parse(&read("cluster.toml"), "").unwrap();
    let profile = Profile::parse(&read("profile.toml"), "").unwrap();
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
    let place = Place::new();
    let quick = ["--quick", "--seconds-per-point", "0.03", "--json"];
    // A machine that is busy with other things for a while may spoil a measurement, not three of them.
    let spoiled: Vec<String> = (0..3)
        .map_while(|_| {
            let output = place.calibrate(&quick);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
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
    let profile = || Profile::parse(&std::fs::read_to_string(place.path("profile.toml")).unwrap(), "").unwrap();
    let before = profile();
    let few =
        ["--quick", "--seconds-per-point", "0.001", "--repeats", "4", "--tier", "ssd", "--all-servers", "-q"];
    let output = place.calibrate(&few);
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ssd/1 (class ssd): emulated server") && text.contains("Profile written"), "{text}");
    let after = profile();
    assert_eq!(after.classes["hdd"], before.classes["hdd"]);
    assert_eq!(after.classes["ssd"].target, "ssd/0, ssd/1");
}

#[test]
fn what_cannot_be_done_is_said_in_one_line_and_writes_nothing() {
    let place = Place::new();
    std::fs::write(place.path("notes.txt"), "not a profile").unwrap();
    for (arguments, word) in [
        (&["-c", "absent.toml"][..], "absent.toml"),
        (&["--tier", "tape"], "there are hdd, ssd"),
        (&["-o", "notes.txt"], "notes.txt"),
        (&["-o", "absent/profile.toml"], "absent is no directory"),
        (&["--file-size", "1M"], "at least 64M"),
        (&["--repeats", "0"], "repeats"),
        (&["--only-network"], "--network"),
        (&["--network", "127.0.0.1:1", "--only-network", "--quick"], "--serve"),
    ] {
        let message = error(&place.calibrate(arguments));
        assert!(message.contains(word), "{arguments:?}: {message}");
        assert!(!place.path("profile.toml").exists());
    }
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).unwrap(), "not a profile");
    std::fs::remove_dir(place.path("hdd0")).unwrap();
    assert!(error(&place.calibrate(&["--quick"])).contains("hdd0: cannot open the server's directory"));
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
    let serve = ["--serve", "127.0.0.1:0"];
    let mut server = Server(command(place.0.path()).args(serve).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.split([' ', ';']).find(|word| word.starts_with("127.0.0.1:")).unwrap();
    let few = ["--only-network", "--quick", "--seconds-per-point", "0.01", "--network", address];
    let output = place.calibrate(&few);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let profile = Profile::parse(&std::fs::read_to_string(place.path("profile.toml")).unwrap(), "").unwrap();
    let network = profile.network.unwrap();
    assert!(network.establish_s > 0.0 && network.per_byte_s > 0.0 && network.samples > 20);
    assert!(profile.classes.is_empty());
}
