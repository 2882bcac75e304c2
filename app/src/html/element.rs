//! Pieces of HTML.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A text that is safe inside an element and inside a quoted attribute.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in HTML; a model writes whatever it likes.
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f' => safe.push('\u{fffd}'),
            _ => safe.push(letter),
        }
    }
    safe
}

/// A link that holds a file.
#[must_use]
pub fn download(name: &str, kind: &str, content: &str, words: &str) -> String {
    format!(
        "<a download=\"{}\" href=\"data:{kind};base64,{}\">{}</a>",
        escaped(name),
        STANDARD.encode(content),
        escaped(words)
    )
}

/// A figure with its caption, and links to it as SVG and to its data as CSV. `svg` is HTML already.
#[must_use]
pub fn figure(name: &str, caption: &str, svg: &str, csv: &str) -> String {
    format!(
        "<figure>{svg}<figcaption>{} <span class=\"links\">{} {}</span></figcaption></figure>\n",
        escaped(caption),
        download(&format!("{name}.svg"), "image/svg+xml", svg, "SVG"),
        download(&format!("{name}.csv"), "text/csv", csv, "CSV")
    )
}

/// A table; the first row is its head.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let line = |cells: &[String], tag: &str| {
        let cells = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let Some((head, body)) = rows.split_first() else {
        return String::new();
    };
    let body: String = body.iter().map(|row| line(row, "td")).collect();
    format!(
        "<table><thead>{}</thead><tbody>{body}</tbody></table>\n",
        line(head, "th")
    )
}

#[cfg(test)]
mod tests {
    use super::{escaped, table};

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            escaped("<script>\"a\" & 'b'\0"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\u{fffd}"
        );
        let rows = [vec!["a".to_owned()], vec!["<b>".to_owned()]];
        assert_eq!(
            table(&rows),
            "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>\n"
        );
    }
}
