//! Finds the cached plan of a call, or creates a plan, and runs it.

use std::{any::type_name, sync::Arc};

use consort_fabric::{CallSpec, Collective, Kernel, Operator, OperatorClass, Pod, SyncModes, Wide};
use consort_native::{Operands, Site};

use super::{hold::Hold, plan_cache::Key, plans::Ready};
use crate::{Error, Result, error::CallError};

/// The operator, if contributions are combined.
pub(crate) type Combination<'k> = Option<Combining<'k>>;

/// An operator.
#[derive(Clone, Copy, Debug)]
pub struct Combining<'k> {
    pub(crate) kernel: Kernel<'k>,
    pub(crate) name: &'static str,
    /// How partial results are kept, if not as elements.
    pub(crate) wide: Option<&'static Wide>,
}

impl<'k> Combining<'k> {
    #[inline(always)]
    pub(crate) fn new<T: Pod, O: Operator<T>>(operator: &'k O) -> Self {
        Self { kernel: Kernel::new::<T, O>(operator), name: O::NAME, wide: O::WIDE }
    }
}

impl Hold {
    /// Makes a call at `site`, by its cached plan or a new one. It is inlined, so a call by a
    /// cached plan stores only the parts of its description that are in the key.
    #[inline(always)]
    pub(crate) fn call(&self, call: CallSpec, operands: &Operands<'_>, site: Site) -> Result<()> {
        let key = Key::of(&call, operands.kernel.as_ref());
        if let Some(ready) = self.cache.find(&key) {
            return self.run(&*ready, operands, site);
        }
        self.call_by_new_plan(key, call, operands, site)
    }

    /// Makes a call whose source and target are the same memory, of which peers read a copy, if the
    /// cached plan allows that. Returns whether it has made the call.
    pub(crate) fn call_in_place(
        &self,
        call: &CallSpec,
        operands: &Operands<'_>,
        site: Site,
    ) -> Result<bool> {
        let found = self.cache.find(&Key::of(call, operands.kernel.as_ref()));
        let Some(ready) = found.filter(|ready| ready.may_replace_source()) else {
            return Ok(false);
        };
        self.run_new(&*ready, operands, site).map(|()| true)
    }

    /// Makes the call by a new plan: separate from `run`, so that calls by cached plans stay short.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_new(
        &self,
        ready: &dyn Ready,
        operands: &Operands<'_>,
        site: Site,
    ) -> Result<()> {
        self.run(ready, operands, site)
    }

    /// Makes the call. If it begins a quarter of the window, settles credits first.
    #[inline(always)]
    pub(crate) fn run(&self, ready: &dyn Ready, operands: &Operands<'_>, site: Site) -> Result<()> {
        let inside = self.enter()?;
        self.make_room(&inside)?;
        match ready.call(&self.endpoint, &self.synchronized, operands, site) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::of_job(self.endpoint.job())),
        }
    }

    /// Returns the description of a blocking call of this team on blocks of `len` elements outside
    /// symmetric memory, with root 0. The program's elements are of type `N`, and are sent as
    /// elements of type `T`.
    #[inline(always)]
    pub(crate) fn spec<N, T: Pod>(
        &self,
        collective: Collective,
        sync: SyncModes,
        len: usize,
        combination: Combination<'_>,
    ) -> CallSpec {
        CallSpec {
            collective,
            sync,
            bytes: len * size_of::<T>(),
            datatype: type_name::<N>(),
            element_bytes: size_of::<T>(),
            operator: combination.map_or("", |it| it.name),
            class: combination.map_or(OperatorClass::Commutative, |it| it.kernel.class()),
            ..CallSpec::barrier(self.endpoint.size())
        }
    }

    /// Returns the plan of a call, cached or new, to be shared with an operation or a caller.
    pub(crate) fn plan_to_share(
        &self,
        call: &CallSpec,
        kernel: Option<&Kernel<'_>>,
    ) -> Result<Arc<dyn Ready>> {
        drop(self.enter()?); // an operator may not plan calls either
        let key = Key::of(call, kernel);
        if let Some(ready) = self.cache.share(&key) {
            return Ok(ready);
        }
        check_root(call)?;
        let ready = self.prepare(call)?;
        self.keep(call, key, &ready);
        Ok(ready)
    }

    /// Returns the plan of a call in place; `None` if the algorithm chosen for such calls needs
    /// contributions separate from results.
    pub(crate) fn plan_in_place(
        &self,
        call: &CallSpec,
        kernel: Option<&Kernel<'_>>,
    ) -> Result<Option<Arc<dyn Ready>>> {
        if let Some(ready) = self.cache.share(&Key::of(call, kernel)) {
            return Ok(Some(ready));
        }
        if self.is_served(call) { self.plan_to_share(call, kernel).map(Some) } else { Ok(None) }
    }

    /// Creates a plan, and makes the call by it.
    #[cold]
    fn call_by_new_plan(
        &self,
        key: Key,
        call: CallSpec,
        operands: &Operands<'_>,
        site: Site,
    ) -> Result<()> {
        drop(self.enter()?); // a rejected call leaves no plan and refines nothing
        check_root(&call)?;
        if let Some(refinements) = &self.refinements {
            return self.refine(refinements, key, &call, operands, site);
        }
        let ready = self.prepare(&call)?;
        self.keep(&call, key, &ready);
        self.run_new(&*ready, operands, site)
    }
}

fn check_root(call: &CallSpec) -> Result<()> {
    let CallSpec { root, pes, .. } = *call;
    if root.0 < pes {
        Ok(())
    } else {
        Err(CallError::RootOutOfRange { root, pes: pes as usize }.into())
    }
}
