//! LCRQ: Morrison and Afek 2013, section 3, Figure 4, with the correction of their revised version;
//! LCRQ+H, for clusters of cores, section 4.3.
//!
//! A list of rings. Values are put into the last ring; when it is closed, a new ring that contains
//! the value is appended. Values are taken from the first ring, which leaves the list when it is
//! closed and empty.
//!
//! A ring that has left the list is reused once no thread can still use it. Each thread publishes
//! the first and the last ring that it used most recently: its hazard pointers (Michael 2004,
//! sections 2 and 3). After a fence it checks whether that ring is still in place. A thread that
//! searches for an unpublished ring also fences first. A ring stays published until the thread uses
//! another ring. So a thread that uses the same ring again needs no fence, and an idle thread keeps
//! two rings from being reused. Rings are freed with the queue.
//!
//! For clusters, each ring records the cluster whose turn it is. A thread of another cluster waits
//! for a limited time before it takes the turn for its cluster.

#![expect(unsafe_code, reason = "links rings by addresses")]

use std::{
    cell::Cell,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

use consort_machine::{Line, Machine, Thread, Until};

use super::{
    Container, check,
    crq::{CLUSTER, CellForm, NEXT, NEXT_SPARE, Ring},
};

/// Indexes of the ends of the list, and of the words of a thread's hazard pointers.
const FIRST: usize = 0;
const LAST: usize = 1;
/// The next thread's hazard pointers; 0 if there are none.
const NEXT_THREAD: usize = 2;

/// Words of `lists`: rings out of use, and the threads' hazard pointers; 0 if there are none.
const SPARE: usize = 0;
const THREADS: usize = 1;

/// LCRQ: a queue that threads use without waiting for each other.
#[derive(Debug)]
pub struct Lcrq {
    /// Word 0 of each: the address of the first and of the last ring.
    ends: [Line; 2],
    lists: Line,
    form: CellForm,
    ring_size: usize,
    clusters: Option<Clusters>,
}

/// Clusters of cores, such as sockets: LCRQ+H.
#[derive(Clone, Copy, Debug)]
pub struct Clusters {
    /// Returns the cluster of a thread. Each thread calls it once.
    pub of: fn(Thread) -> usize,
    /// How long a thread waits for the turn of its own cluster, in nanoseconds.
    pub wait_ns: u64,
}

/// State that each thread keeps for an [`Lcrq`].
#[derive(Debug, Default)]
pub struct MyRings {
    hazards: Cell<Option<&'static Line>>,
    /// The contents of the hazard pointers.
    published: [Cell<u64>; 2],
    cluster: Cell<Option<u64>>,
}

/// # Safety
/// The address is that of a ring, which is not freed before the reference ends.
unsafe fn ring<'r>(address: u64) -> &'r Ring {
    #[expect(clippy::cast_possible_truncation, reason = "it was an address")]
    let ring = std::ptr::with_exposed_provenance::<Ring>(address as usize);
    // SAFETY: guaranteed by the caller. Everything that changes in a ring is atomic.
    unsafe { &*ring }
}

impl Lcrq {
    /// The number of cells of a ring on the native machine (Petrović 2015, section 7.2.3).
    pub const RING_SIZE: usize = 1 << 17;

    /// Creates an empty queue whose rings have `ring_size` cells, a power of two. Values are
    /// numbers of 62 bits if the machine can exchange [pairs](Machine::has_pairs) of words,
    /// otherwise numbers of 32 bits, except the largest one.
    ///
    /// # Panics
    /// When the size is not a power of two.
    #[must_use]
    pub fn new<M: Machine>(m: &M, ring_size: usize) -> Self {
        Self::of(if m.has_pairs() { CellForm::Pairs } else { CellForm::Packed }, ring_size)
    }

    /// Creates a queue whose values are numbers of 32 bits, except the largest one, on any machine.
    ///
    /// # Panics
    /// When the size is not a power of two.
    #[must_use]
    pub fn packed(ring_size: usize) -> Self {
        Self::of(CellForm::Packed, ring_size)
    }

    fn of(form: CellForm, ring_size: usize) -> Self {
        assert!(ring_size.is_power_of_two(), "a ring of {ring_size} cells: not a power of two");
        let ends: [Line; 2] = Default::default();
        let first = Self::allocate(form, ring_size);
        ends.iter().for_each(|end| end[0].atomic().store(first, Relaxed));
        Self { ends, lists: Line::default(), form, ring_size, clusters: None }
    }

    /// Makes the clusters take turns at each ring: LCRQ+H.
    #[must_use]
    pub const fn with_clusters(mut self, clusters: Clusters) -> Self {
        self.clusters = Some(clusters);
        self
    }

    /// Allocates a ring and returns its address.
    fn allocate(form: CellForm, ring_size: usize) -> u64 {
        Box::into_raw(Box::new(Ring::new(form, ring_size))).expose_provenance() as u64
    }

    /// Returns the hazard pointers of the calling thread, which are in the list.
    async fn hazards<M: Machine>(&self, m: &M, mine: &MyRings) -> &'static Line {
        if let Some(hazards) = mine.hazards.get() {
            return hazards;
        }
        let hazards = m.take_line();
        m.store(&hazards[FIRST], 0, Relaxed).await;
        m.store(&hazards[LAST], 0, Relaxed).await;
        let mut next = m.load(&self.lists[THREADS], Relaxed).await;
        loop {
            m.store(&hazards[NEXT_THREAD], next, Relaxed).await;
            let (list, new) = (&self.lists[THREADS], hazards.address());
            // Pairs with the load in `is_published`.
            match m.compare_exchange(list, next, new, Release).await {
                Ok(_) => break,
                Err(other) => next = other,
            }
        }
        mine.hazards.set(Some(hazards));
        hazards
    }

    /// Returns the ring at an end of the list, with its address. It is not reused before the
    /// thread's next call for the same end.
    #[inline]
    async fn at_end<'q, M: Machine>(
        &'q self,
        m: &M,
        mine: &'q MyRings,
        end: usize,
    ) -> (u64, &'q Ring) {
        // Pairs with the releases of those that change the ends.
        let mut address = m.load(&self.ends[end][0], Acquire).await;
        while mine.published[end].get() != address {
            // Pairs with the acquire in `is_published`: the thread no longer uses the previous
            // ring.
            m.store(&self.hazards(m, mine).await[end], address, Release).await;
            mine.published[end].set(address);
            m.fence(SeqCst).await; // pairs with `new_ring`: one side sees what the other wrote
            address = m.load(&self.ends[end][0], Acquire).await;
        }
        // SAFETY: a ring is freed when it has left the list and no thread publishes it, or with the
        // queue. This ring was in the list when the thread had already published it.
        (address, unsafe { ring(address) })
    }

    /// Returns the thread's cluster plus one, and how long the thread waits for its cluster's turn;
    /// `None` without clusters. Call this before a ring is published, because the function that
    /// names the cluster may use the queue.
    #[inline]
    fn turns<M: Machine>(&self, m: &M, mine: &MyRings) -> Option<(u64, u64)> {
        let Clusters { of, wait_ns } = self.clusters?;
        let cluster = mine.cluster.get().unwrap_or_else(|| of(m.thread()) as u64 + 1);
        mine.cluster.set(Some(cluster));
        Some((cluster, wait_ns))
    }

    /// Waits for the turn of the thread's cluster at a ring, for a limited time.
    #[inline]
    async fn await_turn<M: Machine>(
        &self,
        m: &M,
        turns: Option<(u64, u64)>,
        ring: &Ring,
    ) -> Result<(), M::Stop> {
        let Some((cluster, wait_ns)) = turns else { return Ok(()) };
        let turn = &ring.links[CLUSTER];
        let mut now = m.load(turn, Relaxed).await;
        if now != cluster && now != 0 {
            let end_ns = m.now_ns().saturating_add(wait_ns);
            let came = m.wait_until_time(turn, Until::Equals(cluster), end_ns).await?;
            now = if came.is_some() { cluster } else { m.load(turn, Relaxed).await };
        }
        if now != cluster && m.compare_exchange(turn, now, cluster, Relaxed).await.is_ok() {
            m.wake(turn);
        }
        Ok(())
    }

    /// Returns a ring that no other thread uses.
    async fn new_ring<M: Machine>(&self, m: &M) -> u64 {
        // Pairs with the release in `leave`.
        let mut next = m.swap(&self.lists[SPARE], 0, AcqRel).await;
        let mut found = None;
        m.fence(SeqCst).await; // pairs with that of `at_end`
        while next != 0 {
            let address = next;
            // SAFETY: it is a ring from the spare list, which only this thread has now. Rings of
            // that list are freed below or with the queue.
            let spare = unsafe { ring(address) };
            next = m.load(&spare.links[NEXT_SPARE], Relaxed).await;
            if found.is_some() || self.is_published(m, address).await {
                self.leave(m, address).await;
            } else if spare.open(m).await {
                found = Some(address);
            } else {
                // SAFETY: it has left the list of rings in use, no thread publishes it, and a
                // thread that has read its address first checks whether it is still in that list.
                unsafe { Self::free(address) };
            }
        }
        found.unwrap_or_else(|| Self::allocate(self.form, self.ring_size))
    }

    /// Returns whether a thread publishes a ring.
    async fn is_published<M: Machine>(&self, m: &M, address: u64) -> bool {
        let mut next = m.load(&self.lists[THREADS], Acquire).await;
        while next != 0 {
            // SAFETY: the list has addresses of lines, and lines are never freed.
            let hazards = unsafe { Line::at(next) };
            for end in [FIRST, LAST] {
                // Pairs with the release in `at_end`.
                if m.load(&hazards[end], Acquire).await == address {
                    return true;
                }
            }
            next = m.load(&hazards[NEXT_THREAD], Relaxed).await;
        }
        false
    }

    /// Adds a ring to the spare list.
    async fn leave<M: Machine>(&self, m: &M, address: u64) {
        // SAFETY: the caller has removed it from a list, and no thread frees it outside a list.
        let links = unsafe { &ring(address).links };
        let mut next = m.load(&self.lists[SPARE], Relaxed).await;
        loop {
            m.store(&links[NEXT_SPARE], next, Relaxed).await;
            match m.compare_exchange(&self.lists[SPARE], next, address, Release).await {
                Ok(_) => return,
                Err(other) => next = other,
            }
        }
    }

    /// # Safety
    /// The address is that of a ring, which no thread uses any more.
    unsafe fn free(address: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "it was an address")]
        let ring = std::ptr::with_exposed_provenance_mut::<Ring>(address as usize);
        // SAFETY: `allocate` created it from a box. The caller guarantees the rest.
        drop(unsafe { Box::from_raw(ring) });
    }
}

