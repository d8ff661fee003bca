//! Facts that only Ceph's administrators can query: the servers of a pool, and its free space.
//!
//! The queries run `ceph`, where this user may run it and it belongs to the mounted cluster. The
//! driver works without the answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::driver::Pool;
use crate::error::Result;
use crate::tool::Tool;

/// Seconds that `ceph` may take to reach the monitors.
const PATIENCE_S: &str = "5";
/// The id of a missing server in a group (CRUSH_ITEM_NONE).
const NOBODY: u64 = 0x7fff_ffff;

/// The pools of the cluster `fsid` by number, or why they are not known.
///
/// # Errors
/// One sentence: `ceph` cannot be run, lacks the permission, or belongs to another cluster.
pub fn pools(ceph: &Tool, fsid: Option<&str>) -> std::result::Result<BTreeMap<u64, Pool>, String> {
    let unknown =
        |why: String| format!("which servers the pools are on and what they have left is not known: {why}");
    let ask = |arguments: &[&str]| -> Result<String> {
        ceph.run(&[&["--connect-timeout", PATIENCE_S], arguments].concat())
    };
    let told = ask(&["fsid"]).map_err(|error| unknown(error.to_string()))?;
    match fsid {
        Some(mounted) if mounted == told.trim() => {}
        Some(_) => return Err(unknown("`ceph` is for another cluster; set CEPH_CONF".to_owned())),
        None => return Err(unknown("this CephFS does not say which cluster it belongs to".to_owned())),
    }
    let df = ask(&["df", "--format", "json"]).map_err(|error| unknown(error.to_string()))?;
    let mut pools =
        parse_df(&df).ok_or_else(|| unknown("what `ceph df` prints is not understood".to_owned()))?;
    if let Ok(groups) = ask(&["pg", "dump", "pgs_brief", "--format", "json"]) {
        add_servers(&mut pools, &groups);
    }
    Ok(pools)
}

fn parse_df(text: &str) -> Option<BTreeMap<u64, Pool>> {
    let json: Value = serde_json::from_str(text).ok()?;
    let pool = |pool: &Value| {
        let name = pool["name"].as_str()?.to_owned();
        let free_bytes = pool["stats"]["max_avail"].as_u64();
        Some((pool["id"].as_u64()?, Pool { name, free_bytes, ..Pool::default() }))
    };
    json["pools"].as_array()?.iter().map(pool).collect()
}

/// Adds the OSDs of each pool and of its placement groups. Groups are called `POOL.GROUP`, the
/// group in hexadecimal.
fn add_servers(pools: &mut BTreeMap<u64, Pool>, text: &str) {
    let Ok(json) = serde_json::from_str::<Value>(text) else { return };
    // Older versions print the list without an enclosing object.
    let groups = json["pg_stats"].as_array().or(json.as_array());
    let mut acting_of: BTreeMap<u64, BTreeMap<u32, Vec<u64>>> = BTreeMap::new();
    for group in groups.into_iter().flatten() {
        let id = group["pgid"].as_str().and_then(|id| id.split_once('.'));
        let id = id.and_then(|(pool, group)| Some((pool.parse().ok()?, u32::from_str_radix(group, 16).ok()?)));
        let Some((pool, number)) = id else { continue };
        let acting = group["acting"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let acting = acting.filter(|&server| server != NOBODY).collect();
        acting_of.entry(pool).or_default().insert(number, acting);
    }
    for (number, pool) in pools {
        let groups = acting_of.remove(number).unwrap_or_default();
        let servers: BTreeSet<u64> = groups.values().flatten().copied().collect();
        pool.servers = u32::try_from(servers.len()).ok().filter(|&servers| servers > 0);
        pool.server_names = servers.iter().map(|server| format!("osd.{server}")).collect();
        pool.groups = answering(&groups, &servers).unwrap_or_default();
    }
}

/// The index in `servers` of the first OSD of every group, which answers reads and takes writes.
/// `None`: a group is missing or has no OSD at present.
fn answering(groups: &BTreeMap<u32, Vec<u64>>, servers: &BTreeSet<u64>) -> Option<Vec<u32>> {
    let index_of = |server: &u64| servers.range(..server).count() as u32;
    let numbered = groups.iter().zip(0u32..);
    numbered
        .map(|((&group, acting), number)| (group == number).then(|| acting.first().map(index_of))?)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake::program;

    #[test]
    fn what_16_2_prints() {
        let df = r#"{"stats":{},"pools":[{"name":"hdd","id":3,"stats":{"stored":0,"max_avail":3969907712}},
            {"name":"ssd","id":4,"stats":{}},{"name":"hdd0","id":5,"stats":{}}]}"#;
        let mut pools = parse_df(df).unwrap();
        add_servers(
            &mut pools,
            r#"{"pg_ready":true,"pg_stats":[{"pgid":"3.2","up":[0],"acting":[0]},{"pgid":"3.1","acting":[2,1]},
            {"pgid":"3.0","acting":[1,0]},{"pgid":"4.a","acting":[5]},
            {"pgid":"5.0","acting":[0]},{"pgid":"9.0","acting":[7]},{"pgid":"5.1","acting":[2147483647]}]}"#,
        );
        let pool = |name: &str, free_bytes, servers: &[&str], groups: &[u32]| Pool {
            name: name.to_owned(),
            free_bytes,
            servers: Some(servers.len() as u32),
            server_names: servers.iter().map(|&server| server.to_owned()).collect(),
            groups: groups.to_vec(),
        };
        assert_eq!(pools[&3], pool("hdd", Some(3969907712), &["osd.0", "osd.1", "osd.2"], &[1, 2, 0]));
        assert_eq!(pools[&4], pool("ssd", None, &["osd.5"], &[]), "the groups before 4.a are missing");
        assert_eq!(pools[&5], pool("hdd0", None, &["osd.0"], &[]), "a group that nobody serves");
        assert_eq!(parse_df("[]"), None);
        assert_eq!(parse_df("no"), None);
    }

    /// A fake `ceph` that belongs to the cluster `f`.
    fn fake(folder: &tempfile::TempDir, script: &str) -> Tool {
        program(&folder.path().join("ceph"), &format!("#!/bin/sh\nshift 2\n{script}\n"))
    }

    #[test]
    fn of_this_cluster_only_and_of_nobody_who_is_not_told() {
        let folder = tempfile::tempdir().unwrap();
        let script = r#"case "$1" in fsid) echo f;; df) echo '{"pools":[{"name":"a","id":1,"stats":{}}]}';; *) exit 13;; esac"#;
        let ceph = fake(&folder, script);
        assert_eq!(pools(&ceph, Some("f")).unwrap()[&1].name, "a");
        assert!(pools(&ceph, Some("g")).unwrap_err().contains("another cluster"));
        assert!(pools(&ceph, None).is_err());
        let error =
            pools(&fake(&folder, "echo 'Error EACCES: access denied' >&2; exit 13"), Some("f")).unwrap_err();
        assert!(error.contains("EACCES"), "{error}");
        assert!(pools(&Tool::at("/nowhere/ceph"), Some("f")).unwrap_err().contains("cannot be run"));
    }
}
