//! Plans that a team has made, found again by what was called.

use std::{
    cell::{Cell, Ref, RefCell},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::Arc,
};

use consort_collectives::{Algorithm, EntryAndExit, Plan};
use consort_fabric::{CallSpec, Candidate, Collective, Kernel, Op, Rank, SyncModes};
use consort_native::{Call, CallNumber, Endpoint, Operands, StartedCall};

/// Plans that are kept; a power of two.
const PLACES: usize = 256;

/// What a plan is found by, packed: it is compared in every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Root, collective, modes, whether the buffers are symmetric, and whether it blocks.
    pub(crate) call: u64,
    pub(crate) bytes: usize,
    /// Of the element's type, by the address of its name.
    pub(crate) datatype: usize,
    /// Of the operator on it, by [`Key::of_operator`].
    pub(crate) kernel: usize,
}

impl Key {
    /// In [`Key::call`], of nonblocking calls.
    const NONBLOCKING: u64 = 1 << 45;
    /// In [`Key::call`], from here on, the plan's age.
    const EPOCH: u64 = 1 << 46;
    /// The age after the last: nothing is found at it, and the next plan that is kept clears the
    /// cache and begins again at age 0.
    const NO_EPOCH: u64 = !(Self::EPOCH - 1);

    /// Of a call with this operator.
    pub(crate) fn of(call: &CallSpec, kernel: Option<&Kernel<'_>>) -> Self {
        let CallSpec { collective, sync, root, symmetric, .. } = *call;
        let nonblocking = if call.nonblocking { Self::NONBLOCKING } else { 0 };
        Self {
            call: Self::pack(collective, sync, root, symmetric) | nonblocking,
            bytes: call.bytes,
            datatype: call.datatype.as_ptr().addr(),
            kernel: kernel.map_or(0, |kernel| Self::of_operator(kernel, call.operator)),
        }
    }

    /// All that is not a size or a type.
    #[inline]
    pub(crate) fn pack(
        collective: Collective,
        sync: SyncModes,
        root: Rank,
        symmetric: bool,
    ) -> u64 {
        u64::from(root.0)
            | (collective as u64) << 32
            | (sync.entry as u64) << 40
            | (sync.exit as u64) << 42
            | u64::from(symmetric) << 44
    }

    /// Of an operator, by the addresses of its code and of its name: operators that do the same
    /// have one code.
    #[inline]
    pub(crate) fn of_operator(kernel: &Kernel<'_>, name: &'static str) -> usize {
        kernel.identity().wrapping_add(name.as_ptr().addr())
    }

    #[inline]
    fn place(&self) -> usize {
        let mix = self.call ^ self.call >> 29 ^ (self.bytes as u64) << 3 ^ self.kernel as u64 >> 4;
        usize::try_from((mix ^ mix >> 9) % PLACES as u64).unwrap_or(0)
    }
}

/// A plan behind one indirect call, ready for the threads fabric.
pub(crate) trait Ready: Send + std::marker::Sync {
    /// One call. Notes in `synchronized` if all PEs enter, or leave, together.
    fn call(&self, endpoint: &Endpoint, synchronized: &Cell<bool>, operands: &Operands<'_>) -> Op;
    /// Begins a call for an operation.
    fn begin(&self, endpoint: &Endpoint) -> StartedCall;
    /// What an operation does with it.
    fn fly<'c>(&'c self, call: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>>;
    /// The algorithm and its parameters.
    fn candidate(&self) -> &Candidate;
}

pub(crate) struct Prepared<A: Algorithm> {
    pub(crate) plan: Plan<A>,
    pub(crate) number: CallNumber,
    pub(crate) synchronizes: bool,
    pub(crate) candidate: Candidate,
}

impl<A: Algorithm> Ready for Prepared<A> {
    fn call(&self, endpoint: &Endpoint, synchronized: &Cell<bool>, operands: &Operands<'_>) -> Op {
        if self.synchronizes {
            synchronized.set(true);
        }
        // SAFETY: this future alone drives the call, to its end, and a team refuses calls from
        // within a call.
        #[expect(unsafe_code, reason = "begins a call")]
        let call = unsafe { endpoint.begin(self.number.get(), self.plan.steps(), operands) };
        // Peers wait for what a call that panics will never send. They are notified before it
        // ends, which revokes what it has exposed.
        let done = catch_unwind(AssertUnwindSafe(|| {
            let algorithm = A::run(&call, self.plan.schedule());
            match self.plan.entry_and_exit() {
                None => endpoint.block_on(&call, algorithm),
                Some(entry_and_exit) => between(entry_and_exit, endpoint, &call, pin!(algorithm)),
            }
        }));
        done.unwrap_or_else(|panic| {
            endpoint.job().fail(endpoint.rank_in_world(), &panic);
            resume_unwind(panic)
        })
    }

