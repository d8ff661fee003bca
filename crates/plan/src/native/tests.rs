use stripewise_layout::constructors::{on_one, striped, two_part, varied};

use super::*;
use crate::tests::{Pattern, cluster, ior};
use stripewise_cluster::Spread;
use stripewise_layout::Layout;
use stripewise_model::Op;

const K: u64 = 1 << 10;

fn commands(layouts: Vec<Layout>) -> Vec<String> {
    let cluster = cluster((2, 3e-4, 1e-8), (2, 5e-5, 2e-9), ("1T", "1T"), (0.0, 0.0));
    let set = &ior(Pattern::Random, Op::Read, 4, 64 * K, 1024).file_sets[0];
    let candidate = Candidate::spread("overall", "x", layouts, Spread::default());
    let all = native(&candidate, set, &cluster);
    let text = |native: &Native| {
        if native.commands.is_empty() { native.note.clone().unwrap() } else { native.commands.join(" && ") }
    };
    all.iter().map(text).collect()
}

#[test]
fn fixed_stripes_over_all_servers() {
    let all = commands(vec![striped(&[0, 1, 2, 3], 64 * K).unwrap()]);
    assert_eq!(all[0], "lfs setstripe -S 64K -c 4 /data/out.0");
    assert_eq!(
        all[1],
        "setfattr -n ceph.file.layout -v \"stripe_unit=65536 stripe_count=4 object_size=4194304 pool=POOL(all)\" /data/out.0"
    );
    assert_eq!(all[2], "beegfs entry set --num-targets=4 --chunk-size=64Ki /data");
    assert!(all[3].starts_with(
        "pvfs2-xattr -s -k user.pvfs2.server_list -v \"00004 ADDR(hdd/0) ADDR(hdd/1) ADDR(ssd/0) ADDR(ssd/1)\" /data && "
    ));
    assert!(all[3].ends_with(
        "pvfs2-xattr -s -k user.pvfs2.dist_params -v strip_size:65536 /data && \
         pvfs2-xattr -s -k user.pvfs2.dist_name -v simple_stripe /data"
    ));
}

#[test]
fn varied_stripes() {
    let all = commands(vec![varied(&[(0, 120 * K), (1, 120 * K), (2, 8 * K), (3, 8 * K)]).unwrap()]);
    assert_eq!(all[0], "cannot be expressed because a stripe of 120K is no multiple of 64K");
    assert!(all[1].starts_with("cannot be expressed because all stripes of a file are equally long"));
    assert!(all[2].starts_with("cannot be expressed because all chunks"));
    assert!(all[3].contains("varstrip_dist") && all[3].contains("\"strips:0:120K;1:120K;2:8K;3:8K\""));
    let all = commands(vec![varied(&[(2, 64 * K), (0, 128 * K)]).unwrap()]);
    assert_eq!(all[0], "lfs setstripe -S 64K -o 2,0,0 /data/out.0");
    assert!(all[3].contains("\"strips:0:64K;1:128K\"") && all[3].contains("00002 ADDR(ssd/0) ADDR(hdd/0)"));
}

#[test]
fn two_parts_only_where_the_file_reaches_the_second() {
    let half = two_part(&[(2, 64 * K), (3, 64 * K)], 128 << 20, &[(0, 64 * K), (1, 64 * K)]).unwrap();
    let all = commands(vec![half]);
    assert_eq!(
        all[0],
        "lfs setstripe -E 128M -S 64K -c 2 -p POOL(ssd) -E -1 -S 64K -c 2 -p POOL(hdd) /data/out.0"
    );
    assert!(all[1..].iter().all(|text| text.contains("from its first to its last byte")), "{all:?}");
    let never = two_part(&[(2, 64 * K), (3, 64 * K)], 256 << 20, &[(0, 64 * K), (1, 64 * K)]).unwrap();
    let all = commands(vec![never]);
    assert_eq!(all[0], "lfs setstripe -S 64K -c 2 -p POOL(ssd) /data/out.0");
    assert_eq!(all[2], "beegfs entry set --num-targets=2 --chunk-size=64Ki --pool=POOL(ssd) /data");
}

#[test]
fn files_spread_over_servers() {
    let all = commands((0..4).map(|target| on_one(target).unwrap()).collect());
    assert_eq!(all[0], "lfs setstripe -S 1G -c 1 /data/out.0");
    assert_eq!(all[2], "beegfs entry set --num-targets=1 --chunk-size=1Mi /data");
    assert!(all[1].starts_with("cannot") && all[3].starts_with("cannot"));
}

#[test]
fn directories_of_patterns() {
    assert_eq!(directory("/data/out.<n>"), "/data");
    assert_eq!(directory("/data/run<n>/out"), "/data");
    assert_eq!(directory("/<n>"), "/");
}
