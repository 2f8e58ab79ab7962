//! Reads a text into tables and values.

use std::collections::btree_map::Entry;

use super::{
    Error, Node, TomlTable, Value, ValueKind, shown,
    write::{is_bare, is_control},
};

pub(crate) fn read(bytes: &[u8]) -> Result<TomlTable, Error> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        Error { line, message: "expected text in UTF-8".to_owned() }
    })?;
    let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    Reader { rest, line: 1 }.document()
}

/// The rest of the text, and the line number of its beginning.
struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Reader<'t> {
    fn document(mut self) -> Result<TomlTable, Error> {
        let mut root = TomlTable::at(self.line, true);
        let mut table = &mut root;
        loop {
            self.skip_blank()?;
            if self.rest.is_empty() {
                return Ok(root);
            }
            if self.rest.starts_with('[') {
                table = self.header(&mut root)?;
            } else {
                self.pair(table)?;
            }
            self.end_of_line()?;
        }
    }

    /// Reads the header of a table, and adds the table to the earlier ones.
    fn header<'r>(&mut self, root: &'r mut TomlTable) -> Result<&'r mut TomlTable, Error> {
        let is_array = self.take("[[");
        let end = if is_array { "]]" } else { "]" };
        if !is_array {
            self.take("[");
        }
        let name = self.name()?;
        if !self.take(".") {
            self.expect(end)?;
            return self.add(root, &name, is_array);
        }
        let part = self.name()?;
        if self.rest.starts_with('.') {
            return Err(
                self.unsupported("a table of more than two names, as in `[one.two.three]`,")
            );
        }
        self.expect(end)?;
        let table = self.open(root, &name)?;
        self.add(table, &part, is_array)
    }

    /// Reads one name of a table.
    fn name(&mut self) -> Result<String, Error> {
        self.skip_spaces();
        let name = self.key()?;
        self.skip_spaces();
        Ok(name)
    }

    /// Adds a table that a header names.
    fn add<'r>(
        &self,
        table: &'r mut TomlTable,
        name: &str,
        is_array: bool,
    ) -> Result<&'r mut TomlTable, Error> {
        let node = table.nodes.entry(name.to_owned()).or_insert_with(|| match is_array {
            true => Node::Tables(Vec::new()),
            false => Node::TomlTable(TomlTable::at(self.line, false)),
        });
        let first = node.line();
        match node {
            Node::Tables(all) if is_array => Ok(all.push_mut(TomlTable::at(self.line, true))),
            Node::TomlTable(new) if !is_array && !new.is_named => {
                (new.is_named, new.line) = (true, self.line);
                Ok(new)
            }
            _ => Err(self.duplicate(name, first)),
        }
    }

    /// Returns the table that contains another; of an array, the last table.
    fn open<'r>(&self, table: &'r mut TomlTable, name: &str) -> Result<&'r mut TomlTable, Error> {
        let implied = || Node::TomlTable(TomlTable::at(self.line, false));
        let node = table.nodes.entry(name.to_owned()).or_insert_with(implied);
        let first = node.line();
        let inner = match node {
            Node::Value(_) => None,
            Node::TomlTable(table) => Some(table),
            Node::Tables(tables) => tables.last_mut(),
        };
        inner.ok_or_else(|| self.duplicate(name, first))
    }

    /// Reads a line with a key and a value, and adds it to a table.
    fn pair(&mut self, table: &mut TomlTable) -> Result<(), Error> {
        let line = self.line;
        let key = self.key()?;
        self.skip_spaces();
        if self.rest.starts_with('.') {
            return Err(self.unsupported("a dotted key"));
        }
        if !self.take("=") {
            let (key, found) = (shown(&key), self.found());
            return Err(self.error(format!("expected `=` after the key `{key}`, not {found}")));
        }
        self.skip_spaces();
        let value = self.value(false)?;
        match table.nodes.entry(key) {
            Entry::Occupied(entry) => {
                Err(Error { line, ..self.duplicate(entry.key(), entry.get().line()) })
            }
            Entry::Vacant(entry) => {
                entry.insert(Node::Value(value));
                Ok(())
            }
        }
    }

    fn key(&mut self) -> Result<String, Error> {
        if let Some(quote) = self.rest.chars().next().filter(|it| matches!(it, '"' | '\'')) {
            return self.string(quote);
        }
        let key = self.take_while(is_bare);
        if key.is_empty() {
            let found = self.found();
            return Err(self.error(format!("expected a key, not {found}")));
        }
        Ok(key.to_owned())
    }

    fn value(&mut self, is_in_array: bool) -> Result<Value, Error> {
        let line = self.line;
        let kind = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => ValueKind::String(self.string(quote)?),
            Some('[') if is_in_array => return Err(self.unsupported("an array within an array")),
            Some('[') => self.array()?,
            Some('{') => return Err(self.unsupported("an inline table")),
            _ => self.word()?,
        };
        Ok(Value { line, kind })
    }

    fn array(&mut self) -> Result<ValueKind, Error> {
        let line = self.line;
        self.take("[");
        let mut values = Vec::new();
        loop {
            self.skip_blank()?;
            if self.take("]") {
                return Ok(ValueKind::Array(values));
            }
            if self.rest.is_empty() {
                let message = "this array has no end: expected `]`".to_owned();
                return Err(Error { line, message });
            }
            values.push(self.value(true)?);
            self.skip_blank()?;
            if !self.take(",") && !self.rest.starts_with(']') && !self.rest.is_empty() {
                let found = self.found();
                return Err(self.error(format!("expected `,` or `]` in an array, not {found}")));
            }
        }
    }

    /// Reads a basic or a literal string, which begins with this quote.
    fn string(&mut self, quote: char) -> Result<String, Error> {
        if self.rest.starts_with("\"\"\"") || self.rest.starts_with("'''") {
            return Err(self.unsupported("a string in three quotes"));
        }
        self.skip(1);
        let mut text = String::new();
        loop {
            let plain = self
                .take_while(|it| it != quote && !is_control(it) && (it != '\\' || quote == '\''));
            text.push_str(plain);
            if self.rest.starts_with(quote) {
                self.skip(1);
                return Ok(text);
            }
            if self.rest.is_empty() {
                return Err(self.error(format!("this string has no end: expected `{quote}`")));
            }
            if !self.take("\\") {
                let found = self.found();
                let message = match self.rest.starts_with(['\n', '\r']) {
                    true => format!("expected `{quote}`, not {found}"),
                    false => format!("expected an escape for {found} in a string"),
                };
                return Err(self.error(message));
            }
            text.push(self.escape()?);
        }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self) -> Result<char, Error> {
        let escaped = match self.rest.chars().next() {
            Some('b') => '\u{8}',
            Some('e') => '\u{1b}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(quote @ ('"' | '\\')) => quote,
            Some('x') => return self.code(2),
            Some('u') => return self.code(4),
            Some('U') => return self.code(8),
            _ => {
                let found = self.found();
                let message = format!(
                    "expected one of `b`, `e`, `f`, `n`, `r`, `t`, `\"`, `\\`, `x`, `u`, `U` after \
                     a backslash, not {found}"
                );
                return Err(self.error(message));
            }
        };
        self.skip(1);
        Ok(escaped)
    }

    /// Reads the letter of a Unicode escape, and the code point after it.
    fn code(&mut self, digit_count: usize) -> Result<char, Error> {
        let digits = self.rest.get(1..=digit_count);
        let digits = digits.filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(digits) = digits else {
            let letter = self.rest.get(..1).unwrap_or_default();
            let expected = format!("expected {digit_count} hexadecimal digits after `\\{letter}`");
            return Err(self.error(expected));
        };
        let found = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        let found = found.ok_or_else(|| {
            self.error(format!("expected a Unicode code point, not {digits} in base 16"))
        })?;
        self.skip(1 + digit_count);
        Ok(found)
    }

    fn word(&mut self) -> Result<ValueKind, Error> {
        let ends = |it: char| is_control(it) || matches!(it, ' ' | '\t' | ',' | '#' | ']' | '}');
        let length = self.rest.find(ends).unwrap_or(self.rest.len());
        let word = &self.rest[..length];
        let kind = match word {
            "" => Err(format!("expected a value, not {}", self.found())),
            "true" => Ok(ValueKind::Boolean(true)),
            "false" => Ok(ValueKind::Boolean(false)),
            _ => number(word),
        };
        let kind = kind.map_err(|message| self.error(message))?;
        self.skip(length);
        Ok(kind)
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips spaces, comments and line ends.
    fn skip_blank(&mut self) -> Result<(), Error> {
        loop {
            self.skip_spaces();
            self.skip_comment()?;
            if !self.newline() {
                return Ok(());
            }
        }
    }

    /// Skips a comment, if there is one, but not its line end.
    fn skip_comment(&mut self) -> Result<(), Error> {
        if self.take("#") {
            self.take_while(|letter| !is_control(letter));
            let is_at_end = self.rest.is_empty() || self.rest.starts_with(['\n', '\r']);
            if !is_at_end {
                let found = self.found();
                return Err(self.error(format!("unexpected {found} in a comment")));
            }
        }
        Ok(())
    }

    /// Skips what may follow a table header or a value on its line.
    fn end_of_line(&mut self) -> Result<(), Error> {
        self.skip_spaces();
        self.skip_comment()?;
        if !self.newline() && !self.rest.is_empty() {
            let found = self.found();
            return Err(self.error(format!("expected the end of the line, not {found}")));
        }
        Ok(())
    }

    /// Takes a line end if there is one, and returns whether there was.
    fn newline(&mut self) -> bool {
        let is_there = self.take("\n") || self.take("\r\n");
        self.line += usize::from(is_there);
        is_there
    }

    /// Takes `start` if the rest begins with it, and returns whether it did.
    fn take(&mut self, start: &str) -> bool {
        let rest = self.rest.strip_prefix(start);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'t str {
        let length = self.rest.find(|letter| !holds(letter)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Skips a number of bytes, which must be whole characters.
    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    fn expect(&mut self, part: &str) -> Result<(), Error> {
        if self.take(part) {
            return Ok(());
        }
        let found = self.found();
        Err(self.error(format!("expected `{part}`, not {found}")))
    }

    /// Describes the next character, for errors.
    fn found(&self) -> String {
        match self.rest.chars().next() {
            None => "the end of the file".to_owned(),
            Some('\n') => "the end of the line".to_owned(),
            Some(letter) if is_control(letter) => {
                format!("control character {:#04x}", u32::from(letter))
            }
            Some(letter) => format!("`{}`", letter.escape_debug()),
        }
    }

    fn error(&self, message: String) -> Error {
        Error { line: self.line, message }
    }

    /// Returns the error that this part of TOML is not supported.
    fn unsupported(&self, what: &str) -> Error {
        self.error(unsupported(what))
    }

    /// Returns the error that a key also occurs in line `first`.
    fn duplicate(&self, key: &str, first: usize) -> Error {
        let key = shown(key);
        self.error(format!("duplicate key `{key}`: it is also in line {first}"))
    }
}

fn unsupported(what: &str) -> String {
    format!("{what} is not supported in this file")
}

/// Returns whether a text consists of digits, with single underscores between them.
fn is_digits(text: &str) -> bool {
    text.split('_').all(|part| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns whether a word begins like a date or a time.
fn is_date(word: &str) -> bool {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    matches!((word.len() - rest.len(), rest.chars().next()), (4, Some('-')) | (2, Some(':')))
}

fn number(word: &str) -> Result<ValueKind, String> {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    match unsigned {
        "inf" | "nan" => {
            let size = if unsigned == "inf" { f64::INFINITY } else { f64::NAN };
            return Ok(ValueKind::Float(if word.starts_with('-') { -size } else { size }));
        }
        _ if is_date(word) => return Err(unsupported("a date or a time")),
        _ if ["0x", "0o", "0b"].iter().any(|base| word.starts_with(base)) => {
            return Err(unsupported("a number of base 16, 8 or 2"));
        }
        _ => {}
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_number = is_digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|it| is_digits(it.strip_prefix(['+', '-']).unwrap_or(it)));
    if !is_number {
        return Err(format!("expected a value, not `{}`: strings have quotes", shown(word)));
    }
    let digits: String = word.chars().filter(|letter| *letter != '_').collect();
    let too_large = || format!("expected a smaller number than {}", shown(word));
    if fraction.is_none() && exponent.is_none() {
        return digits.parse().map(ValueKind::Integer).map_err(|_| too_large());
    }
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(ValueKind::Float).ok_or_else(too_large)
}
