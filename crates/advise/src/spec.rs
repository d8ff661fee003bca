//! `--fs`: the file system of a job in a few words.
//!
//! ```text
//! SPEC   = SYSTEM [":" ITEM {"," ITEM}]
//! SYSTEM = "lustre" | "beegfs" | "cephfs" | "orangefs" | "local"
//! ITEM   = COUNT | NOUN "=" COUNT | "class=" CLASS | "pool=" NAME ":" COUNT [":" CLASS]
//! NOUN   = "ost" (lustre) | "target" (beegfs) | "osd" (cephfs) | "server" (orangefs)
//! CLASS  = "hdd" | "ssd" | "nvme"
//! ```

use stripewise_cluster::FileSystem;

use crate::classes::Class;
use crate::storage::{Origin, Pool, SERVERS_ASSUMED, Storage, System};

/// The grammar in one line, for messages and help.
pub const GRAMMAR: &str =
    "lustre:24, lustre:ost=24,class=hdd,pool=flash:8:nvme, beegfs:16, cephfs:12, orangefs:8 or local";
/// Maximum number of servers.
const SERVERS_MAX: u32 = 1 << 16;

/// A text that describes no file system. The message names the text, the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--fs {text:?}: {problem}; write something like {GRAMMAR}")]
pub struct SpecError {
    text: String,
    problem: String,
}

/// Parses a file system.
///
/// # Errors
/// The text does not follow the grammar of this module.
pub fn parse(text: &str) -> Result<Storage, SpecError> {
    let error = |problem: String| SpecError { text: text.to_owned(), problem };
    let (name, items) = text.split_once(':').map_or((text, None), |(name, items)| (name, Some(items)));
    let system = system(name).ok_or_else(|| error(format!("there is no file system {name:?}")))?;
    let mut draft = Draft { system, servers: None, class: Class::default(), pools: Vec::new() };
    for item in items.into_iter().flat_map(|items| items.split(',')) {
        draft.take(item.trim()).map_err(error)?;
    }
    draft.finish(text).map_err(error)
}

fn system(name: &str) -> Option<System> {
    if name.eq_ignore_ascii_case("local") {
        return Some(System::Local);
    }
    FileSystem::ALL.into_iter().find(|system| system.name().eq_ignore_ascii_case(name)).map(System::Parallel)
}

/// What a file system calls the servers that it stripes over.
fn noun(system: &System) -> Option<&'static str> {
    match system {
        System::Parallel(FileSystem::Lustre) => Some("ost"),
        System::Parallel(FileSystem::BeeGfs) => Some("target"),
        System::Parallel(FileSystem::CephFs) => Some("osd"),
        System::Parallel(FileSystem::OrangeFs) => Some("server"),
        System::Local | System::Other(_) => None,
    }
}

/// The items so far.
struct Draft {
    system: System,
    servers: Option<u32>,
    class: Class,
    pools: Vec<Pool>,
}

impl Draft {
    fn take(&mut self, item: &str) -> Result<(), String> {
        let Some(noun) = noun(&self.system) else {
            return Err("a local disk has no servers to describe".into());
        };
        match item.split_once('=') {
            None => self.servers = Some(count(item)?),
            Some((key, value)) if key == noun => self.servers = Some(count(value)?),
            Some(("class", value)) => self.class = class(value)?,
            Some(("pool", value)) => self.pools.push(self.pool(value)?),
            Some((key, _)) => return Err(format!("{key:?} is none of {noun}, class, pool")),
        }
        Ok(())
    }

    fn pool(&self, text: &str) -> Result<Pool, String> {
        let mut words = text.split(':');
        let (Some(name), Some(servers)) = (words.next().filter(|name| !name.is_empty()), words.next()) else {
            return Err(format!("pool {text:?} has no count, as in pool=flash:8"));
        };
        if self.system == System::Parallel(FileSystem::OrangeFs) {
            return Err("OrangeFS has no pools".into());
        }
        if self.pools.iter().any(|pool| pool.name.as_deref() == Some(name)) {
            return Err(format!("pool {name:?} comes twice"));
        }
        let class = words.next().map(class).transpose()?.unwrap_or_else(|| Class::of_pool(name));
        match words.next() {
            Some(more) => Err(format!("{more:?} behind the class of pool {name:?}")),
            None => Ok(Pool { name: Some(name.to_owned()), servers: count(servers)?, class }),
        }
    }

