//! Reader-writer locks: data and guards, based on the crate `lock_api`.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

use std::{
    fmt,
    time::{Duration, Instant},
};

use consort_machine::{at_once, block_on};
use lock_api::{
    GuardNoSend, RawRwLockDowngrade, RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade,
    RawRwLockUpgradeTimed,
};

use crate::{
    locks::{
        Access::{self, Read, UpgradableRead, Write},
        QueuedRwLock,
    },
    machine::MACHINE,
    timed::{deadline_after, try_until},
};

/// A reader-writer lock: data that many threads read at a time, or one thread writes.
///
/// No thread starves: if threads wait, the first of them keeps newcomers out after some
/// microseconds, or, if the lock is used all the time, after 0.1 ms. So a thread that holds a read
/// guard must not ask for another one: it may wait for a writer that waits for the first guard. A
/// panic does not poison the data.
///
/// ```
/// use consort_sync::{RwLock, RwLockUpgradableReadGuard};
///
/// static NAMES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
///
/// NAMES.write().push("first");
/// assert_eq!(NAMES.read().len(), 1);
///
/// // Other threads may read, until this one has to write.
/// let names = NAMES.upgradable_read();
/// if !names.contains(&"second") {
///     RwLockUpgradableReadGuard::upgrade(names).push("second");
/// }
/// assert_eq!(*NAMES.read(), ["first", "second"]);
/// ```
///
/// A thread with a time limit (`try_read_for` and its like) does not queue up, but tries again and
/// again: other threads may overtake it.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// Shared access to the data of a [`RwLock`], until it is dropped. It stays on its thread.
pub type RwLockReadGuard<'l, T> = lock_api::RwLockReadGuard<'l, RawRwLock, T>;

/// Exclusive access to the data of a [`RwLock`], until it is dropped. It stays on its thread.
pub type RwLockWriteGuard<'l, T> = lock_api::RwLockWriteGuard<'l, RawRwLock, T>;

/// Shared access to the data of a [`RwLock`] that its thread may upgrade. There is one at a time.
pub type RwLockUpgradableReadGuard<'l, T> = lock_api::RwLockUpgradableReadGuard<'l, RawRwLock, T>;

/// A [`RwLockReadGuard`] for a part of the data.
pub type MappedRwLockReadGuard<'l, T> = lock_api::MappedRwLockReadGuard<'l, RawRwLock, T>;

/// A [`RwLockWriteGuard`] for a part of the data.
pub type MappedRwLockWriteGuard<'l, T> = lock_api::MappedRwLockWriteGuard<'l, RawRwLock, T>;

/// A [`QueuedRwLock`] on the native machine, for code that is generic over [`lock_api`] locks.
pub struct RawRwLock(QueuedRwLock);

impl RawRwLock {
    #[inline(always)]
    fn enter(&self, access: Access) -> GuardNoSend {
        if !at_once(self.0.enter(&MACHINE, access)) {
            self.wait(access);
        }
        GuardNoSend::new()
    }

    #[cold]
    fn wait(&self, access: Access) {
        let Ok(()) = block_on(self.0.wait(&MACHINE, access));
    }

    #[inline]
    fn try_enter(&self, access: Access) -> Option<GuardNoSend> {
        at_once(self.0.try_enter(&MACHINE, access)).then(GuardNoSend::new)
    }

    fn try_enter_until(&self, access: Access, deadline: Option<Instant>) -> Option<GuardNoSend> {
        try_until(deadline, || self.try_enter(access))
    }

    /// # Safety
    /// The calling thread is inside, with the access `from`; `to` excludes no thread that `from`
    /// does not exclude.
    #[inline(always)]
    unsafe fn change(&self, from: Access, to: Option<Access>) -> GuardNoSend {
        // SAFETY: guaranteed by the caller.
        at_once(unsafe { self.0.change(&MACHINE, from, to) });
        GuardNoSend::new()
    }

    /// # Safety
    /// The calling thread is inside, with [`Access::UpgradableRead`].
    unsafe fn try_upgrade_until(
        &self,
        deadline: Option<Instant>,
        guard: GuardNoSend,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: guaranteed by the caller.
        let attempt = || at_once(unsafe { self.0.try_upgrade(&MACHINE) }).then(GuardNoSend::new);
        try_until(deadline, attempt).ok_or(guard)
    }
}

// SAFETY: `QueuedRwLock` excludes writers from each other and from readers, and upgradable readers
// from each other. The acquire of an entry pairs with the release of each exit. The guards have no
// state, so a lock may be moved or dropped while it is held. Nothing here unwinds, except before
// the thread is inside: an allocation may fail.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self(QueuedRwLock::new());

    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        self.enter(Read)
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.try_enter(Read)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _: GuardNoSend) {
        // SAFETY: the caller holds a read guard.
        unsafe { self.change(Read, None) };
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.enter(Write)
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.try_enter(Write)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _: GuardNoSend) {
        // SAFETY: the caller holds the write guard.
        unsafe { self.change(Write, None) };
    }

    fn is_locked(&self) -> bool {
        at_once(self.0.is_held(&MACHINE))
    }

    fn is_locked_exclusive(&self) -> bool {
        at_once(self.0.is_held_by_writer(&MACHINE))
    }
}

// SAFETY: as above. The thread keeps writers out while it changes its access, and the change is a
// release.
unsafe impl RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, _: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the write guard; readers exclude fewer threads than writers.
        unsafe { self.change(Write, Some(Read)) }
    }
}

// SAFETY: as above. An upgrade acquires what the readers released.
unsafe impl RawRwLockUpgrade for RawRwLock {
    type UpgradableGuard = GuardNoSend;

    fn lock_upgradable(&self) -> GuardNoSend {
        self.enter(UpgradableRead)
    }

    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        self.try_enter(UpgradableRead)
    }

    unsafe fn unlock_upgradable(&self, _: GuardNoSend) {
        // SAFETY: the caller holds the upgradable guard.
        unsafe { self.change(UpgradableRead, None) };
    }

    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the upgradable guard.
        let Ok(()) = block_on(unsafe { self.0.upgrade(&MACHINE) });
        guard
    }

    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: the caller holds the upgradable guard.
        if at_once(unsafe { self.0.try_upgrade(&MACHINE) }) { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self, _: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the upgradable guard, which excludes all that a reader excludes.
        unsafe { self.change(UpgradableRead, Some(Read)) }
    }

    unsafe fn downgrade_to_upgradable(&self, _: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the write guard, which excludes all others.
        unsafe { self.change(Write, Some(UpgradableRead)) }
    }
}

// SAFETY: as above.
unsafe impl RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, limit: Duration) -> Option<GuardNoSend> {
        self.try_enter_until(Read, deadline_after(limit))
    }

    fn try_lock_shared_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.try_enter_until(Read, Some(deadline))
    }

    fn try_lock_exclusive_for(&self, limit: Duration) -> Option<GuardNoSend> {
        self.try_enter_until(Write, deadline_after(limit))
    }

    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.try_enter_until(Write, Some(deadline))
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, limit: Duration) -> Option<GuardNoSend> {
        self.try_enter_until(UpgradableRead, deadline_after(limit))
    }

    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.try_enter_until(UpgradableRead, Some(deadline))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        limit: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: the caller holds the upgradable guard.
        unsafe { self.try_upgrade_until(deadline_after(limit), guard) }
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        deadline: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: the caller holds the upgradable guard.
        unsafe { self.try_upgrade_until(Some(deadline), guard) }
    }
}

impl fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRwLock").finish_non_exhaustive()
    }
}
