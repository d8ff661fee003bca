//! Writes HTML that is well-formed and escaped by construction: elements nest as closures do, and
//! every text and attribute goes through [`escape`]. The result is also well-formed XML.

use std::fmt::Write;

/// Attributes as (name, value). An empty class is omitted.
pub type Attributes<'a> = &'a [(&'a str, &'a str)];

/// The page under construction.
#[derive(Debug, Default)]
pub struct Html {
    out: String,
}

impl Html {
    /// Writes an element with the content that `inside` writes.
    pub fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, inside: impl FnOnce(&mut Self)) {
        self.start(tag, attributes);
        self.out.push('>');
        inside(self);
        let _ = write!(self.out, "</{tag}>");
        // Line ends keep the source readable. They follow only block elements, where they cannot
        // become visible spaces.
        if matches!(
            tag,
            "section" | "div" | "p" | "tr" | "table" | "figure" | "svg" | "li" | "h2" | "h3" | "h4"
        ) {
            self.out.push('\n');
        }
    }

    /// Writes an element with text.
    pub fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.element(tag, attributes, |h| h.text(text));
    }

    /// Writes an element that never has content, such as `meta`, `br` or `rect`.
    pub fn empty(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.start(tag, attributes);
        self.out.push_str("/>");
    }

    /// Writes text, escaped.
    pub fn text(&mut self, text: &str) {
        escape(&mut self.out, text);
    }

    /// Writes markup verbatim. Only for constants of this crate.
    pub fn raw(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// Returns the page.
    pub fn finish(self) -> String {
        self.out
    }

    fn start(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            if *name == "class" && value.is_empty() {
                continue;
            }
            let _ = write!(self.out, " {name}=\"");
            escape(&mut self.out, value);
            self.out.push('"');
        }
    }
}

/// Appends `text`, escaped for use between tags and in quoted attributes.
///
/// Characters that a page must not contain, or that would change the direction of the text around
/// them, are written as `\u{..}`; a file name can contain such characters.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push(c),
            c if is_invisible(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        escape(&mut out, text);
        out
    }

    #[test]
    fn markup_in_texts_stays_text() {
        assert_eq!(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        assert_eq!(escaped("plain ü €"), "plain ü €");
    }

    #[test]
    fn invisible_characters_become_visible() {
        assert_eq!(escaped("a\u{1}b\u{202e}c\tz"), "a\\u{1}b\\u{202e}c\\u{9}z");
        assert_eq!(escaped("\u{fffd}"), "\u{fffd}");
    }

    #[test]
    fn elements_close_in_order() {
        let mut html = Html::default();
        html.element("td", &[("class", "a\"b")], |h| {
            h.empty("br", &[]);
            h.leaf("code", &[], "x<y");
        });
        assert_eq!(html.finish(), "<td class=\"a&quot;b\"><br/><code>x&lt;y</code></td>");
    }
}
