//! Direct vector all-gather: every PE copies every other PE's block from that PE's source.
//!
//! This is the vector all-to-all `direct` (rendezvous gets; Nishtala, Zheng, Hargrove and Yelick
//! 2011, section 3.3.2): a PE's block for each other PE is its whole source.

pub use crate::all_to_all::vector::Direct;
