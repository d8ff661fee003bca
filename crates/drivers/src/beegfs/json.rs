//! Parsers for the output of BeeGFS 8's `beegfs --output json --raw`.
//!
//! The tool prints lists of objects with a key for each column (ctl/internal/cmdfmt/json.go in
//! ThinkParQ/beegfs-go). A target is `s:101` within a text and `{"num_id":101,"node_type":3}` on
//! its own (`LegacyId` in common/beegfs/entity.go). Errors name the field that is missing or not
//! understood.

use serde_json::{Deserializer, Value};

use crate::driver::Pool;

/// The entry of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub is_dir: bool,
    /// The stripe pattern: `RAID0`, `Buddy Mirror`, ...
    pub pattern: String,
    pub count: u32,
    pub width: u64,
    /// The storage pool; directories only.
    pub pool: Option<String>,
    /// The targets, in order; files only.
    pub targets: Vec<String>,
}

impl Entry {
    /// Parses the output of `beegfs entry info` (`assembleTableRow` in
    /// ctl/internal/cmd/entry/info.go).
    pub fn parse(text: &str) -> Result<Self, String> {
        let rows = rows(text)?;
        let row = rows.first().ok_or("no entry")?;
        let field = |name: &str| row[name].as_str().ok_or_else(|| format!("no {name}"));
        // `RAID0 (4x524288)`
        let said = field("stripe_pattern")?;
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
            targets: if is_dir { Vec::new() } else { numbers(targets) },
        })
    }
}

/// Parses the output of `beegfs pool list` (ctl/internal/cmd/pool/list.go), which does not tell the
/// free space.
pub fn pools(text: &str) -> Result<Vec<Pool>, String> {
    let pool = |row: &Value| {
        let name = row["alias"].as_str().ok_or("a pool without an alias")?.to_owned();
        let targets = numbers(row["targets"].as_str().ok_or("a pool without targets")?);
        Ok(Pool { name, servers: Some(targets.len() as u32), server_names: targets, free_bytes: None })
    };
    rows(text)?.iter().map(pool).collect()
}

/// Parses the output of `beegfs target list --capacity` (ctl/internal/cmd/target/list.go): (number
/// of the target, free bytes).
pub fn free_space(text: &str) -> Result<Vec<(String, u64)>, String> {
    let free = |row: &Value| {
        let number = row["id"]["num_id"].as_u64().map(|number| number.to_string());
        let number = number.or_else(|| numbers(row["id"].as_str()?).pop())?;
        Some((number, row["sfree"].as_str()?.parse().ok()?))
    };
    // Skips metadata targets, whose numbers overlap with these, and targets that do not answer,
    // which have no free space.
    Ok(rows(text)?.iter().filter(|row| is_storage(row)).filter_map(free).collect())
}

fn is_storage(row: &Value) -> bool {
    row["pool"].as_str().is_some_and(|pool| pool != "n/a")
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
fn numbers(text: &str) -> Vec<String> {
    let targets = text.split([',', '\n']).map(|target| target.trim().trim_start_matches("s:"));
    targets.filter(|target| !target.is_empty()).map(str::to_owned).collect()
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
        let text = r#"[{"id":{"num_id":101,"node_type":3},"pool":"Default","sfree":"1024"},
            {"id":{"num_id":1,"node_type":2},"pool":"n/a","sfree":"7"},
            {"id":"s:102","pool":"Default","sfree":"-"}]"#;
        assert_eq!(free_space(text).unwrap(), [("101".to_owned(), 1024)]);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "\\PC{0,60}", pattern in "[A-Z0-9 ()x]{0,16}", targets in "[s:0-9,()a-z]{0,16}") {
            let row = serde_json::json!([{"stripe_pattern": pattern, "storage_targets": targets, "storage_pool": text,
                "alias": text, "targets": targets, "id": {"num_id": pattern}, "pool": "x", "sfree": pattern}]).to_string();
            for text in [text, row] {
                let _ = (Entry::parse(&text), pools(&text), free_space(&text));
            }
        }
    }
}
