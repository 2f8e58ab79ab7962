//! The simulated [`Fabric`]: one call's view of the world.
//!
//! Data moves after the costs of an operation have been spent. Data or signals that are sent arrive
//! even later. The simulation gives only the guarantees of a fabric: a put lands late unless a
//! fence follows. A message of a call that a PE has not started is never taken for a message of an
//! earlier call.

mod remote;

use consort_fabric::{
    Channel, Counters, Credit, Credits, Kernel, Layout, Local, Messages, Op, Place, Rank, Ranks,
    Span, Step, VendorCollectives,
};

use crate::{
    costs::{Site, Where},
    engine::Time,
    mail::Remote,
    operands::{Buffer, Operands},
    world::{Notify, Parcel, PeState, World},
};

/// One call of one PE.
pub struct Call<'c> {
    world: &'c World,
    rank: Rank,
    /// The PEs that take part.
    team: Ranks,
    call: u64,
    kernel: Option<Kernel<'c>>,
    layouts: Option<[Layout<'c>; 2]>,
    /// The offsets of the buffers in the heap, if they are symmetric.
    source_at: Option<usize>,
    target_at: Option<usize>,
    /// The number of buffers exposed so far in this call, which is also the number of detaches to
    /// wait for.
    exposed: std::cell::Cell<u64>,
}

impl<'c> Call<'c> {
    pub(crate) fn new(
        world: &'c World,
        (rank, team): (Rank, Ranks),
        call: u64,
        operands: Operands<'c>,
    ) -> Self {
        let local = world.local(rank);
        let keep = |place: Place, buffer: Buffer| match buffer {
            Buffer::Owned(bytes) => {
                local.place(place).replace(bytes);
                None
            }
            Buffer::Symmetric { at, .. } => Some(at),
        };
        Self {
            world,
            rank,
            team,
            call,
            kernel: operands.kernel,
            layouts: operands.layouts,
            source_at: keep(Place::Source, operands.source),
            target_at: keep(Place::Target, operands.target),
            exposed: std::cell::Cell::new(0),
        }
    }

    /// Returns the PE of a rank among those that take part.
    fn peer(&self, rank: Rank) -> Rank {
        Rank(self.team.rank(rank.0))
    }

