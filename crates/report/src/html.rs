//! Finishes documents that are made with maud, which escapes texts and closes elements. (Elements
//! without content are written `rect {}`, so that pages are well-formed XML, too.)

use std::fmt::Write;

use maud::Markup;

/// Returns the document as text.
///
/// Characters that a page must not contain, or that would change the direction of the text around
/// them, are written as `\u{..}`; a file name can contain such characters.
pub fn document(markup: Markup) -> String {
    // An element whose classes are all switched off has an attribute without content.
    let text = markup.0.replace(" class=\"\"", "");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_invisible(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    fn escaped(text: &str) -> String {
        document(html! { (text) })
    }

    #[test]
    fn markup_in_texts_stays_text() {
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
        assert_eq!(escaped("plain ü €"), "plain ü €");
    }

    #[test]
    fn invisible_characters_become_visible() {
        assert_eq!(escaped("a\u{1}b\u{202e}c\tz"), "a\\u{1}b\\u{202e}c\\u{9}z");
        assert_eq!(escaped("\u{fffd}"), "\u{fffd}");
    }
}
