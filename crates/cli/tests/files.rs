//! The commands that manage files, run as a user runs them.

mod support;

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use support::{Place, directories, tier};

/// Additions for these tests: two plans over three targets, and a directory `data` to which the
/// plans apply.
impl Place {
    fn with_targets() -> Self {
        let place = Self::new();
        let targets = directories(&place.path("t").display().to_string(), 3);
        targets.iter().for_each(|target| std::fs::create_dir(target).unwrap());
        std::fs::create_dir(place.path("data")).unwrap();
        let network = "[network]\nestablish_s = 0.0\nper_byte_s = 0.0\n".to_owned();
        place.write("cluster.toml", &(network + &tier("hdd", [(1.0, 1e-6); 4], &targets, "1G", true)));
        place.plan("plan.toml", "hdd/0-2:4K");
        place.plan("other.toml", "hdd/2:64K hdd/0:1K");
        place
    }

    fn plan(&self, name: &str, cycle: &str) {
        let pattern = format!("{}/data/*.dat", self.directory().display());
        let rule = format!(
            "version = 1\nscheme = \"auto\"\n[[rule]]\npattern = \"{pattern}\"\nscheme = \"1-DH\"\nreason = \"\"\n\
             predicted_s = 1.0\nelapsed_s = 1.0\nlayouts = [[{{ cycle = \"{cycle}\" }}]]\n"
        );
        let cluster = self
            .read("cluster.toml")
            .replace("[network]", "[cluster.network]")
            .replace("[class.", "[cluster.class.");
        let cluster = cluster.replace("[[tier]]", "[[cluster.tier]]");
        self.write(name, &(rule + &cluster));
    }