    fn local(&self) -> &'c PeState {
        self.world.local(self.rank)
    }

    fn site(&self) -> Site<'c> {
        self.world.site(self.rank)
    }

    fn now(&self) -> Time {
        self.world.engine.now()
    }

    /// Returns the same bytes, in the heap if the buffer is symmetric.
    fn resolve(&self, span: Span) -> Span {
        let at = match span.place {
            Place::Source => self.source_at,
            Place::Target => self.target_at,
            _ => None,
        };
        at.map_or(span, |at| Span::heap(at + span.at, span.bytes))
    }

    fn mine(&self, span: Span) -> Where {
        Where { pe: self.rank, place: span.place, at: span.at }
    }

    fn theirs(remote: &Remote, at: usize, bytes: usize) -> Where {
        assert!(at + bytes <= remote.span.bytes, "a copy must lie in the exposed buffer");
        Where { pe: remote.owner, place: remote.span.place, at: remote.span.at + at }
    }

    /// Makes a parcel arrive at a time, but not earlier than the puts before the last fence.
    fn post(&self, to: Rank, at: Time, parcel: Parcel) {
        self.world.post(self.rank, to, at.max(self.local().fenced.get()), parcel);
    }

    fn note(&self, what: &'static str, peer: Option<Rank>, since: Time, bytes: usize) {
        let times = (since, self.now());
        self.world.recorder.note(self.rank.0, what, peer.map(|peer| peer.0), times, bytes);
    }

    /// Sets a flag, of any kind, at a peer.
    async fn signal_with(&self, to: Rank, what: &'static str, parcel: Parcel) -> Op {
        let since = self.now();
        self.local().account.message(0);
        let set = self.world.costs.signal(self.site(), to).await;
        self.post(to, set, parcel);
        self.note(what, Some(to), since, 0);
        Ok(())
    }

    /// Waits until `test` finds an arrival. Also returns the PE that sent it, if it was a single
    /// PE.
    async fn wait_for<T>(
        &self,
        what: &'static str,
        test: impl FnMut() -> Option<(T, Option<Rank>)>,
    ) -> Op<T> {
        let since = self.now();
        let (found, from) = self.world.engine.wait(test).await;
        self.world.costs.observe(self.site(), since, from).await;
        self.note(what, None, since, 0);
        Ok(found)
    }

    /// Receives a message and passes its bytes to `keep`, block by block.
    async fn take(
        &self,
        channel: Channel,
        step: Step,
        to: Span,
        mut keep: impl FnMut(usize, &[u8]),
    ) -> Op {
        let (began, costs) = (self.now(), &self.world.costs);
        let mut done = 0;
        loop {
            let since = self.now();
            let mail = &self.local().mail;
            let test = || mail.borrow_mut().take(self.call, channel, step);
            let message = self.world.engine.wait(test).await;
            let bytes = message.data.len();
            assert!(done + bytes <= to.bytes, "a message is as long as its target");
            let at = Where { at: to.at + done, ..self.mine(to) };
            let heard = costs.receive(self.site(), since, message.from, at, bytes).await;
            keep(done, &message.data);
            if costs.hands_over().is_some() {
                self.world.post(self.rank, message.from, heard, Parcel::Taken);
            }
            done += bytes;
            if done == to.bytes {
                self.note("receive", Some(message.from), began, done);
                return Ok(());
            }
        }
    }

    /// Puts data, and returns the first moment at which it has landed. The signal is delivered with
    /// the data.
    async fn put_at(&self, remote: &Remote, at: usize, source: Span, notify: Notify) -> Time {
        let (source, since) = (self.resolve(source), self.now());
        let to = Self::theirs(remote, at, source.bytes);
        let data = self.local().read(source);
        self.local().account.message(source.bytes);
        let from = self.mine(source);
        let lands = self.world.costs.transfer(self.site(), from, to, source.bytes).await;
        let lands = lands.max(self.local().fenced.get());
        self.world.post(
            self.rank,
            to.pe,
            lands,
            Parcel::Put { place: to.place, at: to.at, data, notify },
        );
        // A moment later, since simultaneous events may occur in any order.
        let landed = lands + 1;
        let all_landed = &self.local().puts_landed;
        all_landed.set(all_landed.get().max(landed));
        let heard = landed + self.world.costs.answers_in(to.pe, self.rank);
        let all_heard = &self.local().puts_acknowledged;
        all_heard.set(all_heard.get().max(heard));
        self.note("put", Some(to.pe), since, source.bytes);
        landed
    }

    fn combine_into(&self, target: Span, mut left: Vec<u8>, right: &[u8]) {
        if let Some(kernel) = &self.kernel {
            assert_eq!(left.len(), right.len(), "operands are of one length");
            kernel.accumulate(&mut left, right);
            self.local().write(target.place, target.at, &left);
        }
    }

    /// Ends the call, and returns the content of the target.
    ///
    /// # Panics
    /// When a buffer is still exposed.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let exposed = self.exposed.get();
        assert_eq!(exposed, 0, "PE {} leaves while its buffers are exposed", self.rank);
        match self.target_at {
            None => self.local().target.take(),
            Some(_) => Vec::new(),
        }
    }
}

impl Local for Call<'_> {
    fn rank(&self) -> Rank {
        Rank((self.rank.0 - self.team.first) / self.team.stride)
    }

    fn size(&self) -> u32 {
        self.team.count
    }

    async fn copy(&self, target: Span, source: Span) -> Op {
        let (target, source, since) = (self.resolve(target), self.resolve(source), self.now());
        let (from, to) = (self.mine(source), self.mine(target));
        self.world.costs.transfer(self.site(), from, to, source.bytes).await;
        let data = self.local().read(source);
        self.local().write(target.place, target.at, &data);
        self.note("copy", None, since, source.bytes);
        Ok(())
    }

    async fn combine(&self, target: Span, left: Span, right: Span) -> Op {
        let (target, since) = (self.resolve(target), self.now());
        self.world.costs.combine(self.site(), target.bytes).await;
        let local = self.local();
        let (left, right) = (local.read(self.resolve(left)), local.read(self.resolve(right)));
        self.combine_into(target, left, &right);
        self.note("combine", None, since, target.bytes);
        Ok(())
    }

    async fn store(&self, target: Span, bytes: &[u8]) -> Op {
        let (target, since) = (self.resolve(target), self.now());
        assert_eq!(target.bytes, bytes.len(), "the target is as long as the bytes");
        let at = self.mine(target);
        self.world.costs.transfer(self.site(), at, at, target.bytes).await;
        self.local().write(target.place, target.at, bytes);
        self.note("store", None, since, target.bytes);
        Ok(())
    }

    async fn load(&self, source: Span, bytes: &mut [u8]) -> Op {
        let (source, since) = (self.resolve(source), self.now());
        assert_eq!(source.bytes, bytes.len(), "the source is as long as the bytes");
        let at = self.mine(source);
        self.world.costs.transfer(self.site(), at, at, source.bytes).await;
        bytes.copy_from_slice(&self.local().read(source));
        self.note("load", None, since, source.bytes);
        Ok(())
    }

    fn vector_block(&self, place: Place, index: u32) -> Span {
        let layouts = self.layouts.expect("a vector variant has layouts");
        Layout::span(&layouts, place, index)
    }
}