// SAFETY: a cell is exchanged for one with a value, and then, by the thread with the same ticket,
// for one without it; both exchanges release and acquire. A ring leaves the list when it is closed
// and empty, and is not reused while a thread may use it.
unsafe impl Container for Lcrq {
    type Local = MyRings;

    fn values(&self) -> u64 {
        self.form.values()
    }

    #[inline]
    async fn put<M: Machine>(&self, m: &M, mine: &MyRings, value: u64) -> Result<(), M::Stop> {
        check(value, self.values());
        let turns = self.turns(m, mine);
        loop {
            let (address, last) = self.at_end(m, mine, LAST).await;
            self.await_turn(m, turns, last).await?;
            if last.put(m, value).await {
                return Ok(());
            }
            let mut next = m.load(&last.links[NEXT], Acquire).await;
            if next == 0 {
                let new = self.new_ring(m).await;
                // SAFETY: no other thread has it yet.
                let spare = unsafe { ring(new) };
                spare.put(m, value).await;
                // Pairs with the acquires of threads that advance to it.
                match m.compare_exchange(&last.links[NEXT], 0, new, AcqRel).await {
                    Ok(_) => {
                        let _ = m.compare_exchange(&self.ends[LAST][0], address, new, AcqRel).await;
                        return Ok(());
                    }
                    Err(other) => {
                        spare.take(m).await;
                        self.leave(m, new).await;
                        next = other;
                    }
                }
            }
            let _ = m.compare_exchange(&self.ends[LAST][0], address, next, AcqRel).await;
        }
    }

