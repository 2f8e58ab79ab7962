//! Treiber's stack: Treiber 1986, IBM research report RJ 5118.
//!
//! A list of nodes. A thread prepares a new list, and replaces the address of the top node with
//! that of the new top. If another thread was faster, it tries again. A count next to the address
//! increases with each value taken, so that an exchange fails if its node was taken, reused and put
//! again in the meantime. If the machine can exchange two words at once, the count has its own
//! word. Otherwise the address and the count share a word: a thread that sleeps while exactly a
//! multiple of 2^22 values are taken may then lose values.
//!
//! Nodes are lines, and lines are never freed. A thread may therefore read a node that has left the
//! list; its exchange then fails.

#![expect(unsafe_code, reason = "links nodes by addresses")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use consort_machine::{Line, Machine};

use super::{Container, VALUES, check};

/// Words of a node.
const VALUE: usize = 0;
const BELOW: usize = 1;

/// The address bits that may be nonzero, where the address shares a word with the count.
const LOWEST_BIT: u32 = 6;
const HIGHEST_BIT: u32 = 48;
const COUNT_BITS: u32 = 64 - (HIGHEST_BIT - LOWEST_BIT);

/// Treiber's stack.
#[derive(Debug, Default)]
pub struct Treiber {
    /// The address of the top node, 0 if there is none, and the count: two words or one.
    top: Line,
}

/// Address and count.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TaggedTop {
    address: u64,
    count: u64,
}

impl TaggedTop {
    const fn packed(self) -> u64 {
        self.address << (COUNT_BITS - LOWEST_BIT) | self.count & ((1 << COUNT_BITS) - 1)
    }

    const fn unpacked(word: u64) -> Self {
        let count = word & ((1 << COUNT_BITS) - 1);
        Self { address: word >> COUNT_BITS << LOWEST_BIT, count }
    }
}

/// Returns the node at an address that was read from a stack.
fn node(address: u64) -> &'static Line {
    // SAFETY: `top` and `BELOW` hold addresses of nodes, or 0, which the callers exclude. `BELOW`
    // of a line that has a new owner is not used, since the exchange fails.
    unsafe { Line::at(address) }
}

impl Treiber {
    /// Creates an empty stack.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the top. Two words are read one after the other. If the exchange with the result
    /// succeeds, the count did not change, so nothing was taken, and the address is that of a node
    /// that is still on top.
    #[inline]
    async fn top<M: Machine>(&self, m: &M) -> TaggedTop {
        if m.has_pairs() {
            let count = m.load(&self.top[1], Acquire).await;
            TaggedTop { count, address: m.load(&self.top[0], Acquire).await }
        } else {
            TaggedTop::unpacked(m.load(&self.top[0], Acquire).await)
        }
    }

    /// # Errors
    /// Returns the current top if it is not `old`.
    #[inline]
    async fn exchange<M: Machine>(
        &self,
        m: &M,
        old: TaggedTop,
        new: TaggedTop,
    ) -> Result<(), TaggedTop> {
        if m.has_pairs() {
            let pair = |top: TaggedTop| [top.address, top.count];
            let top = &self.top.pairs()[0];
            let result = m.compare_exchange_pair(top, pair(old), pair(new), AcqRel).await;
            return result.map(|_| ()).map_err(|[address, count]| TaggedTop { address, count });
        }
        let result = m.compare_exchange(&self.top[0], old.packed(), new.packed(), AcqRel).await;
        result.map(|_| ()).map_err(TaggedTop::unpacked)
    }
}

// SAFETY: a successful exchange removes the top node or adds one; it releases and acquires.
unsafe impl Container for Treiber {
    type Local = ();

    #[inline]
    async fn put<M: Machine>(&self, m: &M, (): &(), value: u64) -> Result<(), M::Stop> {
        check(value, VALUES);
        let line = m.take_line();
        let address = line.address();
        assert!(address >> HIGHEST_BIT == 0 || m.has_pairs(), "the address has more than 48 bits");
        m.store(&line[VALUE], value, Relaxed).await;
        let mut top = self.top(m).await;
        loop {
            m.store(&line[BELOW], top.address, Relaxed).await;
            // Pairs with the acquire in `take`.
            match self.exchange(m, top, TaggedTop { address, ..top }).await {
                Ok(()) => return Ok(()),
                Err(other) => top = other,
            }
        }
    }

    #[inline]
    async fn take<M: Machine>(&self, m: &M, (): &()) -> Result<Option<u64>, M::Stop> {
        let mut top = self.top(m).await;
        while top.address != 0 {
            let line = node(top.address);
            let below = m.load(&line[BELOW], Relaxed).await;
            let new = TaggedTop { address: below, count: top.count.wrapping_add(1) };
            match self.exchange(m, top, new).await {
                Ok(()) => {
                    let value = m.load(&line[VALUE], Relaxed).await;
                    m.give_line(line);
                    return Ok(Some(value));
                }
                Err(other) => top = other,
            }
        }
        Ok(None)
    }

    fn waits(&self) -> bool {
        false
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let top = self.top[0].atomic().load(Relaxed);
        let mut top = if m.has_pairs() { top } else { TaggedTop::unpacked(top).address };
        while top != 0 {
            let line = node(top);
            top = line[BELOW].atomic().load(Relaxed);
            m.give_line(line);
        }
    }
}
