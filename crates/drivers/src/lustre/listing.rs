//! Parsers for the output of `lfs df` and `lfs pool_list`. Errors name the line that is not
//! understood.

/// The flags of an OST that is not well (`oss_names` in lustre/utils/lfs.c): degraded, read-only,
/// no precreation, unknown, out of space or inodes. Others tell what it is: `f`lash, `a`ggregate.
const ILL: &str = "DRN?SI";

/// The OSTs of a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Osts {
    /// `FSNAME`, the prefix of the names of OSTs and pools.
    pub fsname: String,
    pub osts: Vec<Ost>,
    /// The OSTs that gave no figures: index and reason.
    pub silent: Vec<(u32, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ost {
    pub index: u32,
    pub free_bytes: u64,
    /// The flags of [`ILL`]; empty: healthy.
    pub state: String,
}

impl Osts {
    /// Parses the output of `lfs df -v DIR`: `UUID 1K-blocks Used Available Use% MOUNT[OST:N]
    /// STATE`, or `UUID: REASON` (`showdf` and `mntdf` in lustre/utils/lfs.c).
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for line in text.lines() {
            let odd = || format!("{line:?}");
            let Some((rest, index)) = line.rsplit_once("[OST:") else {
                all.silent.extend(silent(line));
                continue;
            };
            let (index, state) = index.split_once(']').ok_or_else(odd)?;
            let mut columns = rest.split_whitespace();
            let uuid = columns.next().ok_or_else(odd)?;
            let free = columns.nth(2).and_then(|free| free.parse::<u64>().ok()).ok_or_else(odd)?;
            all.fsname = uuid.split_once("-OST").ok_or_else(odd)?.0.to_owned();
            all.osts.push(Ost {
                index: index.parse().map_err(|_| odd())?,
                free_bytes: free.checked_mul(1024).ok_or_else(odd)?,
                state: state.chars().filter(|&flag| ILL.contains(flag)).collect(),
            });
        }
        if all.osts.is_empty() { Err("no line of an OST".to_owned()) } else { Ok(all) }
    }

    /// Whether there is an OST with this index, be it well or not.
    pub fn has(&self, index: u32) -> bool {
        let silent = self.silent.iter().map(|(index, _)| *index);
        self.osts.iter().map(|ost| ost.index).chain(silent).any(|known| known == index)
    }
}

/// The OST of a line without figures: `FSNAME-OST0003_UUID : inactive device`, or `OST0003` where
/// its name is not known either.
fn silent(line: &str) -> Option<(u32, String)> {
    let (uuid, reason) = line.split_once(": ")?;
    let name = uuid.trim_end().trim_end_matches("_UUID");
    let digits = name.rsplit_once("OST")?.1;
    Some((u32::from_str_radix(digits, 16).ok()?, reason.trim().to_owned()))
}

/// Parses the output of `lfs pool_list FSNAME` (`Pools from FSNAME:`, then `FSNAME.POOL` each): the
/// pools' names.
pub fn pools(text: &str, fsname: &str) -> Vec<String> {
    let pool = |line: &str| Some(line.trim().strip_prefix(fsname)?.strip_prefix('.')?.to_owned());
    text.lines().filter_map(pool).filter(|name| !name.is_empty()).collect()
}

/// Parses the output of `lfs pool_list FSNAME.POOL` (`Pool: FSNAME.POOL`, then
/// `FSNAME-OST000a_UUID` each): the OSTs' indices.
pub fn members(text: &str) -> Result<Vec<u32>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Pool:"));
    let index = |line: &str| {
        let hex = line.rsplit_once("-OST")?.1;
        u32::from_str_radix(hex.strip_suffix("_UUID").unwrap_or(hex), 16).ok()
    };
    lines.map(|line| index(line).ok_or_else(|| format!("{line:?}"))).collect()
}

/// Parses the output of `lfs --version` (`lfs 2.15.8`): the first numbers of the version; 0 where
/// there are fewer.
pub fn version(text: &str) -> [u32; 3] {
    let word = text.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = word.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From lustre/doc/lfs-df.1, in blocks.
    const DF: &str = "\
UUID                   1K-blocks        Used   Available Use% Mounted on
testfs-MDT0000_UUID      9174328     1020024     8154304  11% /mnt/a fs[MDT:0]
testfs-OST0000_UUID     94181368    56330708    37850660  59% /mnt/a fs[OST:0]
testfs-OST0001_UUID     94181368    56385748    37795620  59% /mnt/a fs[OST:1] DRf
testfs-OST0002_UUID : Cannot send after transport endpoint shutdown
OST0003             : inactive device
testfs-OST000a_UUID     94181368    54352012    39829356  57% /mnt/a fs[OST:10] f

filesystem_summary:    282544104   167068468   115475636  59% /mnt/a fs
";

    #[test]
    fn osts_with_their_space_and_state() {
        let all = Osts::parse(DF).unwrap();
        let silent = [(2, "Cannot send after transport endpoint shutdown"), (3, "inactive device")];
        let silent = silent.map(|(index, reason)| (index, reason.to_owned()));
        assert_eq!((all.fsname.as_str(), &all.silent[..]), ("testfs", &silent[..]));
        assert!(all.has(2) && all.has(10) && !all.has(4));
        let short = |ost: &Ost| (ost.index, ost.free_bytes >> 10, ost.state.clone());
        let osts: Vec<_> = all.osts.iter().map(short).collect();
        let expected = [(0, 37850660, ""), (1, 37795620, "DR"), (10, 39829356, "")];
        assert_eq!(osts, expected.map(|(index, free, state)| (index, free, state.to_owned())));
        assert!(Osts::parse("lfs df: error").is_err() && Osts::parse("a b c d 5% /m[OST:x]").is_err());
    }

    #[test]
    fn pools_and_their_members() {
        assert_eq!(pools("Pools from testfs:\ntestfs.hdd\ntestfs.ssd\n", "testfs"), ["hdd", "ssd"]);
        assert_eq!(members("Pool: testfs.hdd\ntestfs-OST0000_UUID\ntestfs-OST000a_UUID\n"), Ok(vec![0, 10]));
        assert!(members("Pool: testfs.hdd\nwhat\n").is_err());
    }

    /// `Parser_version` in parser.c; LUSTRE-VERSION-GEN appends commits and vendors' numbers.
    #[test]
    fn versions() {
        for (text, numbers) in [
            ("lfs 2.15.8\n", [2, 15, 8]),
            ("lfs 2.15.4_53_g1a2b3c4", [2, 15, 4]),
            ("lfs 2.17.57_ddn3", [2, 17, 57]),
            ("lfs 2.16", [2, 16, 0]),
            ("lfs: unknown", [0; 3]),
            ("", [0; 3]),
        ] {
            assert_eq!(version(text), numbers, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "(testfs|-OST|_UUID|[0-9a-f]{0,20}|% |/m|\\[OST:|\\]|Pool:|: inactive device| |\n){0,30}") {
            let _ = (version(&text), Osts::parse(&text), members(&text), pools(&text, "testfs"));
        }
    }
}
