//! Writes tables and values. Strings are basic: in double quotes, with escapes.

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
    if !key.is_empty() && key.chars().all(is_bare) {
        text.push_str(key);
    } else {
        push_string(text, key);
    }
}

fn push_string(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            _ if is_control(letter) => text.push_str(&format!("\\u{:04X}", u32::from(letter))),
            _ => text.push(letter),
        }
    }
    text.push('"');
}
