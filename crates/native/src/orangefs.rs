//! OrangeFS's distributions, as hints express them: a name, parameters, and the servers of
//! datafiles 0, 1, ...

use std::path::Path;

use stripewise_cluster::Members;

use crate::commands::{Call, words};
use crate::cycle::Groups;
use crate::layout::are_different;
use crate::names::Subject;
use crate::{NativeLayout, Stripe};

/// Maximum length of `dist_params`, bytes (PVFS_REQ_LIMIT_DIST_BYTES in pvfs2-req-proto.h).
pub const PARAMS_MAX: usize = 1024;
/// Maximum length of `server_list`, bytes: one less than PVFS_SYS_LIMIT_LAYOUT in pvfs2-types.h.
pub const SERVER_LIST_MAX: usize = 4095;
/// Maximum number of datafiles of a file. OrangeFS has up to 1024 (PVFS_REQ_LIMIT_DFILE_COUNT in
/// pvfs2-req-proto.h), but `pvfs2-viewdist` shows 256 (main in pvfs2-viewdist.c), so that more
/// could not be read back.
pub const DATAFILES_MAX: usize = 256;

/// Value of the hint `layout` for the servers of `server_list` (PVFS_SYS_LAYOUT_LIST in
/// pvfs2-types.h).
pub const LISTED: &str = "00004";
/// Value of `layout` for any servers (PVFS_SYS_LAYOUT_RANDOM). With the default, round robin, a new
/// file keeps its first strip with its metadata and shows a single datafile (check_stuffed in
/// create.sm), so that its layout could not be read back.
const RANDOM: &str = "00003";

/// The content of the hints on a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// `user.pvfs2.dist_name`.
    pub name: &'static str,
    /// `user.pvfs2.dist_params`.
    pub params: String,
    /// The servers of datafiles 0, 1, ..., in this order; `None`: any servers, others for every
    /// file.
    pub servers: Option<Vec<String>>,
    /// Number of datafiles.
    pub datafiles: u32,
}

impl Distribution {
    /// The distribution for a stripe.
    ///
    /// # Errors
    /// Why there is none, in words that can follow `because`.
    pub fn of(stripe: &Stripe) -> Result<Self, String> {
        let distribution = match stripe {
            Stripe::Even { pool: Some(_), .. } => return Err("it has no pools".into()),
            Stripe::Even { width, count, pool: None } => Self {
                name: "simple_stripe",
                params: format!("strip_size:{}", positive(*width)?),
                servers: None,
                datafiles: *count,
            },
            Stripe::Listed { width, servers } => {
                Self::on("simple_stripe", format!("strip_size:{}", positive(*width)?), different(servers)?)
            }
            Stripe::Varied { stripes } => Self::varied(stripes)?,
            Stripe::Grouped { width, groups, factor, servers } => {
                if *groups == 0 || *factor == 0 || *groups as usize > servers.len() {
                    return Err(format!(
                        "{groups} groups of {} servers in {factor} rounds make no cycle",
                        servers.len()
                    ));
                }
                let width = positive(*width)?;
                let params = format!("num_groups:{groups},strip_size:{width},group_strip_factor:{factor}");
                Self::on("twod_stripe", params, different(servers)?)
            }
        };
        distribution.within_limits()
    }

    fn on(name: &'static str, params: String, servers: Vec<String>) -> Self {
        Self { name, params, datafiles: servers.len() as u32, servers: Some(servers) }
    }

    /// Numbers datafiles in the order of their servers' first strip in the cycle, without gaps.
    fn varied(stripes: &[(String, u64)]) -> Result<Self, String> {
        let mut servers: Vec<String> = Vec::new();
        let mut strips = Vec::new();
        for (server, width) in stripes {
            let datafile = servers.iter().position(|known| known == server).unwrap_or_else(|| {
                servers.push(server.clone());
                servers.len() - 1
            });
            strips.push(format!("{datafile}:{}", strip(positive(*width)?)));
        }
        Ok(Self::on("varstrip_dist", format!("strips:{}", strips.join(";")), servers))
    }

    fn within_limits(self) -> Result<Self, String> {
        if self.params.len() > PARAMS_MAX {
            return Err("the description of the strips is longer than 1024 bytes".into());
        }
        if self.datafiles == 0 || self.datafiles as usize > DATAFILES_MAX {
            return Err(format!("a file has 1 to {DATAFILES_MAX} datafiles, not {}", self.datafiles));
        }
        if self.server_list().is_some_and(|list| list.len() > SERVER_LIST_MAX) {
            return Err(format!("the list of its servers is longer than {SERVER_LIST_MAX} bytes"));
        }
        let named = self.servers.iter().flatten();
        match named.clone().find(|server| server.is_empty() || server.contains([' ', ','])) {
            Some(bad) => Err(format!("{bad:?} is no server's address")),
            None => Ok(self),
        }
    }