impl Messages for Call<'_> {
    async fn send(&self, to: Rank, channel: Channel, step: Step, source: Span) -> Op {
        let (to, costs) = (self.peer(to), &self.world.costs);
        let (source, since) = (self.resolve(source), self.now());
        let piece_bytes = costs.hands_over().unwrap_or(usize::MAX);
        self.local().account.message(source.bytes);
        let mut done = 0;
        loop {
            let bytes = piece_bytes.min(source.bytes - done);
            let block = Span { at: source.at + done, bytes, ..source };
            let data = self.local().read(block);
            let arrives = costs.send(self.site(), to, self.mine(block), bytes).await;
            self.post(to, arrives, Parcel::Message { call: self.call, channel, step, data });
            if costs.hands_over().is_some() {
                let (mail, waits) = (&self.local().mail, self.now());
                let test = || mail.borrow_mut().taken.checked_sub(1);
                mail.borrow_mut().taken = self.world.engine.wait(test).await;
                costs.handed_over(self.site(), waits).await;
            }
            done += bytes;
            if done == source.bytes {
                self.note("send", Some(to), since, done);
                return Ok(());
            }
        }
    }

    async fn receive(&self, channel: Channel, step: Step, target: Span) -> Op {
        let target = self.resolve(target);
        let keep = |at: usize, data: &[u8]| self.local().write(target.place, target.at + at, data);
        self.take(channel, step, target, keep).await
    }

    async fn receive_combine(&self, channel: Channel, step: Step, left: Span, target: Span) -> Op {
        let (left, target) = (self.resolve(left), self.resolve(target));
        let incoming = Span::incoming(target.bytes);
        let keep = |at: usize, data: &[u8]| self.local().write(Place::Incoming, at, data);
        self.take(channel, step, incoming, keep).await?;
        self.combine(target, left, incoming).await
    }

    async fn signal(&self, to: Rank, channel: Channel, step: Step) -> Op {
        let to = self.peer(to);
        self.signal_with(to, "signal", Parcel::Signal { call: self.call, channel, step }).await
    }

    async fn wait(&self, channel: Channel, step: Step) -> Op {
        let mail = &self.local().mail;
        let set = || mail.borrow().signalled(self.call, channel, step).map(|from| ((), Some(from)));
        self.wait_for("wait", set).await
    }
}

impl VendorCollectives for Call<'_> {}

impl Counters for Call<'_> {
    async fn count(&self, at: Rank, counter: u32, by: u64) -> Op<u64> {
        let (at, since) = (self.peer(at), self.now());
        self.world.costs.reach_word(self.site(), at).await;
        let key = (self.call % self.local().mail.borrow().window(), counter);
        let mut counters = self.world.local(at).counters.borrow_mut();
        let count = counters.entry(key).or_default();
        let before = *count;
        *count = before.wrapping_add(by);
        drop(counters);
        self.note("count", Some(at), since, 8);
        Ok(before)
    }
}

impl Credits for Call<'_> {
    async fn credit(&self, to: Rank, credit: Credit, quarter: u64) -> Op {
        self.signal_with(self.peer(to), "credit", Parcel::Credit { credit, quarter }).await
    }

    async fn await_credits(
        &self,
        from: impl Iterator<Item = Rank> + Clone + Unpin,
        credit: Credit,
        quarter: u64,
    ) -> Op {
        let (mail, from) = (&self.local().mail, from.map(|peer| self.peer(peer)));
        let given = || mail.borrow().has_credits(from.clone(), credit, quarter);
        self.wait_for("credits", || given().then_some(((), None))).await
    }
}
