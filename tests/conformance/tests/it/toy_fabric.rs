//! A small fabric. One thread polls its PEs, and its messages are bytes in a map.
//!
//! This is the code of `docs/adding-a-fabric.md`. The suite also tests it: its inbox can be small,
//! its sends can last until the message is received, and it can refuse to expose buffers.

use std::{future::Future, pin::Pin};

use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor, visit};
use consort_fabric::{
    CallSpec, Candidate, Capabilities, Channel, Collective, Counters, Fabric, Kernel, Layout,
    Local, Messages, Op, Place, Rank, Rendezvous, Rma, Signal, Span, Step, VendorCall,
    VendorCollectives, not_reached,
};

use crate::toy_world::World;

/// One call of one PE.
pub(crate) struct Call<'c> {
    world: &'c World,
    rank: Rank,
    number: u64,
    kernel: Option<Kernel<'c>>,
    layouts: Option<[Layout<'c>; 2]>,
    /// The offsets of source and target in the heap, if they are there.
    heap_at: Option<[usize; 2]>,
}

/// The buffers of a call.
pub(crate) enum Buffers {
    Private([Vec<u8>; 2]),
    InHeap([usize; 2]),
}

impl<'c> Call<'c> {
    pub(crate) fn new(
        world: &'c World,
        (rank, number): (Rank, u64),
        buffers: Buffers,
        kernel: Option<Kernel<'c>>,
        layouts: Option<[Layout<'c>; 2]>,
    ) -> Self {
        let heap_at = match buffers {
            Buffers::InHeap(at) => Some(at),
            Buffers::Private([source, target]) => {
                let mut memory = world.memory.borrow_mut();
                memory.insert((rank, Place::Source), source);
                memory.insert((rank, Place::Target), target);
                None
            }
        };
        Self { world, rank, number, kernel, layouts, heap_at }
    }

    /// Ends the call; returns the content of a private target.
    pub(crate) fn finish(self) -> Vec<u8> {
        let left = self.world.undetached.borrow().get(&(self.rank, self.number)).copied();
        assert_eq!(left.unwrap_or(0), 0, "PE {} leaves a buffer exposed", self.rank);
        let target = self.world.memory.borrow_mut().remove(&(self.rank, Place::Target));
        target.filter(|_| self.heap_at.is_none()).unwrap_or_default()
    }

    /// Returns the same bytes, in the heap if the buffer is there.
    fn resolve(&self, span: Span) -> Span {
        match (span.place, self.heap_at) {
            (Place::Source, Some([at, _])) | (Place::Target, Some([_, at])) => {
                Span::heap(at + span.at, span.bytes)
            }
            _ => span,
        }
    }

    fn read(&self, span: Span) -> Vec<u8> {
        self.world.read(self.rank, self.resolve(span))
    }

    fn write(&self, span: Span, data: &[u8]) {
        assert_eq!(data.len(), span.bytes, "data and target differ in length");
        let span = self.resolve(span);
        self.world.write(self.rank, span.place, span.at, data);
    }

    /// `target = left (op) right`.
    fn combine_into(&self, target: Span, mut left: Vec<u8>, right: &[u8]) {
        let kernel = self.kernel.expect("a call that combines has an operator");
        kernel.accumulate(&mut left, right);
        self.write(target, &left);
    }

    /// Stores a message. Its channels must be free, which only the algorithm can ensure.
    fn put_into_inbox(&self, to: Rank, channel: Channel, step: Step, data: Vec<u8>) {
        let channels = |channel: Channel, data: &[u8]| {
            let first = channel.index() as usize;
            first..first + Channel::count_for(data.len())
        };
        let mine = channels(channel, &data);
        assert!(mine.end <= self.world.capabilities.inbox_channels as usize, "past the inbox");
        let mut messages = self.world.messages.borrow_mut();
        for (&(receiver, call, other), (_, data)) in messages.iter() {
            let other = channels(other, data);
            let is_apart = (receiver, call) != (to, self.number)
                || other.end <= mine.start
                || mine.end <= other.start;
            assert!(is_apart, "PE {} overwrites a message that was not received", self.rank);
        }
        messages.insert((to, self.number, channel), (step, data));
    }

    /// Waits for message `step`, and takes it.
    async fn take(&self, channel: Channel, step: Step) -> Vec<u8> {
        let key = (self.rank, self.number, channel);
        let test = || {
            let mut messages = self.world.messages.borrow_mut();
            let is_it = messages.get(&key).is_some_and(|&(sent, _)| sent == step);
            is_it.then(|| messages.remove(&key)).flatten()
        };
        let (_, data) = self.world.wait_for(test).await;
        self.world.happens();
        data
    }
}

impl Local for Call<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.world.pes
    }

    async fn copy(&self, target: Span, source: Span) -> Op {
        self.world.turn().await;
        self.write(target, &self.read(source));
        Ok(())
    }

    async fn combine(&self, target: Span, left: Span, right: Span) -> Op {
        self.world.turn().await;
        self.combine_into(target, self.read(left), &self.read(right));
        Ok(())
    }

    async fn store(&self, target: Span, bytes: &[u8]) -> Op {
        self.world.turn().await;
        self.write(target, bytes);
        Ok(())
    }

    async fn load(&self, source: Span, bytes: &mut [u8]) -> Op {
        self.world.turn().await;
        bytes.copy_from_slice(&self.read(source));
        Ok(())
    }

    fn vector_block(&self, place: Place, index: u32) -> Span {
        Layout::span(&self.layouts.expect("a vector variant has layouts"), place, index)
    }
}

