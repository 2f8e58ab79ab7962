//! Machines, read from their description files.
//!
//! A description is TOML: what a machine is made of, and what its operations cost when nobody is
//! in the way. The costs are published measurements of single operations, in the units of their
//! source; each number that is not has a comment in the file that says what it rests on. What a
//! collective takes is not in a file: that is what simulating finds out. The one number that is
//! fitted to it, `overhead_ns`, is apart from the others and need not be used.
//!
//! 1. `reading`: values that are checked while they are read, and the lines of flaws;
//! 2. `message_buffers`, `coherent` with its `layout`, `cluster`: the kinds of machines;
//! 3. `model`: each in the few numbers that estimates are made of.

mod cluster;
mod coherent;
mod layout;
mod message_buffers;
mod model;
mod reading;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use toml::{Deserializer, Spanned, de::DeTable};

pub use cluster::{Cluster, Inside, Network};
pub use coherent::{AtomicOp, Atomics, Cache, Coherent, Costs, Memory, MessageQueue, State};
pub use layout::Layout;
pub use message_buffers::{Interrupt, MessageBuffers};
use reading::{Flaw, line_at, offset_of};

/// The machines whose descriptions the library brings along, with their files.
const SHIPPED: [(&str, &str); 8] = [
    ("barcelona-x8", include_str!("../machines/barcelona-x8.toml")),
    ("cluster", include_str!("../machines/cluster.toml")),
    ("clovertown-x2", include_str!("../machines/clovertown-x2.toml")),
    ("niagara2-x4", include_str!("../machines/niagara2-x4.toml")),
    ("opteron-6176-x4", include_str!("../machines/opteron-6176-x4.toml")),
    ("scc", include_str!("../machines/scc.toml")),
    ("tile-gx36", include_str!("../machines/tile-gx36.toml")),
    ("xeon-e7-8867l-x8", include_str!("../machines/xeon-e7-8867l-x8.toml")),
];

/// The keys that say what a description is of; the others belong to its kind.
const HEAD_KEYS: [&str; 3] = ["title", "source", "kind"];

/// A machine, as its description file has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The stem of the file's name, as in `scc`.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// Where its numbers come from.
    pub source: String,
    /// Its parts and costs.
    #[serde(flatten)]
    pub kind: Kind,
}

/// How the PEs of a machine reach each other, with its parts and costs.
#[expect(clippy::large_enum_variant, reason = "a program has a few machines, and moves none")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Through caches that are kept coherent.
    Coherent(Coherent),
    /// Through message buffers, by put and get.
    MessageBuffers(MessageBuffers),
    /// Through a network between nodes.
    Cluster(Cluster),
}

impl Kind {
    /// Its name in a description.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Coherent(_) => "coherent",
            Self::MessageBuffers(_) => "message-buffers",
            Self::Cluster(_) => "cluster",
        }
    }
}

/// Why there is no machine.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The name is none that is shipped, and no path of a description.
    #[error("there is no machine `{name}`: expected {known}, or the path of a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names of the shipped machines.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file describes no machine.
    #[error("{file}:{line}: {message}")]
    Flawed {
        /// The file.
        file: String,
        /// The line of the flaw, from 1.
        line: usize,
        /// What is wrong there, and what was expected.
        message: String,
    },
}

/// The keys that every description has.
#[derive(Deserialize)]
struct Head {
    #[serde(deserialize_with = "reading::words")]
    title: String,
    #[serde(deserialize_with = "reading::words")]
    source: String,
    kind: KindName,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Coherent,
    MessageBuffers,
    Cluster,
}

/// What the descriptions of a kind have to be.
trait Described: DeserializeOwned {
    /// Makes of what was read what is used, if its parts do not contradict each other.
    fn complete(self) -> Result<Self, Flaw>;

    /// Reads one.
    fn read(document: Spanned<DeTable<'_>>) -> Result<Self, toml::de::Error> {
        Self::deserialize(Deserializer::from(document))
    }
}

impl Machine {
    /// The names of the machines that the library brings along.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The machine that is shipped under a name, or else described by the file at a path that
    /// ends in `.toml`.
    ///
    /// # Errors
    /// If the name is unknown, or the file cannot be read or describes no machine.
    pub fn find(name_or_path: &str) -> Result<Self, DescriptionError> {
        let (file, text) = Self::description(name_or_path)?;
        Self::parse(&file, &text)
    }

    /// The file and text of the description that [`Machine::find`] reads.
    ///
    /// # Errors
    /// If the name is unknown, or the file cannot be read.
    pub fn description(name_or_path: &str) -> Result<(String, String), DescriptionError> {
        if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
            return Ok((format!("{name}.toml"), (*text).to_owned()));
        }
        let path = Path::new(name_or_path);
        if path.extension().is_none_or(|extension| extension != "toml") {
            return Err(DescriptionError::Unknown {
                name: name_or_path.to_owned(),
                known: Self::shipped().collect::<Vec<&str>>().join(", "),
            });
        }
        let text = fs::read_to_string(path)
            .map_err(|source| DescriptionError::Unreadable { path: path.to_owned(), source })?;
        Ok((name_or_path.to_owned(), text))
    }

    /// Reads a description; `file` is what errors call it, and its stem the machine's name.
    ///
    /// # Errors
    /// [`DescriptionError::Flawed`] if the text describes no machine.
    pub fn parse(file: &str, text: &str) -> Result<Self, DescriptionError> {
        let flawed = |offset, message: &str| DescriptionError::Flawed {
            file: file.to_owned(),
            line: line_at(text, offset),
            message: message.to_owned(),
        };
        let broken = |error: toml::de::Error| {
            flawed(error.span().map_or(0, |span| span.start), error.message())
        };
        let document = DeTable::parse(text).map_err(broken)?;
        let mut body = document.clone();
        for key in HEAD_KEYS {
            body.get_mut().remove(key);
        }
        let contradictory = |flaw: Flaw| flawed(offset_of(&document, &flaw.keys), &flaw.message);
        let head: Head =
            Deserialize::deserialize(Deserializer::from(document.clone())).map_err(broken)?;
        let kind = match head.kind {
            KindName::Coherent => Kind::Coherent(
                Coherent::read(body).map_err(broken)?.complete().map_err(contradictory)?,
            ),
            KindName::MessageBuffers => Kind::MessageBuffers(
                MessageBuffers::read(body).map_err(broken)?.complete().map_err(contradictory)?,
            ),
            KindName::Cluster => Kind::Cluster(
                Cluster::read(body).map_err(broken)?.complete().map_err(contradictory)?,
            ),
        };
        let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, title: head.title, source: head.source, kind })
    }

    /// How many PEs it has: its hardware threads.
    pub fn pes(&self) -> u32 {
        match &self.kind {
            Kind::Coherent(machine) => machine.threads(),
            Kind::MessageBuffers(machine) => machine.cores(),
            Kind::Cluster(machine) => machine.pes(),
        }
    }
}

#[cfg(test)]
mod tests;
