//! Text as a part of HTML and SVG.

/// Returns a text that a browser shows as it is, in elements and in quoted attributes. Characters
/// that no document may contain become the replacement character.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(one),
            one if one.is_control() => out.push('\u{fffd}'),
            one => out.push(one),
        }
    }
    out
}

/// Returns the element that gives a part of a picture its title; empty without a title.
pub fn titled(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_texts_is_text() {
        let text = escaped("</script><b title='x'>\"a\" & \u{1b}[1m\u{0}\n");
        let shown = "&lt;/script&gt;&lt;b title=&#39;x&#39;&gt;&quot;a&quot; &amp; ";
        assert_eq!(text, format!("{shown}\u{fffd}[1m\u{fffd}\n"));
    }
}
