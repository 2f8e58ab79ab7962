//! Generates the headers from the tables of routines and types.

use std::{collections::BTreeSet, fmt::Write as _};

use super::constants::{BEGIN, BETWEEN, END, EXTENSIONS, OTHERS};

const ROUTINES: &str = include_str!("../../data/routines.tsv");
const TYPES: &str = include_str!("../../data/types.tsv");

/// A line of the table of routines.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) is_generic: bool,
    pub(crate) section: &'static str,
    pub(crate) prototype: &'static str,
    pub(crate) types: &'static str,
}

pub(crate) fn rows() -> impl Iterator<Item = Row> {
    ROUTINES.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        Row {
            is_generic: fields[2] == "C11",
            section: fields[3],
            prototype: fields[4],
            types: fields.get(5).copied().unwrap_or_default(),
        }
    })
}

impl Row {
    /// Returns the types for which the routine exists, each with its name in routines.
    pub(crate) fn elements(self) -> Vec<(&'static str, &'static str)> {
        let lines = || TYPES.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
        if self.types.contains(',') {
            let of_name = |name| {
                let line = lines().find(|line| line[2] == name).expect("a type of this name");
                (line[1], line[2])
            };
            return self.types.split(',').map(of_name).collect();
        }
        let (table, operation) = self.types.split_once(':').unwrap_or((self.types, ""));
        lines()
            .filter(|line| line[0] == table)
            .filter(|line| operation.is_empty() || line[3].split(',').any(|one| one == operation))
            .map(|line| (line[1], line[2]))
            .collect()
    }

    pub(crate) fn prototypes(self) -> Vec<String> {
        match self.types {
            "" => vec![self.prototype.to_owned()],
            "sizes" => {
                let of_size = |size| self.prototype.replace("<SIZE>", size);
                ["8", "16", "32", "64", "128"].map(of_size).to_vec()
            }
            _ => {
                let of_type = |(t, name): (&str, &str)| {
                    self.prototype.replace("<TYPENAME>", name).replace("TYPE", t)
                };
                self.elements().into_iter().map(of_type).collect()
            }
        }
    }

    /// Returns its name without `shmem_`.
    pub(crate) fn verb(self) -> &'static str {
        let name = name(self.prototype);
        name.strip_prefix("shmem_").unwrap_or(name)
    }

    pub(crate) fn parameters(self) -> Vec<&'static str> {
        let (_, list) = self.prototype.split_once('(').expect("a list of parameters");
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let list = list.trim_end_matches(')').split(',');
        list.map(|one| one.rsplit(|c| !is_name(c)).next().expect("a name")).collect()
    }
}

/// Returns the name of the routine in a prototype.
pub(crate) fn name(prototype: &str) -> &str {
    let (before, _) = prototype.split_once('(').expect("a list of parameters");
    before.rsplit([' ', '*']).next().expect("a name")
}

pub(crate) fn headers() -> Vec<(&'static str, String)> {
    let vendor = concat!("Consort ", env!("CARGO_PKG_VERSION"));
    let mut text = BEGIN.replace("@VENDOR@", vendor);
    let mut section = "";
    for row in rows().filter(|row| !row.is_generic) {
        if row.section != section {
            section = row.section;
            writeln!(text, "\n/* {section} */").expect("memory");
        }
        for prototype in row.prototypes() {
            declare(&mut text, &prototype);
        }
    }
    text.push_str("\n/* Other names of the routines above, for profilers that define those. */\n");
    for prototype in rows().filter(|row| !row.is_generic).flat_map(Row::prototypes) {
        let name = name(&prototype);
        if name.starts_with("shmem_") {
            declare(&mut text, &prototype.replacen(name, &format!("p{name}"), 1));
        }
    }
    text.push_str(&BETWEEN.replace("@OVERLOADS@", &overloads()));
    generics(&mut text);
    text.push_str(END);
    let others = OTHERS.map(|(name, text)| (name, text.to_owned()));
    [vec![("shmem.h", text), ("shmemx.h", EXTENSIONS.to_owned())], others.to_vec()].concat()
}

/// Declares a function, in lines of at most 100 columns.
fn declare(text: &mut String, prototype: &str) {
    let prototype = with_complex(prototype, "shmemi_complex");
    let never = if prototype.contains("global_exit") { "SHMEMI_NORETURN " } else { "" };
    wrap(text, &format!("{never}{prototype};"));
}

/// Returns a prototype whose complex types are typedefs that begin with `prefix`.
fn with_complex(prototype: &str, prefix: &str) -> String {
    prototype
        .replace("double _Complex", &format!("{prefix}d_t"))
        .replace("float _Complex", &format!("{prefix}f_t"))
}

