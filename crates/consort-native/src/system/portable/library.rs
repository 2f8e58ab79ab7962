//! Nothing keeps a shared library loaded: a program must not unload one that uses Consort.

/// Does nothing.
pub fn stay_loaded() {}
