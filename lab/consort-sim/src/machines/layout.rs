//! The layout of the cores of a coherent machine. It gives the distances between threads.
//!
//! The distances are those for which David, Guerraoui and Trigonakis (2013) give costs: on the same
//! core, die or package, and beyond that by hops. On a mesh, the distance is the number of links.

use std::cmp::Ordering;

use consort_fabric::{Levels, Nodes};
use serde::{Deserialize, Serialize};

use super::reading::{self, Flaw, ensure, product};

/// The layout of the cores of a coherent machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layout {
    /// Packages of dies of cores. Neighbours have consecutive numbers.
    Packages {
        /// The number of packages (sockets).
        #[serde(deserialize_with = "reading::count")]
        packages: u32,
        /// The number of dies in a package.
        #[serde(deserialize_with = "reading::count")]
        dies_per_package: u32,
        /// The number of cores in a die.
        #[serde(deserialize_with = "reading::count")]
        cores_per_die: u32,
        /// The number of hardware threads of a core.
        #[serde(deserialize_with = "reading::count")]
        threads_per_core: u32,
        /// The hops between every two dies, one row for each die. Hops within a package are
        /// ignored.
        hops: Vec<Vec<u32>>,
    },
    /// A mesh of cores, numbered row by row, with one thread each. The distance between two cores
    /// is the number of links between them.
    Mesh {
        /// The number of cores from west to east.
        #[serde(deserialize_with = "reading::count")]
        columns: u32,
        /// The number of cores from north to south.
        #[serde(deserialize_with = "reading::count")]
        rows: u32,
    },
}

impl Layout {
    /// Returns the number of hardware threads.
    pub fn threads(&self) -> u32 {
        match self {
            Self::Packages {
                packages, dies_per_package, cores_per_die, threads_per_core, ..
            } => packages * dies_per_package * cores_per_die * threads_per_core,
            Self::Mesh { columns, rows } => columns * rows,
        }
    }

    /// Returns the placement of threads on dies, if a die has several threads and its own cache.
    pub(crate) fn dies(&self, threads: u32) -> Nodes {
        match self {
            Self::Packages { cores_per_die, threads_per_core, .. } => {
                let die = cores_per_die * threads_per_core;
                if die < threads { Nodes::Blocks(die) } else { Nodes::One }
            }
            Self::Mesh { .. } => Nodes::One,
        }
    }

    /// Returns the number of threads of a package, if there are several packages of several dies.
    pub(crate) fn package(&self, threads: u32) -> Option<u32> {
        let Self::Packages { dies_per_package, .. } = self else { return None };
        let Nodes::Blocks(die) = self.dies(threads) else { return None };
        Some(die * dies_per_package).filter(|&package| *dies_per_package > 1 && package < threads)
    }

    /// Returns the levels besides the dies: if there are several packages, they are groups of dies.
    pub(crate) fn levels(&self, threads: u32) -> Levels {
        let groups = match (self.package(threads), self.dies(threads)) {
            (Some(package), Nodes::Blocks(die)) => Nodes::Blocks(package / die),
            _ => Nodes::One,
        };
        Levels::around([groups, Nodes::One, Nodes::One])
    }

    /// Returns the number of hardware threads of a core.
    pub(crate) fn threads_per_core(&self) -> u32 {
        match self {
            Self::Packages { threads_per_core, .. } => *threads_per_core,
            Self::Mesh { .. } => 1,
        }
    }

    /// Returns the number of cores of a die. A mesh is one die.
    pub(crate) fn cores_per_die(&self) -> u32 {
        match self {
            Self::Packages { cores_per_die, .. } => *cores_per_die,
            Self::Mesh { .. } => self.threads(),
        }
    }

    /// Returns the distance between two threads, as an index into the names of the distances.
    pub(super) fn distance(&self, a: u32, b: u32) -> usize {
        let apart = match self {
            Self::Mesh { columns, .. } => {
                (a % columns).abs_diff(b % columns) + (a / columns).abs_diff(b / columns)
            }
            Self::Packages { dies_per_package, cores_per_die, threads_per_core, hops, .. } => {
                let (a, b) = (a / threads_per_core, b / threads_per_core);
                let dies = (a / cores_per_die, b / cores_per_die);
                let die = u32::from(*cores_per_die > 1);
                let package = u32::from(*dies_per_package > 1);
                if a == b {
                    0
                } else if dies.0 == dies.1 {
                    die
                } else if dies.0 / dies_per_package == dies.1 / dies_per_package {
                    die + package
                } else {
                    die + package + hops[dies.0 as usize][dies.1 as usize]
                }
            }
        };
        apart as usize
    }

    /// Checks that the layout is consistent.
    pub(super) fn check(&self) -> Result<(), Flaw> {
        match self {
            Self::Mesh { columns, rows } => {
                product("layout.mesh.columns", &[*columns, *rows]).map(drop)
            }
            Self::Packages {
                packages,
                dies_per_package,
                cores_per_die,
                threads_per_core,
                hops,
            } => {
                let counts = [*packages, *dies_per_package, *cores_per_die, *threads_per_core];
                product("layout.packages.packages", &counts)?;
                check_hops(hops, (packages * dies_per_package) as usize)
            }
        }
    }

    /// Returns the names of the distances that a file gives, and the names of all distances.
    pub(super) fn distances(&self) -> (Vec<String>, Vec<String>) {
        let name = |hops: u32| format!("{hops} hop{}", if hops == 1 { "" } else { "s" });
        let mut all = vec!["core".to_owned()];
        match self {
            Self::Packages { dies_per_package, cores_per_die, hops, .. } => {
                all.extend((*cores_per_die > 1).then(|| "die".to_owned()));
                all.extend((*dies_per_package > 1).then(|| "package".to_owned()));
                let package = |die: usize| die / *dies_per_package as usize;
                let pairs = (0..hops.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
                let apart = pairs.filter(|&(a, b)| package(a) != package(b));
                let farthest = apart.map(|(a, b)| hops[a][b]).max().unwrap_or(0);
                all.extend((1..=farthest).map(name));
                (all.clone(), all)
            }
            Self::Mesh { columns, rows } => {
                let farthest = columns + rows - 2;
                let mut named = all.clone();
                named.extend((1..=farthest.min(1)).map(name));
                named.extend((2..=farthest).last().map(name));
                all.extend((1..=farthest).map(name));
                (named, all)
            }
        }
    }
}

/// Checks that hops are those of the shortest paths between this many dies.
fn check_hops(hops: &[Vec<u32>], dies: usize) -> Result<(), Flaw> {
    let keys = "layout.packages.hops";
    let message = format!("expected {dies} rows, one for each die, found {}", hops.len());
    ensure(hops.len() == dies, keys, message)?;
    for (a, row) in hops.iter().enumerate() {
        let keys = format!("{keys}.{a}");
        let message = format!("expected {dies} numbers, one for each die, found {}", row.len());
        ensure(row.len() == dies, keys.as_str(), message)?;
        for (b, &found) in row.iter().enumerate() {
            let (fits, expected) = match a.cmp(&b) {
                Ordering::Less => {
                    ((1..dies).contains(&(found as usize)), format!("1 to {} hops", dies - 1))
                }
                Ordering::Equal => (found == 0, "0 hops".to_owned()),
                Ordering::Greater => {
                    (found == hops[b][a], format!("{} hops, as in the other direction", hops[b][a]))
                }
            };
            let message = format!("from die {a} to {b} expected {expected}, found {found}");
            ensure(fits, keys.as_str(), message)?;
        }
    }
    Ok(())
}
