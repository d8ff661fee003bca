//! Renders the explanations' Markdown as HTML: paragraphs, lists, tables, `code`, **bold**,
//! [links](…).

use stripewise_report::html::Html;

/// Writes a text.
pub fn blocks(h: &mut Html, text: &str) {
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        if block.starts_with("- ") {
            h.element("ul", &[], |h| {
                for item in items(block) {
                    h.element("li", &[], |h| inline(h, &item));
                }
            });
        } else if block.starts_with('|') {
            table(h, block);
        } else {
            h.element("p", &[], |h| inline(h, &joined(block)));
        }
    }
}

fn joined(block: &str) -> String {
    block.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Returns the items of a list, with their lines joined.
fn items(block: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("- "), items.last_mut()) {
            (None, Some(last)) => *last = format!("{last} {}", line.trim()),
            (start, _) => items.push(start.unwrap_or(line).to_owned()),
        }
    }
    items
}

fn table(h: &mut Html, block: &str) {
    let rows = block.lines().map(|line| {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split('|').map(str::trim).collect::<Vec<_>>()
    });
    let is_rule = |cells: &Vec<&str>| cells.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c)));
    h.element("div", &[("class", "scroll"), ("tabindex", "0")], |h| {
        h.element("table", &[], |h| {
            for (index, cells) in rows.filter(|cells| !is_rule(cells)).enumerate() {
                let tag = if index == 0 { "th" } else { "td" };
                h.element("tr", &[], |h| {
                    cells.iter().for_each(|cell| h.element(tag, &[], |h| inline(h, cell)));
                });
            }
        });
    });
}

/// Writes a line with its markup. An unclosed mark is text.
pub fn inline(h: &mut Html, text: &str) {
    let mut rest = text;
    while let Some(start) = rest.find(['`', '*', '[']) {
        let (before, marked) = rest.split_at(start);
        h.text(before);
        match take(h, marked) {
            Some(after) => rest = after,
            None => {
                let (mark, after) = marked.split_at(1);
                h.text(mark);
                rest = after;
            }
        }
    }
    h.text(rest);
}

/// Writes the marked text at the start of `text`. Returns the rest; `None` if there is no complete
/// mark.
fn take<'a>(h: &mut Html, text: &'a str) -> Option<&'a str> {
    if let Some(inside) = text.strip_prefix("**") {
        let (bold, after) = inside.split_once("**")?;
        h.element("b", &[], |h| inline(h, bold));
        return Some(after);
    }
    if let Some(inside) = text.strip_prefix('`') {
        let (code, after) = inside.split_once('`')?;
        h.leaf("code", &[], code);
        return Some(after);
    }
    let (label, after) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = after.split_once(')')?;
    h.element("a", &[("href", target)], |h| inline(h, label));
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        let mut h = Html::default();
        blocks(&mut h, text);
        h.finish().replace('\n', "")
    }

    #[test]
    fn marks_and_blocks() {
        assert_eq!(
            html("One\nline, **bold `x`** & [here](a.md#b).\n\n\nTwo * 3 [x] `open"),
            "<p>One line, <b>bold <code>x</code></b> &amp; <a href=\"a.md#b\">here</a>.</p><p>Two * 3 [x] `open</p>"
        );
        assert_eq!(html("- a\n  b\n- c"), "<ul><li>a b</li><li>c</li></ul>");
        let table = html("| a | b |\n|---|--:|\n| 1 | `2` |");
        assert!(
            table.contains("<tr><th>a</th><th>b</th></tr><tr><td>1</td><td><code>2</code></td></tr>"),
            "{table}"
        );
    }

    proptest::proptest! {
        /// For any input, no text except the marks is lost, and the result is well-formed.
        #[test]
        fn any_text(text in "([a-z <&*`|\\[\\]()\n-]|é|\\*\\*|\\]\\(|\n\n|- ){0,60}") {
            let page = format!("<div>{}</div>", html(&text));
            let page = roxmltree::Document::parse(&page).unwrap();
            let letters = |text: &str| text.chars().filter(|c| c.is_ascii_lowercase()).count();
            let shown = page.descendants().filter(|node| node.is_text()).filter_map(|node| node.text());
            let targets = page.descendants().filter_map(|node| node.attribute("href"));
            let kept: usize = shown.chain(targets).map(letters).sum();
            proptest::prop_assert_eq!(kept, letters(&text));
        }
    }
}
