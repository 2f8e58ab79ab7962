//! The simulated [`Notifications`]: a PE's part in asynchronous broadcasts.
//!
//! As in `fabric`, data moves after the costs of an operation have been spent, and notifications
//! arrive even later. Like an interrupt handler, the PE takes notifications before
//! acknowledgements, in the order of their arrival. But it takes them only while it waits. The
//! kernel also serves the notifications that have arrived in the meantime, before it returns to the
//! program. Reading a flag that is not set costs nothing.

use std::cell::Cell;

use consort_fabric::{Event, Notification, Notifications, Op, Place, Rank};

use crate::{
    costs::{Site, Where},
    engine::Time,
    mail::Post,
    world::{Parcel, World},
};

/// An event whose time has not been spent yet.
#[derive(Clone, Copy)]
enum Taken {
    /// A notification, and the time at which it arrived.
    Notification(Notification, Time),
    Acknowledged,
}

/// A PE's part in asynchronous broadcasts. Each PE has one.
pub struct Listener<'w> {
    world: &'w World,
    rank: Rank,
    /// The time until which the kernel serves interrupts before it returns to the program.
    serving: Cell<Time>,
}

impl<'w> Listener<'w> {
    pub(crate) fn new(world: &'w World, rank: Rank) -> Self {
        Self { world, rank, serving: Cell::new(0) }
    }

    /// Begins a broadcast of memory that is not in the caches.
    pub async fn begin(&self) {
        self.world.costs.begin(self.site()).await;
    }

    fn site(&self) -> Site<'w> {
        self.world.site(self.rank)
    }

    fn post(&self, pe: Rank) -> &'w Post {
        &self.world.local(pe).post
    }

    fn note(&self, what: &'static str, peer: Option<Rank>, since: Time, bytes: usize) {
        let times = (since, self.world.engine.now());
        self.world.recorder.note(self.rank.0, what, peer.map(|peer| peer.0), times, bytes);
    }

    /// Takes the next notification. If there is none, reports whether the peer has acknowledged
    /// that number.
    fn event(&self, of: Option<(Rank, u64)>) -> Option<Taken> {
        let post = self.post(self.rank);
        if let Some((notification, arrived)) = post.notifications.borrow_mut().pop_front() {
            return Some(Taken::Notification(notification, arrived));
        }
        let (peer, number) = of?;
        self.has_acknowledged(peer, number).then_some(Taken::Acknowledged)
    }

    fn has_acknowledged(&self, peer: Rank, number: u64) -> bool {
        self.post(self.rank).acknowledged.borrow().get(&peer).is_some_and(|&it| it >= number)
    }

    /// Spends the time of receiving an event.
    async fn spend(&self, taken: Taken, since: Time) -> Event {
        match taken {
            Taken::Acknowledged => {
                self.world.costs.observe(self.site(), since, None).await;
                self.note("wait", None, since, 0);
                Event::Acknowledged
            }
            Taken::Notification(notification, arrived) => {
                self.world.costs.interrupted(self.site(), &self.serving, arrived).await;
                self.note("interrupt", None, since, 0);
                Event::Notification(notification)
            }
        }
    }

    /// Spends the time of copying from one memory to another.
    async fn transfer(&self, from: (Rank, Place, usize), to: Place, bytes: usize) {
        let since = self.world.engine.now();
        let (pe, place, at) = from;
        let to = Where { pe: self.rank, place: to, at: 0 };
        self.world.local(self.rank).account.message(bytes);
        self.world.costs.transfer(self.site(), Where { pe, place, at }, to, bytes).await;
        self.note("copy", (pe != self.rank).then_some(pe), since, bytes);
    }
}

impl Notifications for Listener<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.world.pes()
    }

    fn buffer_bytes(&self) -> usize {
        self.world.costs.capabilities(self.size()).buffer_bytes
    }

    async fn fill(&self, notification: &Notification, data: &[u8]) -> Op {
        // Forwarded data was received recently, and is therefore in the caches.
        let own = notification.source == self.rank;
        let place = if own { Place::Source } else { Place::Incoming };
        self.transfer((self.rank, place, notification.at), Place::Buffer, data.len()).await;
        self.post(self.rank).buffer.replace(data.to_vec());
        Ok(())
    }

    async fn relay(&self, from: Rank, bytes: usize) -> Op {
        self.transfer((from, Place::Buffer, 0), Place::Buffer, bytes).await;
        let data = self.post(from).buffer.borrow()[..bytes].to_vec();
        self.post(self.rank).buffer.replace(data);
        Ok(())
    }

    async fn fetch(&self, from: Rank, data: &mut [u8]) -> Op {
        self.transfer((from, Place::Buffer, 0), Place::Incoming, data.len()).await;
        data.copy_from_slice(&self.post(from).buffer.borrow()[..data.len()]);
        Ok(())
    }

    async fn notify(&self, to: &[Rank], notification: Notification) -> Op {
        let since = self.world.engine.now();
        self.world.local(self.rank).account.message(0);
        let arrivals = self.world.costs.interrupt(self.site(), to).await;
        for (&peer, at) in to.iter().zip(arrivals) {
            self.world.post(self.rank, peer, at, Parcel::Notification(notification));
        }
        self.note("interrupt all", to.first().copied(), since, 0);
        Ok(())
    }

    async fn acknowledge(&self, to: Rank, number: u64) -> Op {
        let since = self.world.engine.now();
        self.world.local(self.rank).account.message(0);
        let set = self.world.costs.signal(self.site(), to).await;
        self.world.post(self.rank, to, set, Parcel::Acknowledged { from: self.rank, number });
        self.note("acknowledge", Some(to), since, 0);
        Ok(())
    }

    async fn is_acknowledged(&self, by: Rank, number: u64) -> Op<bool> {
        let acknowledged = self.has_acknowledged(by, number);
        if acknowledged {
            self.spend(Taken::Acknowledged, self.world.engine.now()).await;
        }
        Ok(acknowledged)
    }

    async fn poll(&self) -> Op<Option<Notification>> {
        let taken = self.post(self.rank).notifications.borrow_mut().pop_front();
        if let Some((notification, arrived)) = taken {
            let taken = Taken::Notification(notification, arrived);
            self.spend(taken, self.world.engine.now()).await;
        }
        Ok(taken.map(|(notification, _)| notification))
    }

    async fn wait(&self, of: Option<(Rank, u64)>) -> Op<Event> {
        let since = self.world.engine.now();
        let taken = self.world.engine.wait(|| self.event(of)).await;
        Ok(self.spend(taken, since).await)
    }
}