    #[inline]
    async fn take<M: Machine>(&self, m: &M, mine: &MyRings) -> Result<Option<u64>, M::Stop> {
        let turns = self.turns(m, mine);
        loop {
            let (address, first) = self.at_end(m, mine, FIRST).await;
            self.await_turn(m, turns, first).await?;
            let value = first.take(m).await;
            if value.is_some() {
                return Ok(value);
            }
            let next = m.load(&first.links[NEXT], Acquire).await;
            if next == 0 {
                return Ok(None);
            }
            // The correction: a value may have arrived before the ring was closed.
            let value = first.take(m).await;
            if value.is_some() {
                return Ok(value);
            }
            // Otherwise the last ring could be one that has left the list.
            let _ = m.compare_exchange(&self.ends[LAST][0], address, next, AcqRel).await;
            if m.compare_exchange(&self.ends[FIRST][0], address, next, AcqRel).await.is_ok() {
                self.leave(m, address).await;
            }
        }
    }

    fn waits(&self) -> bool {
        self.clusters.is_some()
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let mut next = self.lists[THREADS].atomic().swap(0, Relaxed);
        while next != 0 {
            // SAFETY: the list has addresses of lines.
            let hazards = unsafe { Line::at(next) };
            next = hazards[NEXT_THREAD].atomic().load(Relaxed);
            m.give_line(hazards);
        }
    }
}

impl Drop for Lcrq {
    fn drop(&mut self) {
        let lists =
            [(self.ends[FIRST][0].atomic(), NEXT), (self.lists[SPARE].atomic(), NEXT_SPARE)];
        for (list, link) in lists {
            let mut next = list.load(Relaxed);
            while next != 0 {
                let address = next;
                // SAFETY: it is a ring in one of the two lists, and not freed yet.
                next = unsafe { ring(address) }.links[link].atomic().load(Relaxed);
                // SAFETY: no thread uses the queue any more, and the ring was in one list.
                unsafe { Self::free(address) };
            }
        }
    }
}
