//! The element types of symmetric memory.

use consort_fabric::Pod;
use consort_native::BLOCK_ALIGN;

/// A type that symmetric memory may hold: plain data whose alignment is at most a cache line.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, which slices and symmetric memory consist of",
    label = "not plain data",
    note = "for a struct whose fields are all plain data, without padding: \
            `#[derive(Clone, Copy, consort::Pod)]` with `#[repr(C)]` and the feature `derive` of \
            `consort`",
    note = "for `bool` use `u8` here, and for `char` `u32`"
)]
pub trait Element: Pod {
    /// Checks the alignment at compile time, where memory is allocated.
    const FITS: () = assert!(align_of::<Self>() <= BLOCK_ALIGN, "over-aligned elements");
}

#[diagnostic::do_not_recommend]
impl<T: Pod> Element for T {}
