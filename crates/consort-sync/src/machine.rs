//! The machine that this crate's mutexes and delegates are for.

#![expect(unsafe_code, reason = "the machine is shared by all threads")]

use consort_machine::NativeMachine;

/// The machine of all threads of the program.
// SAFETY: only locks, schemes and what is native of them use it. Their traits are unsafe and
// promise what it asks. `block_on` and `at_once` drive each future to its end on the thread that
// made it.
pub(crate) const MACHINE: NativeMachine = unsafe { NativeMachine::new() };
