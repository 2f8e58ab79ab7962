//! The one-sided part of a simulated call: gets and puts, exposed buffers, and words of the heap.

use std::future::Future;

use consort_fabric::{
    Atomic, Channel, Messages, Op, Place, Rank, Rendezvous, Rma, Signal, Span, Step, not_reached,
};
use consort_machine::Until;

use super::Call;
use crate::{
    costs::Where,
    mail::Remote,
    world::{HeapSignal, Notify, Parcel},
};

impl Rma for Call<'_> {
    type Remote = Remote;

    fn reach(&self, peer: Rank, span: Span) -> Remote {
        let own = self.resolve(span);
        if !matches!(own.place, Place::Heap | Place::Buffer) {
            not_reached(self.rank, peer, span);
        }
        Remote { owner: self.peer(peer), span: own, reached: true }
    }

    async fn get(&self, remote: &Remote, at: usize, target: Span) -> Op {
        let (target, since) = (self.resolve(target), self.now());
        let from = Self::theirs(remote, at, target.bytes);
        self.local().account.message(target.bytes);
        self.world.costs.transfer(self.site(), from, self.mine(target), target.bytes).await;
        let data = self.world.local(from.pe).read(span_of(from, target.bytes));
        self.local().write(target.place, target.at, &data);
        self.note("get", Some(from.pe), since, target.bytes);
        Ok(())
    }

    async fn get_combine(&self, remote: &Remote, at: usize, left: Span, target: Span) -> Op {
        let (left, target, since) = (self.resolve(left), self.resolve(target), self.now());
        let from = Self::theirs(remote, at, target.bytes);
        self.local().account.message(target.bytes);
        let (own, to) = (self.mine(left), self.mine(target));
        self.world.costs.get_combine(self.site(), from, own, to, target.bytes).await;
        let right = self.world.local(from.pe).read(span_of(from, target.bytes));
        self.combine_into(target, self.local().read(left), &right);
        self.note("get and combine", Some(from.pe), since, target.bytes);
        Ok(())
    }

    async fn put(&self, remote: &Remote, at: usize, source: Span) -> Op {
        self.put_at(remote, at, source, Notify::Nothing).await;
        Ok(())
    }

    async fn put_signal(
        &self,
        remote: &Remote,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> Op {
        let signal = HeapSignal { word, how };
        if self.world.costs.bundles() {
            self.put_at(remote, at, source, Notify::Word(signal)).await;
            return Ok(());
        }
        let landed = self.put_at(remote, at, source, Notify::Nothing).await;
        let set = self.world.costs.signal(self.site(), remote.owner).await;
        self.post(remote.owner, set.max(landed), Parcel::HeapSignal(signal));
        Ok(())
    }

    async fn put_notify(
        &self,
        (to, remote): (Rank, &Remote),
        at: usize,
        source: Span,
        channel: Channel,
        step: Step,
    ) -> Op {
        let bundles = self.world.costs.bundles();
        let signal = Notify::Signal { call: self.call, channel, step };
        let notify = if bundles { signal } else { Notify::Nothing };
        self.put_at(remote, at, source, notify).await;
        if bundles {
            return Ok(());
        }
        self.fence().await?;
        self.signal(to, channel, step).await
    }

    fn fence(&self) -> impl Future<Output = Op> {
        let local = self.local();
        local.fenced.set(local.fenced.get().max(local.puts_landed.get()));
        std::future::ready(Ok(()))
    }

    async fn quiet(&self) -> Op {
        self.world.engine.sleep_until(self.local().puts_landed.get()).await;
        Ok(())
    }
}

impl Rendezvous for Call<'_> {
    async fn expose(&self, to: Rank, number: u32, span: Span) -> Op {
        self.exposed.set(self.exposed.get() + 1);
        let remote = Remote { owner: self.rank, span: self.resolve(span), reached: false };
        let to = self.peer(to);
        self.signal_with(to, "expose", Parcel::Exposure { call: self.call, number, remote }).await
    }

    async fn attach(&self, from: Rank, number: u32) -> Op<Remote> {
        let (from, mail) = (self.peer(from), &self.local().mail);
        let test = || mail.borrow_mut().attach(self.call, from, number);
        self.wait_for("attach", || test().map(|remote| (remote, Some(from)))).await
    }

    async fn check_length(&self, remote: &Remote, bytes: usize) -> Op {
        self.check_stated_length(remote.owner, remote.span.bytes, bytes).await
    }

    async fn check_stated_length(&self, owner: Rank, theirs: usize, own: usize) -> Op {
        assert_eq!(theirs, own, "PE {owner} and PE {} say the same", self.rank);
        Ok(())
    }

    async fn detach(&self, remote: Remote) -> Op {
        if remote.reached {
            return Ok(());
        }
        self.signal_with(remote.owner, "detach", Parcel::Detached).await
    }

    async fn await_detached(&self) -> Op {
        let (mail, exposed) = (&self.local().mail, self.exposed.take());
        let test = || Some((mail.borrow().detached.checked_sub(exposed)?, None));
        let left = self.wait_for("await_detached", test).await?;
        mail.borrow_mut().detached = left;
        Ok(())
    }
}

impl Call<'_> {
    /// Waits until a receipt of each put so far has come back. A fence must do this in a network
    /// that may deliver two messages between the same PEs in any order.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn receipts(&self) -> Op {
        let since = self.now();
        self.world.engine.sleep_until(self.local().puts_acknowledged.get()).await;
        self.note("receipts", None, since, 0);
        Ok(())
    }

    /// Performs an atomic operation on the 64-bit word at heap offset `word` of `at`. It is
    /// sequentially consistent. Returns the old value.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn atomic(&self, at: Rank, word: usize, operation: Atomic) -> Op<u64> {
        let (at, since) = (self.peer(at), self.now());
        self.world.costs.reach_word(self.site(), at).await;
        let theirs = self.world.local(at);
        let before = theirs.word(word);
        let after = match operation {
            Atomic::Load => before,
            Atomic::Swap(new) => new,
            Atomic::CompareSwap { current, new } => {
                if before == current {
                    new
                } else {
                    before
                }
            }
            Atomic::FetchAdd(by) => before.wrapping_add(by),
            Atomic::FetchAnd(by) => before & by,
            Atomic::FetchOr(by) => before | by,
            Atomic::FetchXor(by) => before ^ by,
        };
        theirs.set_word(word, after);
        self.world.engine.wake(at.0);
        self.note("atomic", Some(at), since, 8);
        Ok(before)
    }

    /// Waits until the 64-bit word at heap offset `word` of the caller's own memory meets the
    /// condition.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn wait_until(&self, word: usize, until: Until) -> Op<u64> {
        let local = self.local();
        let word = || Some(local.word(word)).filter(|&value| until.holds(value));
        self.wait_for("wait", || Some((word()?, None))).await
    }
}

fn span_of(at: Where, bytes: usize) -> Span {
    Span { place: at.place, at: at.at, bytes }
}
