//! The locks of nsync and Abseil, once they are compiled and loaded.
#![expect(unsafe_code, reason = "the functions of a loaded library are unsafe to call")]

use std::sync::{OnceLock, atomic::AtomicBool};

use anyhow::{Result, ensure};

use super::functions::{Access, BYTES, LockFn, LockFunctions, LockLibrary, TryLockFn, WaitFn};
use crate::peers::{commands::CompiledProgram, loading::load};

consort_fabric::named_enum! {
    /// A library that is compiled here and loaded. The name is that of its rows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LoadedLocks {
        /// nsync.
        Nsync = "nsync",
        /// Abseil.
        Abseil = "absl::Mutex",
    }
}

/// The functions of nsync, once they are loaded.
static NSYNC: OnceLock<LockFunctions> = OnceLock::new();
/// The functions of Abseil, once they are loaded.
static ABSEIL: OnceLock<LockFunctions> = OnceLock::new();

/// nsync, after [`LoadedLocks::load`].
pub(crate) struct Nsync;
/// Abseil, after [`LoadedLocks::load`].
pub(crate) struct Abseil;

const UNLOADED: &str = "a library is loaded before its rows are measured";

// SAFETY: `load` has checked that zeros are valid. The functions of `nsync.c` call nsync, which
// reserves nothing that a lock without users would have to return.
unsafe impl LockLibrary for Nsync {
    #[inline(always)]
    fn functions() -> &'static LockFunctions {
        NSYNC.get().expect(UNLOADED)
    }
}

// SAFETY: as for nsync. The destructors of Abseil only serve its debugging.
unsafe impl LockLibrary for Abseil {
    #[inline(always)]
    fn functions() -> &'static LockFunctions {
        ABSEIL.get().expect(UNLOADED)
    }
}

impl LoadedLocks {
    /// Compiles and loads the library, unless that has been done; `stop` interrupts it.
    ///
    /// # Errors
    /// If no compiler is installed, the compiler does not find the library, or this process cannot
    /// load it.
    pub fn load(self, stop: &AtomicBool) -> Result<()> {
        let (place, compiler, special, source, packages) = match self {
            Self::Nsync => {
                let special = &["-Wl,--no-as-needed,-z,defs", "-lnsync"][..];
                (&NSYNC, "gcc", special, include_str!("nsync.c"), "gcc and libnsync-dev")
            }
            Self::Abseil => {
                let special =
                    &["-x", "c++", "-Wl,--no-as-needed,-z,defs", "-labsl_synchronization"][..];
                (&ABSEIL, "g++", special, include_str!("absl.cc"), "g++ and libabsl-dev")
            }
        };
        if place.get().is_none() {
            let options = [&["-O2", "-shared", "-fPIC", "-pthread"], special].concat();
            let needs = [self.name(), packages];
            let program = CompiledProgram::by(compiler, &options, source, needs, stop)?;
            // If another thread was faster, its functions are as good.
            let _ = place.set(functions(&program)?);
        }
        Ok(())
    }
}

fn functions(program: &CompiledProgram) -> Result<LockFunctions> {
    // SAFETY: the library consists of functions. Initializing nsync or Abseil has no effect on
    // others.
    let library = unsafe { load(&program.path)? };
    // SAFETY: `nsync.c` and `absl.cc` define functions with these names and types.
    let lock = |name: &str| unsafe { library.get::<LockFn>(name).map(|function| *function) };
    // SAFETY: as above.
    let asked = |name: &str| unsafe { library.get::<TryLockFn>(name).map(|function| *function) };
    let mut zeros = [0_u8; BYTES];
    // SAFETY: as above. The function reads at most these bytes.
    let is_valid = unsafe { asked("zeros_are_valid")?(zeros.as_mut_ptr().cast()) };
    ensure!(is_valid != 0, "a new lock of this version does not consist of zeros");
    let access = |kind: &str| {
        anyhow::Ok(Access {
            lock: lock(&format!("{kind}_lock"))?,
            try_lock: asked(&format!("{kind}_try_lock"))?,
            unlock: lock(&format!("{kind}_unlock"))?,
        })
    };
    let mutex = access("mutex")?;
    Ok(LockFunctions {
        mutex,
        writer: mutex,
        reader: access("reader")?,
        // SAFETY: as above.
        wait: unsafe { *library.get::<WaitFn>("condition_wait")? },
        notify_one: lock("condition_notify_one")?,
        notify_all: lock("condition_notify_all")?,
    })
}
