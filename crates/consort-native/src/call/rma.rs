//! Gets from and puts to a peer's memory.

use std::{
    future::Future,
    sync::atomic::{
        Ordering::{Relaxed, Release, SeqCst},
        fence,
    },
};

use consort_fabric::{Op, Place, Rank, Rma, Signal, Span, not_reached};

use super::{
    far::RmaFuture,
    remote::{Remote, RemoteKind},
    view::{CallView, UNSENT},
};
use crate::{
    heap::{one_sided::OneSided, word::Width},
    memory::extent::SharedExtent,
};

impl CallView<'_> {
    /// Runs `copy` on remote buffers. Their owners wait during the copy, even if the job fails.
    #[inline(always)]
    fn accessing<const N: usize>(&self, remotes: [&Remote; N], copy: impl FnOnce()) -> Op {
        for remote in remotes {
            // Another job's owner would not wait for this access.
            assert!(remote.job == self.job.number(), "a remote buffer is used in its own job");
        }
        let lasts =
            |remote: &Remote| matches!(remote.kind, RemoteKind::Symmetric | RemoteKind::Reached);
        if remotes.into_iter().all(lasts) {
            copy();
            return Ok(());
        }
        let access = self.state(self.rank).access_flags[usize::from(self.is_nonblocking)]
            .enter(self.job.poison_flag())?;
        copy();
        drop(access);
        Ok(())
    }

    #[inline(always)]
    fn put_now(&self, remote: &Remote, at: usize, source: Span) -> RmaFuture<'_> {
        assert!(remote.kind != RemoteKind::Source, "an exposed source is never written");
        let source = self.resolve(source);
        if remote.is_far() {
            return self.put_far(remote, at, source);
        }
        let target = remote.part(at, source.bytes);
        RmaFuture::Now(self.accessing([remote], || target.copy_from(source)))
    }
}

impl CallView<'_> {
    /// Returns a future that is ready when all puts are complete. They are complete at once if all
    /// PEs are near.
    #[inline(always)]
    fn fence_future(&self) -> RmaFuture<'_> {
        if self.marks.load(Relaxed) & UNSENT != 0 {
            return self.fence_far();
        }
        RmaFuture::Now(Ok(()))
    }

    /// Returns a handle to symmetric memory of a far peer.
    #[cold]
    fn reach_far(&self, peer: Rank, span: Span) -> Remote {
        let is_reached = match span.place {
            Place::Source => self.operands.source.symmetric,
            Place::Target => self.operands.target.symmetric,
            Place::Heap => true,
            _ => false,
        };
        let offset = match is_reached {
            true => self.resolve(span).at.addr() - self.heap(self.rank).addr(),
            false if span.bytes == 0 => 0,
            false => not_reached(self.rank, peer, span),
        };
        Remote {
            at: std::ptr::without_provenance_mut(offset),
            bytes: span.bytes,
            owner: peer,
            kind: RemoteKind::FarHeap,
            extent: SharedExtent::WORDS,
            job: self.job.number(),
            group: self.group.number(),
            position: self.position,
            exposure: 0,
        }
    }
}

impl Rma for CallView<'_> {
    type Remote = Remote;

    #[inline(always)]
    fn reach(&self, peer: Rank, span: Span) -> Remote {
        if self.job.is_far(self.group.in_world(peer)) {
            return self.reach_far(peer, span);
        }
        let heap = |pe: Rank| self.heap(pe);
        let buffer = |pe: Rank| self.buffer(pe);
        let (mine, theirs) = match span.place {
            Place::Source if self.operands.source.symmetric => (heap(self.rank), heap(peer)),
            Place::Target if self.operands.target.symmetric => (heap(self.rank), heap(peer)),
            Place::Heap => (heap(self.rank), heap(peer)),
            Place::Buffer => (buffer(self.rank), buffer(peer)),
            _ => not_reached(self.rank, peer, span),
        };
        let memory = self.resolve(span);
        Remote {
            at: theirs.wrapping_add(memory.at.addr() - mine.addr()),
            bytes: memory.bytes,
            owner: peer,
            kind: RemoteKind::Reached,
            extent: SharedExtent::WORDS,
            job: self.job.number(),
            group: self.group.number(),
            position: self.position,
            exposure: 0,
        }
    }

    #[inline(always)]
    fn get(&self, remote: &Remote, at: usize, target: Span) -> impl Future<Output = Op> {
        let target = self.resolve_writable(target);
        if remote.is_far() {
            return self.get_far(remote, at, target, None);
        }
        let source = remote.part(at, target.bytes);
        RmaFuture::Now(self.accessing([remote], || target.copy_from(source)))
    }

    fn get_combine(
        &self,
        remote: &Remote,
        at: usize,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        let target = self.resolve_writable(target);
        let left = self.resolve(left);
        if remote.is_far() {
            return self.get_far(remote, at, target, Some(left));
        }
        let right = remote.part(at, target.bytes);
        RmaFuture::Now(self.accessing([remote], || self.combine_now(target, left, right)))
    }

    async fn get_both_combine(&self, left: &Remote, right: &Remote, at: usize, target: Span) -> Op {
        if left.is_far() || right.is_far() {
            self.get(left, at, target).await?;
            return self.get_combine(right, at, target, target).await;
        }
        let target = self.resolve_writable(target);
        let parts = [left, right].map(|remote| remote.part(at, target.bytes));
        self.accessing([left, right], || self.combine_now(target, parts[0], parts[1]))
    }

    #[inline(always)]
    fn put(&self, remote: &Remote, at: usize, source: Span) -> impl Future<Output = Op> {
        self.put_now(remote, at, source)
    }

    #[inline(always)]
    fn put_signal(
        &self,
        remote: &Remote,
        at: usize,
        source: Span,
        word: usize,
        how: Signal,
    ) -> impl Future<Output = Op> {
        let put = self.put_now(remote, at, source);
        if !matches!(put, RmaFuture::Now(Err(_))) {
            let to = self.group.in_world(remote.owner);
            OneSided::new(self.job, self.group.in_world(self.rank)).signal(
                to,
                word,
                Width::Eight,
                how,
            );
        }
        put
    }

    #[inline(always)]
    fn fence(&self) -> impl Future<Output = Op> {
        fence(Release); // pairs with the acquire of the receiver's wait: puts are complete by then
        self.fence_future()
    }

    #[inline(always)]
    fn quiet(&self) -> impl Future<Output = Op> {
        fence(SeqCst);
        self.fence_future()
    }
}
