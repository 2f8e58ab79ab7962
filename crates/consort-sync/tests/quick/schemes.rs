//! Every scheme under one interface, and a test for each.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use consort_sync::{
    Batch, Continuations, Delegate, Pending, Server,
    delegation::{Scheme, ServerScheme, Serverless},
};

/// Data under some scheme.
pub(crate) trait Applies<T>: Sync {
    type Scheme: Scheme;

    fn apply<R: Send>(&self, closure: impl FnOnce(&mut T) -> R + Send) -> R;
    fn detach(&self, closure: impl FnOnce(&mut T) + Send + 'static);
    fn submit<R: Send + 'static>(
        &self,
        closure: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Pending<R>;
    fn apply_then<'scope, R: Send + 'scope>(
        &'scope self,
        continuations: &Continuations<'scope, '_>,
        closure: impl FnOnce(&mut T) -> R + Send + 'scope,
        then: impl FnOnce(R) + 'scope,
    );
    fn batch(&self) -> Batch<'_, T, Self::Scheme>;
    fn poisoning(self) -> Self;
    fn is_poisoned(&self) -> bool;
    fn clear_poison(&self);
    fn into_inner(self) -> T;
}

/// The methods of a [`Delegate`] or a [`Server`].
macro_rules! its_own {
    ($($bound:tt)*) => {
        $($bound)* {
            type Scheme = S;

            fn apply<R: Send>(&self, closure: impl FnOnce(&mut T) -> R + Send) -> R {
                Self::apply(self, closure)
            }

            fn detach(&self, closure: impl FnOnce(&mut T) + Send + 'static) {
                Self::detach(self, closure);
            }

            fn submit<R: Send + 'static>(
                &self,
                closure: impl FnOnce(&mut T) -> R + Send + 'static,
            ) -> Pending<R> {
                Self::submit(self, closure)
            }

            fn apply_then<'scope, R: Send + 'scope>(
                &'scope self,
                continuations: &Continuations<'scope, '_>,
                closure: impl FnOnce(&mut T) -> R + Send + 'scope,
                then: impl FnOnce(R) + 'scope,
            ) {
                Self::apply_then(self, continuations, closure, then);
            }

            fn batch(&self) -> Batch<'_, T, S> {
                Self::batch(self)
            }

            fn poisoning(self) -> Self {
                Self::poisoning(self)
            }

            fn is_poisoned(&self) -> bool {
                Self::is_poisoned(self)
            }

            fn clear_poison(&self) {
                Self::clear_poison(self);
            }

            fn into_inner(self) -> T {
                Self::into_inner(self)
            }
        }
    };
}

its_own! {
    impl<T: Send, S: Serverless<Local: Send> + Sync> Applies<T> for Delegate<T, S>
}

its_own! {
    impl<T, S> Applies<T> for Server<T, S>
    where
        T: Send + 'static,
        S: ServerScheme<Local: Send> + Send + Sync + 'static,
}

/// Returns the message with which `program` panics.
pub(crate) fn panic_of(program: impl FnOnce()) -> String {
    let result = catch_unwind(AssertUnwindSafe(program));
    let payload = result.expect_err("it panics");
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Fails a test that does not end by itself.
pub(crate) fn within_limit(program: impl FnOnce() + Send + 'static) {
    run_within_limit(Box::new(program));
}

/// Like [`within_limit`], but compiled once for all programs.
fn run_within_limit(program: Box<dyn FnOnce() + Send>) {
    let (ended, end) = mpsc::channel();
    let program = thread::spawn(move || {
        program();
        let _ = ended.send(());
    });
    let outcome = end.recv_timeout(Duration::from_secs(20));
    assert_ne!(outcome, Err(RecvTimeoutError::Timeout), "it hangs");
    program.join().expect("it ends well");
}

/// Defines a test for each scheme. The test gets a function that creates data under the scheme.
macro_rules! for_each_scheme {
    ($($test:ident),* $(,)?) => {
        $crate::schemes::for_each_scheme! { @modules [$($test),*]
            handoff: |data| Delegate::with(Locked::new(), data);
            mcs: |data| Delegate::with(Locked::with(Mcs::new()), data);
            cc_synch: |data| Delegate::with(CcSynch::new(), data);
            cc_synch_alone: |data| Delegate::with(CcSynch::new().with_max_ops(0), data);
            cc_synch_few: |data| Delegate::with(CcSynch::new().with_max_ops(2), data);
            h_synch: |data| Delegate::with(HSynch::new(2, 20, |thread| thread.0 as usize), data);
            hybcomb: |data| Delegate::with(HybComb::new(), data);
            hybcomb_alone: |data| Delegate::with(HybComb::new().with_max_ops(0), data);
            hybcomb_few: |data| Delegate::with(HybComb::new().with_max_ops(2), data);
            hybcomb_unbounded: |data| Delegate::with(HybComb::new().with_max_ops(u64::MAX), data);
            fallback_server: |data| Server::with(FallbackServer::new(), data).expect("a thread");
            mp_server: |data| Server::with(MpServer::new(), data).expect("a thread");
            shm_server: |data| Server::with(ShmServer::new(100), data).expect("a thread");
            shm_server_shared: |data| Server::with(ShmServer::new(2), data).expect("a thread");
            shm_server_backing_off: |data| {
                let scheme = ShmServer::new(100)
                    .with_every_second_line()
                    .with_backoff(Backoff::Every(500));
                Server::with(scheme, data).expect("a thread")
            };
            shm_server_tuned: |data| {
                let scheme = ShmServer::new(100).with_backoff(Backoff::Tuned);
                Server::with(scheme, data).expect("a thread")
            }
        }
    };
    (@modules $tests:tt $($module:ident: |$data:ident| $make:expr);*) => {
        $(mod $module {
            #[allow(unused_imports, reason = "each module uses only a few of them")]
            use $crate::schemes::makers::*;
            $crate::schemes::for_each_scheme! { @tests $tests |$data| $make }
        })*
    };
    (@tests [$($test:ident),*] |$data:ident| $make:expr) => {
        $(#[test] fn $test() {
            $crate::schemes::within_limit(|| super::$test(|$data| $make, |$data| $make));
        })*
    };
}
pub(crate) use for_each_scheme;

/// The types that create data.
pub(crate) mod makers {
    pub(crate) use consort_sync::{
        Delegate, Server,
        delegation::{
            Backoff, CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, ShmServer,
        },
        locks::Mcs,
    };
}