    /// Pools are parts of the servers; the rest of these has no pool.
    fn finish(self, text: &str) -> Result<Storage, String> {
        let Draft { system, servers, class, mut pools } = self;
        let pooled: u32 = pools.iter().map(|pool| pool.servers).fold(0, u32::saturating_add);
        let assumed = servers.is_none() && pools.is_empty() && noun(&system).is_some();
        let all = match servers {
            Some(all) if all < pooled => {
                return Err(format!("the pools have {pooled} servers, and there are only {all}"));
            }
            Some(all) => all,
            None if assumed => SERVERS_ASSUMED,
            None => pooled,
        };
        if noun(&system).is_some() && all > pooled {
            pools.insert(0, Pool { name: None, servers: all - pooled, class });
        }
        Ok(Storage {
            system,
            pools,
            assumed_servers: assumed,
            origin: Origin::Given(text.to_owned()),
            mount: None,
            cluster: None,
        })
    }
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse::<u32>().ok().filter(|count| (1..=SERVERS_MAX).contains(count));
    count.ok_or_else(|| format!("{text:?} is no number of servers from 1 to {SERVERS_MAX}"))
}

fn class(text: &str) -> Result<Class, String> {
    let known = Class::ALL.into_iter().find(|class| class.name().eq_ignore_ascii_case(text));
    known.ok_or_else(|| format!("{text:?} is no class of servers: hdd, ssd or nvme"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pools(text: &str) -> Vec<(Option<String>, u32, Class)> {
        parse(text).unwrap().pools.into_iter().map(|pool| (pool.name, pool.servers, pool.class)).collect()
    }

    #[test]
    fn servers_and_pools() {
        assert_eq!(pools("lustre:24"), [(None, 24, Class::Hdd)]);
        assert_eq!(pools("Lustre:ost=24,class=ssd"), [(None, 24, Class::Ssd)]);
        let flash = (Some("flash".to_owned()), 8, Class::Ssd);
        assert_eq!(pools("lustre:ost=24,pool=flash:8"), [(None, 16, Class::Hdd), flash.clone()]);
        assert_eq!(pools("beegfs:pool=flash:8"), [flash]);
        assert_eq!(pools("cephfs:osd=3,pool=x:3:nvme"), [(Some("x".to_owned()), 3, Class::Nvme)]);
        assert_eq!(pools("local"), []);
    }

    #[test]
    fn a_number_of_servers_that_is_not_given_is_assumed() {
        let storage = parse("cephfs").unwrap();
        assert!(storage.assumed_servers && storage.servers() == SERVERS_ASSUMED);
        assert!(!parse("cephfs:8").unwrap().assumed_servers);
    }

    #[test]
    fn errors_name_the_text_and_the_remedy() {
        for (text, part) in [
            ("gpfs", "no file system \"gpfs\""),
            ("lustre:0", "\"0\" is no number"),
            ("lustre:", "\"\" is no number"),
            ("lustre:targets=4", "\"targets\" is none of ost, class, pool"),
            ("lustre:4,pool=flash", "has no count"),
            ("lustre:4,pool=flash:8", "there are only 4"),
            ("lustre:4,pool=a:1,pool=a:1", "twice"),
            ("lustre:4,pool=a:1:tape", "\"tape\" is no class"),
            ("lustre:4,pool=a:1:hdd:x", "\"x\" behind"),
            ("orangefs:pool=a:1", "no pools"),
            ("local:4", "local disk"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains(&format!("{text:?}")), "{message}");
            assert!(message.contains("write something like lustre:24"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(lustre|beegfs|cephfs|orangefs|local|x)?:?[a-z0-9:=,]{0,24}") {
            let _ = parse(&text);
        }
    }
}
