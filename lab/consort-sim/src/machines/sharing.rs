//! The parts that threads of a coherent machine share besides caches and memory: the pipelines and
//! the load/store unit of a core, the banks of the outermost cache, and the links between packages.

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::reading::{self, Flaw, ensure};

/// The parts of a core that its threads share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// The number of pipelines. Consecutive threads share one, and all have equally many threads.
    #[serde(deserialize_with = "reading::count")]
    pub pipelines: u32,
    /// Whether threads that wait take turns in their pipeline too, because they poll.
    #[serde(default)]
    pub polls: bool,
    /// The share of the time of copying in which a thread waits for its caches, and its pipeline
    /// serves others.
    #[serde(deserialize_with = "share")]
    pub copy_waits: f64,
    /// The same for combining.
    #[serde(deserialize_with = "share")]
    pub combine_waits: f64,
    /// The cycles for which a load or a store of 8 bytes occupies the core's load/store unit.
    #[serde(deserialize_with = "reading::not_negative")]
    pub access_cycles: f64,
}

/// The banks of each outermost cache.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Banks {
    /// The number of banks. Successive lines are in successive banks.
    #[serde(deserialize_with = "reading::count")]
    pub count: u32,
    /// The cycles for which a core occupies a bank when it loads a line.
    #[serde(deserialize_with = "reading::not_negative")]
    pub load_cycles: f64,
    /// The same when it stores to a whole line.
    #[serde(deserialize_with = "reading::not_negative")]
    pub store_cycles: f64,
}

/// The links of each package: one to the hub of each plane of addresses.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// The number of planes.
    #[serde(deserialize_with = "reading::count")]
    pub planes: u32,
    /// The successive bytes of memory that belong to one plane.
    #[serde(deserialize_with = "reading::size")]
    pub plane_bytes: usize,
    /// How long a line occupies the link of the package that it leaves, and that of the package
    /// that it enters.
    #[serde(deserialize_with = "reading::not_negative")]
    pub line_ns: f64,
}

impl Core {
    /// Checks it for cores of this many threads.
    pub(super) fn check(&self, threads_per_core: u32) -> Result<(), Flaw> {
        let pipelines = self.pipelines;
        ensure(
            threads_per_core.is_multiple_of(pipelines),
            "core.pipelines",
            format!(
                "expected a number that divides the {threads_per_core} threads of a core, found \
                 {pipelines}"
            ),
        )
    }
}

/// Reads a share: 0 or more, and less than 1.
fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(from)?;
    if (0.0..1.0).contains(&share) {
        return Ok(share);
    }
    Err(D::Error::custom(format!("expected 0 or more and less than 1, found {share}")))
}
