//! Parsers for the output of `pvfs2-viewdist`, `pvfs2-statfs` and `pvfs2-xattr`. Errors name what
//! is missing or not understood.

use stripewise_native::Stripe;
use stripewise_native::orangefs::Distribution;

/// Parses the output of `pvfs2-viewdist -f FILE` (src/apps/admin/pvfs2-viewdist.c):
/// `dist_name = NAME`, `dist_params:` with the parameters on the next line, and
/// `Datafile N - ADDRESS, handle: ...` each. Versions before 2.8.4 print `Server` for `Datafile`.
pub fn distribution(text: &str) -> Result<Stripe, String> {
    let mut lines = text.lines();
    let (mut name, mut params, mut servers) = (None, None, Vec::new());
    while let Some(line) = lines.next() {
        if let Some(value) = line.strip_prefix("dist_name = ") {
            name = Some(value.trim());
        } else if line.trim() == "dist_params:" {
            params = lines.next().map(str::trim);
        } else if let Some(rest) = line.strip_prefix("Datafile ").or_else(|| line.strip_prefix("Server ")) {
            let odd = || format!("{line:?}");
            let (number, rest) = rest.split_once(" - ").ok_or_else(odd)?;
            if number.parse() != Ok(servers.len()) {
                return Err(odd());
            }
            servers.push(rest.split_once(", handle").map_or(rest, |(address, _)| address).trim().to_owned());
        }
    }
    let name = name.ok_or("no dist_name")?;
    let params = params.ok_or("no dist_params")?;
    if servers.is_empty() {
        return Err("no datafiles".to_owned());
    }
    let datafiles = servers.len() as u32;
    Distribution::read(name, params, Some(servers), datafiles)
}

/// A server of file contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub address: String,
    pub free_bytes: u64,
}

/// Parses the output of `pvfs2-statfs -m DIR` (src/apps/admin/pvfs2-statfs.c), from
/// `I/O server statistics:` on.
pub fn servers(text: &str) -> Result<Vec<Server>, String> {
    let section = text.split_once("I/O server statistics:").ok_or("no I/O server statistics")?.1;
    let mut servers: Vec<(String, Option<u64>)> = Vec::new();
    for line in section.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("server: ") {
            servers.push((address.trim().to_owned(), None));
        } else if let (Some(rest), Some(server)) = (line.strip_prefix("bytes available"), servers.last_mut()) {
            server.1 = rest.trim().strip_prefix(':').and_then(|free| free.trim().parse().ok());
        }
    }
    if servers.is_empty() {
        return Err("no I/O server".to_owned());
    }
    let server = |(address, free): (String, Option<u64>)| match free {
        Some(free_bytes) => Ok(Server { address, free_bytes }),
        None => Err(format!("server {address} without bytes available")),
    };
    servers.into_iter().map(server).collect()
}

/// What `pvfs2-xattr -t` prints where the attribute is not set, with status 254
/// (pvfs2-xattr.c:201). Other errors begin with `PVFS_sys_geteattr`, too.
pub const NO_HINT: &str = "PVFS_sys_geteattr: no hints defined";

/// Parses the output of `pvfs2-xattr -t -k KEY PATH` (pvfs2-xattr.c:284): `key : "KEY"`, a blank,
/// a tab, and `Value : "VALUE"`. PVFS2 2.8 printed `key:KEY Value:` and the value on the next line.
pub fn value(text: &str, key: &str) -> Result<String, String> {
    let rest = text.strip_prefix("key : \"").and_then(|rest| rest.strip_prefix(key));
    let value = rest.and_then(|rest| rest.strip_prefix("\" \tValue : \"")?.trim_end().strip_suffix('"'));
    value.map(str::to_owned).ok_or_else(|| format!("no value of {key}"))
}

