//! A plug-in for tests that unload it: each function leaves a different kind of object in the
//! process, or in the calling thread.

#![expect(unsafe_code, reason = "functions that other programs find by their names")]

mod jobs;
mod locks;
