//! Handles on a PE's states, and their owner.
//!
//! Teams, symmetric memory, plans and requests are handles: they share the states of their PE by a
//! reference count that is not atomic. So handles stay on the PE's thread, and the states live
//! until the last handle is dropped. Only then can the PE continue on another thread:
//!
//! | the thread that runs a PE | the job gets back |
//! | --- | --- |
//! | leaves, and has no handles | the states, at once |
//! | leaves, and has handles | the states, when the last handle is dropped; until then only this thread may run the PE again |

#![expect(unsafe_code, reason = "a handle points to a state that its owner keeps in place")]

use std::{
    cell::Cell,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull,
    rc::Rc,
    sync::{Arc, Weak},
};

use consort_native::{Site, StartedCall};

use super::{
    plans::Ready,
    state::{Inside, State},
    teams::Teams,
};
use crate::{Result, error::CallError};

/// A PE's states: that of the world, and those of the teams that it has formed.
pub(crate) struct States {
    pub(crate) world: State,
    pub(crate) teams: Teams,
}

impl States {
    /// Returns the state of this number: the world's for 0.
    #[inline]
    pub(crate) fn state(&self, number: usize) -> &State {
        if number == 0 {
            return &self.world;
        }
        self.teams.state(number).expect("a team of this number has been formed")
    }

    /// Returns the world and all teams that are not freed.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &State> {
        let teams = self.teams.iter().filter(|team| !team.is_freed());
        std::iter::once(&self.world).chain(teams)
    }

    /// Leaves all teams but the world. With `keeps`, leaves only teams without handles.
    pub(crate) fn leave_teams(&self, keeps: bool) -> Result<()> {
        if self.teams.is_empty() {
            return Ok(()); // the end of most regions; there are no strided teams either
        }
        for team in self.alive().skip(1).filter(|team| !keeps || !team.has_handles()) {
            let inside = team.go_inside()?;
            team.leave_team(&inside);
            self.teams.spare(team);
        }
        self.world.endpoint.forget_strided();
        Ok(())
    }
}

/// A job, to which a PE's states return when the last handle on them is dropped.
pub(crate) trait TakesBack {
    fn take_back(self: Arc<Self>, states: Box<States>);
}

/// A PE's states, which its handles share.
pub(crate) struct ThreadBoundPe {
    /// `Some` until this is dropped.
    states: Option<Box<States>>,
    job: Weak<dyn TakesBack>,
    /// Whether any thread may run the PE, even if another one has handles on it.
    pub(crate) changes_threads: Cell<bool>,
}

impl ThreadBoundPe {
    pub(crate) fn new(states: Box<States>, job: Weak<dyn TakesBack>) -> Rc<Self> {
        Rc::new(Self { states: Some(states), job, changes_threads: Cell::new(false) })
    }

    /// Returns whether the PE cannot run any more: its job has failed or is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.world.endpoint.job().is_poisoned() || self.job.strong_count() == 0
    }
}

impl Deref for ThreadBoundPe {
    type Target = States;

    #[inline(always)]
    fn deref(&self) -> &States {
        self.states.as_ref().expect("they are there until this is dropped")
    }
}

impl Drop for ThreadBoundPe {
    fn drop(&mut self) {
        let Some(states) = self.states.take() else { return };
        if !states.world.endpoint.job().is_current() {
            let _ = ManuallyDrop::new(states); // a forked child has only a copy of the PE
        } else if let Some(job) = self.job.upgrade() {
            job.take_back(states);
        }
    }
}

/// A reference to a PE's states. It stays on its thread, because the count of references is not
/// atomic. `T` is always [`ThreadBoundPe`]: the compiler shows the message of [`CrossesThreads`]
/// only if a parameter has the bound.
pub(super) struct OwnerRef<T = ThreadBoundPe>(Rc<T>);

/// Types to which several threads may have an [`OwnerRef`]. There is none.
#[diagnostic::on_unimplemented(
    message = "a PE and its handles stay on their thread",
    label = "would use them on another thread",
    note = "other threads get data or `Symmetric::share`, or join as PEs (`Job::join`)",
    note = "in async code, await in a `LocalSet`, or give PEs their own thread, as the example \
            `service`"
)]
pub(super) trait CrossesThreads {}

// SAFETY: no type implements the trait, so no reference is `Send`.
unsafe impl<T: CrossesThreads> Send for OwnerRef<T> {}
// SAFETY: as above; nor is one `Sync`.
unsafe impl<T: CrossesThreads> Sync for OwnerRef<T> {}

/// The address of a state. It may be sent, so that only the owner keeps a [`Hold`] on its thread,
/// and the compiler says one thing about a handle on another thread.
#[derive(Clone, Copy)]
struct Address(NonNull<State>);

