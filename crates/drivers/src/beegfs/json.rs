//! Parsers for the output of BeeGFS 8's `beegfs --output json --raw`.
//!
//! The tool prints lists of objects with a key for each column (ctl/internal/cmdfmt/json.go in
//! ThinkParQ/beegfs-go). A target is `s:101` within a text and `{"num_id":101,"node_type":3}` on
//! its own (`LegacyId` in common/beegfs/entity.go). Errors name the field that is missing or not
//! understood.

use serde_json::{Deserializer, Value};

use crate::driver::Pool;

/// The number of storage in `NodeType` (common/beegfs/nodetype.go), and that of metadata.
const STORAGE: u64 = 3;
const METADATA: u64 = 2;

/// The entry of a file or directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The reason why the metadata server does not tell the pattern now; the other fields are then
    /// empty.
    pub unavailable: Option<String>,
    pub is_dir: bool,
    /// The stripe pattern: `RAID0`, `Buddy Mirror`, ...
    pub pattern: String,
    pub count: u32,
    pub width: u64,
    /// The storage pool; directories only.
    pub pool: Option<String>,
    /// The targets, in order; files that are not mirrored only.
    pub targets: Vec<String>,
}

impl Entry {
    /// Parses the output of `beegfs entry info` (`assembleTableRow` in
    /// ctl/internal/cmd/entry/info.go).
    pub fn parse(text: &str) -> Result<Self, String> {
        let rows = rows(text)?;
        let row = rows.first().ok_or("no entry")?;
        let field = |name: &str| row[name].as_str().ok_or_else(|| format!("no {name}"));
        let said = field("stripe_pattern")?;
        // 8.4 gives the reason in every column, as `(unavailable: Inode is locked)`. Earlier
        // releases show a pattern without a type.
        if let Some(reason) = said.strip_prefix("(unavailable") {
            let reason = reason.trim_matches([':', ' ', ')']).to_owned();
            return Ok(Self { unavailable: Some(reason), ..Self::default() });
        }
        // `RAID0 (4x524288)`
        let shape = || -> Option<(String, u32, u64)> {
            let (kind, rest) = said.rsplit_once(" (")?;
            let (count, width) = rest.strip_suffix(')')?.split_once('x')?;
            Some((kind.to_owned(), count.parse().ok()?, width.parse().ok().filter(|&width| width > 0)?))
        };
        let (pattern, count, width) = shape().ok_or_else(|| format!("stripe_pattern {said:?}"))?;
        let targets = field("storage_targets")?;
        let is_dir = targets == "(directory)";
        Ok(Self {
            is_dir,
            pattern,
            count,
            width,
            // `Default (1)`
            pool: if is_dir {
                field("storage_pool")?.rsplit_once(" (").map(|(name, _)| name.to_owned())
            } else {
                None
            },
            // `(mirrored)`: buddy groups are in another column.
            targets: if ["(directory)", "(mirrored)"].contains(&targets) {
                Vec::new()
            } else {
                numbers(targets)?
            },
            unavailable: None,
        })
    }

    /// A directory's pattern as text, for [`Actual::exact`](crate::Actual::exact).
    pub fn exact(&self) -> String {
        let Self { pattern, count, width, pool, .. } = self;
        let pool = pool.as_deref().unwrap_or_default();
        format!("pattern={pattern}\ncount={count}\nchunk={width}\npool={pool}")
    }

    /// The directory of a text of [`Entry::exact`]; `None`: it is none.
    pub fn of_exact(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix('=');
        let (pattern, count, width) = (value("pattern")?, value("count")?, value("chunk")?);
        let pool = Some(value("pool")?.to_owned()).filter(|pool| !pool.is_empty());
        let (count, width) = (count.parse().ok()?, width.parse().ok().filter(|&width| width > 0)?);
        Some(Self { is_dir: true, pattern: pattern.to_owned(), count, width, pool, ..Self::default() })
    }
}

/// Parses the output of `beegfs pool list` (ctl/internal/cmd/pool/list.go), which does not tell the
/// free space.
pub fn pools(text: &str) -> Result<Vec<Pool>, String> {
    let pool = |row: &Value| {
        let name = row["alias"].as_str().ok_or("a pool without an alias")?.to_owned();
        let targets = match row["targets"].as_str().ok_or("a pool without targets")? {
            "" => Vec::new(),
            targets => numbers(targets)?,
        };
        Ok(Pool { name, servers: Some(targets.len() as u32), server_names: targets, ..Pool::default() })
    };
    rows(text)?.iter().map(pool).collect()
}

/// Parses the output of `beegfs target list --capacity` (ctl/internal/cmd/target/list.go): (number
/// of the storage target, free bytes where the management knows them).
pub fn free_space(text: &str) -> Result<Vec<(String, Option<u64>)>, String> {
    let mut all = Vec::new();
    for row in rows(text)? {
        let id =
            |field: &str| row["id"][field].as_u64().ok_or_else(|| format!("a target without {field}: {row}"));
        let number = id("num_id")?.to_string();
        match id("node_type")? {
            STORAGE => all.push((number, free_bytes(&row)?)),
            // Their numbers overlap with those of storage targets.
            METADATA => {}
            other => return Err(format!("target {number} of node_type {other}")),
        }
    }
    Ok(all)
}

