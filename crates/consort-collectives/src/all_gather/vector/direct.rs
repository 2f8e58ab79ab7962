//! Direct varied all-gather: everyone copies everyone's piece from where it lies.
//!
//! It is the varied exchange `direct` (rendezvous gets; Nishtala and Yelick 2009, section 2) of PEs
//! whose pieces for all others are one: their source.

pub use crate::all_to_all::vector::Direct;
