//! A stack or a queue that threads share: under each lock and each scheme, without locks, and from
//! other libraries.
//!
//! An operation adds a value and removes one: a balanced load (Petrović 2015, section 6.2.4).

use std::{
    collections::VecDeque,
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use anyhow::Result;
use consort_machine::affinity::CpuId;
use consort_sync::{
    delegation::{Scheme, ServerScheme},
    objects::{self, Lcrq, Object, ObjectPart, Sequential, Treiber, WordContainer},
};
use crossbeam_queue::{ArrayQueue, SegQueue};
use lock_api::RawMutex;

use super::counter::{ConfiguredScheme, Counter, on};

/// Room for a value of each thread.
const ROOM: usize = 1024;

/// A stack or a queue.
pub(super) trait Container: Sync + Sized {
    /// Creates an empty one for `threads` threads. A server runs on `cpu`, if given.
    ///
    /// # Errors
    /// If the system starts no server, or refuses the core.
    fn new(threads: usize, cpu: Option<CpuId>) -> Result<Self>;

    fn put(&self, value: u64);

    fn take(&self) -> Option<u64>;
}

/// A container from which threads take as many values as they put.
pub(super) struct Balanced<C>(C);

impl<C: Container> Counter for Balanced<C> {
    fn new(_: usize, threads: usize, cpu: Option<CpuId>) -> Result<Self> {
        C::new(threads, cpu).map(Self)
    }

    /// # Panics
    /// If there is nothing to take, although the thread itself has put a value.
    #[inline(always)]
    fn operate(&self) {
        self.0.put(1);
        assert_eq!(self.0.take(), Some(1), "a value was lost");
    }

    fn has_made(self, _: u64) -> bool {
        self.0.take().is_none()
    }
}

/// A stack or a queue of the standard library.
pub(super) trait Values: Default + Send {
    fn put(&mut self, value: u64);
    fn take(&mut self) -> Option<u64>;
}

impl Values for Vec<u64> {
    fn put(&mut self, value: u64) {
        self.push(value);
    }

    fn take(&mut self) -> Option<u64> {
        self.pop()
    }
}

impl Values for VecDeque<u64> {
    fn put(&mut self, value: u64) {
        self.push_back(value);
    }

    fn take(&mut self) -> Option<u64> {
        self.pop_front()
    }
}

impl<R: RawMutex + Sync, V: Values> Container for lock_api::Mutex<R, V> {
    fn new(_: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::default())
    }

    #[inline(always)]
    fn put(&self, value: u64) {
        self.lock().put(value);
    }

    #[inline(always)]
    fn take(&self) -> Option<u64> {
        self.lock().take()
    }
}

impl<V: Values> Container for std::sync::Mutex<V> {
    fn new(_: usize, _: Option<CpuId>) -> Result<Self> {
        Ok(Self::default())
    }

    #[inline(always)]
    fn put(&self, value: u64) {
        self.lock().expect("no operation panics").put(value);
    }

    #[inline(always)]
    fn take(&self) -> Option<u64> {
        self.lock().expect("no operation panics").take()
    }
}

/// A queue under two instances of a scheme.
pub(super) struct TwoSchemeQueue<S: Scheme>(WordContainer<objects::Queue<S>>);

/// The containers whose own methods put and take.
macro_rules! containers {
    ($([$($bounds:tt)*] $container:ty, $new:expr, $put:expr, $take:expr;)*) => {
        $(impl<$($bounds)*> Container for $container {
            fn new(threads: usize, _: Option<CpuId>) -> Result<Self> {
                Ok($new(threads))
            }

            #[inline(always)]
            fn put(&self, value: u64) {
                $put(self, value);
            }

            #[inline(always)]
            fn take(&self) -> Option<u64> {
                $take(self)
            }
        })*
    };
}

containers! {
    [S: ConfiguredScheme<Local: Send> + Sync] WordContainer<objects::Stack<S>>,
        |threads| WordContainer::stack(S::make(threads)), WordContainer::put, WordContainer::take;
    [S: ConfiguredScheme<Local: Send> + Sync] WordContainer<objects::Queue<S>>,
        |threads| WordContainer::queue(S::make(threads)), WordContainer::put, WordContainer::take;
    [S: ConfiguredScheme<Local: Send> + Sync] TwoSchemeQueue<S>,
        |threads| TwoSchemeQueue(WordContainer::queue_of_two(S::make(threads), S::make(threads))),
        |two: &Self, value| two.0.put(value), |two: &Self| two.0.take();
    [] WordContainer<Treiber>, |_| Self::default(), Self::put, Self::take;
    [] WordContainer<Lcrq>, |_| Self::with_rings_of(Lcrq::RING_SIZE), Self::put, Self::take;
    [] consort_sync::Stack<u64>, |_| Self::new(), Self::push, Self::pop;
    [] consort_sync::Queue<u64>, |_| Self::new(), Self::push, Self::pop;
    [] SegQueue<u64>, |_| Self::new(), Self::push, Self::pop;
    [] ArrayQueue<u64>, |_| Self::new(ROOM),
        |queue: &Self, value| queue.push(value).expect("there is room"), Self::pop;
}

/// A stack or a queue whose parts have servers.
pub(super) trait Parts: Container + Send + 'static {
    fn parts(&self) -> &'static [ObjectPart];
    fn run(&self, part: ObjectPart);
    fn stop(&self, part: ObjectPart);
}

impl<S, D> Parts for WordContainer<Object<S, D>>
where
    S: ServerScheme + 'static,
    D: Sequential + 'static,
    Object<S, D>: objects::Container,
    Self: Container + Send,
{
    fn parts(&self) -> &'static [ObjectPart] {
        self.parts()
    }

    fn run(&self, part: ObjectPart) {
        self.run(part);
    }

    fn stop(&self, part: ObjectPart) {
        self.stop(part);
    }
}

/// A container with its servers.
pub(super) struct WithServers<C: Parts> {
    container: Arc<C>,
    servers: Vec<JoinHandle<()>>,
}

impl<C: Parts> Container for WithServers<C> {
    fn new(threads: usize, cpu: Option<CpuId>) -> Result<Self> {
        let container = Arc::new(C::new(threads, None)?);
        let serve = |&part| {
            let container = Arc::clone(&container);
            Builder::new().spawn(move || container.run(part))
        };
        let servers = on(cpu, || container.parts().iter().map(serve).collect())?;
        Ok(Self { container, servers })
    }

    #[inline(always)]
    fn put(&self, value: u64) {
        self.container.put(value);
    }

    #[inline(always)]
    fn take(&self) -> Option<u64> {
        self.container.take()
    }
}

impl<C: Parts> Drop for WithServers<C> {
    fn drop(&mut self) {
        self.container.parts().iter().for_each(|&part| self.container.stop(part));
        for server in self.servers.drain(..) {
            server.join().expect("a server does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_left_behind_is_detected() {
        let queue = Balanced::<SegQueue<u64>>::new(1, 1, None).unwrap();
        queue.operate();
        queue.0.put(2);
        assert!(!queue.has_made(1));
    }

    #[test]
    #[should_panic(expected = "a value was lost")]
    fn lost_value_is_detected() {
        struct LossyContainer;
        impl Container for LossyContainer {
            fn new(_: usize, _: Option<CpuId>) -> Result<Self> {
                Ok(Self)
            }
            fn put(&self, _: u64) {}
            fn take(&self) -> Option<u64> {
                None
            }
        }
        Balanced(LossyContainer).operate();
    }
}
