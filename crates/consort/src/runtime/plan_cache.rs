//! A cache of a team's plans. A call finds the plan that serves it.

use std::{
    cell::{Cell, Ref, RefCell},
    sync::Arc,
};

use consort_fabric::{CallSpec, Candidate, Collective, Kernel};

use super::plans::Ready;

/// The number of cached plans; a power of two.
const PLACES: usize = 256;

/// The key of a plan, packed because it is compared in every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Root, collective, modes, whether the buffers are symmetric, whether the call blocks, and
    /// whether it is in place.
    call: u64,
    bytes: usize,
    whole_bytes: usize,
    /// The element's type, by the address of its name.
    datatype: usize,
    /// The operator, by [`Key::of_operator`].
    pub(crate) kernel: usize,
}

impl Key {
    /// The lowest bit of the plan's age in [`Key::call`], above all bits that [`Key::of`] sets.
    const EPOCH: u64 = 1 << 47;
    /// The age after the last: no plan is found at it, and the next cached plan clears the cache
    /// and restarts at age 0.
    const NO_EPOCH: u64 = !(Self::EPOCH - 1);

    /// Returns the key of a call with this operator.
    #[inline(always)]
    pub(crate) fn of(call: &CallSpec, kernel: Option<&Kernel<'_>>) -> Self {
        Self {
            call: u64::from(call.root.0)
                | (call.collective as u64) << 32
                | (call.sync.entry as u64) << 40
                | (call.sync.exit as u64) << 42
                | u64::from(call.symmetric) << 44
                | u64::from(call.nonblocking) << 45
                | u64::from(call.in_place) << 46,
            bytes: call.bytes,
            whole_bytes: call.whole_bytes,
            datatype: call.datatype.as_ptr().addr(),
            kernel: kernel.map_or(0, |kernel| Self::of_operator(kernel, call.operator)),
        }
    }

    /// Returns the key of an operator, by the addresses of its code and of its name: operators that
    /// do the same may share code.
    #[inline]
    fn of_operator(kernel: &Kernel<'_>, name: &'static str) -> usize {
        kernel.identity().wrapping_add(name.as_ptr().addr())
    }

    #[inline]
    fn place(&self) -> usize {
        let bytes = (self.bytes as u64) << 3 ^ u64::from(self.whole_bytes > 0);
        let mix = self.call ^ self.call >> 30 ^ bytes ^ self.kernel as u64 >> 4;
        usize::try_from((mix ^ mix >> 9) % PLACES as u64).unwrap_or(0)
    }
}

type Found = Option<Arc<dyn Ready>>;
type Place = Option<(Key, Arc<dyn Ready>)>;

/// A team's plans, one per place; a new one evicts the old one.
#[derive(Default)]
pub(crate) struct Cache {
    /// Empty before the first plan.
    places: RefCell<Vec<Place>>,
    /// The upper bits of [`Key::call`] of all plans that can be found.
    epoch: Cell<u64>,
    latest: RefCell<[Found; Collective::EVERY.len()]>,
}

impl Cache {
    /// Returns the cached plan, for an operation to keep.
    pub(crate) fn share(&self, key: &Key) -> Found {
        let places = self.places.borrow();
        self.found(&places, key).map(Arc::clone)
    }

    /// Returns the cached plan. While it is borrowed, none is added.
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

    /// Returns the algorithm of the plan that was created last for `collective`.
    pub(crate) fn latest(&self, collective: Collective) -> Option<Candidate> {
        let latest = &self.latest.borrow()[collective as usize];
        latest.as_ref().map(|ready| ready.candidate().clone())
    }

    pub(crate) fn clear(&self) {
        self.places.take();
    }

    /// Forgets the plans, including the latest ones.
    pub(crate) fn forget(&self) {
        self.clear();
        self.latest.take();
    }

    /// Hides all plans that are cached now, and perhaps in use.
    pub(crate) fn expire(&self) {
        if self.epoch.get() != Key::NO_EPOCH {
            self.epoch.set(self.epoch.get() + Key::EPOCH);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, future::Future, pin::Pin};

    use consort_fabric::{Op, Sum, SyncModes};
    use consort_native::{CallView, Endpoint, HeapError, Operands, Site, StartedCall};

    use super::*;

    /// A plan for which no call is made.
    struct Named(Candidate);

    impl Ready for Named {
        fn call(&self, _: &Endpoint, _: &Cell<bool>, _: &Operands<'_>, _: Site) -> Op {
            unreachable!("no call is made by it")
        }

        fn begin(&self, _: &Endpoint, _: Site) -> Result<StartedCall, HeapError> {
            unreachable!("no call is made by it")
        }

        fn drive<'c>(&'c self, _: &'c CallView<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
            unreachable!("no call is made by it")
        }

        fn candidate(&self) -> &Candidate {
            &self.0
        }

        fn may_replace_source(&self) -> bool {
            false
        }
    }

    /// Kinds of call on the same data have separate places: a program may alternate between them.
    #[test]
    fn each_kind_of_call_has_its_slot() {
        let blocking = CallSpec {
            collective: Collective::AllReduce,
            sync: SyncModes::MINE,
            bytes: 1 << 16,
            ..CallSpec::barrier(2)
        };
        let kinds = [
            blocking,
            CallSpec { in_place: true, ..blocking },
            CallSpec { nonblocking: true, ..blocking },
            CallSpec { symmetric: true, ..blocking },
            CallSpec { collective: Collective::Reduce, in_place: true, ..blocking },
            CallSpec { whole_bytes: 1 << 20, ..blocking },
        ];
        let places: BTreeSet<usize> =
            kinds.iter().map(|call| Key::of(call, None).place()).collect();
        assert_eq!(places.len(), kinds.len(), "{places:?}");
    }

    /// A compiler may merge the code of two operators. Their names differ.
    #[test]
    fn operators_that_share_code_have_separate_keys() {
        let kernel = Kernel::new::<u64, _>(&Sum);
        let [one, other] = ["sum", "total"].map(|name| Key::of_operator(&kernel, name));
        assert_ne!(one, other);
    }

    #[test]
    fn expired_plan_is_never_found_again() {
        let cache = Cache::default();
        let key = |bytes| Key::of(&CallSpec { bytes, ..CallSpec::barrier(2) }, None);
        let ready: Arc<dyn Ready> = Arc::new(Named(Candidate::new("flat")));
        cache.keep(Collective::AllReduce, key(8), &ready);
        assert!(cache.find(&key(8)).is_some());
        let mut wrapped = false;
        // More epochs than fit the bits; now and then a plan is cached in another place.
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
