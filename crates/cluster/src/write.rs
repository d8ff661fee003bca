//! Writers for parts of TOML files.

/// A text as a TOML basic string: valid for values and keys, always on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text as a TOML key: bare where possible.
pub(crate) fn key(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(bare) { text.to_owned() } else { quoted(text) }
}

/// Keys with their numbers, as [`crate::reader::Table::amounts`] reads them.
pub(crate) fn amounts<const N: usize>(keys: [&str; N], amounts: [f64; N]) -> [String; N] {
    std::array::from_fn(|index| format!("{} = {:?}", keys[index], amounts[index]))
}
