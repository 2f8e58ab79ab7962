//! Compares reading and writing with the crate `toml`.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

type ReferenceValue = ::toml::Value;

/// Strings that are hard to write: quotes, backslashes, line ends, control characters.
fn any_string() -> impl Strategy<Value = String> {
    let hard = "[a-z \"'\\\\\n\r\t\u{0}\u{8}\u{c}\u{1b}\u{7f}\u{85}é𝄞#=.\\[\\]]{0,12}";
    prop_oneof!["[a-z_ ]{0,8}", "[\"'\\\\\n]{0,8}", hard, any::<String>()]
}

fn any_value() -> impl Strategy<Value = ReferenceValue> {
    prop_oneof![
        any_string().prop_map(ReferenceValue::String),
        any::<i64>().prop_map(ReferenceValue::Integer),
        any::<f64>().prop_map(ReferenceValue::Float),
        (-1000..1000_i32).prop_map(|number| ReferenceValue::Float(f64::from(number) / 8.0)),
        any::<bool>().prop_map(ReferenceValue::Boolean),
    ]
}

fn any_values() -> impl Strategy<Value = ReferenceValue> {
    prop_oneof![any_value(), vec(any_value(), 0..4).prop_map(ReferenceValue::Array)]
}

/// Tables that this module can read completely.
fn any_file() -> impl Strategy<Value = ::toml::Table> {
    let keys = || prop_oneof!["[a-zA-Z0-9_-]{1,4}", any_string()];
    let values = move || vec((keys(), any_values()), 0..4);
    let table = move || {
        values().prop_map(|all| ReferenceValue::Table(all.into_iter().collect::<::toml::Table>()))
    };
    let outer = (values(), option::of((keys(), table()))).prop_map(|(values, inner)| {
        ReferenceValue::Table(values.into_iter().chain(inner).collect::<::toml::Table>())
    });
    let tables = vec(table(), 1..4).prop_map(ReferenceValue::Array);
    let node = prop_oneof![2 => any_values(), 1 => outer, 1 => tables];
    vec((keys(), node), 0..6).prop_map(|all| all.into_iter().collect())
}

/// Texts that are TOML or almost: lines, whole or in pieces.
fn any_text() -> impl Strategy<Value = String> {
    const TABLES: &str = "[a]\n|[b]\r\n|[ a . 'b' ] # c\n|[a.c]\n|[[a]]\n|[[a.b]]\n|[[\"\\u0063\"]]\n\
                          |[a.b.c]\n|[a\n|[]\n";
    const KEYS: &str = "a|b|c|'a'|\"\\u0062\"|\"\"|1|a.b|é";
    const VALUES: &str = "1|-17|+1_000|01|1__0|_1|1.5|-0.0|1.|.5|1e3|1.5E+03|1e999|1_0.0_1e1_0|1e_1|\
                          inf|+inf|-nan|true|false|True|0x1f|0o7|0b1|1979-05-27|07:32:00|\
                          1979-05-27T07:32:00Z|{}|{ a = 1 }|[]|[1,]|[,]|[1 2]|[[1], 2]|\
                          [ 1, # c\n\t2\r\n , 'x' ]|x|";
    const PIECES: &str = "[|]|=|.|,|\n|\r\n|\r| |\t|# c|\"|'|\"\"\"|'''|\\|\\n|\\\"|\\u0041|\\ud800|\\x41|\
                          \\x4|\\U0001F600|\\e|\\q|\\  \n |a|\u{0}|\u{7f}|\u{feff}|é";
    let one_of = |list: &'static str| select(list.split('|').collect::<Vec<_>>());
    let pieces = move || vec(one_of(PIECES), 0..5).prop_map(|pieces| pieces.concat());
    let string = (one_of("\"|'|\"\"\"|'''"), pieces())
        .prop_map(|(quotes, inside)| format!("{quotes}{inside}{quotes}"));
    let value = prop_oneof![string, one_of(VALUES).prop_map(str::to_owned)];
    let pair = (one_of(KEYS), value).prop_map(|(key, value)| format!("{key} = {value}\n"));
    let table = one_of(TABLES).prop_map(str::to_owned);
    let line = prop_oneof![6 => pair, 3 => table, 1 => pieces()];
    vec(line, 0..5).prop_map(|lines| lines.concat())
}

