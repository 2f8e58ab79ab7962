//! Direct vector all-gather: everyone copies everyone's block from where it lies.
//!
//! It is the vector all-to-all `direct` (rendezvous gets; Nishtala and Yelick 2009, section 2) of
//! PEs whose blocks for all others are one: their source.

pub use crate::all_to_all::vector::Direct;
