//! Direct vector all-gather: every PE copies every other PE's block from that PE's source.
//!
//! This is the vector all-to-all `direct` (rendezvous gets; Nishtala and Yelick 2009, section 2):
//! the block of a PE for each other PE is its whole source.

pub use crate::all_to_all::vector::Direct;
