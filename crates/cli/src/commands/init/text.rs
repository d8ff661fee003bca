//! Formats the commented cluster file. Pure: no I/O.

use std::fmt::Write;

use stripewise_cluster::Cluster;

use super::drafts::Draft;
use super::look::Place;

/// Maximum width of a comment line in characters.
const WIDTH: usize = 110;

pub fn cluster(places: &[Place], drafts: &[Draft]) -> String {
    let mut out = String::from(
        "# Written by `stripewise init`. What each key means: docs/formats/cluster.md.\n\
         # The classes of servers have no parameters yet: `stripewise calibrate` measures them.\n",
    );
    for place in places {
        let Some(probe) = &place.probe else { continue };
        let system = probe.system.map_or("", |system| system.title());
        comment(
            &mut out,
            &format!("{} is on {system}, mounted on {}.", place.path.display(), probe.mount.display()),
        );
        probe.notes.iter().for_each(|note| comment(&mut out, note));
        probe.rights.iter().for_each(|right| comment(&mut out, &format!("Not permitted: {right}")));
    }
    for draft in drafts {
        out.push('\n');
        draft.remarks.iter().for_each(|remark| comment(&mut out, remark));
        for line in tier(draft).lines() {
            let _ = writeln!(out, "{}{line}", if draft.instead { "# " } else { "" });
        }
    }
    out
}

/// Formats the lines of one tier in cluster-file syntax.
fn tier(draft: &Draft) -> String {
    let text = Cluster { tiers: vec![draft.tier.clone()], ..Cluster::default() }.to_toml();
    let lines = text[text.find("[[tier]]").unwrap_or(0)..].lines().filter(|line| *line != "emulate = false");
    lines.collect::<Vec<_>>().join("\n")
}

/// Appends a sentence as comment lines.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH && line.len() > 1 {
            let _ = writeln!(out, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use stripewise_cluster::{Driver, FileSystem, Members};
    use stripewise_drivers::{Pool, Probe};

    use super::*;
    use crate::commands::init::drafts;

    const G: u64 = 1 << 30;

    fn directory(path: &str, device: u64, rotational: Option<bool>) -> Place {
        Place { path: path.into(), device, free_bytes: 100 * G, rotational, probe: None }
    }

    fn pool(name: &str, servers: Option<u32>, free_bytes: u64) -> Pool {
        Pool { name: name.into(), servers, free_bytes: Some(free_bytes), ..Pool::default() }
    }

    fn on(system: FileSystem, pools: Vec<Pool>, servers: &[&str]) -> Place {
        let servers = servers.iter().map(|&server| server.to_owned()).collect();
        let probe = Probe {
            system: Some(system),
            mount: "/mnt".into(),
            pools,
            servers,
            rights: vec!["pools cannot be set; ask for p".into()],
            notes: vec!["seen".into()],
        };
        Place { path: "/mnt/me".into(), device: 9, free_bytes: 100 * G, rotational: None, probe: Some(probe) }
    }

    /// Formats the cluster file and parses it again.
    fn read(places: &[Place]) -> (String, Cluster) {
        let text = cluster(places, &drafts::of(places).unwrap());
        let read = Cluster::parse_uncalibrated(&text, "cluster.toml")
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        (text, read)
    }

    #[test]
    fn plain_directories_are_servers_by_kind_of_disk() {
        let places = [directory("/a", 1, Some(true)), directory("/b", 2, Some(true)), directory("/c", 3, None)];
        let (text, cluster) = read(&places);
        let names: Vec<_> = cluster.tiers.iter().map(|tier| tier.name.as_str()).collect();
        assert_eq!(names, ["disk", "hdd"]);
        let servers = ["/a", "/b"].map(PathBuf::from).to_vec();
        assert_eq!(cluster.tiers[1].driver, Driver::Dirs { servers });
        assert_eq!(cluster.tiers[1].capacity_per_server, 100 * G);
        assert!(!text.contains("the same file system"), "{text}");
    }

    #[test]
    fn directories_of_one_disk_are_noticed() {
        let (text, cluster) = read(&[directory("/a", 1, Some(false)), directory("/b", 1, Some(false))]);
        assert!(text.contains("# /a, /b are on the same file system"), "{text}");
        assert_eq!(cluster.tiers[0].capacity_per_server, 50 * G, "they share the space");
    }

    #[test]
    fn servers_one_by_one_go_before_their_pools() {
        let pools = vec![
            pool("hdd", Some(2), 40 * G),
            pool("hdd0", Some(1), 30 * G),
            pool("hdd1", Some(1), 20 * G),
            pool("ssd0", Some(1), 9 * G),
        ];
        let (text, cluster) = read(&[on(FileSystem::CephFs, pools, &["hdd0", "hdd1", "ssd0"])]);
        let names: Vec<_> =
            cluster.tiers.iter().map(|tier| (tier.name.as_str(), tier.driver.servers())).collect();
        assert_eq!(names, [("hdd", 2), ("ssd", 1)]);
        assert_eq!(
            (cluster.tiers[0].capacity_per_server, cluster.tiers[1].capacity_per_server),
            (20 * G, 9 * G)
        );
        assert!(text.contains("# pool = \"hdd\"\n# count = 2"), "{text}");
        assert!(
            text.contains("# Not permitted: pools cannot be set; ask for p") && text.contains("# seen"),
            "{text}"
        );
        // With the comment marks removed, it is a valid tier.
        let start = text.find("# [[tier]]").unwrap();
        let tier: Vec<_> = text[start..].lines().map_while(|line| line.strip_prefix("# ")).collect();
        let other = Cluster::parse_uncalibrated(&tier.join("\n"), "cluster.toml").unwrap();
        assert_eq!(other.tiers[0].driver.servers(), 2);
        assert_eq!(other.tiers[0].capacity_per_server, 20 * G);
    }

    #[test]
    fn pools_that_nothing_is_known_of_go_by_their_names() {
        let pools = ["hdd", "hdd0", "hdd1", "ssd"].map(|name| Pool { free_bytes: None, ..pool(name, None, 0) });
        let (text, cluster) = read(&[on(FileSystem::CephFs, pools.to_vec(), &[])]);
        assert_eq!(cluster.tiers.len(), 1, "{text}");
        let Driver::Native { members, .. } = &cluster.tiers[0].driver else { panic!("{text}") };
        assert_eq!(*members, Members::Servers(vec!["hdd0".into(), "hdd1".into()]));
        assert!(
            text.contains("taken from their names: check it") && text.contains("write it as count"),
            "{text}"
        );
        let alone = Pool { free_bytes: None, ..pool("data", None, 0) };
        let (_, cluster) = read(&[on(FileSystem::CephFs, vec![alone], &[])]);
        assert!(cluster.tiers[0].driver.is_pool());
    }

    #[test]
    fn two_mounts_have_tiers_of_different_names() {
        let of = |path: &str| Place { path: path.into(), ..on(FileSystem::Lustre, Vec::new(), &["0", "1"]) };
        let (_, cluster) = read(&[of("/mnt/a"), of("/mnt/b")]);
        assert_eq!([cluster.tiers[0].name.as_str(), cluster.tiers[1].name.as_str()], ["ost", "ost-2"]);
    }

    #[test]
    fn a_file_system_without_any_server_is_an_error_with_the_remedy() {
        let error = drafts::of(&[on(FileSystem::BeeGfs, Vec::new(), &[])]).unwrap_err().to_string();
        assert!(
            error.contains("/mnt/me") && error.contains("BeeGFS") && error.contains("ask for p"),
            "{error}"
        );
    }
}