    /// The inverse of [`Distribution::of`]: the stripe that hints, or the output of
    /// `pvfs2-viewdist` for a file, mean.
    ///
    /// `params` may lack the name of `varstrip_dist`'s only parameter, and call
    /// `group_strip_factor` `factor`, as `params_string` in dist-twod-stripe.c does.
    ///
    /// # Errors
    /// The text that is not understood.
    pub fn read(
        name: &str,
        params: &str,
        servers: Option<Vec<String>>,
        datafiles: u32,
    ) -> Result<Stripe, String> {
        let value = |keys: &[&str]| {
            let mut pairs = params.split(',').filter_map(|pair| pair.trim().split_once(':'));
            let found = pairs.find(|(key, _)| keys.contains(key)).map(|(_, value)| value.trim());
            let number = found.and_then(|text| text.parse::<u64>().ok()).filter(|&number| number > 0);
            number.ok_or_else(|| format!("{} in {params:?}", keys[0]))
        };
        let small = |number: u64| u32::try_from(number).map_err(|_| format!("{params:?}"));
        Ok(match (name, servers) {
            ("simple_stripe", None) => {
                Stripe::Even { width: value(&["strip_size"])?, count: datafiles, pool: None }
            }
            ("simple_stripe", Some(servers)) => Stripe::Listed { width: value(&["strip_size"])?, servers },
            ("twod_stripe", Some(servers)) => Stripe::Grouped {
                width: value(&["strip_size"])?,
                groups: small(value(&["num_groups"])?)?,
                factor: small(value(&["group_strip_factor", "factor"])?)?,
                servers,
            },
            ("varstrip_dist", Some(servers)) => Stripe::Varied { stripes: read_strips(params, &servers)? },
            (name, Some(_)) => return Err(format!("distribution {name:?}")),
            (name, None) => return Err(format!("distribution {name:?} without a list of servers")),
        })
    }

    /// `user.pvfs2.server_list`: the number of servers, then each.
    pub fn server_list(&self) -> Option<String> {
        let servers = self.servers.as_ref()?;
        Some(format!("{:05} {}", servers.len(), servers.join(" ")))
    }
}

/// The width of a strip in the syntax of dist-varstrip-parser.c, which knows only K, M and G.
fn strip(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let exact = units.into_iter().find(|(shift, _)| bytes.trailing_zeros() >= *shift);
    exact.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Parses `0:28K;1:28K`, with or without a leading `strips:`.
fn read_strips(params: &str, servers: &[String]) -> Result<Vec<(String, u64)>, String> {
    let params = params.trim();
    let strips = params.strip_prefix("strips:").unwrap_or(params).trim_end_matches(';');
    let strip = |strip: &str| {
        let (datafile, bytes) = strip.split_once(':')?;
        let server = servers.get(datafile.trim().parse::<usize>().ok()?)?;
        let bytes = stripewise_cluster::size::parse(bytes).ok().filter(|&bytes| bytes > 0)?;
        Some((server.clone(), bytes))
    };
    strips.split(';').map(|text| strip(text).ok_or_else(|| format!("strip {text:?}"))).collect()
}

fn positive(width: u64) -> Result<u64, String> {
    if width == 0 { Err("a strip has at least one byte".into()) } else { Ok(width) }
}

fn different(servers: &[String]) -> Result<Vec<String>, String> {
    if are_different(servers) {
        Ok(servers.to_vec())
    } else {
        Err("each datafile is on a server of its own".into())
    }
}

pub(crate) fn express(subject: &Subject<'_>) -> Result<NativeLayout, String> {
    let [cycles] = &subject.layouts[..] else {
        return Err("files of one directory would need different servers".into());
    };
    let [cycle] = &cycles[..] else {
        return Err("a file has one distribution from its first to its last byte".into());
    };
    let targets = cycle.targets();
    // OrangeFS has no pools and uses any of its servers for tiers whose servers have no names.
    let in_a_pool = |&target: &u32| matches!(subject.members(target), Some((Members::Pool { .. }, _)));
    if let (Some(width), true) = (cycle.even(), targets.iter().all(in_a_pool)) {
        return Ok(NativeLayout::even(width, targets.len() as u32, None));
    }
    let names = || targets.iter().map(|&target| subject.server(target)).collect::<Result<_, _>>();
    Ok(NativeLayout::uniform(match (cycle.even(), cycle.grouped()) {
        (Some(width), _) => Stripe::Listed { width, servers: names()? },
        (None, Some(Groups { width, groups, factor })) => {
            Stripe::Grouped { width, groups: groups as u32, factor: factor as u32, servers: names()? }
        }
        (None, None) => {
            let named = |&(target, width): &(u32, u64)| Ok((subject.server(target)?, width));
            Stripe::Varied { stripes: cycle.stripes.iter().map(named).collect::<Result<_, String>>()? }
        }
    }))
}

/// Hints as `pvfs2-xattr` of OrangeFS 2.10 sets them on a directory, or on the one that a new file
/// is created in.
///
/// Until the last call, new files of a directory without hints get the default distribution: only
/// the distribution's name makes its parameters count. A layout by list without a list would end
/// `pvfs2fuse`, so the list comes first.
pub(crate) fn calls(distribution: &Distribution, path: &Path, is_dir: bool) -> Vec<Call> {
    let directory = if is_dir { path } else { path.parent().unwrap_or(Path::new("/")) };
    let (datafiles, list) = (distribution.datafiles.to_string(), distribution.server_list());
    let servers = match &list {
        Some(list) => [("server_list", &**list), ("layout", LISTED)],
        None => [("layout", RANDOM), ("num_dfiles", &*datafiles)],
    };
    let of_servers = servers.into_iter();
    let hints = of_servers.chain([("dist_params", &*distribution.params), ("dist_name", distribution.name)]);
    hints.map(|(hint, value)| set(directory, hint, value)).collect()
}

/// The call that sets a hint on a directory. An empty value counts as no hint
/// (getattr_interpret_dir_hint in get-attr.sm).
pub fn set(directory: &Path, hint: &str, value: &str) -> Call {
    let key = format!("user.pvfs2.{hint}");
    words(&["pvfs2-xattr", "-s", "-k", &key, "-v", value, &directory.to_string_lossy()])
}
