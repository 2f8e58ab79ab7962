//! Machines, read from their description files.
//!
//! A description is TOML: the parts of a machine, and the costs of its operations without
//! contention. The costs are published measurements of single operations, in the units of their
//! source. Numbers that are not published are listed in the table `provenance`, as assumptions or
//! with the figures to which they are fitted, and a comment gives their basis. No file contains the
//! time of a collective: simulations compute it.
//!
//! 1. `reading`: values that are checked while they are read, and the lines of errors;
//! 2. `message_buffers`, `coherent` with its `layout`, `sharing` and `threads`, `cluster`: the
//!    kinds of machines;
//! 3. `provenance`: the numbers that are assumed or fitted; `changes`: other values for them;
//! 4. `model`: the parameters of each machine for estimates.

mod changes;
mod cluster;
mod coherent;
mod layout;
mod message_buffers;
mod model;
mod provenance;
mod reading;
mod sharing;
mod threads;

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use consort_fabric::files;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use toml::{Deserializer, Spanned, de::DeTable};

pub use cluster::{Cluster, Compute, Group, Inside, Network, Placement};
pub use coherent::{AtomicOp, Atomics, Cache, Coherent, Costs, Memory, MessageQueue, State};
pub use layout::Layout;
pub use message_buffers::{Interrupt, Link, MessageBuffers};
pub use provenance::{Counts, Provenance};
use reading::{Flaw, line_at, offset_of};
pub use sharing::{Banks, Core, Links};
pub use threads::{AtomicsAt, Prefetch, StoreOrder, Streaming, Threads};

/// The machines whose descriptions are part of the library, with their files.
const SHIPPED: [(&str, &str); 14] = [
    ("barcelona-x8", include_str!("../machines/barcelona-x8.toml")),
    ("bluegene-p", include_str!("../machines/bluegene-p.toml")),
    ("cluster", include_str!("../machines/cluster.toml")),
    ("clovertown-x2", include_str!("../machines/clovertown-x2.toml")),
    ("cray-xt4", include_str!("../machines/cray-xt4.toml")),
    ("epyc-9654-x2", include_str!("../machines/epyc-9654-x2.toml")),
    ("graviton4", include_str!("../machines/graviton4.toml")),
    ("niagara2-x4", include_str!("../machines/niagara2-x4.toml")),
    ("opteron-6176-x4", include_str!("../machines/opteron-6176-x4.toml")),
    ("ranger", include_str!("../machines/ranger.toml")),
    ("scc", include_str!("../machines/scc.toml")),
    ("tile-gx36", include_str!("../machines/tile-gx36.toml")),
    ("xeon-e7-8867l-x8", include_str!("../machines/xeon-e7-8867l-x8.toml")),
    ("xeon-x5680-infiniband", include_str!("../machines/xeon-x5680-infiniband.toml")),
];

/// The machines of [`SHIPPED`] that have been read.
static READ: [OnceLock<Machine>; SHIPPED.len()] = [const { OnceLock::new() }; SHIPPED.len()];

/// The keys that every description has. The others depend on its kind.
const HEAD_KEYS: [&str; 4] = ["title", "source", "kind", "provenance"];

/// A machine, as in its description file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The file name without its extension, as in `scc`.
    pub name: String,
    /// A short description.
    pub title: String,
    /// The source of its numbers.
    pub source: String,
    /// The numbers that are assumed or fitted.
    pub provenance: Provenance,
    /// Its parts and costs.
    #[serde(flatten)]
    pub kind: Kind,
}

/// The kind of a machine: how its PEs reach each other, with its parts and costs.
#[expect(clippy::large_enum_variant, reason = "a program has a few machines and never moves them")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Through coherent caches.
    Coherent(Coherent),
    /// Through message buffers, by put and get.
    MessageBuffers(MessageBuffers),
    /// Through a network between nodes.
    Cluster(Cluster),
}

impl Kind {
    /// Returns its name in a description.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Coherent(_) => "coherent",
            Self::MessageBuffers(_) => "message-buffers",
            Self::Cluster(_) => "cluster",
        }
    }
}

/// The reason why a machine could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The name is neither a shipped machine nor the path of a description.
    #[error("unknown machine `{name}`: expected {known}, or the path of a .toml file")]
    Unknown {
        /// The requested name.
        name: String,
        /// The names of the shipped machines.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a valid description.
    #[error("{file}:{line}: {message}")]
    Flawed {
        /// The file.
        file: String,
        /// The line of the error, from 1.
        line: usize,
        /// The error, and what was expected.
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
    #[serde(default)]
    provenance: Provenance,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Coherent,
    MessageBuffers,
    Cluster,
}

/// A kind of machine that can be read from a description.
trait Described: DeserializeOwned {
    /// Checks that the parts do not contradict each other, and computes values that the text leaves
    /// out.
    fn complete(self) -> Result<Self, Flaw>;

    /// Reads a machine of this kind.
    fn read(document: Spanned<DeTable<'_>>) -> Result<Self, toml::de::Error> {
        Self::deserialize(Deserializer::from(document))
    }
}

impl Machine {
    /// Returns the names of the machines whose descriptions are part of the library.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Returns the shipped machine of this name, or else the machine described by the file at this
    /// path, which ends in `.toml`. The description of a shipped machine is read once.
    ///
    /// # Errors
    /// When the name is unknown, or the file cannot be read or is not a valid description.
    pub fn find(name_or_path: &str) -> Result<Self, DescriptionError> {
        let index = SHIPPED.iter().position(|(name, _)| *name == name_or_path);
        if let Some(machine) = index.and_then(|index| READ[index].get()) {
            return Ok(machine.clone());
        }
        let (file, text) = Self::description(name_or_path)?;
        let machine = Self::parse(&file, &text)?;
        Ok(index.map_or(&machine, |index| READ[index].get_or_init(|| machine.clone())).clone())
    }

    /// Returns the file and text of the description that [`Machine::find`] reads.
    ///
    /// # Errors
    /// When the name is unknown, or the file cannot be read.
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
        let text = files::read_text(path)
            .map_err(|source| DescriptionError::Unreadable { path: path.to_owned(), source })?;
        Ok((name_or_path.to_owned(), text))
    }

    /// Reads a description. Errors name `file`, whose stem is the machine's name.
    ///
    /// # Errors
    /// [`DescriptionError::Flawed`] when the text is not a valid description.
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
        let provenance = head.provenance.complete(&body).map_err(contradictory)?;
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
        Ok(Self { name, title: head.title, source: head.source, provenance, kind })
    }

    /// Returns the number of its PEs, which are its hardware threads.
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