/// Returns whether both have read the same value. Any two NaNs are the same.
fn is_same_value(ours: &Value, theirs: &ReferenceValue) -> bool {
    match (&ours.kind, theirs) {
        (ValueKind::String(ours), ReferenceValue::String(theirs)) => ours == theirs,
        (ValueKind::Integer(ours), ReferenceValue::Integer(theirs)) => *ours == i128::from(*theirs),
        (ValueKind::Float(ours), ReferenceValue::Float(theirs)) => {
            ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan()
        }
        (ValueKind::Boolean(ours), ReferenceValue::Boolean(theirs)) => ours == theirs,
        (ValueKind::Array(ours), ReferenceValue::Array(theirs)) => {
            let mut pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len() && pairs.all(|(ours, theirs)| is_same_value(ours, theirs))
        }
        _ => false,
    }
}

fn is_same(ours: &TomlTable, theirs: &::toml::Table) -> bool {
    let is_same_node = |(key, node): (&String, &Node)| match (node, theirs.get(key)) {
        (Node::Value(ours), Some(theirs)) => is_same_value(ours, theirs),
        (Node::TomlTable(ours), Some(ReferenceValue::Table(theirs))) => is_same(ours, theirs),
        (Node::Tables(ours), Some(ReferenceValue::Array(theirs))) => {
            let same = |(ours, theirs): (&TomlTable, &ReferenceValue)| {
                theirs.as_table().is_some_and(|theirs| is_same(ours, theirs))
            };
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
        }
        _ => false,
    };
    ours.nodes.len() == theirs.len() && ours.nodes.iter().all(is_same_node)
}

/// Returns a line that this module writes.
fn line_of(key: &str, value: &ReferenceValue) -> String {
    let mut file = Writer::default();
    match value {
        ReferenceValue::String(text) => file.string(key, text),
        ReferenceValue::Integer(number) => file.plain(key, number),
        ReferenceValue::Float(number) => file.float(key, *number),
        ReferenceValue::Boolean(yes) => file.plain(key, yes),
        ReferenceValue::Array(values) => match values.first() {
            Some(ReferenceValue::Float(_)) => {
                file.floats(key, values.iter().filter_map(ReferenceValue::as_float));
            }
            _ => file.strings(key, values.iter().filter_map(ReferenceValue::as_str)),
        },
        other => panic!("{other} is not written"),
    }
    file.into_text()
}