/// Writes a declaration in lines of at most 100 columns.
fn wrap(text: &mut String, declaration: &str) {
    let mut line = String::new();
    for part in declaration.split_inclusive(", ") {
        if line.len() + part.trim_end().len() > 100 {
            writeln!(text, "{}", line.trim_end()).expect("memory");
            line = "    ".to_owned();
        }
        line.push_str(part);
    }
    writeln!(text, "{line}").expect("memory");
}

/// Returns C++ functions that take pointers to complex numbers of C and call the C functions.
fn overloads() -> String {
    let mut text = String::new();
    for row in rows().filter(|row| !row.is_generic) {
        for prototype in row.prototypes().iter().filter(|one| one.contains("_Complex")) {
            let arguments = row.parameters().into_iter().zip(prototype.split(','));
            let arguments = arguments.map(|(name, parameter)| match parameter {
                _ if !parameter.contains("_Complex") => name.to_owned(),
                _ => {
                    let own = with_complex(parameter, "shmemi_complex");
                    let head = own.rsplit_once('(').map_or(&*own, |(_, head)| head);
                    let (t, _) = head.rsplit_once('*').expect("a pointer");
                    format!("reinterpret_cast<{} *>({name})", t.trim())
                }
            });
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            let value = if prototype.starts_with("void") { "" } else { "return " };
            let name = name(prototype);
            for called in [name.to_owned(), format!("p{name}")] {
                let head = with_complex(prototype, "shmemi_c_complex").replacen(name, &called, 1);
                wrap(&mut text, &format!("static inline {head}"));
                wrap(&mut text, &format!("{{\n    {value}{called}({arguments});\n}}"));
            }
        }
    }
    text
}

fn generics(text: &mut String) {
    let rows: Vec<Row> = rows().filter(|row| row.is_generic && row.verb() != "sync").collect();
    let mut done = BTreeSet::new();
    for row in &rows {
        let verb = row.verb();
        if verb == "global_exit" || !done.insert(verb) {
            continue;
        }
        let same = || rows.iter().filter(|row| row.verb() == verb);
        let is_with_context = |row: &&Row| row.parameters()[0] == "ctx";
        let with = same().find(is_with_context);
        let without = same().find(|row| !is_with_context(row));
        let Some(with) = with else {
            let inner = format!("shmem_{verb}({})", row.parameters().join(", "));
            select(text, &inner, *row, "shmem_");
            continue;
        };
        let count = with.parameters().len();
        let place = if count < 3 { unreachable!("of {verb}") } else { count + 1 };
        let [ctx, plain] = match without {
            Some(without) => {
                for (row, name) in [(with, "ctx_"), (without, "any_")] {
                    let inner = format!("shmemi_{name}{verb}({})", row.parameters().join(", "));
                    let prefix = if name == "ctx_" { "shmem_ctx_" } else { "shmem_" };
                    select(text, &inner, *row, prefix);
                }
                [format!("shmemi_ctx_{verb}"), format!("shmemi_any_{verb}")]
            }
            // Without a context, it is a function.
            None => [format!("shmem_ctx_{verb}"), format!("shmem_{verb}")],
        };
        writeln!(
            text,
            "#define shmem_{verb}(...) \\\n    SHMEMI_{place}TH(__VA_ARGS__, {ctx}, {plain}, 0) \
             \\\n    (__VA_ARGS__)"
        )
        .expect("memory");
    }
}

/// Defines a macro that selects a routine by the type that its first pointer refers to.
fn select(text: &mut String, inner: &str, row: Row, prefix: &str) {
    let parameters = row.parameters();
    let list = row.prototype.split_once('(').expect("a list of parameters").1;
    let typed = list.split(',').position(|one| one.contains("TYPE *")).expect("a pointer");
    writeln!(text, "#define {inner} _Generic(*({}), \\", parameters[typed]).expect("memory");
    let mut seen = BTreeSet::new();
    let cases = row.elements().into_iter().filter(|(t, _)| seen.insert(plain(t)));
    let verb = row.verb();
    let cases: Vec<String> =
        cases.map(|(t, name)| format!("    {}: {prefix}{name}_{verb}", plain(t))).collect();
    writeln!(text, "{}) \\\n    ({})", cases.join(", \\\n"), parameters.join(", "))
        .expect("memory");
}

/// Returns the type behind another name.
pub(crate) fn plain(name: &str) -> &str {
    match name {
        "int8_t" => "signed char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" | "ptrdiff_t" => "long",
        "uint8_t" => "unsigned char",
        "uint16_t" => "unsigned short",
        "uint32_t" => "unsigned int",
        "uint64_t" | "size_t" => "unsigned long",
        other => other,
    }
}