impl Messages for Call<'_> {
    async fn send(&self, to: Rank, channel: Channel, step: Step, source: Span) -> Op {
        self.world.turn().await;
        self.put_into_inbox(to, channel, step, self.read(source));
        if !self.world.capabilities.buffered {
            let key = (to, self.number, channel);
            let is_taken = || {
                let messages = self.world.messages.borrow();
                messages.get(&key).is_none_or(|&(sent, _)| sent != step).then_some(())
            };
            self.world.wait_for(is_taken).await;
        }
        Ok(())
    }

    async fn receive(&self, channel: Channel, step: Step, target: Span) -> Op {
        self.world.turn().await;
        let data = self.take(channel, step).await;
        self.write(target, &data);
        Ok(())
    }

    async fn receive_combine(&self, channel: Channel, step: Step, left: Span, target: Span) -> Op {
        self.world.turn().await;
        assert!(target.bytes <= self.world.capabilities.scratch_bytes, "past the scratch memory");
        let data = self.take(channel, step).await;
        self.combine_into(target, self.read(left), &data);
        Ok(())
    }

    async fn signal(&self, to: Rank, channel: Channel, step: Step) -> Op {
        self.world.turn().await;
        let mut signals = self.world.signals.borrow_mut();
        let reached = signals.entry((to, channel, self.number)).or_default();
        *reached = step.max(*reached);
        Ok(())
    }

    async fn wait(&self, channel: Channel, step: Step) -> Op {
        self.world.turn().await;
        let key = (self.rank, channel, self.number);
        let reached = || self.world.signals.borrow().get(&key).copied();
        self.world.wait_for(|| reached().filter(|&reached| reached >= step)).await;
        Ok(())
    }
}

/// A peer's memory.
pub(crate) struct Remote {
    of: Rank,
    span: Span,
    /// Whether the peer did not have to expose it. Then there is nothing to detach.
    is_reached: bool,
}

impl Remote {
    fn part(&self, at: usize, bytes: usize) -> Span {
        assert!(at + bytes <= self.span.bytes, "past the reached or attached memory");
        Span { at: self.span.at + at, bytes, ..self.span }
    }
}

impl Rma for Call<'_> {
    type Remote = Remote;

    fn reach(&self, peer: Rank, span: Span) -> Remote {
        let same = self.resolve(span);
        if !matches!(same.place, Place::Heap | Place::Buffer) {
            not_reached(self.rank, peer, span);
        }
        Remote { of: peer, span: same, is_reached: true }
    }

    async fn get(&self, remote: &Remote, at: usize, target: Span) -> Op {
        self.world.turn().await;
        self.write(target, &self.world.read(remote.of, remote.part(at, target.bytes)));
        Ok(())
    }

    async fn get_combine(&self, remote: &Remote, at: usize, left: Span, target: Span) -> Op {
        self.world.turn().await;
        let theirs = self.world.read(remote.of, remote.part(at, target.bytes));
        self.combine_into(target, self.read(left), &theirs);
        Ok(())
    }

    async fn put(&self, remote: &Remote, at: usize, source: Span) -> Op {
        self.world.turn().await;
        let part = remote.part(at, source.bytes);
        self.world.write(remote.of, part.place, part.at, &self.read(source));
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
        self.put(remote, at, source).await?;
        let before = self.world.read(remote.of, Span::heap(word, 8));
        let before = u64::from_ne_bytes(before.try_into().expect("8 bytes"));
        let after = match how {
            Signal::Set(value) => value,
            Signal::Add(by) => before.wrapping_add(by),
        };
        self.world.write(remote.of, Place::Heap, word, &after.to_ne_bytes());
        Ok(())
    }

    async fn fence(&self) -> Op {
        Ok(())
    }

    async fn quiet(&self) -> Op {
        Ok(())
    }
}

