//! Tests of native layouts, and the clusters that they share.

mod expressed;
mod mapping;
mod over;
mod rules;

use stripewise_cluster::Cluster;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Two tiers, `hdd` and `ssd`; each is described by the lines that its driver needs.
fn cluster(hdd: &str, ssd: &str) -> Cluster {
    let service = "{ startup_s = 1e-3, per_byte_s = 1e-8 }";
    let by_access = format!("{{ random = {service}, sequential = {service} }}");
    let tier = |name: &str, lines: &str| {
        format!(
            "[class.{name}]\nread = {by_access}\nwrite = {by_access}\n[[tier]]\nname = \"{name}\"\nclass = \"{name}\"\n\
             {lines}\ncapacity_per_server = \"1T\"\n"
        )
    };
    let text =
        format!("[network]\nestablish_s = 0.0\nper_byte_s = 0.0\n{}{}", tier("hdd", hdd), tier("ssd", ssd));
    Cluster::parse(&text, "test").unwrap()
}

/// A tier of `count` directories.
fn dirs(name: &str, count: usize) -> String {
    let servers: Vec<String> = (0..count).map(|index| format!("\"/{name}{index}\"")).collect();
    format!("driver = \"dirs\"\nservers = [{}]", servers.join(", "))
}

/// A tier of servers of a parallel file system, each with a name.
fn servers(driver: &str, root: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("driver = \"{driver}\"\nroot = \"/mnt/{root}\"\nservers = [{}]", names.join(", "))
}

/// A tier that is a pool of `count` servers.
fn pool(driver: &str, name: &str, count: usize) -> String {
    format!("driver = \"{driver}\"\nroot = \"/mnt/{name}\"\npool = \"{name}\"\ncount = {count}")
}