fn free_bytes(row: &Value) -> Result<Option<u64>, String> {
    match row["space_free"].as_str() {
        Some("-") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| format!("space_free {text:?}")),
        None => Err(format!("a target without space_free: {row}")),
    }
}

/// The rows of one list or, where there are many rows, of several concatenated lists.
fn rows(text: &str) -> Result<Vec<Value>, String> {
    let mut rows = Vec::new();
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        match value.map_err(|error| error.to_string())? {
            Value::Array(more) => rows.extend(more),
            other => return Err(format!("no list but {other}")),
        }
    }
    Ok(rows)
}

/// Splits a list such as `s:101,s:102`.
fn numbers(text: &str) -> Result<Vec<String>, String> {
    let number = |target: &str| {
        let number = target.strip_prefix("s:").filter(|number| number.parse::<u16>().is_ok());
        number.map(str::to_owned).ok_or_else(|| format!("targets {text:?}"))
    };
    text.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = r#"[{"entry_id":"2-6","meta_mirror":"(unmirrored)","meta_node":"m:1","path":"/f","remote_targets":"(none)",
        "storage_mirrors":"(unmirrored)","storage_pool":"(file)","storage_targets":"s:102,s:101",
        "stripe_pattern":"RAID0 (4x524288)","type":2}]

"#;

    #[test]
    fn files_and_directories() {
        let file = Entry::parse(FILE).unwrap();
        assert_eq!(
            (file.count, file.width, &file.targets[..]),
            (4, 524288, &["102".to_owned(), "101".to_owned()][..])
        );
        let dir = FILE.replace("s:102,s:101", "(directory)").replace("(file)", "my pool (2)");
        let dir = Entry::parse(&dir).unwrap();
        assert_eq!((dir.is_dir, dir.pool.as_deref(), dir.pattern.as_str()), (true, Some("my pool"), "RAID0"));
        for (text, what) in [
            ("", "no entry"),
            ("[]", "no entry"),
            ("{}", "no list"),
            ("[{}]", "no stripe_pattern"),
            (&FILE.replace("4x524288", "4x512Ki"), "stripe_pattern \"RAID0 (4x512Ki)\""),
            ("[", "EOF"),
            // A locked inode before 8.4, a file without targets, and a row with --debug.
            (&FILE.replace("RAID0 (4x524288)", "invalid (0x0)"), "stripe_pattern \"invalid (0x0)\""),
            (&FILE.replace("s:102,s:101", "(unavailable)"), "targets \"(unavailable)\""),
            (&FILE.replace("s:102,s:101", ""), "targets \"\""),
            (&FILE.replace("s:102", "target_102[s:102, uid:9]"), "targets "),
        ] {
            let error = Entry::parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn pools_and_space() {
        let text = r#"[{"alias":"Default","id":{"num_id":1,"node_type":3},"mirrors":"","targets":"s:101,s:102"},
            {"alias":"fast","id":{"num_id":2,"node_type":3},"mirrors":"","targets":""}]"#;
        let pools = pools(text).unwrap();
        assert_eq!((pools[0].servers, pools[1].name.as_str(), pools[1].servers), (Some(2), "fast", Some(0)));
    }

    /// Rows as `PrintTargetList` in ctl/internal/cmd/target/list.go makes them, 8.0.0 to 8.4.0.
    #[test]
    fn the_space_of_every_target_or_an_error() {
        let row = |number: u32, kind: u32, free: &str| {
            let pool = if kind == 3 { "s:1" } else { "(n/a)" };
            format!(
                r#"{{"id":{{"num_id":{number},"node_type":{kind}}},"storage_pool":"{pool}",{free}"alias":"a"}}"#
            )
        };
        let text = [row(1, 2, ""), row(101, 3, r#""space_free":"1024","#), row(102, 3, r#""space_free":"-","#)];
        let expected = [("101".to_owned(), Some(1024)), ("102".to_owned(), None)];
        assert_eq!(free_space(&format!("[{}]", text.join(","))).unwrap(), expected);
        for (text, what) in [
            (row(101, 3, ""), "a target without space_free"),
            (row(101, 3, r#""space_free":"1.0KiB","#), "space_free \"1.0KiB\""),
            (row(101, 7, ""), "target 101 of node_type 7"),
            (r#"{"space_free":"1"}"#.to_owned(), "a target without num_id"),
        ] {
            let error = free_space(&format!("[{text}]")).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "\\PC{0,60}", pattern in "[A-Z0-9 ()x]{0,16}", targets in "[s:0-9,()a-z]{0,16}") {
            let row = serde_json::json!([{"stripe_pattern": pattern, "storage_targets": targets, "storage_pool": text,
                "alias": text, "targets": targets, "id": {"num_id": 1, "node_type": 3}, "space_free": pattern}]).to_string();
            for text in [text, row] {
                let _ = (Entry::parse(&text), pools(&text), free_space(&text));
            }
        }
    }
}
