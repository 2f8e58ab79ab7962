//! A plug-in, for tests that unload it: each function leaves something of another kind to the
//! process, or to the thread that calls it.

#![expect(unsafe_code, reason = "functions that other programs find by their names")]

mod jobs;
mod locks;
