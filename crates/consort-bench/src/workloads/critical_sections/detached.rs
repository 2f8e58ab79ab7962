//! A counter whose threads do not wait for each operation, but for many operations together.

use anyhow::Result;
use consort_machine::affinity::CpuId;
use consort_sync::{
    Batch, Delegate,
    delegation::{FallbackServer, MpServer, Scheme, Serverless},
};

use super::counter::{ByMessages, ConfiguredScheme, Counter, Numbers, WithFallback};

/// After this many operations, a thread waits until they are executed.
const TOGETHER: u32 = 1024;

/// A counter that executes operations without their thread.
pub(super) trait Detaches: Counter {
    type Scheme: Scheme;

    fn detach(&self);
    fn batch(&self) -> Batch<'_, Numbers, Self::Scheme>;
}

impl<S: ConfiguredScheme + Serverless + Sync> Detaches for Delegate<Numbers, S>
where
    S::Local: Send,
{
    type Scheme = S;

    #[inline(always)]
    fn detach(&self) {
        Self::detach(self, Numbers::increment);
    }

    fn batch(&self) -> Batch<'_, Numbers, S> {
        Self::batch(self)
    }
}

macro_rules! detaches_to_a_server {
    ($($counter:ty: $scheme:ty;)*) => {
        $(impl Detaches for $counter {
            type Scheme = $scheme;

            #[inline(always)]
            fn detach(&self) {
                self.0.detach(Numbers::increment);
            }

            fn batch(&self) -> Batch<'_, Numbers, $scheme> {
                self.0.batch()
            }
        })*
    };
}

detaches_to_a_server! {
    WithFallback: FallbackServer;
    ByMessages: MpServer;
}

/// Operations that are detached one by one.
pub(super) struct Detached<C>(C);
/// Operations that are detached in batches.
pub(super) struct Batched<C>(C);

/// Returns whether the next operation is one in [`TOGETHER`].
#[inline(always)]
const fn is_last(done: &mut u32) -> bool {
    *done = done.wrapping_add(1);
    done.is_multiple_of(TOGETHER)
}

impl<C: Detaches> Counter for Detached<C> {
    fn new(increments: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self> {
        C::new(increments, threads, cpu).map(Self)
    }

    fn operate(&self) {
        self.0.operate();
    }

    #[inline(always)]
    fn operations(&self) -> impl FnMut() {
        let mut done = 0;
        move || {
            if is_last(&mut done) {
                self.0.operate();
            } else {
                self.0.detach();
            }
        }
    }

    fn has_made(self, operations: u64) -> bool {
        self.0.has_made(operations)
    }
}

impl<C: Detaches> Counter for Batched<C> {
    fn new(increments: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self> {
        C::new(increments, threads, cpu).map(Self)
    }

    fn operate(&self) {
        self.0.operate();
    }

    #[inline(always)]
    fn operations(&self) -> impl FnMut() {
        let (mut batch, mut done) = (self.0.batch(), 0);
        move || {
            if is_last(&mut done) {
                batch.deliver();
                self.0.operate();
            } else {
                batch.push(Numbers::increment);
            }
        }
    }

    fn has_made(self, operations: u64) -> bool {
        self.0.has_made(operations)
    }
}
