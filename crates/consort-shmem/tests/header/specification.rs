//! Reads the specification's tables of routines and types.

const ROUTINES: &str = include_str!("../../data/routines.tsv");
const TYPES: &str = include_str!("../../data/types.tsv");

/// A line of the table of routines.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) is_generic: bool,
    pub(crate) prototype: &'static str,
    pub(crate) types: &'static str,
}

pub(crate) fn rows() -> impl Iterator<Item = Row> {
    ROUTINES.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        Row {
            is_generic: fields[2] == "C11",
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