/// Parses `user.pvfs2.server_list`: `00003 ADDRESS ADDRESS ADDRESS`.
pub fn server_list(text: &str) -> Result<Vec<String>, String> {
    let mut words = text.split_whitespace();
    let number = words.next().and_then(|number| number.parse::<usize>().ok());
    let servers: Vec<String> = words.map(str::to_owned).collect();
    if number == Some(servers.len()) { Ok(servers) } else { Err(format!("server_list {text:?}")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Printed by 2.10, with the ports of the FAQ of PVFS2.
    const VIEWDIST: &str = "\
dist_name = simple_stripe
dist_params:
strip_size:131072

Metadataserver: tcp://localhost:3337
Number of datafiles/servers = 2
Datafile 0 - tcp://localhost:3337, handle: 8070450532247928832 (7000000000000000.bstream)
Datafile 1 - tcp://localhost:3334, handle: 6341068275337658147 (57ffffffffffff23.bstream)
";
    const STATFS: &str = "
aggregate statistics:
---------------------------------------

\tfs_id: 9
\tbytes available:                        7

meta server statistics:
---------------------------------------

server: tcp://m:3334
\tbytes available  : 5

I/O server statistics:
---------------------------------------

server: tcp://a:3334
\tRAM bytes total  : 1
\tbytes available  : 1048576
\tbytes total      : 2097152
\tmode: serving only I/O data

server: tcp://b:3334
\tbytes available  : 12
";

    #[test]
    fn distributions() {
        assert_eq!(
            distribution(VIEWDIST).unwrap().to_string(),
            "128K on tcp://localhost:3337, tcp://localhost:3334"
        );
        let of = |name: &str, params: &str| {
            distribution(&VIEWDIST.replace("simple_stripe", name).replace("strip_size:131072", params))
        };
        let two_d = of("twod_stripe", "num_groups:2,strip_size:65536,factor:4").unwrap();
        assert!(matches!(two_d, Stripe::Grouped { width: 65536, groups: 2, factor: 4, .. }));
        for params in ["strips:0:28K;1:172K", "0:28K;1:172K"] {
            let varied = of("varstrip_dist", params).unwrap();
            assert_eq!(varied.to_string(), "28K on tcp://localhost:3337, 172K on tcp://localhost:3334");
        }
        for (text, what) in [
            (VIEWDIST.replace("dist_name", "name"), "no dist_name"),
            (VIEWDIST.replace("131072", "many"), "strip_size"),
            (VIEWDIST.replace("Datafile 1", "Datafile 2"), "Datafile 2"),
            (VIEWDIST.replace("simple_stripe", "basic_dist"), "basic_dist"),
            (String::new(), "no dist_name"),
        ] {
            let error = distribution(&text).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        assert!(of("varstrip_dist", "strips:0:28K;7:172K").is_err());
    }

    #[test]
    fn servers_of_contents_only() {
        let found = servers(STATFS).unwrap();
        let short: Vec<_> = found.iter().map(|server| (server.address.as_str(), server.free_bytes)).collect();
        assert_eq!(short, [("tcp://a:3334", 1 << 20), ("tcp://b:3334", 12)]);
        assert!(servers("").is_err() && servers("I/O server statistics:\n").is_err());
        assert!(servers("I/O server statistics:\nserver: tcp://a:1\n").is_err());
    }

    #[test]
    fn hints() {
        let text = "key : \"user.pvfs2.dist_name\" \tValue : \"varstrip_dist\"\n";
        assert_eq!(value(text, "user.pvfs2.dist_name").as_deref(), Ok("varstrip_dist"));
        assert_eq!(value("key : \"k\" \tValue : \"\"\n", "k").as_deref(), Ok(""));
        assert!(value(text, "user.pvfs2.layout").is_err());
        assert!(value("key:k Value:\nvarstrip_dist\n", "k").is_err());
        assert_eq!(server_list("00002 tcp://a:1 tcp://b:1").unwrap(), ["tcp://a:1", "tcp://b:1"]);
        assert!(server_list("00003 tcp://a:1").is_err() && server_list("").is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "(dist_name = |dist_params:|\n|simple_stripe|varstrip_dist|twod_stripe|strips:|strip_size:|[0-9]{0,21}|[KMG;:,]|Datafile [01] - |key : \"|\" \tValue : \"|I/O server statistics:|server: |bytes available){0,30}") {
            let _ = (distribution(&text), servers(&text), value(&text, "k"), server_list(&text));
        }
    }
}
