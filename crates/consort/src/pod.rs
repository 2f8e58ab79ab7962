//! The trait of plain data, and the derive macro of the same name: that of `bytemuck`.

/// Both under one name: where two things have it, the one that is named goes before the others.
mod both {
    pub use bytemuck::*;
    pub use consort_fabric::Pod;
}

pub use both::Pod;