fn any_written() -> impl Strategy<Value = ReferenceValue> {
    let strings = vec(any_string().prop_map(ReferenceValue::String), 0..4);
    let floats = vec(any::<f64>().prop_map(ReferenceValue::Float), 1..4);
    prop_oneof![any_value(), prop_oneof![strings, floats].prop_map(ReferenceValue::Array)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn written_line_is_read_by_both(key in any_string(), value in any_written()) {
        let text = line_of(&key, &value);
        let file: ::toml::Table = [(key, value)].into_iter().collect();
        let (ours, theirs) = (read(text.as_bytes()), ::toml::from_str::<::toml::Table>(&text)?);
        let ours = ours.map_err(|error| TestCaseError::fail(format!("{error:?} in {text}")))?;
        prop_assert!(is_same(&ours, &file) && is_same(&ours, &theirs), "{ours:?} of {text}");
    }

    #[test]
    fn output_of_crate_toml_is_read(file in any_file()) {
        for text in [::toml::to_string(&file)?, ::toml::to_string_pretty(&file)?] {
            match read(text.as_bytes()) {
                Ok(ours) => prop_assert!(is_same(&ours, &file), "{ours:?} of {text}"),
                Err(error) => {
                    let is_known = error.message.contains("three quotes is not supported");
                    prop_assert!(is_known, "{error:?} in {text}");
                }
            }
        }
    }

    /// If only the crate can read a text, it uses an unsupported part of TOML, and the error says
    /// so.
    #[test]
    fn text_is_read_as_by_crate_toml(text in any_text()) {
        match (read(text.as_bytes()), ::toml::from_str::<::toml::Table>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(is_same(&ours, &theirs), "{ours:?} of {text:?}"),
            (Ok(ours), Err(theirs)) => prop_assert!(false, "{ours:?} of {text:?}: {theirs}"),
            (Err(ours), Ok(_)) => {
                prop_assert!(ours.message.contains("not supported"), "{ours:?} of {text:?}");
            }
            (Err(ours), Err(_)) => {
                prop_assert!((1..=1 + text.matches('\n').count()).contains(&ours.line));
                prop_assert_eq!(ours.message.lines().count(), 1, "{}", ours.message);
            }
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(bytes in vec(any::<u8>(), 0..200), text: String) {
        let _ = (read(&bytes), read(text.as_bytes()));
    }
}

#[test]
fn tables_are_written_as_the_crate_toml_writes_them() {
    let mut file = Writer::default();
    file.table(&["one"]);
    file.plain("a", 1);
    file.table(&["one", "two words"]);
    file.float("b", 100.0);
    for _ in 0..2 {
        file.table_of("three");
        file.floats("c", [1.0, 0.25]);
    }
    let text = file.into_text();
    let theirs: ::toml::Table = toml_of(&text);
    assert_eq!(
        text,
        "[one]\na = 1\n\n[one.\"two words\"]\nb = 100.0\n\n[[three]]\nc = [1.0, 0.25]\n\n\
         [[three]]\nc = [1.0, 0.25]\n"
    );
    assert_eq!(text, ::toml::to_string(&theirs).unwrap());
}

fn toml_of(text: &str) -> ::toml::Table {
    ::toml::from_str(text).unwrap()
}

/// Asserts the line and a part of the message of an error.
fn assert_refused(text: &str, line: usize, part: &str) {
    let error = read(text.as_bytes()).unwrap_err();
    assert!(
        error.line == line && error.message.contains(part),
        "{error:?}, not `{part}`: {text:.80}"
    );
}

#[test]
fn errors_say_what_was_expected_and_where() {
    for (text, line, part) in [
        ("a = 1\n\na = 2\n", 3, "duplicate key `a`: it is also in line 1"),
        ("[a]\nb = 1\nb = 1\n", 3, "duplicate key `b`: it is also in line 2"),
        ("[a]\n[b]\n[a]\n", 3, "duplicate key `a`: it is also in line 1"),
        ("[[a]]\n[a]\n", 2, "duplicate key `a`"),
        ("[a]\n[[a]]\n", 2, "duplicate key `a`"),
        ("a = 1\n[a.b]\n", 2, "duplicate key `a`"),
        ("[a]\nb = 1\n[a.b]\n", 3, "duplicate key `b`: it is also in line 2"),
        ("[a.b]\n[a]\nb = 1\n", 3, "duplicate key `b`: it is also in line 1"),
        ("not toml", 1, "expected `=` after the key `not`, not `t`"),
        ("= 1", 1, "expected a key, not `=`"),
        ("\n[a", 2, "expected `]`, not the end of the file"),
        ("[a] b = 1", 1, "expected the end of the line, not `b`"),
        ("a = 1 b = 2", 1, "expected the end of the line, not `b`"),
        ("a =\n", 1, "expected a value, not the end of the line"),
        ("a = yes\n", 1, "expected a value, not `yes`: strings have quotes"),
        ("a = 01\n", 1, "expected a value, not `01`"),
        ("a = 1e999\n", 1, "expected a smaller number"),
        ("a = [1\n\n2]\n", 3, "expected `,` or `]` in an array, not `2`"),
        ("a = [1,\n\n", 1, "this array has no end: expected `]`"),
        ("a = \"b\n\"", 1, "expected `\"`, not the end of the line"),
        ("\na = 'b", 2, "this string has no end: expected `'`"),
        ("a = \"\\q\"", 1, "after a backslash, not `q`"),
        ("a = \"\\u00g0\"", 1, "expected 4 hexadecimal digits after `\\u`"),
        ("a = \"\\ud800\"", 1, "expected a Unicode code point, not d800"),
        ("a = \"\u{1}\"", 1, "expected an escape for control character 0x01"),
        ("# \u{1}", 1, "unexpected control character 0x01 in a comment"),
        ("a = \u{1}", 1, "expected a value, not control character 0x01"),
        ("\"\"\"a\"\"\" = 1", 1, "a string in three quotes is not supported"),
    ] {
        assert_refused(text, line, part);
        assert!(::toml::from_str::<::toml::Table>(text).is_err(), "{text}");
    }
}

#[test]
fn unsupported_toml_is_named() {
    for (value, part) in [
        ("a = 1979-05-27", "a date or a time is not supported in this file"),
        ("a = 07:32:00", "a date or a time is not supported"),
        ("a = { b = 1 }", "an inline table is not supported"),
        ("a = [{}]", "an inline table is not supported"),
        ("a = [[1]]", "an array within an array is not supported"),
        ("a = \"\"\"b\"\"\"", "a string in three quotes is not supported"),
        ("a = '''b'''", "a string in three quotes is not supported"),
        ("a = 0xff", "a number of base 16, 8 or 2 is not supported"),
        ("a.b = 1", "a dotted key is not supported"),
        ("[a.b.c]", "a table of more than two names, as in `[one.two.three]`, is not supported"),
    ] {
        assert_refused(&format!("\n{value}\n"), 2, part);
        toml_of(value);
    }
}

#[test]
fn table_errors_name_missing_and_unknown_fields() {
    let text = "top = 1\n[head]\nmany = 3\nless = -1\nname = 'x'\nlist = [1.5, 'y', true]\n\n\
                [head.part]\n[[row]]\n[[row]]\n";
    let file = read(text.as_bytes()).unwrap();
    let head = file.table("head").unwrap();
    let refused = |error: Option<Error>, line, message: &str| {
        assert_eq!(error, Some(Error { line, message: message.to_owned() }));
    };
    refused(head.get::<u32>("size").err(), 2, "missing field `size`");
    refused(file.table("tail").err(), 1, "missing field `tail`");
    let message = "unknown field `row`, expected `top` or `head`";
    refused(file.only(&["top", "head"]).err(), 9, message);
    let known = ["many", "less", "name", "list"];
    let message = "unknown field `part`, expected one of `many`, `less`, `name`, `list`";
    refused(head.only(&known).err(), 8, message);
    refused(head.only(&["many"]).err(), 4, "unknown field `less`, expected `many`");
    assert_eq!(file.only(&["row", "top", "head"]), Ok(()));

    refused(head.get::<String>("many").err(), 3, "invalid type: integer `3`, expected a string");
    refused(head.get::<bool>("many").err(), 3, "invalid type: integer `3`, expected a boolean");
    refused(head.get::<u32>("name").err(), 5, "invalid type: string \"x\", expected u32");
    refused(head.get::<u32>("less").err(), 4, "invalid value: integer `-1`, expected u32");
    refused(head.get::<f64>("list").err(), 6, "invalid type: array, expected f64");
    refused(head.get::<u64>("part").err(), 8, "invalid type: table, expected u64");
    refused(file.get::<u64>("row").err(), 9, "invalid type: array of tables, expected u64");
    let message = "invalid length 3, expected an array of 2 values";
    refused(head.get::<(f64, f64)>("list").err(), 6, message);
    let message = "invalid type: string \"y\", expected f64";
    refused(head.get::<Vec<f64>>("list").err(), 6, message);
    let message = "invalid type: integer `1`, expected a table";
    refused(file.table("top").err(), 1, message);
    let message = "invalid type: table, expected tables `[[head]]`";
    refused(file.tables("head").err(), 2, message);

    assert_eq!(head.get("many"), Ok(3_u64));
    assert_eq!(head.get("many"), Ok(3.0));
    assert_eq!(head.find::<u64>("size"), Ok(None));
    assert_eq!(file.tables("row").unwrap().len(), 2);
    assert_eq!(file.tables("column").unwrap().len(), 0);
}

#[test]
fn errors_in_arrays_have_the_line_of_their_part() {
    let text = "a = [\n  1, # one\n  'two',\n]\nc = \"no number\"\n";
    let file = read(text.as_bytes()).unwrap();
    assert_eq!(file.get::<Vec<u32>>("a").unwrap_err().line, 3);
    assert_eq!(file.get::<TextValue<u32>>("c").map(|it| it.0).unwrap_err().line, 5);
}

#[test]
fn deep_and_long_texts_are_refused_or_read_without_recursion() {
    for (piece, part) in [("[", "expected a key"), ("a.", "a dotted key"), ("{", "expected a key")]
    {
        assert_refused(&piece.repeat(1 << 20), 1, part);
    }
    assert_refused(&format!("a = {}", "[".repeat(1 << 20)), 1, "an array within an array");
    let many: String = (0..1 << 14).map(|index| format!("[a.{index}]\n[[b]]\n")).collect();
    assert_eq!(read(many.as_bytes()).unwrap().tables("b").unwrap().len(), 1 << 14);
}
