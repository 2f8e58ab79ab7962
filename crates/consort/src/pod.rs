//! The trait of plain data, and with the feature `derive` the derive macro of the same name: both
//! from `bytemuck`.

/// Both under one name: an explicit re-export takes precedence over a glob re-export.
#[cfg(feature = "derive")]
mod both {
    pub use bytemuck::*;
    pub use consort_fabric::Pod;
}

#[cfg(feature = "derive")]
pub use both::Pod;
#[cfg(not(feature = "derive"))]
pub use consort_fabric::Pod;