    /// Creates a plain file in `data`.
    fn file(&self, name: &str, bytes: usize) -> Vec<u8> {
        let bytes: Vec<u8> =
            (0..bytes as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        std::fs::write(self.path("data").join(name), &bytes).unwrap();
        bytes
    }

    /// The command prints one line on stderr that contains all the texts, and exits with 1.
    #[track_caller]
    fn refused(&self, words: &[&str], texts: &[&str]) {
        let output = self.output(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("stripewise: ")).collect();
        assert!(!lines.is_empty(), "{words:?}: {said}");
        for text in texts {
            assert!(said.contains(text), "{words:?}: {said} does not say {text:?}");
        }
    }

    fn is_managed(&self, name: &str) -> bool {
        std::fs::read(self.path("data").join(name)).unwrap().starts_with(b"stripewise file, format 1\n")
    }

    /// Number of files on the targets, without markers.
    fn objects(&self) -> usize {
        ["t0", "t1", "t2"].iter().map(|name| count(&self.path(name).join("stripewise"))).sum()
    }
}

fn count(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

#[test]
fn place_and_export_and_what_lies_where() {
    let place = Place::with_targets();
    let (one, two) = (place.file("one.dat", 100_000), place.file("two.dat", 10));
    place.file("other.txt", 1000);
    let shown = place.json(&["place", "plan.toml", "--dry-run", "--json"]);
    assert_eq!(shown["files"].as_array().unwrap().len(), 2);
    assert_eq!(
        shown["targets"][0]["bytes"],
        8 * 4096 + 1696 + 10,
        "its share of 25 stripes, and the small file"
    );
    assert!(!place.path("t0/stripewise-target.toml").exists(), "nothing is written");

    let placed = place.json(&["place", "plan.toml", "--json", "-q"]);
    assert!(placed["files"].as_array().unwrap().iter().all(|file| file["placed"] == true), "{placed}");
    assert!(place.is_managed("one.dat") && place.is_managed("two.dat") && !place.is_managed("other.txt"));
    assert_eq!(place.run(&["cat", "data/one.dat", "data/two.dat"]), [one.clone(), two].concat());
    assert_eq!(place.run(&["cat", "--offset", "4K", "--length", "8K", "data/one.dat"]), one[4096..3 * 4096]);
    let again = place.json(&["place", "plan.toml", "--json", "-q", "data"]);
    assert!(again["files"].as_array().unwrap().iter().all(|file| file["placed"] == false), "{again}");

    let status = place.json(&["status", "--json", "-c", "cluster.toml", "data", "data/other.txt"]);
    assert_eq!(status["targets"][1]["object_bytes"], 8 * 4096);
    assert_eq!(status["targets"][1]["emulated"], true);
    let file = &status["files"][0];
    assert_eq!((&file["size_bytes"], &file["regions"][0]["cycle"]), (&100_000.into(), &"hdd/0-2:4K".into()));
    assert_eq!(status["files"][2]["managed"], false);

    place.run(&["place", "other.toml", "data/one.dat"]);
    let status = place.json(&["status", "--json", "data/one.dat"]);
    assert_eq!(status["files"][0]["regions"][0]["cycle"], "hdd/2:64K hdd/0:1K");
    assert_eq!(place.run(&["cat", "data/one.dat"]), one);
    assert_eq!(
        place.run(&["fsck", "-c", "cluster.toml", "data"]),
        b"2 managed files and 3 targets checked: 0 problems\n"
    );

    place.run(&["export", "data"]);
    assert_eq!(std::fs::read(place.path("data/one.dat")).unwrap(), one);
    assert!(!place.is_managed("two.dat"));
    assert_eq!(place.objects(), 0);
}

/// The kernel cannot run a manifest, so executable files stay plain; an executable file that is
/// named is moved.
#[test]
fn programs_stay_plain() {
    let place = Place::with_targets();
    place.write("data/run.dat", "#!/bin/sh\n");
    place.file("a.dat", 1000);
    std::fs::set_permissions(place.path("data/run.dat"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for words in [&["place", "plan.toml"][..], &["place", "plan.toml", "data"]] {
        let said = String::from_utf8(place.output(words).stderr).unwrap();
        assert!(said.contains("run.dat is left out: it is executable"), "{said}");
        assert!(!place.is_managed("run.dat") && place.is_managed("a.dat"));
    }
    place.run(&["place", "plan.toml", "data/run.dat"]);
    assert!(place.is_managed("run.dat"));
}

#[test]
fn copies_and_removals() {
    let place = Place::with_targets();
    let bytes = place.file("in", 50_000);
    place.run(&["cp", "-p", "plan.toml", "data/in", "data/a.dat"]);
    assert!(place.is_managed("a.dat"));
    assert_eq!(place.run(&["cat", "data/a.dat"]), bytes);
    place.run(&["cp", "data/a.dat", "data/plain"]);
    assert_eq!(std::fs::read(place.path("data/plain")).unwrap(), bytes);
    place.file("in", 60_000);
    symlink("a.dat", place.path("data/link")).unwrap();
    place.run(&["cp", "data/in", "data/link"]);
    assert!(place.is_managed("a.dat"), "what a link leads to is replaced, in its layout");
    assert_eq!(place.run(&["cat", "data/link"]).len(), 60_000);
    assert_eq!(place.objects(), 4);
    std::fs::create_dir(place.path("directory")).unwrap();
    place.run(&["cp", "data/a.dat", "directory"]);
    assert_eq!(std::fs::metadata(place.path("directory/a.dat")).unwrap().len(), 60_000);
    place.run(&["rm", "data/a.dat", "data/plain"]);
    place.run(&["rm", "-f", "data/a.dat"]);
    assert_eq!(place.objects(), 0);
    assert!(!place.path("data/a.dat").exists());
}

#[test]
fn holes_stay_holes() {
    let place = Place::with_targets();
    let file = std::fs::File::create(place.path("data/sparse.dat")).unwrap();
    file.write_all_at(b"middle", 50 << 20).unwrap();
    file.set_len(100 << 20).unwrap();
    drop(file);
    place.run(&["place", "plan.toml"]);
    let status = place.json(&["status", "--json", "data/sparse.dat"]);
    assert_eq!(status["files"][0]["size_bytes"], 100 << 20);
    place.run(&["export", "data/sparse.dat"]);
    let metadata = std::fs::metadata(place.path("data/sparse.dat")).unwrap();
    assert!(metadata.len() == 100 << 20 && metadata.blocks() < 1000, "{}", metadata.blocks());
}

#[test]
fn fsck_finds_repairs_and_says_so() {
    let place = Place::with_targets();
    let bytes = place.file("a.dat", 20_000);
    place.file("b.dat", 20_000);
    place.run(&["place", "plan.toml", "-q"]);
    // An editor overwrites an anchor and `rm` removes one, both without the library.
    std::fs::write(place.path("data/a.dat"), "oops").unwrap();
    std::fs::remove_file(place.path("data/b.dat")).unwrap();
    let fsck = ["fsck", "-p", "plan.toml", "--orphan-age", "0", "--json"];
    let output = place.output(&fsck);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["clean"]), (Some(1), &false.into()));
    let mut kinds: Vec<&str> =
        report["findings"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["destroyed", "orphan"]);
    let repair = [&fsck[..], &["--repair", "--remove-orphans"]].concat();
    let elsewhere = place.output(repair.as_slice());
    let elsewhere: Value = serde_json::from_slice(&elsewhere.stdout).unwrap();
    let destroyed = |report: &Value| {
        let findings = report["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|finding| finding["kind"] == "destroyed").unwrap()
    };
    assert_eq!(destroyed(&elsewhere)["repaired"], false, "only below the directories that are named");
    let report = place.json([&repair[..], &["data"]].concat().as_slice());
    assert!(
        report["findings"].as_array().unwrap().iter().all(|finding| finding["repaired"] == true),
        "{report}"
    );
    assert_eq!(destroyed(&report)["repaired"], true);
    assert_eq!(place.run(&["cat", "data/a.dat"]), bytes);
    assert_eq!(std::fs::read(place.path("data/a.dat.stripewise-aside")).unwrap(), b"oops");
    assert_eq!(place.objects(), 4);
    place.run(&["fsck", "-p", "plan.toml"]);
}

#[test]
fn refusals_are_one_clear_line() {
    let place = Place::with_targets();
    place.file("a.dat", 1000);
    for command in ["cat", "export", "rm", "status", "fsck"] {
        place.refused(&[command, "data/none"], &["data/none", "No such file"]);
    }
    place.refused(&["cp", "data/none", "x"], &["data/none"]);
    place.refused(&["cp", "data/a.dat", "nowhere/x"], &["nowhere"]);
    place.refused(&["cp", "-p", "plan.toml", "data/a.dat", "data/a.txt"], &["plan.toml", "a.txt"]);
    place.refused(&["cat", "data"], &["data", "directory"]);
    place.refused(&["rm", "data"], &["data", "directory"]);
    place.refused(&["place", "none.toml"], &["none.toml"]);
    place.refused(&["place", "plan.toml", "data/none.dat"], &["none.dat"]);
    place.refused(&["status"], &["-c CLUSTER"]);
    place.refused(&["fsck"], &["-c CLUSTER"]);
    std::fs::hard_link(place.path("data/a.dat"), place.path("data/b.txt")).unwrap();
    place.refused(&["place", "plan.toml"], &["a.dat", "hard links"]);
    std::fs::remove_dir_all(place.path("t1")).unwrap();
    place.refused(&["place", "plan.toml"], &["hdd/1", "t1"]);
    assert!(!place.is_managed("a.dat"));
}

#[test]
fn a_target_of_another_cluster_is_refused() {
    let place = Place::with_targets();
    place.file("a.dat", 1000);
    place.run(&["place", "plan.toml", "-q"]);
    place.write("renamed.toml", &place.read("plan.toml").replace("hdd", "tape"));
    place.refused(&["place", "renamed.toml"], &["tape/0", "t0"]);
}

#[test]
fn missing_targets_are_named() {
    let place = Place::with_targets();
    place.file("a.dat", 10_000);
    place.run(&["place", "plan.toml", "-q"]);
    std::fs::rename(place.path("t1"), place.path("unmounted")).unwrap();
    place.refused(&["cat", "data/a.dat"], &["t1"]);
    place.refused(&["export", "data/a.dat"], &["data/a.dat: ", "t1"]);
    place.refused(&["rm", "data/a.dat"], &["t1", "-f"]);
    for words in [&["fsck", "data"][..], &["status", "-c", "cluster.toml"], &["status", "data"]] {
        let output = place.output(words);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stdout).contains("t1"), "{words:?}");
    }
    place.run(&["rm", "-f", "data/a.dat"]);
    assert!(!place.path("data/a.dat").exists());
}

/// A file that `place` and `export` convert while being killed at random moments stays whole, and
/// the last run succeeds.
#[test]
fn killed_migrations_go_on() {
    let place = Place::with_targets();
    let bytes = place.file("a.dat", 30 << 20);
    let rounds = if std::env::var_os("STRIPEWISE_LONG").is_some() { 100 } else { 10 };
    for round in 0..rounds {
        let words = if round % 2 == 0 { ["place", "plan.toml"] } else { ["export", "data/a.dat"] };
        let mut child = place.command(&words).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1 + round * 37 % 90));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(place.run(&["cat", "data/a.dat"]), bytes, "round {round}");
        place.run(&words);
        assert_eq!(place.is_managed("a.dat"), round % 2 == 0);
        assert_eq!(place.objects(), if round % 2 == 0 { 4 } else { 0 });
    }
    assert_eq!(
        std::fs::read_dir(place.path("data")).unwrap().count(),
        1,
        "no journals or temporaries are left"
    );
}
