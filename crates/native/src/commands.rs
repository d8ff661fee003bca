//! Command lines as words, and as text for a shell.

/// One call of a tool: the program and its arguments.
pub type Call = Vec<String>;

pub(crate) fn words(words: &[&str]) -> Call {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Quotes a word for a shell. Placeholders stay as they are, because they must be replaced anyway.
pub fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    let placeholder = text.trim_start_matches("--pool=").starts_with("POOL(") && text.ends_with(')');
    if placeholder || (!text.is_empty() && text.chars().all(plain)) {
        text.to_owned()
    } else if text.contains(['"', '\'', '$', '`', '\\', '!']) {
        format!("'{}'", text.replace('\'', "'\\''"))
    } else {
        format!("\"{text}\"")
    }
}
