//! The trait of plain data, and with the feature `derive` the derive macro of the same name: that of
//! `bytemuck`.

/// Both under one name: where two things have it, the one that is named goes before the others.
#[cfg(feature = "derive")]
mod both {
    pub use bytemuck::*;
    pub use consort_fabric::Pod;
}

#[cfg(feature = "derive")]
pub use both::Pod;
#[cfg(not(feature = "derive"))]
pub use consort_fabric::Pod;
