//! The machine on which this crate's mutexes and delegates run.

#![expect(unsafe_code, reason = "the machine is shared by all threads")]

use consort_machine::NativeMachine;

/// The machine that all threads of the program share.
// SAFETY: only locks, schemes and native code based on them use it. Their traits are unsafe and
// promise what it requires. `block_on` and `at_once` drive each future to its end on the thread
// that created it.
pub(crate) const MACHINE: NativeMachine = unsafe { NativeMachine::new() };
