//! JSON objects as a CSV table (RFC 4180), with the system's line ends.
//!
//! The column of a key in a nested object has the names of both keys, such as `context.date`. The
//! columns of a list have numbers, such as `ci95_ns.0` and `ci95_ns.1`. The columns are in the
//! order of the keys. Null is an empty field.

use std::collections::HashMap;

use serde_json::Value;

/// Returns the table.
pub fn text(rows: &[Value]) -> String {
    let flat: Vec<Vec<(String, String)>> = rows.iter().map(flattened).collect();
    let columns = columns(&flat);
    let header = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(",");
    let mut text = header + "\n";
    for row in &flat {
        let fields: HashMap<&str, &str> =
            row.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let field = |column: &String| quoted(fields.get(column.as_str()).copied().unwrap_or(""));
        text += &columns.iter().map(field).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

/// Returns all column names. If only some rows have a column, it follows the columns that precede
/// it in those rows.
fn columns(rows: &[Vec<(String, String)>]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        let mut behind = 0;
        for (key, _) in row {
            match columns.iter().position(|column| column == key) {
                Some(at) => behind = behind.max(at + 1),
                None => {
                    columns.insert(behind, key.clone());
                    behind += 1;
                }
            }
        }
    }
    // If a key is null in one row and has nested keys in another, it needs no separate column.
    let has_parts = |name: &String| {
        let prefix = format!("{name}.");
        columns.iter().any(|other| other.starts_with(&prefix))
    };
    let is_empty =
        |name: &String| rows.iter().flatten().all(|(key, value)| key != name || value.is_empty());
    columns.iter().filter(|name| !(has_parts(name) && is_empty(name))).cloned().collect()
}

/// Returns the keys and the values of an object, including nested ones.
fn flattened(row: &Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    flatten("", row, &mut fields);
    fields
}

fn flatten(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let within = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| flatten(&within(key), value, fields));
        }
        Value::Array(list) if !list.is_empty() => {
            let parts = list.iter().enumerate();
            parts.for_each(|(index, value)| flatten(&within(&index.to_string()), value, fields));
        }
        Value::Null | Value::Object(_) | Value::Array(_) => {
            fields.push((name.to_owned(), String::new()));
        }
        Value::String(text) => fields.push((name.to_owned(), text.clone())),
        other => fields.push((name.to_owned(), other.to_string())),
    }
}

fn quoted(field: &str) -> String {
    let needs_quotes = field.contains([',', '"', '\n', '\r']) || field.trim() != field;
    if needs_quotes { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_flat_and_columns_in_order() {
        let rows = [
            json!({"name": "a", "params": null, "ci": [1.5, 2], "context": {"load": 0.5}}),
            json!({"name": "b", "params": {"radix": 4}, "ci": null, "context": {"load": null}}),
        ];
        let expected = "name,params.radix,ci.0,ci.1,context.load\na,,1.5,2,0.5\nb,4,,,\n";
        assert_eq!(text(&rows), expected);
        assert_eq!(text(&[json!({"params": null}), json!({"params": {}})]), "params\n\n\n");
        assert_eq!(text(&[]), "\n");
    }

    #[test]
    fn fields_that_would_end_early_are_quoted() {
        let row = json!({"a": "x,y", "b": "say \"no\"", "c": "two\nlines", "d": true, "e": " x"});
        let expected = "a,b,c,d,e\n\"x,y\",\"say \"\"no\"\"\",\"two\nlines\",true,\" x\"\n";
        assert_eq!(text(&[row]), expected);
    }
}
