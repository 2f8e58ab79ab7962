//! Locks and condition variables of libraries in C and C++, as locks of `lock_api`.
//!
//! 1. `functions`: the functions of such a library;
//! 2. `pthread`: those of the C library, which are linked;
//! 3. `loaded`: those of nsync and Abseil, behind two short sources that are compiled here and
//!    loaded;
//! 4. `locks`: the locks.
//!
//! So locks of all libraries run the same Rust code around their calls. A call costs one indirect
//! jump more than in a program in C.

mod functions;
mod loaded;
mod locks;
mod pthread;

pub use loaded::LoadedLocks;
pub(crate) use loaded::{Abseil, Nsync};
pub(crate) use locks::{NativeCondvar, NativeMutex, NativeRwLock};
pub(crate) use pthread::Pthread;