impl Rendezvous for Call<'_> {
    async fn expose(&self, to: Rank, exposure: u32, span: Span) -> Op {
        self.world.turn().await;
        assert!(self.world.capabilities.exposes, "this fabric does not expose buffers");
        let key = (to, self.rank, exposure, self.number);
        self.world.exposed.borrow_mut().insert(key, self.resolve(span));
        *self.world.undetached.borrow_mut().entry((self.rank, self.number)).or_default() += 1;
        Ok(())
    }

    async fn attach(&self, from: Rank, exposure: u32) -> Op<Remote> {
        self.world.turn().await;
        let key = (self.rank, from, exposure, self.number);
        let span = self.world.wait_for(|| self.world.exposed.borrow_mut().remove(&key)).await;
        Ok(Remote { of: from, span, is_reached: false })
    }

    async fn check_length(&self, remote: &Remote, bytes: usize) -> Op {
        self.check_stated_length(remote.of, remote.span.bytes, bytes).await
    }

    async fn check_stated_length(&self, owner: Rank, theirs: usize, own: usize) -> Op {
        assert_eq!(theirs, own, "PEs {owner} and {} agree", self.rank);
        Ok(())
    }

    async fn detach(&self, remote: Remote) -> Op {
        self.world.turn().await;
        if !remote.is_reached {
            let mut undetached = self.world.undetached.borrow_mut();
            *undetached.get_mut(&(remote.of, self.number)).expect("it is exposed") -= 1;
        }
        Ok(())
    }

    async fn await_detached(&self) -> Op {
        self.world.turn().await;
        let left = || self.world.undetached.borrow().get(&(self.rank, self.number)).copied();
        self.world.wait_for(|| (left().unwrap_or(0) == 0).then_some(())).await;
        Ok(())
    }
}

impl VendorCollectives for Call<'_> {
    async fn vendor(&self, call: VendorCall) -> Op {
        self.world.turn().await;
        let (pes, nodes) = (self.world.pes, self.world.capabilities.nodes);
        let (own, count) = match call.leaders {
            true => (nodes.node(self.rank.0), nodes.count(pes)),
            false => (self.rank.0, pes),
        };
        let key = (call.leaders, self.number);
        let contribution = self.read(call.source);
        self.world.contributed.borrow_mut().entry(key).or_default().insert(own, contribution);
        let all = || {
            let contributed = self.world.contributed.borrow();
            contributed.get(&key).filter(|all| all.len() == count as usize).cloned()
        };
        let all = self.world.wait_for(all).await;
        let block = |of: u32, index: u32| {
            let at = index as usize * call.bytes;
            all[&of][at..at + call.bytes].to_vec()
        };
        let result = match call.collective {
            Collective::Broadcast => block(call.root.0, 0),
            Collective::Scatter => block(call.root.0, own),
            Collective::AllToAll => (0..count).flat_map(|from| block(from, own)).collect(),
            Collective::Gather | Collective::AllGather => {
                (0..count).flat_map(|from| block(from, 0)).collect()
            }
            Collective::Reduce | Collective::AllReduce => {
                let kernel = self.kernel.expect("a call that combines has an operator");
                (1..count).fold(block(0, 0), |mut left, from| {
                    kernel.accumulate(&mut left, &block(from, 0));
                    left
                })
            }
            _ => Vec::new(), // a barrier
        };
        self.write(call.target, &result[..call.target.bytes]);
        Ok(())
    }
}

impl Counters for Call<'_> {
    async fn count(&self, at: Rank, counter: u32, by: u64) -> Op<u64> {
        self.world.turn().await;
        let mut counters = self.world.counters.borrow_mut();
        let count = counters.entry((at, counter, self.number)).or_default();
        Ok(std::mem::replace(count, count.wrapping_add(by)))
    }
}

/// A plan of one PE, for any algorithm.
pub(crate) trait Run {
    fn run<'c>(&'c self, call: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>>;
}

impl<A: Algorithm> Run for Plan<A> {
    fn run<'c>(&'c self, call: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        Self::run(self, call)
    }
}

/// Makes the plan of an algorithm that is named at run time.
pub(crate) struct Maker<'m> {
    setting: Setting,
    candidate: &'m Candidate,
    barrier: &'m Candidate,
}

impl Visitor for Maker<'_> {
    type Output = Result<Box<dyn Run>, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        Ok(Box::new(Plan::<A>::new(&self.setting, self.candidate, self.barrier)?))
    }
}

/// Returns the plan of PE `rank` for a call.
pub(crate) fn plan(
    (call, rank): (&CallSpec, Rank),
    capabilities: Capabilities,
    candidate: &Candidate,
    barrier: &Candidate,
) -> Result<Box<dyn Run>, PlanError> {
    let setting = Setting::of(*call, capabilities).at(rank);
    visit(call.collective, &candidate.algorithm, Maker { setting, candidate, barrier })?
}

/// Compiles only if all parts of a fabric exist.
const fn is_fabric<F: Fabric>() {}
const _: () = is_fabric::<Call<'static>>();
