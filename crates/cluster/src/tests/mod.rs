//! Tests of the file formats, and their shared helpers.

mod cluster;
mod driver;
mod fold;
mod overlay;
mod pattern;
mod plan;
mod profile;
mod reach;

use proptest::prelude::*;

/// A cluster file with every key.
pub const CLUSTER: &str = r#"
[network]
establish_s = 3.0e-4            # e
per_byte_s  = 7.95e-9           # t

[class.hdd]
read.random      = { startup_s = 3.0e-4, per_byte_s = 7.95e-9 }
read.sequential  = { startup_s = 1.0e-4, per_byte_s = 7.95e-9 }
write.random     = { startup_s = 4.0e-4, per_byte_s = 7.95e-9 }
write.sequential = { startup_s = 2.0e-4, per_byte_s = 7.95e-9 }

[class.ssd]
read.random      = { startup_s = 5.0e-5, per_byte_s = 2.38e-9 }
read.sequential  = { startup_s = 5.0e-5, per_byte_s = 2.38e-9 }
write.random     = { startup_s = 5.0e-5, per_byte_s = 2.38e-9 }
write.sequential = { startup_s = 5.0e-5, per_byte_s = 2.38e-9 }

[[tier]]
name = "hdd"
class = "hdd"
driver = "dirs"                 # dirs | cephfs | lustre | beegfs | orangefs
servers = ["/disks/h0", "/disks/h1"]
capacity_per_server = "1T"
emulate = true

[[tier]]
name = "ssd"
class = "ssd"
driver = "dirs"
servers = ["/disks/s0", "/disks/s1"]
capacity_per_server = "256M"
"#;

/// A valid text with a few random edits: bytes replaced, ranges dropped or duplicated.
pub fn mutated(valid: &'static str) -> impl Strategy<Value = String> {
    let edit = (0..valid.len(), 0usize..40, 0u8..4, "[ -~\n]{0,4}");
    prop::collection::vec(edit, 1..4).prop_map(|edits| {
        let mut text = valid.as_bytes().to_vec();
        for (at, len, kind, insert) in edits {
            let at = at.min(text.len());
            let end = (at + len).min(text.len());
            let replacement = match kind {
                0 => Vec::new(),
                1 => text[at..end].repeat(2),
                _ => insert.into_bytes(),
            };
            let end = if kind == 2 { at } else { end };
            text.splice(at..end, replacement);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Asserts that the message is one line that begins with the file's name.
pub fn assert_clear(message: &str) {
    assert!(message.starts_with("some.toml"), "{message}");
    assert!(!message.contains('\n'), "{message}");
    assert!(message.len() > "some.toml: ".len() + 8, "{message}");
}
