//! OrangeFS: directory hints for `simple_stripe` and `varstrip_dist`, with a list of servers.

use stripewise_cluster::size;
use stripewise_layout::Region;

use super::{Native, Subject, even};

const SYSTEM: &str = "OrangeFS";
/// Length of `dist_params` at most.
const PARAMS_MAX: usize = 1024;

pub fn native(subject: &Subject<'_>) -> Native {
    let [regions] = &subject.layouts[..] else {
        return Native::impossible(SYSTEM, "files of one directory would need different servers");
    };
    let [region] = &regions[..] else {
        return Native::impossible(SYSTEM, "a file has one distribution from its first to its last byte");
    };
    // Datafiles are numbered 0, 1, ... in the order of the server list.
    let mut servers: Vec<u32> = region.cycle.iter().map(|stripe| stripe.target).collect();
    servers.sort_unstable();
    servers.dedup();
    let (name, params) = match even(region) {
        Some(even) if even.targets == servers => ("simple_stripe", format!("strip_size:{}", even.width)),
        _ => ("varstrip_dist", strips(region, &servers)),
    };
    if params.len() > PARAMS_MAX {
        return Native::impossible(SYSTEM, "the description of the strips is longer than 1024 bytes");
    }
    let directory = super::shell(&subject.directory);
    let set = |key: &str, value: &str| format!("pvfs2-xattr -s -k user.pvfs2.{key} -v {value} {directory}");
    let addresses: Vec<String> =
        servers.iter().map(|&target| format!("ADDR({})", subject.name_of(target))).collect();
    let commands = vec![
        set("dist_name", name),
        set("dist_params", &format!("\"{params}\"")),
        set("layout", "00004"),
        set("server_list", &format!("\"{:05} {}\"", servers.len(), addresses.join(" "))),
    ];
    Native::commands(SYSTEM, commands, Some("inherited by files created in the directory from then on"))
}

fn strips(region: &Region, servers: &[u32]) -> String {
    let strip = |stripe: &stripewise_layout::Stripe| {
        let datafile = servers.partition_point(|&server| server < stripe.target);
        format!("{datafile}:{}", size::format(stripe.width))
    };
    format!("strips:{}", region.cycle.iter().map(strip).collect::<Vec<_>>().join(";"))
}
