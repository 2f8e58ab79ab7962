//! Trees as parameters. Each collective has one algorithm over trees, which works with any of
//! these:
//!
//! | name | tree | source |
//! | --- | --- | --- |
//! | `flat` | one level | Nishtala and Yelick 2009, section 4 |
//! | `chain` | each PE has one child; chunks | section 4.1 |
//! | `knomial` | k-nomial: 1 is the chain, 2 the binomial tree | section 2.2 |
//! | `pipelined` | k-ary; chunks | Petrović 2015, section 3.1.1 |
//! | `pipelined`, combining | k-nomial; chunks | 2009, section 2.2; 2015, section 3.1.1 |

use consort_fabric::Candidate;

use crate::{Parameter, rank_math::tree::Shape};

/// A tree: a row of the table.
pub trait Tree: 'static {
    /// The name of the tree, and of algorithms over it.
    const NAME: &'static str;
    /// The parameters of a candidate.
    const PARAMETERS: &'static [Parameter];

    /// Returns the tree's shape and the length of a chunk in bytes, from a candidate's parameters.
    fn of(candidate: &Candidate) -> (Shape, usize);
}

const RADIX: Parameter =
    Parameter { name: "radix", values: &[1, 2, 4, 8, 16], range: (1, 1 << 16) };
const CHUNK: Parameter =
    Parameter { name: "chunk_bytes", values: &[1024, 2048, 4096, 7056], range: (1, 1 << 30) };

fn radix(candidate: &Candidate) -> u32 {
    candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok()).unwrap_or(2)
}

fn chunk(candidate: &Candidate) -> usize {
    let bytes = candidate.parameter("chunk_bytes");
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(4096)
}

/// A tree of one level.
#[derive(Hash)]
pub struct Flat;

impl Tree for Flat {
    const NAME: &'static str = "flat";
    const PARAMETERS: &'static [Parameter] = &[];

    fn of(_: &Candidate) -> (Shape, usize) {
        (Shape::Flat, usize::MAX)
    }
}

/// A chain, in chunks.
#[derive(Hash)]
pub struct Chain;

impl Tree for Chain {
    const NAME: &'static str = "chain";
    const PARAMETERS: &'static [Parameter] = &[CHUNK];

    fn of(candidate: &Candidate) -> (Shape, usize) {
        (Shape::Knomial(1), chunk(candidate))
    }
}

/// A k-nomial tree.
#[derive(Hash)]
pub struct Knomial;

impl Tree for Knomial {
    const NAME: &'static str = "knomial";
    const PARAMETERS: &'static [Parameter] = &[RADIX];

    fn of(candidate: &Candidate) -> (Shape, usize) {
        (Shape::Knomial(radix(candidate)), usize::MAX)
    }
}

/// A k-nomial tree whose edges carry the blocks of subtrees. The tuner tries no chains and no large
/// radices.
#[derive(Hash)]
pub struct KnomialOfBlocks;

impl Tree for KnomialOfBlocks {
    const NAME: &'static str = "knomial";
    const PARAMETERS: &'static [Parameter] = &[Parameter { values: &[2, 4, 8], ..RADIX }];

    fn of(candidate: &Candidate) -> (Shape, usize) {
        Knomial::of(candidate)
    }
}

/// A k-nomial tree, in chunks; its subtrees are ranges of ranks.
#[derive(Hash)]
pub struct PipelinedKnomial;

impl Tree for PipelinedKnomial {
    const NAME: &'static str = "pipelined";
    const PARAMETERS: &'static [Parameter] = &[CHUNK, Parameter { values: &[2, 4], ..RADIX }];

    fn of(candidate: &Candidate) -> (Shape, usize) {
        (Shape::Knomial(radix(candidate)), chunk(candidate))
    }
}

/// A k-ary tree, in chunks.
#[derive(Hash)]
pub struct Pipelined;

impl Tree for Pipelined {
    const NAME: &'static str = "pipelined";
    const PARAMETERS: &'static [Parameter] = &[CHUNK, Parameter { values: &[1, 2, 4], ..RADIX }];

    fn of(candidate: &Candidate) -> (Shape, usize) {
        (Shape::Kary(radix(candidate)), chunk(candidate))
    }
}