// SAFETY: only `Hold` follows the address, and `Hold` is not `Send`, because of its owner.
unsafe impl Send for Address {}
// SAFETY: as above; nor is `Hold` `Sync`.
unsafe impl Sync for Address {}

/// A handle on the state of a team. The team may be freed, and its state may then serve another
/// team.
pub(crate) struct Hold {
    owner: OwnerRef,
    /// That of one of the owner's states.
    state: Address,
    generation: u32,
}

impl Deref for Hold {
    type Target = State;

    #[inline(always)]
    fn deref(&self) -> &State {
        // SAFETY: the state is one of the owner's, which keeps its states in place, and only lends
        // them as `&`, until the last reference to it is dropped.
        unsafe { self.state.0.as_ref() }
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        if self.is_alive() {
            self.handles.set(self.handles.get() + 1);
        }
        Self { owner: OwnerRef(Rc::clone(self.owner())), ..*self }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.is_alive() {
            self.handles.set(self.handles.get() - 1);
        }
    }
}

impl Hold {
    /// Creates a handle on the team whose state has this number.
    pub(crate) fn new(owner: Rc<ThreadBoundPe>, number: usize) -> Self {
        let state = owner.state(number);
        state.handles.set(state.handles.get() + 1);
        let (generation, state) = (state.current_generation(), Address(NonNull::from(state)));
        Self { owner: OwnerRef(owner), state, generation }
    }

    /// Creates a handle on another team of the same PE, whose state has this number.
    pub(crate) fn of_team(&self, number: usize) -> Self {
        Self::new(Rc::clone(self.owner()), number)
    }

    /// Returns the states of the PE.
    pub(crate) fn owner(&self) -> &Rc<ThreadBoundPe> {
        &self.owner.0
    }

    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.generation == self.current_generation()
    }

    /// Returns [`CallError::Freed`] once the team is freed.
    #[inline(always)]
    pub(crate) fn ensure_alive(&self) -> Result<()> {
        if self.is_alive() { Ok(()) } else { Err(CallError::Freed.into()) }
    }

    /// Enters a call. Rejects calls from within a call, and calls of a freed team.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Inside<'_>> {
        self.ensure_alive()?;
        self.go_inside()
    }

    /// As [`Self::enter`], for operations that may overtake earlier puts.
    #[inline]
    pub(crate) fn enter_one_sided(&self) -> Result<Inside<'_>> {
        self.ensure_alive()?;
        self.go_inside_one_sided()
    }

    /// Starts a nonblocking call at `site`, once the window has room for it. Passes the call to
    /// `begin`, and polls the operation that `begin` launches for the first time.
    pub(crate) fn start<R>(
        &self,
        ready: &dyn Ready,
        site: Site,
        begin: impl FnOnce(StartedCall) -> R,
    ) -> Result<R> {
        let inside = self.enter()?;
        let begun = begin(State::begin(self, &inside, ready, site)?);
        self.poll_started(&inside);
        Ok(begun)
    }

    /// Leaves the team, once all its PEs have agreed.
    pub(crate) fn free(&self) -> Result<()> {
        let inside = self.enter()?;
        self.leave_team(&inside);
        self.owner().teams.spare(self);
        Ok(())
    }
}

/// The state of a started call. The call's team may be freed.
pub(crate) struct CallState {
    owner: OwnerRef,
    /// The number of the team's state.
    number: usize,
}

impl CallState {
    pub(crate) fn of(hold: &Hold) -> Self {
        Self { owner: OwnerRef(Rc::clone(hold.owner())), number: hold.number() }
    }
}

impl Deref for CallState {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        self.owner.0.state(self.number)
    }
}

#[cfg(test)]
mod tests {
    use crate::Job;

    /// If handles on a freed team counted, or their drops, the next team of its state would end too
    /// late or too early.
    #[test]
    fn reused_state_counts_only_handles_on_its_team() {
        let ended = Job::threads(1).without_wisdom().run(|pe| {
            let freed = pe.world().split(Some(0), 0)?.expect("a colour");
            freed.clone().free()?;
            let next = pe.world().split(Some(0), 0)?.expect("a colour");
            assert_eq!(next.state.number(), freed.state.number());
            let state = pe.state().owner().state(next.state.number());
            drop(freed.clone());
            assert!(state.has_handles());
            let clones = [freed.clone(), next.clone()];
            drop(next);
            assert!(state.has_handles());
            let [of_freed, of_next] = clones;
            drop((freed, of_next));
            assert!(!state.has_handles());
            drop(of_freed);
            Ok(())
        });
        assert_eq!(ended.map(drop), Ok(()));
    }
}