    fn begin(&self, endpoint: &Endpoint) -> StartedCall {
        endpoint.start(self.number.get(), self.plan.steps())
    }

    fn fly<'c>(&'c self, call: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        self.plan.run(call)
    }

    fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}

/// A call whose PEs enter or leave together: compiled once, for whatever algorithm.
#[inline(never)]
fn between(
    entry_and_exit: &EntryAndExit,
    endpoint: &Endpoint,
    call: &Call<'_>,
    algorithm: Pin<&mut dyn Future<Output = Op>>,
) -> Op {
    endpoint.block_on(call, entry_and_exit.run(call, algorithm))
}

type Found = Option<Arc<dyn Ready>>;
type Place = Option<(Key, Arc<dyn Ready>)>;

/// A team's plans, one a place; a new one drives out the old.
#[derive(Default)]
pub(crate) struct Cache {
    /// None at all before the first plan.
    places: RefCell<Vec<Place>>,
    /// In the upper bits of [`Key::call`] of all plans that are found.
    epoch: Cell<u64>,
    latest: RefCell<[Found; Collective::EVERY.len()]>,
}

impl Cache {
    /// The plan that is kept for this, to be kept by an operation.
    pub(crate) fn share(&self, key: &Key) -> Found {
        let places = self.places.borrow();
        self.found(&places, key).map(Arc::clone)
    }

    /// The plan that is kept for this. While it is borrowed, none is added.
    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<Ref<'_, dyn Ready>> {
        let found = Ref::filter_map(self.places.borrow(), |places| {
            self.found(places, key).map(|ready| &**ready)
        });
        found.ok()
    }

    #[inline]
    fn found<'k>(&self, places: &'k [Place], key: &Key) -> Option<&'k Arc<dyn Ready>> {
        let now = Key { call: key.call ^ self.epoch.get(), ..*key };
        match places.get(key.place()) {
            Some(Some((found, ready))) if *found == now => Some(ready),
            _ => None,
        }
    }

    pub(crate) fn keep(&self, collective: Collective, key: Key, ready: &Arc<dyn Ready>) {
        self.latest.borrow_mut()[collective as usize] = Some(Arc::clone(ready));
        if self.epoch.get() == Key::NO_EPOCH {
            self.clear();
            self.epoch.set(0);
        }
        let now = Key { call: key.call ^ self.epoch.get(), ..key };
        let mut places = self.places.borrow_mut();
        places.resize(PLACES, None);
        places[key.place()] = Some((now, Arc::clone(ready)));
    }

    /// The algorithm of the plan that was made last for `collective`.
    pub(crate) fn latest(&self, collective: Collective) -> Option<Candidate> {
        let latest = &self.latest.borrow()[collective as usize];
        latest.as_ref().map(|ready| ready.candidate().clone())
    }

    pub(crate) fn clear(&self) {
        self.places.take();
    }

    /// Forgets the plans, and which were the last.
    pub(crate) fn forget(&self) {
        self.clear();
        self.latest.take();
    }

    /// Has no plan found that is kept now, and perhaps in use.
    pub(crate) fn expire(&self) {
        if self.epoch.get() != Key::NO_EPOCH {
            self.epoch.set(self.epoch.get() + Key::EPOCH);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan that nobody makes a call by.
    struct Named(Candidate);

    impl Ready for Named {
        fn call(&self, _: &Endpoint, _: &Cell<bool>, _: &Operands<'_>) -> Op {
            unreachable!("no call is made by it")
        }

        fn begin(&self, _: &Endpoint) -> StartedCall {
            unreachable!("no call is made by it")
        }

        fn fly<'c>(&'c self, _: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
            unreachable!("no call is made by it")
        }

        fn candidate(&self) -> &Candidate {
            &self.0
        }
    }

    #[test]
    fn what_has_expired_is_never_found_again() {
        let cache = Cache::default();
        let key = |bytes| Key {
            call: Key::pack(Collective::AllReduce, SyncModes::MINE, Rank(0), false),
            bytes,
            datatype: 1,
            kernel: 0,
        };
        let ready: Arc<dyn Ready> = Arc::new(Named(Candidate::new("flat")));
        cache.keep(Collective::AllReduce, key(8), &ready);
        assert!(cache.find(&key(8)).is_some());
        let mut wrapped = false;
        // More epochs than there are bits for, with a plan kept now and then, in another place.
        for round in 0..1_u64 << 19 {
            {
                let _in_use = cache.find(&key(16));
                cache.expire();
            }
            assert!(cache.find(&key(16)).is_none(), "round {round}");
            if round % 3 == 0 {
                cache.keep(Collective::AllReduce, key(16), &ready);
                assert!(cache.find(&key(16)).is_some());
            }
            assert!(cache.find(&key(8)).is_none(), "round {round}");
            wrapped |= round > 0 && cache.epoch.get() == 0;
        }
        assert!(wrapped, "too few rounds to tell");
    }
}
