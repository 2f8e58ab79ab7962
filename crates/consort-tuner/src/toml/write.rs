//! Writes tables and values.
//!
//! A string gets the first form that needs no escape: `"basic"`, `'literal'`, or one of the two
//! forms with three quotes, which may contain both kinds of quotes and line ends. If every form
//! needs escapes, the string is basic.

use std::fmt::Display;

/// A text that grows line by line.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
}

impl Writer {
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Begins the table with this name, which consists of one or more keys.
    pub(crate) fn table(&mut self, names: &[&str]) {
        self.header("[", names, "]\n");
    }

    /// Begins another table of an array.
    pub(crate) fn table_of(&mut self, array: &str) {
        self.header("[[", &[array], "]]\n");
    }

    fn header(&mut self, start: &str, names: &[&str], end: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(start);
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                self.text.push('.');
            }
            push_key(&mut self.text, name);
        }
        self.text.push_str(end);
    }

    /// Writes an integer or a boolean.
    pub(crate) fn plain(&mut self, key: &str, value: impl Display) {
        self.pair(key, |text| text.push_str(&value.to_string()));
    }

    pub(crate) fn string(&mut self, key: &str, value: impl Display) {
        self.pair(key, |text| push_string(text, &value.to_string()));
    }

    pub(crate) fn strings(&mut self, key: &str, values: impl IntoIterator<Item = impl Display>) {
        self.array(key, values, |text, value| push_string(text, &value.to_string()));
    }

    pub(crate) fn float(&mut self, key: &str, value: f64) {
        self.pair(key, |text| push_float(text, value));
    }

    pub(crate) fn floats(&mut self, key: &str, values: impl IntoIterator<Item = f64>) {
        self.array(key, values, push_float);
    }

    fn array<T>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
        push: impl Fn(&mut String, T),
    ) {
        self.pair(key, |text| {
            text.push('[');
            for (index, value) in values.into_iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                push(text, value);
            }
            text.push(']');
        });
    }

    fn pair(&mut self, key: &str, push_value: impl FnOnce(&mut String)) {
        push_key(&mut self.text, key);
        self.text.push_str(" = ");
        push_value(&mut self.text);
        self.text.push('\n');
    }
}

/// Returns whether a character may be part of a key without quotes.
pub(super) fn is_bare(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

/// Returns whether a character, such as a line end, must be escaped in a basic string.
pub(super) fn is_control(letter: char) -> bool {
    letter.is_ascii_control() && letter != '\t'
}

/// Writes a float so that it does not read as an integer: with a fraction, or as `nan` or `inf`.
fn push_float(text: &mut String, value: f64) {
    if value.is_nan() {
        text.push_str("nan");
        return;
    }
    text.push_str(&value.to_string());
    if value % 1.0 == 0.0 {
        text.push_str(".0");
    }
}

fn push_key(text: &mut String, key: &str) {
    let is_escaped = key.contains(is_control);
    if !key.is_empty() && key.chars().all(is_bare) {
        text.push_str(key);
    } else if is_escaped || key.contains(['"', '\\']) && key.contains('\'') {
        push_basic(text, "\"", key);
    } else if key.contains(['"', '\\']) {
        push_quoted(text, "'", key);
    } else {
        push_basic(text, "\"", key);
    }
}

fn push_string(text: &mut String, value: &str) {
    let is_escaped = value.contains(|letter| is_control(letter) && letter != '\n');
    let (has_lines, has_backslashes) = (value.contains('\n'), value.contains('\\'));
    let is_basic = has_lines || has_backslashes || value.contains('"');
    if !is_escaped {
        if !is_basic {
            return push_basic(text, "\"", value);
        }
        if !has_lines && !value.contains('\'') {
            return push_quoted(text, "'", value);
        }
        if !has_backslashes && !value.contains("\"\"\"") {
            return push_basic(text, "\"\"\"", value);
        }
        if !value.contains("'''") {
            return push_quoted(text, "'''", value);
        }
    }
    push_basic(text, if has_lines { "\"\"\"" } else { "\"" }, value);
}

/// Writes a text as it is. A line end right after the opening quotes is not part of a long string.
fn push_quoted(text: &mut String, quotes: &str, value: &str) {
    text.push_str(quotes);
    if quotes.len() > 1 && value.contains('\n') {
        text.push('\n');
    }
    text.push_str(value);
    text.push_str(quotes);
}

/// Writes a text with escapes.
fn push_basic(text: &mut String, quotes: &str, value: &str) {
    let is_long = quotes.len() > 1;
    text.push_str(quotes);
    if is_long && value.contains('\n') {
        text.push('\n');
    }
    let mut quotes_in_row = 0;
    for letter in value.chars() {
        quotes_in_row = if letter == '"' { quotes_in_row + 1 } else { 0 };
        match letter {
            // Three would end a long string.
            '"' if is_long && quotes_in_row < 3 => text.push('"'),
            '\n' if is_long => text.push('\n'),
            '"' => {
                quotes_in_row = 0;
                text.push_str("\\\"");
            }
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            _ if is_control(letter) => text.push_str(&format!("\\u{:04X}", u32::from(letter))),
            _ => text.push(letter),
        }
    }
    text.push_str(quotes);
}
