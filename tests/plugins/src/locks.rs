//! Functions that leave a delegate, a lock or a server behind.

use std::mem::ManuallyDrop;

use consort_sync::{Delegate, Mutex, Server, delegation::CcSynch, locks::HybLock};

static COUNTER: Delegate<u64, CcSynch> = Delegate::with(CcSynch::new(), 0);
static LOCKED: Mutex<u64, HybLock> = Mutex::with(HybLock::new(), 0);

/// Uses a delegate. Returns the number of uses.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn delegate() -> u64 {
    COUNTER.apply(|count| {
        *count += 1;
        *count
    })
}

/// Takes a lock. Returns the number of times.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lock() -> u64 {
    let mut count = LOCKED.lock();
    *count += 1;
    *count
}

/// Starts a server, which nobody ends. Returns the number of uses of its data.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn server() -> u64 {
    let server = ManuallyDrop::new(Server::start(0).expect("a thread"));
    server.apply(|count| {
        *count += 1;
        *count
    })
}

/// Waits for a closure's result.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pending() -> u64 {
    Delegate::new(0).submit(|count| *count + 1).wait()
}
