//! The collectives of a team: a file each, with its forms for values, slices and symmetric memory.

mod all_reduce;
mod barrier;
mod broadcast;
mod reduce;

use crate::{Error, Result};

#[inline]
fn same_length(source_len: usize, target_len: usize) -> Result<()> {
    if source_len == target_len { Ok(()) } else { Err(Error::Lengths { source_len, target_len }) }
}
